//! Path MTU discovery: the path MTU is found by probes (RFC 4821, RFC 8899) or reported by a router (RFC 1191, RFC
//! 8201).
//!
//! A subflow begins with segments as long as the handshake allows. It keeps no state for path MTU discovery before
//! there is a sign that such segments do not pass:
//!
//! - **A black hole** (RFC 4821, section 7.7): two retransmission timeouts in a row of a segment longer than the base
//!   size. The size falls to the base, 1200 bytes of IP (RFC 8899, section 5.1.2), and after two more timeouts to the
//!   minimum MTU of a link. A dead path and a narrow one cannot be told apart before a shorter segment passes.
//! - **An ICMP error of a router** that quotes a segment in flight.
//!
//! Outstanding data is split to the new size. From then on the size is searched from below (RFC 4821, section 7.3): a
//! probe is one segment of new data that is longer than the others, sent only if enough data follows for its loss to be
//! found by acknowledgements. The first probe has the old size, which still passes if there was merely an outage; each
//! later one halves the uncertain range. A size fails after `MAX_PROBES` lost probes. A lost probe is retransmitted in
//! shorter segments, and is no sign of congestion (RFC 4821, section 7.6.2; RFC 8899, section 3, item 7). When the
//! range is narrow enough, larger sizes are tried again after ten minutes. At the old size the state is removed.

use super::context::Context;
use super::path_mtu_search::{PathMtu, Probe, RAISE};
use super::recovery::Phase;
use super::scoreboard::{Departing, Fate};
use super::state::Subflow;
use crate::config::TcpConfig;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;

/// Timeouts in a row of a long segment that indicate a black hole.
const BLACK_HOLE_TIMEOUTS: u32 = 2;

/// Segments that must follow a probe, so that its loss is found without a timeout (RFC 4821, section 7.4).
const FOLLOWERS: u64 = 3;

/// Largest IP packet after a first and a second black hole: the base (RFC 8899, section 5.1.2, BASE_PLPMTU), and what
/// every host accepts (RFC 9293, MUST-15). For IPv6 both are 1280, the minimum link MTU (RFC 8200, section 5).
const FLOORS_V4: [u32; 2] = [1200, 576];

const FLOORS_V6: [u32; 1] = [1280];

impl Subflow {
    /// Whether segments are shorter than the handshake allows.
    #[inline]
    pub fn has_narrow_path(&self) -> bool {
        self.path_mtu.is_some()
    }

    /// The payload of a path MTU probe, if one is due. `available` bytes of new data may be sent within the windows.
    pub fn probe_size(&mut self, now: Instant, available: u64) -> Option<u32> {
        let calm = self.recovery.phase == Phase::Open && self.liveness.timeouts_in_row == 0 && !self.liveness.silent;
        let nothing_waits = self.scoreboard.lost() == 0 && self.scoreboard.queued() == 0;
        let least = FOLLOWERS * u64::from(self.mss);
        let size = self.path_mtu.as_deref_mut().filter(|_| calm && nothing_waits)?.next_size(now)?;
        (available >= u64::from(size) + least).then_some(size)
    }

    /// Whether a record is a probe: longer than the others, and not only by the space of a mapping.
    pub fn is_probe(&self, record: &Departing) -> bool {
        record.payload.len() > self.mss as usize && record.place.number == 0
    }

    /// A record was sent for the first time.
    #[inline]
    pub(super) fn record_probe(&mut self, record: &Departing) {
        if self.is_probe(record)
            && let Some(path) = self.path_mtu.as_deref_mut()
        {
            path.probe = Some(Probe { end: record.end(), size: record.payload.len() as u32 });
        }
    }

    /// If an acknowledgement is for the probe, the segment size becomes that of the probe.
    pub(super) fn record_delivered_probe(&mut self, cx: &mut Context<'_>) {
        let Some(path) = self.path_mtu.as_deref_mut() else { return };
        let Some(Probe { end, size }) = path.probe else { return };
        let arrived = self.send.una.at_or_after(end) || self.scoreboard.fate_before(end) == Some(Fate::Sacked);
        if !arrived {
            return;
        }
        path.probe = None;
        path.handle_success(cx.now, size);
        let back = size >= path.largest;
        self.mss = size;
        cx.congestion.on_mss(self.identity.id, size);
        if back {
            self.path_mtu = None;
        }
    }

    /// `lost` bytes were marked lost. A probe among them is retransmitted in shorter segments; returns `lost` without
    /// it. If other segments were lost too, that does not count against its size (RFC 4821, section 7.6.3).
    #[inline]
    pub(super) fn without_lost_probe(&mut self, now: Instant, lost: u64) -> u64 {
        if self.path_mtu.is_some() { self.without_probe_on_narrow_path(now, lost) } else { lost }
    }

    #[inline(never)]
    fn without_probe_on_narrow_path(&mut self, now: Instant, lost: u64) -> u64 {
        let Some(Probe { end, size }) = self.path_mtu.as_deref().and_then(|path| path.probe) else { return lost };
        if self.scoreboard.fate_before(end) != Some(Fate::Lost) {
            return lost;
        }
        let others = lost.saturating_sub(u64::from(size));
        if let Some(path) = self.path_mtu.as_deref_mut() {
            path.probe = None;
            if others == 0 {
                path.handle_failure(now, size);
            }
        }
        self.scoreboard.losses.forget(size);
        self.scoreboard.split_longer(self.mss);
        others
    }

    /// Instead of a tail loss probe: marks an outstanding path MTU probe as lost, to be retransmitted in shorter
    /// segments. Returns false if there is none.
    pub(super) fn lose_probe(&mut self, now: Instant) -> bool {
        let Some(probe) = self.path_mtu.as_deref().and_then(|path| path.probe) else { return false };
        let lost = self.scoreboard.mark_lost_before(probe.end);
        self.without_lost_probe(now, lost);
        lost > 0
    }

    /// The retransmission timer expired on the probe, which counts as its loss.
    fn fail_probe(&mut self, now: Instant) {
        let Some(path) = self.path_mtu.as_deref_mut() else { return };
        if let Some(probe) = path.probe.take() {
            path.handle_failure(now, probe.size);
            self.scoreboard.split_longer(self.mss);
        }
    }

    /// After a retransmission timeout of a long segment: the path may be a black hole for it.
    pub(super) fn consider_black_hole(&mut self, cx: &mut Context<'_>) {
        self.fail_probe(cx.now);
        if !cx.config.path_mtu_discovery || !self.liveness.timeouts_in_row.is_multiple_of(BLACK_HOLE_TIMEOUTS) {
            return;
        }
        let Some(first) = self.scoreboard.sent().find(|record| record.fate != Fate::Sacked) else { return };
        let (length, overhead) = (first.payload.len() as u32, self.overhead(cx.config));
        // The next floor applies after two more timeouts.
        let tried = (self.liveness.timeouts_in_row / BLACK_HOLE_TIMEOUTS) as usize;
        let mut sizes = self.floors().iter().take(tried).filter_map(|floor| floor.checked_sub(overhead));
        if let Some(size) = sizes.find(|size| (1..length).contains(size)) {
            let high = self.path_mtu.as_deref().map_or(self.mss, |path| path.largest) + 1;
            self.shrink_to(cx, size, high, cx.now);
        }
    }

    /// A router reports that packets of more than `mtu` bytes do not pass, and quotes the segment that begins at `seq`.
    /// Returns false, and changes nothing, if no such segment is in flight (RFC 5927, section 4.1), or the size is
    /// impossible, or not smaller than the present one.
    pub fn handle_packet_too_big(&mut self, cx: &mut Context<'_>, seq: SeqNumber, mtu: u32) -> bool {
        let least = self.floors().last().copied().unwrap_or(0);
        let size = mtu.saturating_sub(self.overhead(cx.config));
        if !self.is_outstanding(seq)
            || mtu < least
            || size == 0
            || !self.state.is_synchronised()
            || !cx.config.path_mtu_discovery
        {
            return false;
        }
        if size < self.mss {
            // Lost, but not by congestion (RFC 1191, section 6.5).
            self.scoreboard.mark_longer_lost(size);
            self.scoreboard.losses.take();
            self.shrink_to(cx, size, size + 1, cx.now + RAISE);
            return true;
        }
        match self.path_mtu.as_deref_mut() {
            Some(path) if path.probe.is_some_and(|probe| probe.size > size) => {
                (path.high, path.failures) = (size + 1, 0);
                true
            }
            _ => false,
        }
    }

    /// Sizes after black holes, the minimum link MTU last.
    fn floors(&self) -> &'static [u32] {
        if self.identity.local.is_ipv6() { &FLOORS_V6 } else { &FLOORS_V4 }
    }

    /// Headers and options of a full packet, in bytes, as reserved in the handshake.
    fn overhead(&self, config: &TcpConfig) -> u32 {
        let options = || self.segment_room(config).saturating_sub(self.mss);
        let fresh = || u32::from(self.identity.header_length()) + options();
        self.path_mtu.as_deref().map_or_else(fresh, |path| path.overhead)
    }

    fn shrink_to(&mut self, cx: &mut Context<'_>, size: u32, high: u32, rest_until: Instant) {
        let overhead = self.overhead(cx.config);
        let largest = self.path_mtu.as_deref().map_or(self.mss, |path| path.largest);
        let path = PathMtu { largest, overhead, low: size, high, failures: 0, probe: None, rest_until };
        self.path_mtu = Some(Box::new(path));
        self.mss = size;
        self.scoreboard.split_longer(size);
        cx.congestion.on_mss(self.identity.id, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SendKind;
    use crate::stamp_clock::StampClock;
    use crate::subflow::tests::{Fixed, subflow};
    use anabranch_policy::time::Duration;
    use bytes::Bytes;

    const NOW: Instant = Instant::from_nanos(5_000_000_000);

    /// Three segments of 1,400 bytes are in flight from number 1 on, in packets of 1,440.
    fn in_flight() -> Subflow {
        let mut subflow = subflow();
        (subflow.mss, subflow.negotiated.peer_mss, subflow.send.una) = (1_400, 1_400, SeqNumber(1));
        for number in 0..3 {
            subflow.push(number * 1_400, Bytes::from(vec![0; 1_400]), SendKind::New);
            assert!(subflow.scoreboard.send_next(Instant::ZERO).is_some());
        }
        subflow.send.nxt = subflow.send.end;
        subflow
    }

    fn report(subflow: &mut Subflow, seq: u32, mtu: u32, discovery: bool) -> (bool, u32) {
        let config = TcpConfig { path_mtu_discovery: discovery, ..TcpConfig::default() };
        let mut cx =
            Context { now: NOW, config: &config, congestion: &mut Fixed::default(), clock: StampClock::default() };
        let believed = subflow.handle_packet_too_big(&mut cx, SeqNumber(seq), mtu);
        (believed, subflow.mss)
    }

    #[test]
    fn a_router_is_believed_if_it_quotes_a_segment_in_flight_and_a_possible_size() {
        // RFC 5927, section 4.1.
        let told = |seq: u32, mtu: u32| report(&mut in_flight(), seq, mtu, true);
        assert_eq!((told(1, 1_240), told(4_200, 1_240)), ((true, 1_200), (true, 1_200)));
        assert_eq!((told(0, 1_240), told(4_201, 1_240)), ((false, 1_400), (false, 1_400)), "not in flight");
        assert_eq!((told(1, 576), told(1, 575)), ((true, 536), (false, 1_400)));
        assert_eq!((told(1, 1_439), told(1, 1_440)), ((true, 1_399), (false, 1_400)), "not smaller");
        assert_eq!(report(&mut in_flight(), 1, 1_240, false), (false, 1_400));
        let mut opening = in_flight();
        opening.state = super::super::tcp_state::State::SynSent;
        assert_eq!(report(&mut opening, 1, 1_240, true), (false, 1_400));
    }

    #[test]
    fn what_a_router_told_is_the_least_size_that_fails_for_ten_minutes_and_no_congestion() {
        let mut subflow = in_flight();
        assert!(report(&mut subflow, 1, 1_240, true).0);
        let path = subflow.path_mtu.clone().unwrap();
        let expected = PathMtu {
            largest: 1_400,
            overhead: 40,
            low: 1_200,
            high: 1_201,
            failures: 0,
            probe: None,
            rest_until: NOW + Duration::from_secs(600),
        };
        assert_eq!(*path, expected);
        assert!(subflow.scoreboard.losses.is_empty());
        assert!(subflow.scoreboard.records().all(|record| record.length <= 1_200));
        // Of a probe it says the same, and of a smaller one nothing.
        let probed = |size: u32| {
            let mut subflow = in_flight();
            assert!(report(&mut subflow, 1, 1_240, true).0);
            let path = subflow.path_mtu.as_mut().unwrap();
            (path.probe, path.high, path.failures) = (Some(Probe { end: SeqNumber(9), size }), 1_401, 2);
            let believed = report(&mut subflow, 1, 1_300, true).0;
            let path = subflow.path_mtu.as_ref().unwrap();
            (believed, path.high, path.failures)
        };
        assert_eq!((probed(1_261), probed(1_260)), ((true, 1_261, 0), (false, 1_401, 2)));
    }

    #[test]
    fn two_timeouts_of_a_long_segment_lead_to_the_base_size_and_two_more_to_the_least() {
        let config = TcpConfig { path_mtu_discovery: true, ..TcpConfig::default() };
        let mut subflow = in_flight();
        let mut sizes = Vec::new();
        for timeouts in 1..=6 {
            subflow.liveness.timeouts_in_row = timeouts;
            let mut cx =
                Context { now: NOW, config: &config, congestion: &mut Fixed::default(), clock: StampClock::default() };
            subflow.consider_black_hole(&mut cx);
            sizes.push(subflow.mss);
        }
        assert_eq!(sizes, [1_400, 1_160, 1_160, 536, 536, 536]);
        let path = subflow.path_mtu.as_ref().unwrap();
        assert_eq!((path.largest, path.low, path.high, path.rest_until), (1_400, 536, 1_401, NOW));
    }

    #[test]
    fn a_probe_that_arrives_is_the_new_size_and_at_the_old_one_all_is_as_before() {
        let arrived = |size: u32, acknowledged: u32| {
            let config = TcpConfig::default();
            let mut subflow = in_flight();
            assert!(report(&mut subflow, 1, 1_240, true).0);
            let path = subflow.path_mtu.as_mut().unwrap();
            path.probe = Some(Probe { end: SeqNumber(3_000), size });
            subflow.send.una = SeqNumber(acknowledged);
            let mut cx =
                Context { now: NOW, config: &config, congestion: &mut Fixed::default(), clock: StampClock::default() };
            subflow.record_delivered_probe(&mut cx);
            (subflow.mss, subflow.path_mtu.as_ref().map(|path| (path.low, path.high, path.probe.is_some())))
        };
        assert_eq!(arrived(1_300, 3_000), (1_300, Some((1_300, 1_301, false))));
        assert_eq!(arrived(1_400, 3_000), (1_400, None));
        assert_eq!(arrived(1_300, 2_999), (1_200, Some((1_200, 1_201, true))));
    }

    #[test]
    fn a_probe_instead_of_a_tail_loss_probe_is_lost_and_cut_and_where_there_is_none_nothing_happens() {
        let lose = |probe: Option<u32>| {
            let mut subflow = in_flight();
            assert!(report(&mut subflow, 1, 1_240, true).0);
            let before = subflow.scoreboard.lost();
            let end = subflow.scoreboard.sent().next().map(|record| record.end());
            let path = subflow.path_mtu.as_mut().unwrap();
            path.probe = probe.zip(end).map(|(size, end)| Probe { end, size });
            (subflow.lose_probe(NOW), before)
        };
        assert!(!lose(None).0);
        assert!(!lose(Some(1_300)).0, "it was lost before");
        let mut subflow = in_flight();
        let end = subflow.scoreboard.sent().next().unwrap().end();
        let (largest, low) = (1_400, 1_000);
        let probe = Some(Probe { end, size: 1_400 });
        let path = PathMtu { largest, overhead: 40, low, high: 1_401, failures: 0, probe, rest_until: NOW };
        (subflow.path_mtu, subflow.mss) = (Some(Box::new(path)), 1_000);
        assert!(subflow.lose_probe(NOW));
        let path = subflow.path_mtu.as_ref().unwrap();
        assert_eq!((path.probe, path.failures, subflow.scoreboard.lost()), (None, 1, 1_400));
        assert_eq!(subflow.scoreboard.next_lost().map(|record| record.length), Some(1_000));
    }
}
