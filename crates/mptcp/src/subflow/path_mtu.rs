//! The largest packet that a path carries, where it is less than the link's: found by probing (RFC 4821, RFC 8899) or told by
//! a router (RFC 1191, RFC 8201).
//!
//! A subflow begins with segments as long as the handshake allows. It has no state for path MTU discovery until there is a
//! reason to doubt that length:
//!
//! - **A black hole** (RFC 4821, section 7.7): the retransmission timer ran out twice in a row over a segment that is longer than the
//!   base size. The size falls to the base, 1200 bytes of IP (RFC 8899, section 5.1.2), after two more to the least that a link may
//!   have. Whether a path is dead or only too narrow cannot be told apart before something shorter passes.
//! - **A message of a router** that quotes something in flight.
//!
//! What is outstanding is cut to the new size. From then on the size is searched from below (RFC 4821, section 7.3): a probe is one
//! segment of new data that is longer than the others, sent only where enough follows it that its loss is noticed by
//! acknowledgements. The first asks for the old size, since after an outage nothing is wrong with it; then each halves what is in
//! doubt. A size fails when `MAX_PROBES` probes were lost. The loss of a probe is repaired as any, in shorter segments, and is no
//! sign of congestion (RFC 4821, section 7.6.2; RFC 8899, section 3, item 7). When nothing is in doubt any more, ten minutes pass
//! before larger sizes are tried again. Back at the old size, the state is gone.

use super::Subflow;
use super::acknowledge::Context;
use super::recovery::Phase;
use super::scoreboard::{Fate, Record};
use crate::config::TcpConfig;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;

/// Timeouts in a row that make a black hole of a long segment's path.
const BLACK_HOLE_TIMEOUTS: u32 = 2;

/// Probes of one size that must be lost until it is held for too large (RFC 8899, section 5.1.2, MAX_PROBES).
const MAX_PROBES: u8 = 3;

/// The search ends where less than this is in doubt, bytes.
const STEP: u32 = 8;

/// Time between the end of a search and the next (RFC 8899, section 5.1.1, PMTU_RAISE_TIMER; RFC 1191, section 6.3).
const RAISE: Duration = Duration::from_secs(600);

/// Segments that must follow a probe, so that its loss is found without a timeout (RFC 4821, section 7.4).
const FOLLOWERS: u64 = 3;

/// Largest IP packets after a first and a second black hole: the base (RFC 8899, section 5.1.2, BASE_PLPMTU) and what every host must
/// take (RFC 9293, MUST-15); IPv6 has 1280 as the least of all links (RFC 8200, section 5).
const FLOORS_V4: [u32; 2] = [1200, 576];
const FLOORS_V6: [u32; 1] = [1280];

/// A longer segment that is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probe {
    end: SeqNumber,
    /// Bytes of payload.
    size: u32,
}

/// What is known of a path whose packets are smaller than the handshake allows. Sizes are bytes of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathMtu {
    /// As the handshake had it.
    largest: u32,
    /// Bytes of a packet that are not payload.
    overhead: u32,
    /// Passes.
    low: u32,
    /// Does not pass; one more than `largest` if no size is known to fail.
    high: u32,
    /// Probes of the present size that were lost.
    failures: u8,
    probe: Option<Probe>,
    /// No probe before that.
    rest_until: Instant,
}

impl PathMtu {
    /// The size to be probed now, if one is.
    fn next_size(&mut self, now: Instant) -> Option<u32> {
        if self.probe.is_some() || now < self.rest_until {
            return None;
        }
        if self.is_settled() {
            self.high = self.largest + 1;
        }
        Some(if self.high > self.largest { self.largest } else { self.low + (self.high - self.low) / 2 })
    }

    fn is_settled(&self) -> bool {
        self.high - self.low <= STEP
    }

    fn rest_if_settled(&mut self, now: Instant) {
        if self.is_settled() {
            self.rest_until = now + RAISE;
        }
    }

    fn handle_success(&mut self, now: Instant, size: u32) {
        (self.low, self.failures) = (size, 0);
        self.high = self.high.max(size + 1);
        self.rest_if_settled(now);
    }

    fn handle_failure(&mut self, now: Instant, size: u32) {
        self.failures += 1;
        if self.failures >= MAX_PROBES {
            self.failures = 0;
            self.high = size.max(self.low + 1);
            self.rest_if_settled(now);
        }
    }
}

impl Subflow {
    /// Whether its segments are shorter than the handshake allows.
    #[inline]
    pub fn has_narrow_path(&self) -> bool {
        self.path_mtu.is_some()
    }

    /// How much new data a probe of the path would carry, if one is wanted now; `available` is what may be sent and be in flight,
    /// bytes.
    pub fn probe_size(&mut self, now: Instant, available: u64) -> Option<u32> {
        let calm = self.phase == Phase::Open && self.timeouts_in_row == 0 && !self.silent;
        let nothing_waits = self.scoreboard.lost() == 0 && self.scoreboard.queued() == 0;
        let least = FOLLOWERS * u64::from(self.mss);
        let size = self.path_mtu.as_deref_mut().filter(|_| calm && nothing_waits)?.next_size(now)?;
        (available >= u64::from(size) + least).then_some(size)
    }

    /// Whether a record is a probe: longer than the others, though not by what its mapping would take.
    pub fn is_probe(&self, record: &Record) -> bool {
        record.payload.len() > self.mss as usize && record.place.number == 0
    }

    /// A record has left for the first time.
    #[inline]
    pub(super) fn note_probe(&mut self, record: &Record) {
        if self.is_probe(record)
            && let Some(path) = self.path_mtu.as_deref_mut()
        {
            path.probe = Some(Probe { end: record.end(), size: record.payload.len() as u32 });
        }
    }

    /// An acknowledgement came: if it is for the probe, its size is the segment size from now on.
    pub(super) fn note_delivered_probe(&mut self, cx: &mut Context<'_>) {
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

    /// Segments were marked lost, `lost` bytes together: if the probe is among them, it goes again in shorter ones, and what is
    /// left of `lost` is returned. Where others were lost with it, that says nothing of its size (RFC 4821, section 7.6.3).
    pub(super) fn without_lost_probe(&mut self, now: Instant, lost: u64) -> u64 {
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

    /// A tail loss probe is due: a probe of the path that is out is lost then, and goes again in shorter segments. Gives false if
    /// there is none.
    pub(super) fn lose_probe(&mut self, now: Instant) -> bool {
        let Some(probe) = self.path_mtu.as_deref().and_then(|path| path.probe) else { return false };
        let lost = self.scoreboard.mark_lost_before(probe.end);
        self.without_lost_probe(now, lost);
        lost > 0
    }

    /// The timer ran out over the probe: that counts as a loss of it.
    fn give_up_probe(&mut self, now: Instant) {
        let Some(path) = self.path_mtu.as_deref_mut() else { return };
        if let Some(probe) = path.probe.take() {
            path.handle_failure(now, probe.size);
            self.scoreboard.split_longer(self.mss);
        }
    }

    /// After a retransmission timeout: a path that has not passed a long segment so often may be a black hole for it.
    pub(super) fn consider_black_hole(&mut self, cx: &mut Context<'_>) {
        self.give_up_probe(cx.now);
        if !cx.config.path_mtu_discovery || !self.timeouts_in_row.is_multiple_of(BLACK_HOLE_TIMEOUTS) {
            return;
        }
        let Some(first) = self.scoreboard.sent().find(|record| record.fate != Fate::Sacked) else { return };
        let (length, overhead) = (first.payload.len() as u32, self.overhead(cx.config));
        // The next floor counts after two more.
        let tried = (self.timeouts_in_row / BLACK_HOLE_TIMEOUTS) as usize;
        let mut sizes = self.floors().iter().take(tried).filter_map(|floor| floor.checked_sub(overhead));
        if let Some(size) = sizes.find(|size| (1..length).contains(size)) {
            let high = self.path_mtu.as_deref().map_or(self.mss, |path| path.largest) + 1;
            self.shrink_to(cx, size, high, cx.now);
        }
    }

    /// A router says that packets of more than `mtu` bytes do not pass; it quoted the segment that begins at `seq`. Gives false
    /// if that cannot be: nothing of the kind is in flight (RFC 5927, section 4.1), or the size is none that a path has, or
    /// is no news.
    pub fn handle_packet_too_big(&mut self, cx: &mut Context<'_>, seq: SeqNumber, mtu: u32) -> bool {
        let outstanding = seq.at_or_after(self.send.una) && seq.before(self.send.nxt);
        let least = self.floors().last().copied().unwrap_or(0);
        let size = mtu.saturating_sub(self.overhead(cx.config));
        if !outstanding || mtu < least || size == 0 || !self.state.is_synchronised() || !cx.config.path_mtu_discovery {
            return false;
        }
        if size < self.mss {
            // Lost, but not to congestion (RFC 1191, section 6.5).
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

    /// Sizes to fall to, the least that a path may have last.
    fn floors(&self) -> &'static [u32] {
        if self.identity.local.is_ipv6() { &FLOORS_V6 } else { &FLOORS_V4 }
    }

    /// Bytes of a full packet that are not payload: as the handshake left room for them.
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

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Probes a path that passes up to `limit` bytes until the search rests; gives the sizes asked for.
    fn search(path: &mut PathMtu, now: Instant, limit: u32) -> Vec<u32> {
        let mut asked = Vec::new();
        while let Some(size) = path.next_size(now) {
            asked.push(size);
            if size <= limit {
                path.handle_success(now, size)
            } else {
                path.handle_failure(now, size)
            }
            if path.low == path.largest {
                break;
            }
        }
        asked
    }

    fn fallen() -> PathMtu {
        let (largest, low) = (1420, 1120);
        PathMtu { largest, overhead: 80, low, high: largest + 1, failures: 0, probe: None, rest_until: at(0) }
    }

    #[test]
    fn after_an_outage_the_first_probe_finds_the_old_size() {
        assert_eq!(search(&mut fallen(), at(0), 9000), [1420]);
    }

    // Worked out by hand: the old size fails; then the middle of 1120 and 1420, of 1270 and 1420, and so on.
    #[test]
    fn a_narrow_path_is_found_by_halving_and_each_size_may_be_lost_twice() {
        let mut path = fallen();
        let asked = search(&mut path, at(0), 1320);
        let halves = [1270, 1345, 1345, 1345, 1307, 1326, 1326, 1326, 1316, 1321, 1321, 1321];
        assert_eq!(asked, [&[1420; 3][..], &halves].concat());
        assert_eq!((path.low, path.high), (1316, 1321));
    }

    #[test]
    fn ten_minutes_after_a_search_larger_sizes_are_tried_again() {
        let mut path = fallen();
        search(&mut path, at(0), 1320);
        assert_eq!(path.next_size(at(599)), None);
        assert_eq!(search(&mut path, at(600), 9000), [1420]);
    }
}
