//! TIME-WAIT of a subflow whose connection is forgotten: the state to answer the peer, and to recognize the next
//! connection between the same ports (RFC 9293, section 3.10.7.4; RFC 6191).

use super::association::Protocol;
use super::packets::packet;
use super::state::Connection;
use crate::stamp_clock::StampClock;
use crate::subflow::timers::SubflowTimer;
use crate::subflow::{State, Subflow};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::{DataAck, Dss};
use anabranch_wire::tcp::Timestamps;
use anabranch_wire::{Flags, Packet, Segment, SeqNumber};
use core::net::SocketAddr;

/// Minimum time between answers to unacceptable segments (RFC 5961, section 7).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(100);

/// By how much the next incarnation begins beyond the numbers of the last, if its own initial number is not beyond
/// them.
const AFTER_THE_LAST: u32 = 1 << 16;

/// A subflow in TIME-WAIT.
#[derive(Clone, Copy, Debug)]
pub struct TimeWait {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Its end.
    pub until: Instant,
    /// Its duration.
    wait: Duration,
    send_next: SeqNumber,
    receive_next: SeqNumber,
    /// Our timestamp clock, and the peer's last timestamp.
    stamps: Option<(StampClock, u32)>,
    /// We would have taken timestamps: that there are none is the peer's doing.
    takes_stamps: bool,
    window: u16,
    data_ack: Option<DataAck>,
    next_challenge: Instant,
}

/// Verdict on a segment for a subflow in TIME-WAIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeWaitVerdict {
    /// Ignore it.
    Drop,
    /// Answer with [`TimeWait::acknowledgement`].
    Acknowledge,
    /// The peer reset the subflow.
    Reset,
}

impl TimeWait {
    /// Whether the peer's SYN begins a new connection (RFC 6191, section 2). Timestamps that the last connection had not
    /// say so only if we would have accepted them: else it may be a late duplicate of the last connection's SYN.
    pub fn accepts_syn(&self, segment: &Segment) -> bool {
        let newer_number = segment.seq.at_or_after(self.receive_next);
        match (self.stamps, segment.options.timestamps) {
            _ if !opens(segment) => false,
            (Some((_, last)), Some(now)) => match now.value.wrapping_sub(last) as i32 {
                0 => newer_number,
                since => since > 0,
            },
            (None, Some(_)) => self.takes_stamps || newer_number,
            (_, None) => newer_number,
        }
    }

    /// Whether we may open a connection between these ports. The peer may be in TIME-WAIT too, and recognizes a new SYN
    /// by its later timestamp (RFC 6191), which advances once per millisecond.
    pub fn allows_reuse(&self, now: Instant) -> bool {
        let since = self.wait - self.until.since(now);
        self.stamps.is_some() && since >= Duration::from_secs(1)
    }

    /// The initial sequence number of the next connection between these ports: `proposed`, unless that is not beyond
    /// the largest number used (RFC 9293, section 3.10.7.4).
    pub fn initial_after(&self, proposed: SeqNumber) -> SeqNumber {
        if proposed.after(self.send_next) { proposed } else { self.send_next + AFTER_THE_LAST }
    }

    /// Handles a segment that does not open a connection.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) -> TimeWaitVerdict {
        if segment.flags.contains(Flags::RST) {
            return match segment.seq == self.receive_next {
                true => TimeWaitVerdict::Reset,
                false => self.challenge(now),
            };
        }
        if segment.flags.contains(Flags::FIN) && segment.seq + segment.sequence_length() == self.receive_next {
            // The peer lost our last acknowledgement.
            self.until = now + self.wait;
            return TimeWaitVerdict::Acknowledge;
        }
        let expected = segment.seq == self.receive_next && segment.sequence_length() == 0;
        let old =
            self.stamps.zip(segment.options.timestamps).is_some_and(|((_, last), its)| is_before(its.value, last));
        if expected && !old && segment.ack.at_or_before(self.send_next) {
            return TimeWaitVerdict::Drop;
        }
        self.challenge(now)
    }

    fn challenge(&mut self, now: Instant) -> TimeWaitVerdict {
        if now < self.next_challenge {
            return TimeWaitVerdict::Drop;
        }
        self.next_challenge = now + CHALLENGE_INTERVAL;
        TimeWaitVerdict::Acknowledge
    }

    /// The acknowledgement to send now.
    pub fn acknowledgement(&self, now: Instant) -> Packet {
        let mut segment = Segment {
            source_port: self.local.port(),
            destination_port: self.remote.port(),
            seq: self.send_next,
            ack: self.receive_next,
            flags: Flags::ACK,
            window: self.window,
            ..Segment::default()
        };
        segment.options.timestamps =
            self.stamps.map(|(clock, last)| Timestamps { value: clock.stamp(now), echo: last });
        segment.options.dss =
            self.data_ack.map(|data_ack| Dss { data_ack: Some(data_ack), mapping: None, data_fin: false });
        packet(self.local, self.remote, segment)
    }
}

/// Whether a segment is a SYN that opens a connection.
fn opens(segment: &Segment) -> bool {
    segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST | Flags::FIN)
}

fn is_before(stamp: u32, last: u32) -> bool {
    (stamp.wrapping_sub(last) as i32) < 0
}

impl Connection {
    /// Whether only subflows in TIME-WAIT are left, and the application has forgotten the connection.
    pub fn is_in_time_wait(&self) -> bool {
        self.life.closed.is_some()
            && self.life.discarded()
            && !self.subflows.is_empty()
            && self.output.is_empty()
            && self.subflows.iter().all(|subflow| subflow.state == State::TimeWait)
    }

    /// Removes and returns its subflows in TIME-WAIT; [`Self::is_in_time_wait`] must hold.
    pub fn keep_time_wait(&mut self) -> Vec<TimeWait> {
        let all = self.subflows.iter().map(|subflow| self.time_wait(subflow)).collect();
        while let Some(handle) = self.subflows.first_handle() {
            self.remove_subflow(handle, CloseReason::Normal);
        }
        all
    }

    /// Ends the TIME-WAIT between these addresses if the segment begins the peer's next connection there; returns its
    /// state.
    pub fn end_time_wait(&mut self, local: SocketAddr, remote: SocketAddr, segment: &Segment) -> Option<TimeWait> {
        if !opens(segment) {
            return None;
        }
        let between = |s: &Subflow| s.identity.local == local && s.identity.remote == remote;
        let handle = self.subflows.find(|subflow| subflow.state == State::TimeWait && between(subflow))?;
        let time_wait = self.time_wait(&self.subflows[handle]);
        time_wait.accepts_syn(segment).then(|| {
            self.remove_subflow(handle, CloseReason::Normal);
            time_wait
        })
    }

    fn time_wait(&self, subflow: &Subflow) -> TimeWait {
        let multipath = self.association.protocol == Protocol::Multipath;
        let window = self.receiver.buffer.window() >> subflow.negotiated.receive_scale;
        TimeWait {
            local: subflow.identity.local,
            remote: subflow.identity.remote,
            until: subflow.timers.at(SubflowTimer::Linger),
            wait: self.config.tcp.time_wait,
            send_next: subflow.send.nxt,
            receive_next: subflow.receiver.next,
            stamps: subflow.negotiated.timestamps.then(|| (self.stamp_clock(), subflow.receiver.timestamp)),
            takes_stamps: self.config.tcp.options.timestamps,
            window: window.min(0xffff) as u16,
            data_ack: multipath.then(|| self.wire_data_ack()),
            next_challenge: Instant::ZERO,
        }
    }
}

#[cfg(test)]
impl TimeWait {
    /// A connection without data.
    pub(crate) fn between(local: SocketAddr, remote: SocketAddr, until: Instant) -> Self {
        Self {
            local,
            remote,
            until,
            wait: Duration::from_secs(60),
            send_next: SeqNumber(0),
            receive_next: SeqNumber(0),
            stamps: None,
            takes_stamps: true,
            window: 0,
            data_ack: None,
            next_challenge: Instant::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_connection_begins_beyond_the_last_also_where_that_was_faster_than_the_clock() {
        let end = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let time_wait =
            TimeWait { send_next: SeqNumber(u32::MAX - 10), ..TimeWait::between(end(1), end(2), Instant::ZERO) };
        assert_eq!(time_wait.initial_after(SeqNumber(5)), SeqNumber(5));
        assert_eq!(time_wait.initial_after(SeqNumber(u32::MAX - 10)), SeqNumber(65_525));
        assert_eq!(time_wait.initial_after(SeqNumber(u32::MAX - 1_000)), SeqNumber(65_525));
    }

    const END: Instant = Instant::from_nanos(60_000_000_000);

    /// Of a connection whose next numbers are 1,000 and 500 and whose last timestamp from the peer was 70.
    fn time_wait(stamped: bool) -> TimeWait {
        let end = |port| SocketAddr::from(([10, 0, 0, 1], port));
        TimeWait {
            send_next: SeqNumber(1_000),
            receive_next: SeqNumber(500),
            stamps: stamped.then_some((StampClock { offset: 0, drift: 0 }, 70)),
            ..TimeWait::between(end(1), end(2), END)
        }
    }

    fn segment(seq: u32, flags: Flags, stamp: Option<u32>) -> Segment {
        let mut segment = Segment { seq: SeqNumber(seq), ack: SeqNumber(1_000), flags, ..Segment::default() };
        segment.options.timestamps = stamp.map(|value| Timestamps { value, echo: 0 });
        segment
    }

    #[test]
    fn a_syn_opens_the_next_connection_with_a_later_timestamp_or_else_a_later_number() {
        // RFC 6191, section 2.
        let accepts = |ours: bool, takes: bool, seq: u32, stamp: Option<u32>| {
            let time_wait = TimeWait { takes_stamps: takes, ..time_wait(ours) };
            time_wait.accepts_syn(&segment(seq, Flags::SYN, stamp))
        };
        assert!(accepts(true, true, 1, Some(71)) && !accepts(true, true, 900, Some(69)));
        assert!(accepts(true, true, 500, Some(70)) && !accepts(true, true, 499, Some(70)));
        assert!(accepts(false, true, 1, Some(1)), "we would have taken timestamps before");
        assert!(accepts(false, false, 500, Some(1)) && !accepts(false, false, 499, Some(1)));
        assert!(accepts(true, true, 500, None) && !accepts(true, true, 499, None));
        assert!(accepts(false, true, 500, None) && !accepts(false, true, 499, None));
        for flags in [Flags::ACK, Flags::SYN | Flags::ACK, Flags::SYN | Flags::RST, Flags::SYN | Flags::FIN] {
            assert!(!time_wait(true).accepts_syn(&segment(900, flags, Some(99))), "{flags:?}");
        }
    }

    #[test]
    fn ports_are_used_again_a_second_after_the_end_where_timestamps_tell_connections_apart() {
        let allows = |stamped: bool, after: u64| {
            let began = END - Duration::from_secs(60);
            time_wait(stamped).allows_reuse(began + Duration::from_millis(after))
        };
        assert!(allows(true, 1_000) && !allows(true, 999) && !allows(false, 30_000));
    }

    #[test]
    fn in_time_wait_a_reset_must_hit_the_next_number_and_only_the_fin_prolongs_the_wait() {
        use TimeWaitVerdict::*;
        let now = Instant::ZERO + Duration::from_secs(50);
        let judged = |segment: Segment| {
            let mut time_wait = time_wait(true);
            let verdict = time_wait.handle_segment(now, &segment);
            (verdict, time_wait.until == now + Duration::from_secs(60))
        };
        assert_eq!(judged(segment(500, Flags::RST, None)), (Reset, false));
        assert_eq!(judged(segment(501, Flags::RST, None)), (Acknowledge, false), "RFC 5961, section 3");
        let fin = Flags::ACK | Flags::FIN;
        assert_eq!(judged(segment(499, fin, Some(70))), (Acknowledge, true));
        assert_eq!(judged(segment(498, fin, Some(70))), (Acknowledge, false));
        let ack = Flags::ACK;
        assert_eq!(judged(segment(500, ack, Some(70))), (Drop, false));
        assert_eq!(judged(segment(500, ack, Some(69))), (Acknowledge, false), "an old timestamp");
        assert_eq!(judged(segment(499, ack, Some(70))), (Acknowledge, false));
        let later = Segment { ack: SeqNumber(1_001), ..segment(500, ack, Some(70)) };
        assert_eq!(judged(later), (Acknowledge, false), "it acknowledges what was never sent");
        let data = Segment { payload: bytes::Bytes::from_static(b"data"), ..segment(500, ack, Some(70)) };
        assert_eq!(judged(data), (Acknowledge, false));
    }

    #[test]
    fn a_challenge_is_answered_at_most_every_tenth_of_a_second() {
        let mut time_wait = time_wait(true);
        let mut answered = |millis: u64| {
            let now = Instant::ZERO + Duration::from_millis(millis);
            time_wait.handle_segment(now, &segment(9, Flags::ACK, None)) == TimeWaitVerdict::Acknowledge
        };
        assert!(answered(0) && !answered(99) && answered(100) && !answered(199) && answered(200));
    }

    #[test]
    fn what_is_kept_of_a_subflow_is_what_its_peer_may_ask_for() {
        use crate::config::{BufferSize, ConnectionConfig};
        use crate::connection::tests::{config, connected};
        let config = ConnectionConfig { receive_buffer: BufferSize::Fixed(40_000), ..config() };
        let mut connection = connected(config, 2);
        connection.receiver.offer_window();
        let handle = connection.subflows.first_handle().unwrap();
        let subflow = &mut connection.subflows[handle];
        (subflow.negotiated.receive_scale, subflow.negotiated.timestamps) = (3, true);
        subflow.receiver.timestamp = 70;
        subflow.timers.set(SubflowTimer::Linger, END);
        let kept = connection.time_wait(&connection.subflows[handle]);
        assert_eq!((kept.window, kept.until, kept.stamps.map(|(_, last)| last)), (5_000, END, Some(70)));
        assert!(kept.data_ack.is_some());
        let answer = kept.acknowledgement(Instant::ZERO).segment;
        let subflow = &connection.subflows[handle];
        assert_eq!((answer.seq, answer.ack, answer.window), (subflow.send.nxt, subflow.receiver.next, 5_000));
        assert_eq!(answer.options.timestamps.map(|stamps| stamps.echo), Some(70));
        connection.association.protocol = Protocol::Tcp;
        assert!(connection.time_wait(&connection.subflows[handle]).data_ack.is_none());
    }
}
