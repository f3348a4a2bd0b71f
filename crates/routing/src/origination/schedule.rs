//! Schedules the origination of own LSAs (RFC 2328, 12.4).

use std::collections::{BTreeMap, VecDeque};

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::lsa::LsaSequence;
use anabranch_wire::ospf::{LsaHeader, LsaType};

use crate::database::Place;
use crate::handles::InterfaceHandle;
use crate::origination::pace::Pace;

/// One of the own LSAs.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    /// When the last instance was originated.
    originated: Option<Instant>,
    /// When the next one is due; none if nothing changed.
    pending: Option<Instant>,
    /// When the LSA is refreshed even without a change.
    refresh: Option<Instant>,
    /// When all instances so far would have been originated at one per MinLSInterval.
    paid: Instant,
    /// Instances in a row that came as soon as they might.
    strained: u32,
}

/// After so many instances in a row that came as soon as they might, intervals are doubled, and after as many again once more:
/// where links change all the time, the LSAs of a large network fill its channel, and more links are lost by that.
const LASTING: u32 = 3;

/// An instance came as soon as it might if it came so much later at most, as a part of MinLSInterval.
const AT_ONCE: f64 = 0.2;

/// Instances of an LSA that may come sooner than MinLSInterval after the one before, if there was none for long.
const BURST: u64 = 2;

/// The first interval of a burst, as a part of MinLSInterval: 1.25 s of 5 s. Receivers drop what comes sooner than MinLSArrival,
/// 1 s, and flooding delays instances unequally. Each further interval is twice as long.
const FIRST: f64 = 0.25;

/// How long the first Router-LSA waits for adjacencies that are Full a little later, so that it has their links too.
const COMPANY: Duration = Duration::from_millis(200);

impl Own {
    /// When the next instance may be originated.
    fn soonest(&self, pace: Pace) -> Option<Instant> {
        let last = self.originated?;
        let interval = pace.interval;
        let borrowed = self.paid.since(last).as_nanos().saturating_sub(1) / interval.as_nanos().max(1);
        let gap = interval.mul_f64(FIRST) * (1 << borrowed.min(BURST));
        let strained = gap.min(interval) * (1 << (self.strained / LASTING).min(2));
        Some(last + strained.min(pace.longest))
    }

    fn next(&self) -> Option<Instant> {
        [self.pending, self.refresh].into_iter().flatten().min()
    }
}

/// The schedule of the own LSAs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origination {
    own: BTreeMap<Place, Own>,
    /// Sequence numbers and checksums of the last Router-LSAs.
    router_lsas: VecDeque<(LsaSequence, u16)>,
}

/// Router-LSAs remembered: more than can be on their way at a time.
const REMEMBERED: usize = 16;

impl Origination {
    /// Schedules an LSA: now, or as soon as MinLSInterval, `interval`, allows after the last instance. A burst may come sooner: two
    /// instances more than one per `interval`, however long it is looked at.
    pub fn schedule(&mut self, place: Place, now: Instant, pace: impl Into<Pace>) {
        let own = self.own.entry(place).or_default();
        let first = if place.key.kind == LsaType::ROUTER { now + COMPANY } else { now };
        let soonest = own.soonest(pace.into()).map_or(first, |soonest| soonest.max(now));
        own.pending = Some(own.pending.map_or(soonest, |pending| pending.min(soonest)));
    }

    /// Schedules an LSA that has only shorter paths to tell.
    pub fn schedule_at_leisure(&mut self, place: Place, now: Instant, pace: Pace) {
        let leisure = self.own.get(&place).and_then(|own| own.originated).map_or(now, |last| last + pace.leisure);
        self.schedule(place, now.max(leisure), pace);
    }

    /// Schedules an LSA of which a wrong instance came back: now, or `interval` after the last instance.
    pub fn correct(&mut self, place: Place, now: Instant, interval: Duration) {
        let own = self.own.entry(place).or_default();
        let soonest = own.originated.map_or(now, |last| (last + interval).max(now));
        own.pending = Some(own.pending.map_or(soonest, |pending| pending.min(soonest)));
    }

    /// Schedules the LSAs that are due for a refresh (LSRefreshTime).
    pub fn schedule_refreshes(&mut self, now: Instant) {
        for own in self.own.values_mut().filter(|own| own.refresh.is_some_and(|at| at <= now)) {
            own.pending = Some(now);
        }
    }

    /// Removes and returns an LSA that is due.
    pub fn take_due(&mut self, now: Instant) -> Option<Place> {
        let (place, own) = self.own.iter_mut().find(|(_, own)| own.pending.is_some_and(|at| at <= now))?;
        own.pending = None;
        Some(*place)
    }

    /// Whether an instance was originated since this router began.
    pub fn has_begun(&self, place: Place) -> bool {
        self.own.get(&place).is_some_and(|own| own.originated.is_some())
    }

    pub fn needs_refresh(&self, place: Place, now: Instant) -> bool {
        self.own.get(&place).and_then(|own| own.refresh).is_some_and(|at| at <= now)
    }

    /// An LSA was originated; its refresh is due at `refresh`.
    pub fn set_originated(&mut self, place: Place, now: Instant, pace: impl Into<Pace>, refresh: Instant) {
        let pace = pace.into();
        let own = self.own.entry(place).or_default();
        let strained = match own.soonest(pace) {
            Some(soonest) if now < soonest + pace.interval.mul_f64(AT_ONCE) => own.strained.saturating_add(1),
            _ => 0,
        };
        let paid = own.paid.max(now) + pace.interval;
        *own = Own { originated: Some(now), pending: None, refresh: Some(refresh), paid, strained };
    }

    /// An own LSA was flushed, and is to be originated again. Routers far away may still have an older instance, which would
    /// seem to be the newer one: no burst begins before they are reached too.
    pub fn begin_anew(&mut self, place: Place, now: Instant, interval: Duration) {
        self.withdraw(place, now, interval);
        self.schedule(place, now, interval);
    }

    /// Remembers a Router-LSA that was originated.
    pub fn remember(&mut self, header: LsaHeader) {
        if self.router_lsas.len() >= REMEMBERED {
            self.router_lsas.pop_front();
        }
        self.router_lsas.push_back((header.sequence, header.checksum));
    }

    /// Whether a Router-LSA in this router's name was originated here lately.
    pub fn remembers(&self, header: LsaHeader) -> bool {
        self.router_lsas.contains(&(header.sequence, header.checksum))
    }

    /// Stops the refresh of an LSA.
    pub fn stop_refreshing(&mut self, place: Place) {
        if let Some(own) = self.own.get_mut(&place) {
            own.refresh = None;
        }
    }

    /// An LSA is flushed, and may be originated again after `interval`, and no burst begins then.
    pub fn withdraw(&mut self, place: Place, now: Instant, interval: Duration) {
        let paid = now + interval * (BURST + 2);
        self.own.insert(place, Own { originated: Some(now), pending: None, refresh: None, paid, strained: 0 });
    }

    pub fn forget(&mut self, place: Place) {
        self.own.remove(&place);
    }

    /// Removes the LSAs of link-local scope of an interface.
    pub fn forget_link(&mut self, interface: InterfaceHandle) {
        self.own.retain(|place, _| place.link != Some(interface));
    }

    /// When the next LSA is due for origination or refresh.
    pub fn next(&self) -> Option<Instant> {
        self.own.values().filter_map(Own::next).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::LsaKey;

    const INTERVAL: Duration = Duration::from_secs(5);

    fn place() -> Place {
        Place { link: None, key: LsaKey::default() }
    }

    fn second(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// When instances are originated, in ms, if there is always a reason from `from` on until `until`, in ms.
    fn times(origination: &mut Origination, from: u64, until: u64) -> Vec<u64> {
        let mut times = Vec::new();
        for milli in (from..until).step_by(50) {
            let now = Instant::ZERO + Duration::from_millis(milli);
            origination.schedule(place(), now, INTERVAL);
            if origination.take_due(now).is_some() {
                origination.set_originated(place(), now, INTERVAL, now + INTERVAL * 1000);
                times.push(milli);
            }
        }
        times
    }

    #[test]
    fn rfc2328_12_4_after_a_short_burst_instances_are_min_ls_interval_apart_and_then_further() {
        let mut origination = Origination::default();
        let expected = [0, 1250, 3750, 8750, 18_750, 23_750, 28_750, 38_750, 43_750, 48_750];
        assert_eq!(times(&mut origination, 0, 50_000), expected);
        // A pause is good for a whole burst.
        assert_eq!(times(&mut origination, 100_000, 105_000), [100_000, 101_250, 103_750]);
    }

    #[test]
    fn what_only_shortens_paths_waits_for_leisure_or_for_something_else_to_tell() {
        let pace = Pace { interval: INTERVAL, longest: INTERVAL * 4, leisure: INTERVAL * 10 };
        let mut origination = Origination::default();
        origination.schedule_at_leisure(place(), second(1), pace);
        assert_eq!(origination.take_due(second(1)), Some(place()));
        origination.set_originated(place(), second(1), pace, second(999));
        origination.schedule_at_leisure(place(), second(2), pace);
        assert_eq!((origination.take_due(second(50)), origination.next()), (None, Some(second(51))));
        origination.schedule(place(), second(9), pace);
        assert_eq!(origination.take_due(second(9)), Some(place()));
    }

    #[test]
    fn an_lsa_that_changes_all_the_time_does_not_wait_longer_than_the_longest_interval_of_its_pace() {
        let pace = Pace { interval: INTERVAL * 3, longest: INTERVAL * 4, leisure: INTERVAL };
        let mut origination = Origination::default();
        let mut times = Vec::new();
        for now in (0..200).map(second) {
            origination.schedule(place(), now, pace);
            if origination.take_due(now).is_some() {
                origination.set_originated(place(), now, pace, second(9999));
                times.push(now);
            }
        }
        let gaps = times.iter().zip(times.iter().skip(1)).map(|(one, next)| next.since(*one));
        assert_eq!(gaps.max(), Some(INTERVAL * 4));
    }

    #[test]
    fn two_instances_more_than_one_per_min_ls_interval_are_originated_at_most() {
        let mut origination = Origination::default();
        let mut all = Vec::new();
        // Changes that last for a while, and pauses.
        for (from, until) in [(0, 3000), (9000, 12_000), (14_000, 30_000), (33_000, 36_000), (44_000, 60_000)] {
            all.extend(times(&mut origination, from, until));
        }
        for (first, from) in all.iter().enumerate() {
            for (last, until) in all.iter().enumerate().skip(first) {
                let most = BURST + (until - from) / 5000;
                assert!((last - first) as u64 <= most, "{} from {from} to {until} ms", last - first + 1);
            }
        }
    }

    #[test]
    fn what_was_flushed_begins_anew_after_min_ls_interval_and_without_a_burst() {
        let mut origination = Origination::default();
        origination.begin_anew(place(), second(1), INTERVAL);
        assert_eq!(times(&mut origination, 1000, 17_000), [6000, 11_000, 16_000]);
    }

    #[test]
    fn a_wrong_instance_is_corrected_after_the_interval_given() {
        let mut origination = Origination::default();
        origination.correct(place(), second(1), INTERVAL);
        assert_eq!(origination.take_due(second(1)), Some(place()));
        origination.set_originated(place(), second(1), INTERVAL, second(99));
        origination.correct(place(), second(1), Duration::from_secs(1));
        assert_eq!((origination.take_due(second(1)), origination.next()), (None, Some(second(2))));
    }

    #[test]
    fn the_first_router_lsa_waits_a_little() {
        let key = LsaKey { kind: LsaType::ROUTER, ..LsaKey::default() };
        let mut origination = Origination::default();
        origination.schedule(Place { link: None, key }, second(1), INTERVAL);
        assert_eq!(origination.next(), Some(second(1) + COMPANY));
    }

    #[test]
    fn an_lsa_is_refreshed_until_that_is_stopped() {
        let mut origination = Origination::default();
        origination.set_originated(place(), second(1), INTERVAL, second(31));
        origination.schedule_refreshes(second(30));
        assert_eq!((origination.next(), origination.take_due(second(30))), (Some(second(31)), None));
        origination.schedule_refreshes(second(31));
        assert!(origination.needs_refresh(place(), second(31)));
        assert_eq!(origination.take_due(second(31)), Some(place()));
        origination.stop_refreshing(place());
        assert_eq!(origination.next(), None);
    }

    #[test]
    fn with_an_interface_go_the_lsas_of_its_link() {
        let mut origination = Origination::default();
        let on_link = Place { link: Some(InterfaceHandle::FIRST), ..place() };
        origination.schedule(on_link, second(1), INTERVAL);
        origination.schedule(place(), second(1), INTERVAL);
        origination.forget_link(InterfaceHandle::FIRST);
        assert_eq!(origination.take_due(second(1)), Some(place()));
        assert_eq!(origination.take_due(second(1)), None);
        origination.forget(place());
        assert_eq!(origination.next(), None);
    }
}
