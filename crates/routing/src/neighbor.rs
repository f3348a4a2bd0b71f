//! State of a neighbour on an interface (RFC 2328, 10; RFC 5614, 3.3).

pub(crate) mod announcement;
pub(crate) mod attempt;
pub(crate) mod delivery;
pub(crate) mod exchange;
pub(crate) mod link_monitor;
pub(crate) mod manet;
mod patience;
pub(crate) mod retransmission;
mod state_machine;

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use anabranch_policy::{Duration, Instant, LinkForecaster};
use anabranch_wire::ospf::{InterfaceId, LsaHeader, LsaKey};

use crate::timers::{Timer, TimerTable};
use attempt::Attempt;
use delivery::Delivery;
use exchange::Exchange;
use link_monitor::LinkMonitor;
use manet::ManetNeighbor;
use retransmission::RetransmissionList;

pub(crate) use patience::{channel_loss, patience};
pub use state_machine::NeighborState;
pub(crate) use state_machine::{NeighborAction, NeighborEvent, transition};

/// Timers that detect the silence of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NeighborTimer {
    /// It is declared down; in state Down it is removed.
    Inactivity,
    /// The next Hello is missing; used only with a forecaster.
    MissedHello,
    /// The end of its grace period, while it restarts.
    Grace,
}

impl Timer for NeighborTimer {
    fn index(self) -> usize {
        self as usize
    }
}

/// A neighbour on an interface.
pub struct Neighbor {
    pub(crate) state: NeighborState,
    /// Its link-local address.
    pub(crate) address: Ipv6Addr,
    /// Its own number for its interface.
    pub(crate) interface: InterfaceId,
    pub(crate) priority: u8,
    pub(crate) timers: TimerTable<NeighborTimer, 3>,
    pub(crate) manet: ManetNeighbor,
    /// Its state before it began to restart with a grace period, which counts until that ends.
    pub(crate) grace: Option<NeighborState>,
    pub(crate) attempt: Attempt,
    pub(crate) exchange: Exchange,
    pub(crate) retransmissions: RetransmissionList,
    /// Acked LSA list (RFC 5614, 8.4): what it acknowledged and this router has not received.
    pub(crate) acked: BTreeMap<LsaKey, LsaHeader>,
    pub(crate) link: LinkMonitor,
    pub(crate) delivery: Delivery,
}

impl Neighbor {
    /// A neighbour that has sent its first Hello.
    pub(crate) fn new(address: Ipv6Addr, forget_at: Instant, forecaster: Option<Box<dyn LinkForecaster>>) -> Self {
        let mut timers = TimerTable::default();
        timers.set(NeighborTimer::Inactivity, forget_at);
        Self {
            state: NeighborState::Down,
            address,
            interface: InterfaceId::default(),
            priority: 0,
            timers,
            manet: ManetNeighbor::default(),
            grace: None,
            attempt: Attempt::default(),
            exchange: Exchange::default(),
            retransmissions: RetransmissionList::default(),
            acked: BTreeMap::new(),
            link: LinkMonitor::new(forecaster),
            delivery: Delivery::default(),
        }
    }

    /// The state that counts for routes and LSAs (RFC 3623, 3).
    pub(crate) fn standing(&self) -> NeighborState {
        self.grace.map_or(self.state, |before| before.max(self.state))
    }

    /// Whether it is a bidirectional neighbour.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.state >= NeighborState::TwoWay
    }

    /// Whether it takes part in flooding.
    pub(crate) fn is_exchanging(&self) -> bool {
        self.state >= NeighborState::Exchange
    }

    /// Whether an adjacency with it is being formed.
    pub(crate) fn is_forming(&self) -> bool {
        self.state > NeighborState::TwoWay && self.state < NeighborState::Full
    }

    /// Whether its database is described or fetched.
    pub(crate) fn is_fetching(&self) -> bool {
        matches!(self.state, NeighborState::Exchange | NeighborState::Loading)
    }

    /// LSAs have arrived: fewer requests than before are progress of the exchange.
    pub(crate) fn on_requests(&mut self, now: Instant) {
        let left = self.exchange.requests.len();
        if left < core::mem::replace(&mut self.exchange.requests_left, left) {
            self.attempt.advance(now);
        }
    }

    /// Clears the lists of LSAs, and what belongs to the exchange.
    pub(crate) fn clear_lists(&mut self) {
        self.retransmissions.clear();
        self.acked.clear();
        self.exchange.clear();
    }

    /// Runs the state machine. A neighbour in state Down is removed `forget_after` later.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        event: NeighborEvent,
        dead_interval: Duration,
        forget_after: Duration,
    ) -> NeighborAction {
        let (to, action) = transition(self.state, event);
        self.state = to;
        self.attempt.enter(now, to);
        match action {
            NeighborAction::StartInactivityTimer => self.timers.set(NeighborTimer::Inactivity, now + dead_interval),
            NeighborAction::ClearLists => self.clear_lists(),
            NeighborAction::Forget => {
                self.clear_lists();
                self.grace = None;
                self.timers.stop(NeighborTimer::Grace);
                self.timers.set(NeighborTimer::Inactivity, now + forget_after);
            }
            NeighborAction::None
            | NeighborAction::Negotiate
            | NeighborAction::Summarize
            | NeighborAction::Request
            | NeighborAction::ScheduleAdjOk => {}
        }
        action
    }

    /// The next timer of the exchange or of flooding; never below state ExStart.
    pub(crate) fn next_exchange_timeout(&self) -> Option<Instant> {
        [self.retransmissions.next(), self.exchange.timers.next()].into_iter().flatten().min()
    }

    /// The next timer that detects its silence.
    pub(crate) fn next_silence_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Whether any of its timers has expired.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        [self.next_exchange_timeout(), self.next_silence_timeout()].into_iter().flatten().any(|at| at <= now)
    }

    /// Whether it began anew since its last Hello, by the sequence number of the next: its first ones are far from those of before.
    pub(crate) fn has_begun_anew(&self, sequence: u16) -> bool {
        self.grace.is_none() && self.missing_before(sequence).is_some_and(|gap| u32::from(gap) > delivery::RESTARTED)
    }

    /// Hellos that are missing between the last one and one of this sequence number.
    fn missing_before(&self, sequence: u16) -> Option<u16> {
        self.manet.said.sequence.map(|last| sequence.wrapping_sub(last).saturating_sub(1))
    }

    /// A Hello was received. `interval` is HelloInterval.
    pub(crate) fn hear_hello(
        &mut self,
        now: Instant,
        signal: Option<f32>,
        sequence: Option<u16>,
        interval: Duration,
        dead_interval: Duration,
    ) {
        self.manet.heard = now;
        let gap = sequence.and_then(|sequence| self.missing_before(sequence));
        let most = u16::try_from(dead_interval.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u16::MAX);
        self.delivery.hear(gap);
        if self.link.hear_hello(now, signal, gap, most) {
            self.timers.set(NeighborTimer::MissedHello, now + link_monitor::missing_after(interval));
        }
    }

    /// A Hello is late.
    pub(crate) fn miss_hello(&mut self, now: Instant, interval: Duration) {
        match self.timers.expiry(NeighborTimer::MissedHello) {
            Some(at) if self.state != NeighborState::Down => self.timers.set(NeighborTimer::MissedHello, at + interval),
            _ => self.timers.stop(NeighborTimer::MissedHello),
        }
        self.link.miss_hello(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::forecast::Observation;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU16, Ordering};

    #[test]
    fn an_adjacency_is_being_formed_from_ex_start_until_full() {
        use NeighborState::{Down, ExStart, Exchange, Full, Init, Loading, TwoWay};
        let is_forming = |state| {
            let mut neighbor = Neighbor::new(Ipv6Addr::UNSPECIFIED, Instant::ZERO, None);
            neighbor.state = state;
            neighbor.is_forming()
        };
        assert_eq!([Down, Init, TwoWay, Full].map(is_forming), [false; 4]);
        assert_eq!([ExStart, Exchange, Loading].map(is_forming), [true; 3]);
    }

    struct Missed(Arc<AtomicU16>);

    impl LinkForecaster for Missed {
        fn observe(&mut self, _: Instant, observation: Observation) {
            if let Observation::Missed { hellos } = observation {
                self.0.fetch_add(hellos, Ordering::Relaxed);
            }
        }

        fn probability_up(&self, _: Instant, _: Duration) -> f64 {
            0.5
        }
    }

    #[test]
    fn a_missing_hello_is_looked_for_again_after_its_interval_unless_the_neighbour_is_down() {
        let looked_for = |state| {
            let missed = Arc::new(AtomicU16::new(0));
            let forecaster = Missed(Arc::clone(&missed));
            let mut neighbor = Neighbor::new(Ipv6Addr::UNSPECIFIED, Instant::ZERO, Some(Box::new(forecaster)));
            let second = |seconds| Instant::ZERO + Duration::from_secs(seconds);
            neighbor.state = state;
            neighbor.timers.set(NeighborTimer::MissedHello, second(10));
            neighbor.miss_hello(second(11), Duration::from_secs(2));
            assert_eq!(missed.load(Ordering::Relaxed), 1);
            neighbor.timers.expiry(NeighborTimer::MissedHello).map(|at| at.since(Instant::ZERO).as_millis())
        };
        assert_eq!([NeighborState::Down, NeighborState::Init].map(looked_for), [None, Some(12_000)]);
    }

    #[test]
    fn hellos_of_two_dead_intervals_may_be_missing_and_the_next_is_missing_after_a_quarter_of_its_interval() {
        let missing = |sequence| {
            let missed = Arc::new(AtomicU16::new(0));
            let mut neighbor =
                Neighbor::new(Ipv6Addr::UNSPECIFIED, Instant::ZERO, Some(Box::new(Missed(Arc::clone(&missed)))));
            neighbor.manet.said.sequence = Some(10);
            let now = Instant::ZERO + Duration::from_secs(20);
            neighbor.hear_hello(now, None, Some(sequence), Duration::from_secs(2), Duration::from_secs(6));
            assert_eq!(neighbor.timers.expiry(NeighborTimer::MissedHello), Some(now + Duration::from_millis(2500)));
            missed.load(Ordering::Relaxed)
        };
        // Three fit into a dead interval. With more than twice as many missing it has begun anew.
        assert_eq!([11, 12, 17, 18].map(missing), [0, 1, 6, 0]);
    }
}
