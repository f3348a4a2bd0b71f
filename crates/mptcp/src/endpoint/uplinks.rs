//! What connection attempts have shown of the local addresses: which failed to answer, and the round-trip times of
//! peers.

use crate::connection::Candidate;
use anabranch_policy::ids::AddressId;
use anabranch_policy::time::{Duration, Instant};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Time before the next attempt starts (RFC 8305, section 8: Connection Attempt Delay).
pub(super) const PATIENCE: Duration = Duration::from_millis(250);

/// Minimum of that time, however short the round trip was: a queue may have grown since (RFC 8305, section 8:
/// recommended minimum).
const LEAST_PATIENCE: Duration = Duration::from_millis(100);

/// The same once an earlier attempt had no answer in its time: somebody waits already, so all addresses are asked
/// within a short time, and not in a burst (RFC 8305, section 8: at least 10 ms).
const LATER_PATIENCE: Duration = Duration::from_millis(20);

/// The same before an attempt from a distrusted address (RFC 6298, section 2: the initial timeout): who answers in
/// place of the peer is near, and would be first otherwise.
const CAUTION: Duration = Duration::from_secs(1);

/// For how long an address that failed to answer, or is distrusted, comes last, the first time; doubles with each
/// further failure.
const PAUSE: Duration = Duration::from_secs(15);

/// Maximum of that time.
const LONGEST_PAUSE: Duration = Duration::from_secs(240);

/// An address comes after another if the peer's round trip from it is longer by this, and more than twice as long (RFC
/// 8305, section 4).
const FURTHER: Duration = Duration::from_millis(50);

/// Limit of stored round trips. Above it the oldest are removed.
const ROUND_TRIPS: usize = 256;

/// An address that failed to answer.
#[derive(Clone, Copy, Debug)]
struct Silence {
    until: Instant,
    pause: Duration,
}

/// A peer's round-trip time from a local address.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    local: AddressId,
    remote: IpAddr,
    time: Duration,
}

/// State of the local addresses, learned from attempts.
#[derive(Debug, Default)]
pub(super) struct Uplinks {
    silences: BTreeMap<AddressId, Silence>,
    /// Addresses from which something else than the peer has answered, and when it last did.
    distrusted: BTreeMap<AddressId, (Silence, Instant)>,
    /// Newest first.
    round_trips: VecDeque<RoundTrip>,
    /// Backup addresses.
    backups: BTreeSet<AddressId>,
}

impl Uplinks {
    /// An attempt from there was answered.
    pub fn answered(&mut self, local: AddressId, remote: IpAddr, round_trip: Option<Duration>) {
        self.silences.remove(&local);
        let Some(time) = round_trip else { return };
        self.round_trips.retain(|known| (known.local, known.remote) != (local, remote));
        self.round_trips.truncate(ROUND_TRIPS - 1);
        self.round_trips.push_front(RoundTrip { local, remote, time });
    }

    /// An attempt was not answered in time, or a path became unresponsive. Simultaneous reports of several connections
    /// count once.
    pub fn unanswered(&mut self, now: Instant, local: AddressId) {
        let silence = lengthened(self.silences.get(&local).copied(), now);
        self.silences.insert(local, silence);
    }

    /// What answered from there was not the peer. Simultaneous reports count once.
    pub fn distrust(&mut self, now: Instant, local: AddressId) {
        let before = self.distrusted.get(&local).map(|(silence, _)| *silence);
        self.distrusted.insert(local, (lengthened(before, now), now));
    }

    /// What answered from there was the peer.
    pub fn trust(&mut self, local: AddressId) {
        self.distrusted.remove(&local);
    }

    /// When something else than the peer last answered there, if the address comes after all others for now.
    pub fn distrusted_since(&self, now: Instant, local: AddressId) -> Option<Instant> {
        self.distrusted.get(&local).filter(|(silence, _)| silence.until > now).map(|(_, last)| *last)
    }

    /// Whether an address comes last for now.
    pub fn is_silent(&self, now: Instant, local: AddressId) -> bool {
        self.silences.get(&local).is_some_and(|silence| silence.until > now)
    }

    /// The time before the next attempt: two round trips, if the round-trip time is known.
    pub fn patience(&self, local: AddressId, remote: IpAddr) -> Duration {
        let known = self.round_trip(local, remote);
        known.map_or(PATIENCE, |time| (time * 2).clamp(LEAST_PATIENCE, PATIENCE))
    }

    /// The time for an answer to an attempt before the next one starts; `others_wait`: earlier ones have no answer yet.
    pub fn patience_before(&self, attempt: &Candidate, next: Option<&Candidate>, others_wait: bool) -> Duration {
        match next {
            Some(next) if next.distrusted && !attempt.distrusted => CAUTION,
            _ if others_wait => LATER_PATIENCE,
            _ => self.patience(attempt.local_address, attempt.remote.ip()),
        }
    }

    fn round_trip(&self, local: AddressId, remote: IpAddr) -> Option<Duration> {
        let known = self.round_trips.iter().find(|known| (known.local, known.remote) == (local, remote));
        known.map(|known| known.time)
    }

    /// Whether a peer is known to be much further from this address than from another.
    pub fn is_far(&self, local: AddressId, remote: IpAddr) -> bool {
        let Some(time) = self.round_trip(local, remote) else { return false };
        let others = self.round_trips.iter().filter(|known| known.remote == remote);
        others.map(|known| known.time).min().is_some_and(|least| time > (least * 2).max(least + FURTHER))
    }

    pub fn is_backup(&self, local: AddressId) -> bool {
        self.backups.contains(&local)
    }

    /// Returns whether this changed anything.
    pub fn set_backup(&mut self, local: AddressId, backup: bool) -> bool {
        if backup { self.backups.insert(local) } else { self.backups.remove(&local) }
    }

    /// Removes an address.
    pub fn forget(&mut self, local: AddressId) {
        self.backups.remove(&local);
        self.silences.remove(&local);
        self.distrusted.remove(&local);
        self.round_trips.retain(|known| known.local != local);
    }
}

/// The same once more, unless it lasts.
fn lengthened(before: Option<Silence>, now: Instant) -> Silence {
    match before {
        Some(before) if before.until > now => before,
        _ => {
            let pause = before.map_or(PAUSE, |before| (before.pause * 2).min(LONGEST_PAUSE));
            Silence { until: now + pause, pause }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: AddressId = AddressId(1);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn an_address_that_is_not_answered_is_asked_last_for_a_while_that_doubles_until_it_answers() {
        let mut uplinks = Uplinks::default();
        assert!(!uplinks.is_silent(at(0), ONE));
        uplinks.unanswered(at(0), ONE);
        assert!(uplinks.is_silent(at(14), ONE) && !uplinks.is_silent(at(15), ONE));
        uplinks.unanswered(at(20), ONE);
        assert!(uplinks.is_silent(at(49), ONE) && !uplinks.is_silent(at(50), ONE));
        uplinks.answered(ONE, peer(1), None);
        assert!(!uplinks.is_silent(at(30), ONE));
        uplinks.unanswered(at(60), ONE);
        assert!(uplinks.is_silent(at(74), ONE) && !uplinks.is_silent(at(75), ONE));
    }

    #[test]
    fn only_a_proof_ends_distrust_early() {
        let mut uplinks = Uplinks::default();
        uplinks.distrust(at(0), ONE);
        uplinks.answered(ONE, peer(1), None);
        assert_eq!([14, 15].map(|second| uplinks.distrusted_since(at(second), ONE)), [Some(at(0)), None]);
        uplinks.distrust(at(20), ONE);
        uplinks.distrust(at(30), ONE);
        assert_eq!([49, 50].map(|second| uplinks.distrusted_since(at(second), ONE)), [Some(at(30)), None]);
        uplinks.trust(ONE);
        assert_eq!(uplinks.distrusted_since(at(49), ONE), None);
    }

    #[test]
    fn many_connections_that_find_an_address_silent_at_once_count_once_and_no_pause_is_longer_than_four_minutes() {
        let mut uplinks = Uplinks::default();
        (0..50).for_each(|_| uplinks.unanswered(at(0), ONE));
        assert!(!uplinks.is_silent(at(15), ONE));
        (1..20).for_each(|n| uplinks.unanswered(at(1_000 * n), ONE));
        assert!(uplinks.is_silent(at(19_239), ONE) && !uplinks.is_silent(at(19_240), ONE));
    }

    #[test]
    fn an_address_is_far_if_a_peer_is_twice_and_50_ms_further_from_there_than_from_another() {
        let mut uplinks = Uplinks::default();
        let millis = Duration::from_millis;
        uplinks.answered(ONE, peer(1), Some(millis(200)));
        assert!(!uplinks.is_far(ONE, peer(1)));
        for (other, far) in [(20, true), (99, true), (100, false), (200, false)] {
            uplinks.answered(AddressId(2), peer(1), Some(millis(other)));
            assert_eq!(uplinks.is_far(ONE, peer(1)), far, "{other} ms");
            assert!(!uplinks.is_far(AddressId(2), peer(1)) && !uplinks.is_far(ONE, peer(2)));
        }
        // Below 50 ms the difference does not matter.
        uplinks.answered(ONE, peer(1), Some(millis(60)));
        for (other, far) in [(9, true), (10, false)] {
            uplinks.answered(AddressId(2), peer(1), Some(millis(other)));
            assert_eq!(uplinks.is_far(ONE, peer(1)), far, "{other} ms");
        }
    }

    #[test]
    fn the_next_attempt_waits_two_known_round_trips_but_at_least_100_and_at_most_250_ms() {
        let mut uplinks = Uplinks::default();
        let millis = Duration::from_millis;
        assert_eq!(uplinks.patience(ONE, peer(1)), millis(250));
        for (round_trip, patience) in [(80, 160), (20, 100), (400, 250)] {
            uplinks.answered(ONE, peer(1), Some(millis(round_trip)));
            assert_eq!(uplinks.patience(ONE, peer(1)), millis(patience));
        }
        assert_eq!(uplinks.patience(ONE, peer(2)), millis(250));
        assert_eq!(uplinks.patience(AddressId(2), peer(1)), millis(250));
        uplinks.answered(ONE, peer(1), Some(millis(80)));
        uplinks.forget(ONE);
        assert_eq!(uplinks.patience(ONE, peer(1)), millis(250));
    }

    #[test]
    fn no_more_than_256_round_trips_are_remembered() {
        let mut uplinks = Uplinks::default();
        for n in 0..1_000_u32 {
            uplinks.answered(ONE, IpAddr::from(n.to_be_bytes()), Some(Duration::from_millis(70)));
        }
        assert_eq!(uplinks.round_trips.len(), 256);
        assert_eq!(uplinks.patience(ONE, IpAddr::from(999_u32.to_be_bytes())), Duration::from_millis(140));
    }
}
