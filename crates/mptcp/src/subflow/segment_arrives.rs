//! Whether a segment is acceptable to a subflow, and the effects of its control bits (RFC 9293, section 3.10.7; RFC
//! 5961; RFC 7323).

use super::acknowledge::AckJudgement;
use super::negotiated::Notification;
use super::state::Subflow;
use super::tcp_state::State;
use super::timers::SubflowTimer;
use crate::config::{EcnMode, TcpConfig};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::{Ecn, Flags, Segment, SeqNumber};

/// Minimum time between challenge acknowledgements of a subflow (RFC 5961, section 7).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(100);

/// Validity of TS.Recent without an update (RFC 7323, section 5.5).
const TIMESTAMP_LIFE: Duration = Duration::from_secs(24 * 24 * 3600);

/// A SYN with both bits asks for ECN (RFC 3168, section 6.1.1).
pub const ECN_SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

/// What to do with a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Ignore it. An acknowledgement may have become due.
    Drop,
    /// Process its acknowledgement and payload.
    Process {
        /// Its acknowledgement number is current.
        acknowledges: bool,
    },
    /// The peer reset the subflow.
    Reset,
    /// Answer with a reset whose sequence number is the segment's acknowledgement number.
    Refuse,
}

impl Subflow {
    /// Whether a segment is of the usual kind, which [`Self::judge`] would have processed: in an established subflow,
    /// next in sequence, with a timestamp and a current acknowledgement, and nothing else (Jacobson's header
    /// prediction; RFC 1323, appendix).
    #[inline]
    pub fn is_expected(&self, segment: &Segment) -> bool {
        let Some(stamps) = segment.options.timestamps else { return false };
        (segment.flags.0 & !Flags::PSH.0) == Flags::ACK.0
            && self.state == State::Established
            && segment.seq == self.receiver.next
            && segment.ack.at_or_after(self.send.una)
            && segment.ack.at_or_before(self.send.nxt)
            && self.negotiated.timestamps
            && (stamps.value.wrapping_sub(self.receiver.timestamp) as i32) >= 0
    }

    /// Records the arrival of such a segment.
    #[inline]
    pub fn take_expected(&mut self, now: Instant, segment: &Segment) {
        self.liveness.last_heard = now;
        self.liveness.unanswered_probes = 0;
        if let Some(stamps) = segment.options.timestamps.filter(|_| segment.seq.at_or_before(self.receiver.last_ack)) {
            self.receiver.timestamp = stamps.value;
            self.receiver.timestamp_at = now;
        }
    }

    /// Judges a segment in any state from SYN-RECEIVED on. `window` is the window beyond RCV.NXT.
    pub fn judge(&mut self, now: Instant, segment: &Segment, window: u32) -> Verdict {
        let reset = segment.flags.contains(Flags::RST);
        if self.state == State::Closed {
            return Verdict::Drop;
        }
        if self.is_repeated_syn(segment) {
            if !segment.flags.contains(ECN_SETUP) {
                // The peer retries without ECN, so neither end may use it (RFC 3168, section 6.1.1.1).
                self.negotiated.ecn = Notification::Off;
            }
            self.take_timestamp(now, segment);
            self.record_repeated_syn(now);
            self.send_handshake_again();
            return Verdict::Drop;
        }
        if self.is_crossing_syn_ack(segment) {
            if !sets_up_ecn(segment.flags) {
                self.negotiated.ecn = Notification::Off;
            }
            self.take_timestamp(now, segment);
            return self.judge_ack(now, segment);
        }
        if (!reset && !self.timestamp_is_acceptable(now, segment)) || !self.sequence_is_acceptable(segment, window) {
            self.answer_unacceptable(now, segment);
            return Verdict::Drop;
        }
        if reset {
            return self.judge_reset(now, segment);
        }
        if segment.flags.contains(Flags::SYN) {
            self.challenge(now); // RFC 5961, section 4
            return Verdict::Drop;
        }
        if !segment.flags.contains(Flags::ACK) {
            return Verdict::Drop;
        }
        let verdict = self.judge_ack(now, segment);
        // A blind segment, whose acknowledgement is out of range, must not change anything (RFC 5961, section 5.2): its
        // timestamp would make us refuse the peer's own segments.
        if matches!(verdict, Verdict::Process { .. }) {
            self.liveness.last_heard = now;
            self.liveness.unanswered_probes = 0;
            self.take_timestamp(now, segment);
        }
        verdict
    }

    /// Sends the SYN or SYN/ACK now, and restarts its timer.
    pub fn send_handshake_again(&mut self) {
        self.handshake.due = true;
        self.timers.stop(SubflowTimer::Handshake);
    }

    /// A retransmitted SYN in SYN-RECEIVED: our SYN/ACK was lost.
    pub fn is_repeated_syn(&self, segment: &Segment) -> bool {
        self.state == State::SynReceived
            && segment.flags.contains(Flags::SYN)
            && !segment.flags.intersects(Flags::RST | Flags::ACK)
            && segment.seq == self.peer.initial
    }

    /// The peer's SYN/ACK after its SYN: a simultaneous open (RFC 9293, section 3.5, figure 7).
    fn is_crossing_syn_ack(&self, segment: &Segment) -> bool {
        self.state == State::SynReceived
            && segment.flags.contains(Flags::SYN | Flags::ACK)
            && !segment.flags.intersects(Flags::RST | Flags::FIN)
            && segment.seq == self.peer.initial
            && segment.ack == self.send.nxt
    }

    /// Answers an unacceptable segment, unless it is a reset, with an acknowledgement (RFC 9293, section 3.10.7.4). The
    /// rate of answers to segments without payload is limited: otherwise two ends that disagree on sequence numbers
    /// would answer each other for ever.
    fn answer_unacceptable(&mut self, now: Instant, segment: &Segment) {
        self.counters.unacceptable += 1;
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let (start, end) = Self::payload_range(segment);
        if start.before(end) && start.after(self.peer.initial) {
            self.receiver.record_duplicate(start, end);
        }
        let carries = !segment.payload.is_empty() || segment.flags.contains(Flags::FIN);
        if carries && self.state != State::SynReceived && !segment.flags.contains(Flags::SYN) {
            self.receiver.acknowledge_now();
        } else {
            self.challenge(now);
        }
    }

    /// Protection against wrapped sequences (RFC 7323, section 5). A segment without a timestamp where timestamps were
    /// agreed on would be dropped (section 3.2). Linux accepts it, and itself omits the option beside a long ADD_ADDR.
    fn timestamp_is_acceptable(&self, now: Instant, segment: &Segment) -> bool {
        let Some(stamps) = segment.options.timestamps.filter(|_| self.negotiated.timestamps) else { return true };
        let old = (stamps.value.wrapping_sub(self.receiver.timestamp) as i32) < 0;
        !old || now.since(self.receiver.timestamp_at) > TIMESTAMP_LIFE
    }

    /// RFC 9293, section 3.4: a part of the segment lies in the window. The byte expected next is always acceptable,
    /// even with a full buffer: peers that do not retransmit it would stall for ever.
    fn sequence_is_acceptable(&self, segment: &Segment, window: u32) -> bool {
        let next = self.receiver.next;
        let length = segment.sequence_length();
        let first = segment.seq;
        if length == 0 {
            return first == next || (first.after(next) && first.before(next + window));
        }
        let last = first + (length - 1);
        let starts_inside = first.at_or_after(next) && (first == next || first.before(next + window));
        let ends_inside = last.at_or_after(next) && last.before(next + window.max(1));
        let covers = first.before(next) && last.at_or_after(next);
        starts_inside || ends_inside || covers
    }

    /// A reset is valid only at exactly the next sequence number (RFC 5961, section 3).
    fn judge_reset(&mut self, now: Instant, segment: &Segment) -> Verdict {
        if segment.seq == self.receiver.next {
            return Verdict::Reset;
        }
        self.challenge(now);
        Verdict::Drop
    }

    fn judge_ack(&mut self, now: Instant, segment: &Segment) -> Verdict {
        let judgement = self.judge_acknowledgement(segment.ack);
        if self.state == State::SynReceived {
            let covers_syn = segment.ack.after(self.send.una) && segment.ack.at_or_before(self.send.nxt);
            return if covers_syn { Verdict::Process { acknowledges: true } } else { Verdict::Refuse };
        }
        match judgement {
            AckJudgement::Current => Verdict::Process { acknowledges: true },
            AckJudgement::Old => Verdict::Process { acknowledges: false },
            AckJudgement::Future | AckJudgement::TooOld => {
                self.challenge(now);
                Verdict::Drop
            }
        }
    }

    /// Answers a suspicious segment with an acknowledgement, at a limited rate.
    pub fn challenge(&mut self, now: Instant) {
        if now >= self.liveness.next_challenge {
            self.liveness.next_challenge = now + CHALLENGE_INTERVAL;
            // In SYN-RECEIVED the SYN/ACK is the answer.
            if self.state == State::SynReceived {
                self.handshake.due = true;
            } else {
                self.receiver.acknowledge_now();
            }
        }
    }

    /// Updates TS.Recent from a segment that covers the last acknowledgement (RFC 7323, section 4.3).
    pub fn take_timestamp(&mut self, now: Instant, segment: &Segment) {
        let Some(stamps) = segment.options.timestamps else { return };
        let newer = (stamps.value.wrapping_sub(self.receiver.timestamp) as i32) >= 0
            || now.since(self.receiver.timestamp_at) > TIMESTAMP_LIFE;
        if self.negotiated.timestamps && newer && segment.seq.at_or_before(self.receiver.last_ack) {
            self.receiver.timestamp = stamps.value;
            self.receiver.timestamp_at = now;
        }
    }

    /// Handles a congestion mark, and the peer's confirmation of our last echo (RFC 3168, section 6.1.3).
    pub fn handle_ecn(&mut self, ecn: Ecn, segment: &Segment) {
        if !self.negotiated.ecn.echoes() {
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.receiver.echo_congestion = false;
        }
        // Marks on bare acknowledgements are ignored (section 6.1.4).
        if ecn == Ecn::Congestion && !segment.payload.is_empty() {
            if !self.receiver.echo_congestion {
                self.receiver.acknowledge_now();
            }
            self.receiver.echo_congestion = true;
        }
    }

    /// The peer's segment size if its SYN has none: the packet that every host accepts, less the headers (RFC 9293,
    /// section 3.7.1, MUST-15).
    fn default_mss(&self) -> u16 {
        if self.identity.local.is_ipv6() { 1220 } else { 536 }
    }

    /// Handles the options of the peer's SYN.
    pub fn handle_syn(&mut self, now: Instant, segment: &Segment, config: &TcpConfig, scale: u8) {
        let options = &segment.options;
        self.peer.initial = segment.seq;
        self.receiver = super::receiver::Receiver::new(segment.seq + 1);
        self.receiver.limit_segments(u32::from(config.mtu.saturating_sub(self.identity.header_length())));
        self.negotiated.peer_mss = options.maximum_segment_size.unwrap_or(self.default_mss()).max(64);
        self.negotiated.sack = config.options.sack && options.sack_permitted;
        let scaling = config.options.window_scaling && options.window_scale.is_some();
        self.negotiated.send_scale = if scaling { options.window_scale.unwrap_or(0).min(14) } else { 0 };
        self.negotiated.receive_scale = if scaling { scale } else { 0 };
        self.negotiated.timestamps = config.options.timestamps && options.timestamps.is_some();
        self.negotiated.ecn = self.agree_on_ecn(segment.flags, config.ecn);
        if let Some(stamps) = options.timestamps {
            self.receiver.timestamp = stamps.value;
            self.receiver.timestamp_at = now;
        }
    }

    /// The result of the peer's SYN or SYN/ACK and our own (RFC 3168, section 6.1.1).
    fn agree_on_ecn(&self, peer: Flags, ours: EcnMode) -> Notification {
        let (opened, again) = (self.state == State::SynSent, self.liveness.timeouts_in_row > 0);
        match ours {
            _ if !sets_up_ecn(peer) => Notification::Off,
            EcnMode::Off => Notification::Off,
            EcnMode::Accept if opened => Notification::Off,
            // Our first SYN obliges us to echo; a retransmission without ECN forbids ECN on our data.
            EcnMode::Request if opened && again => Notification::EchoOnly,
            EcnMode::Accept | EcnMode::Request => Notification::On,
        }
    }

    /// Our FIN was acknowledged.
    pub fn handle_fin_acknowledged(&mut self, now: Instant, config: &TcpConfig) {
        self.state = match self.state {
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            other => other,
        };
        self.after_transition(now, config);
    }

    /// The peer's FIN is next in sequence.
    pub fn handle_fin(&mut self, now: Instant, config: &TcpConfig) {
        self.receiver.next += 1;
        self.receiver.acknowledge_now();
        self.state = match self.state {
            State::SynReceived | State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            other => other,
        };
        self.after_transition(now, config);
    }

    /// Our FIN has been queued.
    pub fn handle_fin_sent(&mut self) {
        self.state = match self.state {
            State::SynReceived | State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    fn after_transition(&mut self, now: Instant, config: &TcpConfig) {
        match self.state {
            State::TimeWait => {
                self.stop_timers();
                self.timers.set(SubflowTimer::Linger, now + config.time_wait);
            }
            State::Closed => self.stop_timers(),
            _ => {}
        }
    }

    fn stop_timers(&mut self) {
        self.timers.reset();
        self.suspicion.iter_mut().for_each(|suspicion| suspicion.until = Instant::NEVER);
    }

    /// A retransmission in TIME-WAIT: the peer lost our last acknowledgement (RFC 9293, section 3.10.7.4).
    pub fn restart_time_wait(&mut self, now: Instant, config: &TcpConfig) {
        if self.state == State::TimeWait {
            self.timers.set(SubflowTimer::Linger, now + config.time_wait);
            self.receiver.acknowledge_now();
        }
    }

    /// Whether the window of a segment is newer than the last (RFC 9293, section 3.10.7.4, SND.WL1 and SND.WL2). With a
    /// new acknowledgement it always is.
    pub fn takes_window(&mut self, seq: SeqNumber, ack: SeqNumber) -> bool {
        let newer = self
            .window
            .from
            .is_none_or(|(last, acked)| ack.after(acked) || seq.after(last) || (seq, ack) == (last, acked));
        if newer {
            self.window.from = Some((seq, ack));
        }
        newer
    }

    /// Records the largest window received (MAX.SND.WND, RFC 5961, section 5.2).
    pub fn record_window(&mut self, window: u32) {
        self.window.largest = self.window.largest.max(window);
    }

    /// The range of a segment's payload in sequence space.
    pub fn payload_range(segment: &Segment) -> (SeqNumber, SeqNumber) {
        (segment.seq, segment.seq + segment.payload.len() as u32)
    }
}

/// Whether a SYN or SYN/ACK agrees to ECN. A SYN/ACK with both bits comes from a host that copies bits it does not know
/// (RFC 3168, section 6.1.1.2).
fn sets_up_ecn(flags: Flags) -> bool {
    if flags.contains(Flags::ACK) {
        flags.contains(Flags::ECE) && !flags.contains(Flags::CWR)
    } else {
        flags.contains(ECN_SETUP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subflow::Identity;
    use anabranch_policy::ids::{AddressId, SubflowId};
    use anabranch_wire::tcp::Timestamps;
    use bytes::Bytes;
    use proptest::prelude::*;

    const NOW: Instant = Instant::from_nanos(5_000_000_000);

    /// Bytes 1,001 to 1,010 are in flight, 500 is expected from the peer, and 20 was its last timestamp.
    fn subflow(state: State, stamped: bool) -> Subflow {
        let address = "10.0.0.1:80".parse().unwrap();
        let (local_address, remote_address) = (AddressId(0), AddressId(0));
        let identity = Identity { id: SubflowId(0), local: address, remote: address, local_address, remote_address };
        let mut subflow = Subflow::new(identity, state, SeqNumber(1_000), Instant::ZERO);
        (subflow.send.una, subflow.send.nxt) = (SeqNumber(1_001), SeqNumber(1_011));
        (subflow.receiver.next, subflow.receiver.last_ack) = (SeqNumber(500), SeqNumber(499));
        subflow.receiver.timestamp = 20;
        subflow.negotiated.timestamps = stamped;
        subflow.liveness.unanswered_probes = 1;
        subflow
    }

    fn segment(seq: u32, ack: u32, flags: Flags, stamp: Option<u32>, length: usize) -> Segment {
        let mut segment = Segment { seq: SeqNumber(seq), ack: SeqNumber(ack), flags, ..Segment::default() };
        segment.options.timestamps = stamp.map(|value| Timestamps { value, echo: 0 });
        segment.payload = Bytes::from(vec![0; length]);
        segment
    }

    #[test]
    fn the_next_segment_with_a_current_acknowledgement_is_expected_and_nothing_else() {
        let subflow = subflow(State::Established, true);
        let pushed = Flags::ACK | Flags::PSH;
        assert!(subflow.is_expected(&segment(500, 1_001, Flags::ACK, Some(20), 0)));
        assert!(subflow.is_expected(&segment(500, 1_011, pushed, Some(21), 9)));
        for other in [
            segment(499, 1_001, Flags::ACK, Some(20), 9),
            segment(501, 1_001, Flags::ACK, Some(20), 9),
            segment(500, 1_000, Flags::ACK, Some(20), 9),
            segment(500, 1_012, Flags::ACK, Some(20), 9),
            segment(500, 1_001, Flags::ACK, Some(19), 9),
            segment(500, 1_001, Flags::ACK, None, 9),
            segment(500, 1_001, Flags::ACK | Flags::FIN, Some(20), 9),
            segment(500, 1_001, Flags::ACK | Flags::RST, Some(20), 9),
            segment(500, 1_001, Flags::PSH, Some(20), 9),
        ] {
            assert!(!subflow.is_expected(&other), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_expected_would_be_processed_by_the_judge_and_leaves_the_same_behind(
            state in prop::sample::select(vec![State::Established, State::Established, State::SynReceived, State::CloseWait]),
            (seq, ack) in (498_u32..503, 999_u32..1_014),
            flags in prop::sample::select(vec![0x10_u8, 0x18, 0x11, 0x12, 0x14, 0x30, 0x08]),
            stamp in prop::option::weighted(0.9, 18_u32..23),
            (length, window, stamped) in (0_usize..3, 0_u32..3, any::<bool>()),
        ) {
            let segment = segment(seq, ack, Flags(flags), stamp, length);
            let (mut taken, mut judged) = (subflow(state, stamped), subflow(state, stamped));
            if taken.is_expected(&segment) {
                taken.take_expected(NOW, &segment);
                prop_assert_eq!(judged.judge(NOW, &segment, window), Verdict::Process { acknowledges: true });
                prop_assert_eq!(format!("{taken:?}"), format!("{judged:?}"));
            }
        }
    }

    #[test]
    fn where_fins_lead_and_which_timers_run_on() {
        // RFC 9293, section 3.3.2, figure 5. Whoever has nothing to send or to wait for stops all timers.
        use State::*;
        let config = TcpConfig::default();
        let step = |from: State, act: fn(&mut Subflow, &TcpConfig)| {
            let mut subflow = subflow(from, false);
            subflow.timers.set(SubflowTimer::Retransmit, NOW);
            act(&mut subflow, &config);
            let retransmits = subflow.timers.runs(SubflowTimer::Retransmit);
            (subflow.state, retransmits, subflow.timers.at(SubflowTimer::Linger), subflow.receiver.next)
        };
        let wait = NOW + config.time_wait;
        let acknowledged = |from| {
            let (state, retransmits, linger, _) = step(from, |s, config| s.handle_fin_acknowledged(NOW, config));
            (state, retransmits, linger)
        };
        assert_eq!(acknowledged(FinWait1), (FinWait2, true, Instant::NEVER));
        assert_eq!(acknowledged(Closing), (TimeWait, false, wait));
        assert_eq!(acknowledged(LastAck), (Closed, false, Instant::NEVER));
        assert_eq!(acknowledged(Established), (Established, true, Instant::NEVER));
        let received = |from| {
            let (state, retransmits, linger, next) = step(from, |s, config| s.handle_fin(NOW, config));
            assert_eq!(next, SeqNumber(501), "a FIN has a sequence number");
            (state, retransmits, linger)
        };
        assert_eq!(received(SynReceived), (CloseWait, true, Instant::NEVER));
        assert_eq!(received(Established), (CloseWait, true, Instant::NEVER));
        assert_eq!(received(FinWait1), (Closing, true, Instant::NEVER));
        assert_eq!(received(FinWait2), (TimeWait, false, wait));
        let sent = |from| step(from, |s, _| s.handle_fin_sent()).0;
        assert_eq!([SynReceived, Established, CloseWait].map(sent), [FinWait1, FinWait1, LastAck]);
        assert_eq!(
            [FinWait1, FinWait2, Closing, LastAck, TimeWait].map(sent),
            [FinWait1, FinWait2, Closing, LastAck, TimeWait]
        );
    }

    #[test]
    fn only_in_time_wait_a_retransmission_begins_the_wait_anew() {
        let config = TcpConfig::default();
        let linger = |state: State| {
            let mut subflow = subflow(state, false);
            subflow.restart_time_wait(NOW, &config);
            (subflow.timers.at(SubflowTimer::Linger), subflow.wants_acknowledgement(NOW))
        };
        assert_eq!(linger(State::TimeWait), (NOW + config.time_wait, true));
        assert_eq!(linger(State::FinWait2), (Instant::NEVER, false));
    }

    #[test]
    fn a_window_is_taken_from_a_segment_that_is_later_in_either_sequence_or_the_last_again() {
        // RFC 9293, section 3.10.7.4. In MPTCP and over reordering paths acknowledgements come from all segments.
        let mut subflow = subflow(State::Established, false);
        let mut takes = |seq: u32, ack: u32| subflow.takes_window(SeqNumber(seq), SeqNumber(ack));
        assert!(takes(500, 1_001), "the first");
        assert!(takes(500, 1_001), "the same: an update");
        assert!(!takes(499, 1_001) && !takes(500, 1_000) && !takes(499, 1_000), "older");
        assert!(takes(501, 1_000), "later data");
        assert!(takes(400, 1_002), "a later acknowledgement");
        assert!(!takes(399, 1_002) && takes(401, 1_002));
    }

    #[test]
    fn a_syn_agrees_to_ecn_with_both_bits_and_its_answer_with_one() {
        let (both, answer) = (Flags::SYN | ECN_SETUP, Flags::SYN | Flags::ACK);
        assert!(sets_up_ecn(both) && !sets_up_ecn(Flags::SYN | Flags::ECE) && !sets_up_ecn(Flags::SYN | Flags::CWR));
        assert!(sets_up_ecn(answer | Flags::ECE));
        assert!(!sets_up_ecn(answer) && !sets_up_ecn(answer | Flags::CWR) && !sets_up_ecn(answer | ECN_SETUP));
    }

    #[test]
    fn a_syn_again_is_the_one_that_opened_and_crosses_ours_with_the_number_that_we_wait_for() {
        let (syn, syn_ack) = (Flags::SYN, Flags::SYN | Flags::ACK);
        let met = |state: State, seq: u32, ack: u32, flags: Flags| {
            let mut subflow = subflow(state, false);
            subflow.peer.initial = SeqNumber(499);
            let segment = segment(seq, ack, flags, None, 0);
            (subflow.is_repeated_syn(&segment), subflow.is_crossing_syn_ack(&segment))
        };
        assert_eq!(met(State::SynReceived, 499, 0, syn), (true, false));
        assert_eq!(met(State::SynReceived, 499, 0, syn | ECN_SETUP), (true, false));
        assert_eq!(met(State::SynReceived, 499, 1_011, syn_ack), (false, true));
        for (state, seq, ack, flags) in [
            (State::SynSent, 499, 0, syn),
            (State::Established, 499, 0, syn),
            (State::SynReceived, 498, 0, syn),
            (State::SynReceived, 500, 0, syn),
            (State::SynReceived, 499, 0, syn | Flags::RST),
            (State::SynReceived, 499, 0, Flags::PSH),
            (State::SynReceived, 499, 0, Flags::RST),
            (State::SynSent, 499, 1_011, syn_ack),
            (State::Established, 499, 1_011, syn_ack),
            (State::SynReceived, 498, 1_011, syn_ack),
            (State::SynReceived, 500, 1_011, syn_ack),
            (State::SynReceived, 499, 1_010, syn_ack),
            (State::SynReceived, 499, 1_012, syn_ack),
            (State::SynReceived, 499, 1_011, Flags::ACK),
            (State::SynReceived, 499, 1_011, syn_ack | Flags::RST),
            (State::SynReceived, 499, 1_011, syn_ack | Flags::FIN),
        ] {
            assert_eq!(met(state, seq, ack, flags), (false, false), "{state:?} {seq} {ack} {flags:?}");
        }
    }
}
