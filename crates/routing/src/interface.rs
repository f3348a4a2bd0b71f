//! An interface: its state machine (RFC 2328, 9.3, changed by RFC 5614, 6.3) and its parts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use anabranch_policy::{Duration, Instant, LinkForecaster};
use anabranch_wire::ospf::{HEADER, LinkStateUpdate, LsaHeader, LsaKey, RouterId};

use crate::config::{HELLO_REPEAT_COUNT, InterfaceConfig, InterfaceKind, LinkCost, Manet};
use crate::election::Selection;
use crate::flooding::acknowledgments::AckQueue;
use crate::flooding::queue::FloodQueue;
use crate::hello::schedule::HelloSchedule;
use crate::neighbor::attempt::Barred;
use crate::neighbor::link_monitor::missing_after;
use crate::neighbor::retransmission::Pace;
use crate::neighbor::{Neighbor, NeighborAction, NeighborEvent, NeighborState, NeighborTimer, channel_loss, patience};
use crate::neighborhood::Level;
use crate::timers::{Timer, TimerTable};
use crate::verbs::IPV6_HEADER;

/// The state of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InterfaceState {
    /// Nothing is sent or received.
    #[default]
    Down,
    /// It has no network; its addresses are advertised.
    Loopback,
    /// A MANET interface that listens until every neighbour has sent a full Hello.
    Waiting,
    /// It has one peer.
    PointToPoint,
    /// A MANET interface of an MDR Other.
    DrOther,
    /// A MANET interface of a Backup MDR.
    Backup,
    /// A MANET interface of an MDR.
    Dr,
}

/// An event of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InterfaceEvent {
    /// It can send and receive.
    InterfaceUp,
    /// It cannot.
    InterfaceDown,
    /// The end of Waiting.
    WaitTimer,
    /// MDRs were selected (RFC 5614, 6.2, in the place of NeighborChange).
    Selected(Level),
}

/// Kinds of interface with different state machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Manet,
    PointToPoint,
    Loopback,
}

/// The next state. The caller starts and stops the timers that belong to it.
fn transition(state: InterfaceState, kind: Kind, event: InterfaceEvent) -> InterfaceState {
    use InterfaceEvent as On;
    use InterfaceState as S;
    match (state, event) {
        (S::Down, On::InterfaceUp) => match kind {
            Kind::Manet => S::Waiting,
            Kind::PointToPoint => S::PointToPoint,
            Kind::Loopback => S::Loopback,
        },
        (S::Loopback | S::Waiting | S::PointToPoint | S::DrOther | S::Backup | S::Dr, On::InterfaceUp) => state,
        (S::Down | S::Loopback | S::Waiting | S::PointToPoint | S::DrOther | S::Backup | S::Dr, On::InterfaceDown) => {
            S::Down
        }
        // The level is selected immediately afterwards; until then it is MDR Other.
        (S::Waiting, On::WaitTimer) => S::DrOther,
        (S::Down | S::Loopback | S::PointToPoint | S::DrOther | S::Backup | S::Dr, On::WaitTimer) => state,
        (S::DrOther | S::Backup | S::Dr, On::Selected(level)) => match level {
            Level::Other => S::DrOther,
            Level::BackupMdr => S::Backup,
            Level::Mdr => S::Dr,
        },
        (S::Down | S::Loopback | S::Waiting | S::PointToPoint, On::Selected(_)) => state,
    }
}

/// The timers of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InterfaceTimer {
    /// Waiting ends.
    Wait,
    /// The next Hello is sent.
    Hello,
    /// The Inactivity Timer of a neighbour may expire, or a Hello be missing; not before.
    Silence,
}

impl Timer for InterfaceTimer {
    fn index(self) -> usize {
        self as usize
    }
}

/// A neighbour's state changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StateChange {
    pub from: NeighborState,
    pub to: NeighborState,
}

impl StateChange {
    /// Whether a neighbour became bidirectional, or ceased to be.
    pub fn crosses_two_way(self) -> bool {
        (self.from >= NeighborState::TwoWay) != (self.to >= NeighborState::TwoWay)
    }

    /// Whether a neighbour ceased to be bidirectional.
    pub fn loses_two_way(self) -> bool {
        self.crosses_two_way() && self.to < NeighborState::TwoWay
    }

    /// Whether a neighbour became Full, or ceased to be.
    pub fn crosses_full(self) -> bool {
        (self.from == NeighborState::Full) != (self.to == NeighborState::Full)
    }
}

/// Neighbours that were added to retransmission lists.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Listed {
    /// Whether there are any.
    pub any: bool,
    /// Neighbours whose list is full.
    pub overflown: Vec<RouterId>,
}

/// Part of HelloInterval for which nobody new must be heard before Waiting ends early.
const QUIET: f64 = 0.2;

/// Exchanges of databases at once (RFC 4222, 2, recommendation 5: n).
const EXCHANGES: usize = 4;

/// When Waiting ends.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// At the latest.
    until: Instant,
    /// When someone was last heard for the first time.
    newest: Instant,
}

/// An interface.
pub struct Interface {
    pub(crate) config: InterfaceConfig,
    pub(crate) state: InterfaceState,
    pub(crate) timers: TimerTable<InterfaceTimer, 3>,
    pub(crate) hello: HelloSchedule,
    waiting: Waiting,
    pub(crate) selection: Selection,
    /// MDRNeighborChange.
    pub(crate) mdr_neighbor_change: bool,
    /// Whether inputs of the Selected Advertised Neighbors changed.
    pub(crate) advertised_change: bool,
    pub(crate) neighbors: BTreeMap<RouterId, Neighbor>,
    /// Neighbours that began anew before they were missed, and have not been Full since.
    pub(crate) anew: BTreeSet<RouterId>,
    /// Neighbours whose exchange did not end.
    pub(crate) barred: Barred,
    /// Neighbours in state ExStart or greater, in order: the few with LSA lists and timers other than for silence.
    adjacent: Vec<RouterId>,
    /// Costs of links to neighbours that differ from the interface's.
    pub(crate) link_costs: BTreeMap<RouterId, u16>,
    /// Additional costs of suspect links.
    pub(crate) suspect_costs: BTreeMap<RouterId, u16>,
    /// The neighbours whose links the last Hello announced as suspect.
    pub(crate) suspects_announced: BTreeSet<RouterId>,
    /// LSAs to be flooded.
    pub(crate) flood: FloodQueue,
    /// Acknowledgments to be sent.
    pub(crate) acknowledgments: AckQueue,
    /// When the next packet of retransmissions may be sent.
    pub(crate) pace: Pace,
}

impl Interface {
    pub(crate) fn new(config: InterfaceConfig) -> Self {
        Self {
            config,
            state: InterfaceState::Down,
            timers: TimerTable::default(),
            hello: HelloSchedule::default(),
            waiting: Waiting::default(),
            selection: Selection::default(),
            mdr_neighbor_change: false,
            advertised_change: false,
            neighbors: BTreeMap::new(),
            anew: BTreeSet::new(),
            barred: Barred::default(),
            adjacent: Vec::new(),
            link_costs: BTreeMap::new(),
            suspect_costs: BTreeMap::new(),
            suspects_announced: BTreeSet::new(),
            flood: FloodQueue::default(),
            acknowledgments: AckQueue::default(),
            pace: Pace::default(),
        }
    }

    /// The parameters of RFC 5614, if it is a MANET interface.
    pub(crate) fn manet(&self) -> Option<&Manet> {
        match &self.config.kind {
            InterfaceKind::Manet(manet) => Some(manet),
            InterfaceKind::PointToPoint | InterfaceKind::Loopback => None,
        }
    }

    fn kind(&self) -> Kind {
        match self.config.kind {
            InterfaceKind::Manet(_) => Kind::Manet,
            InterfaceKind::PointToPoint => Kind::PointToPoint,
            InterfaceKind::Loopback => Kind::Loopback,
        }
    }

    /// Whether packets are sent and received on it.
    pub(crate) fn is_active(&self) -> bool {
        match self.state {
            InterfaceState::Down | InterfaceState::Loopback => false,
            InterfaceState::Waiting
            | InterfaceState::PointToPoint
            | InterfaceState::DrOther
            | InterfaceState::Backup
            | InterfaceState::Dr => true,
        }
    }

    /// The cost of the link to a neighbour.
    pub(crate) fn cost_to(&self, neighbor: RouterId) -> u16 {
        let measured = match self.config.link_cost {
            LinkCost::Interface => None,
            LinkCost::Etx => self.neighbors.get(&neighbor).and_then(|neighbor| neighbor.delivery.cost()),
        };
        let usual = self.link_costs.get(&neighbor).copied().or(measured).unwrap_or(self.config.cost);
        usual.saturating_add(self.suspect_costs.get(&neighbor).copied().unwrap_or(0))
    }

    /// InfTransDelay in whole seconds, at least 1.
    pub(crate) fn transmission_delay(&self) -> u16 {
        let seconds = self.config.inf_trans_delay.as_nanos().div_ceil(1_000_000_000);
        u16::try_from(seconds).unwrap_or(u16::MAX).max(1)
    }

    /// Space for LSAs in one Link State Update, in bytes.
    pub(crate) fn update_room(&self) -> usize {
        usize::from(self.config.mtu).saturating_sub(IPV6_HEADER + HEADER + LinkStateUpdate::FIXED)
    }

    /// It can send and receive. `random` is from 0 to 1.
    pub(crate) fn bring_up(&mut self, now: Instant, random: f64) {
        if self.state != InterfaceState::Down {
            return;
        }
        self.run(InterfaceEvent::InterfaceUp);
        if self.is_active() {
            // Routers that start at the same time must not synchronize.
            let first = match self.manet() {
                Some(_) => self.config.hello_interval.mul_f64(random),
                None => Duration::ZERO,
            };
            self.hello.begin(now + first);
            self.timers.set(InterfaceTimer::Hello, now + first);
        }
        if let (InterfaceState::Waiting, Some(manet)) = (self.state, self.manet()) {
            let until = now + self.config.hello_interval * u64::from(manet.two_hop_refresh);
            self.waiting = Waiting { until, newest: now };
            self.timers.set(InterfaceTimer::Wait, until);
        }
    }

    fn is_prompt(&self) -> bool {
        self.manet().is_some_and(|manet| manet.prompt)
    }

    /// What a full Hello says should soon be known to a neighbour. `random` is from 0 to 1.
    pub(crate) fn hasten_hello(&mut self, now: Instant, random: f64) {
        if self.is_prompt() && self.is_active() {
            self.hello.hasten(now, self.config.hello_interval, random);
            self.timers.set(InterfaceTimer::Hello, self.hello.at());
        }
    }

    /// A neighbour is heard for the first time, or again.
    pub(crate) fn meet(&mut self, now: Instant) {
        self.waiting.newest = now;
    }

    /// Waiting, in which every neighbour has time for a full Hello (RFC 5614, 6.3), ends early if all that are heard have sent
    /// one and are bidirectional neighbours, and nobody new was heard for a while.
    pub(crate) fn review_waiting(&mut self) {
        if self.state != InterfaceState::Waiting || !self.is_prompt() {
            return;
        }
        let mut heard = self.neighbors.values().filter(|neighbor| neighbor.state >= NeighborState::Init).peekable();
        let is_complete = heard.peek().is_some()
            && heard.all(|neighbor| neighbor.is_bidirectional() && neighbor.manet.said.full_hello_received);
        let Waiting { until, newest } = self.waiting;
        let quiet = newest + self.config.hello_interval.mul_f64(QUIET);
        self.timers.set(InterfaceTimer::Wait, if is_complete { quiet.min(until) } else { until });
    }

    /// It can no longer send and receive.
    pub(crate) fn bring_down(&mut self) {
        self.run(InterfaceEvent::InterfaceDown);
        self.selection = Selection::default();
        self.timers.stop(InterfaceTimer::Wait);
        self.timers.stop(InterfaceTimer::Hello);
        self.flood.clear();
        self.acknowledgments.clear();
    }

    /// Waiting is over: MDRs are to be selected.
    pub(crate) fn end_waiting(&mut self) {
        self.timers.stop(InterfaceTimer::Wait);
        self.run(InterfaceEvent::WaitTimer);
        self.mdr_neighbor_change = true;
    }

    /// MDRs were selected.
    pub(crate) fn select(&mut self, selection: Selection) {
        self.selection = selection;
        self.run(InterfaceEvent::Selected(selection.level));
        self.advertised_change = true;
    }

    fn run(&mut self, event: InterfaceEvent) {
        self.state = transition(self.state, self.kind(), event);
    }

    /// The next timer, neighbours included; or slightly earlier.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let own = [self.timers.next(), self.flood.next(), self.acknowledgments.next()];
        let neighbors = self.adjacent().filter_map(|(_, neighbor)| neighbor.next_exchange_timeout());
        neighbors.chain(own.into_iter().flatten()).min()
    }

    /// The LSAs that neighbours have not acknowledged.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.adjacent().map(|(_, neighbor)| neighbor.retransmissions.len()).sum()
    }

    /// The neighbours in state ExStart or greater, in order.
    pub(crate) fn adjacent(&self) -> impl Iterator<Item = (RouterId, &Neighbor)> {
        self.adjacent.iter().filter_map(|router| Some((*router, self.neighbors.get(router)?)))
    }

    /// Whether as many databases are exchanged as may be at once (RFC 4222, 2, recommendation 5), on a MANET interface.
    pub(crate) fn is_busy(&self) -> bool {
        self.manet().is_some() && self.adjacent().filter(|(_, one)| one.is_fetching()).count() >= EXCHANGES
    }

    /// The neighbour that has waited longest for the end of exchanges with others.
    pub(crate) fn next_held(&self) -> Option<RouterId> {
        let held = |(router, one): (RouterId, &Neighbor)| {
            (one.state == NeighborState::ExStart).then_some((one.exchange.held?, router))
        };
        self.adjacent().filter_map(held).min().map(|(_, router)| router)
    }

    /// Calls `act` for each neighbour in state ExStart or greater, in order.
    pub(crate) fn for_each_adjacent(&mut self, mut act: impl FnMut(RouterId, &mut Neighbor)) {
        for router in &self.adjacent {
            if let Some(neighbor) = self.neighbors.get_mut(router) {
                act(*router, neighbor);
            }
        }
    }

    /// A neighbour entered state ExStart or fell below it.
    fn set_adjacent(&mut self, router: RouterId, adjacent: bool) {
        match (self.adjacent.binary_search(&router), adjacent) {
            (Err(place), true) => self.adjacent.insert(place, router),
            (Ok(place), false) => {
                self.adjacent.remove(place);
            }
            (Ok(_), true) | (Err(_), false) => {}
        }
    }

    /// Adds a neighbour, whose first Hello is from `source`.
    pub(crate) fn add_neighbor(
        &mut self,
        now: Instant,
        router: RouterId,
        source: Ipv6Addr,
        forecaster: Option<Box<dyn LinkForecaster>>,
    ) {
        let forget_at = now + self.config.router_dead_interval;
        self.neighbors.insert(router, Neighbor::new(source, forget_at, forecaster));
        self.timers.set_at_latest(InterfaceTimer::Silence, forget_at);
    }

    /// Adds a neighbour in state Exchange.
    #[cfg(test)]
    pub(crate) fn add_adjacent(&mut self, now: Instant, router: RouterId) {
        self.add_neighbor(now, router, Ipv6Addr::UNSPECIFIED, None);
        for event in [
            NeighborEvent::HelloReceived { accepted: true },
            NeighborEvent::TwoWayReceived,
            NeighborEvent::AdjOk { wanted: true },
            NeighborEvent::NegotiationDone,
        ] {
            self.handle_neighbor(now, router, event);
        }
    }

    /// Removes all neighbours.
    pub(crate) fn remove_neighbors(&mut self) {
        self.neighbors.clear();
        self.adjacent.clear();
        self.timers.stop(InterfaceTimer::Silence);
    }

    /// Runs a neighbour's state machine.
    pub(crate) fn handle_neighbor(
        &mut self,
        now: Instant,
        router: RouterId,
        event: NeighborEvent,
    ) -> (NeighborAction, Option<StateChange>) {
        let dead_interval = self.config.router_dead_interval;
        // Long enough to announce it in HelloRepeatCount differential Hellos, of which every second may be a full one.
        let forget_after = self.config.hello_interval * u64::from(2 * HELLO_REPEAT_COUNT + 1);
        let neighbor = self.neighbors.get_mut(&router).expect("an event is of a known neighbour");
        let from = neighbor.state;
        let action = neighbor.handle(now, event, dead_interval, forget_after);
        let to = neighbor.state;
        if let Some(inactive) = neighbor.timers.expiry(NeighborTimer::Inactivity) {
            self.timers.set_at_latest(InterfaceTimer::Silence, inactive);
        }
        self.set_adjacent(router, to >= NeighborState::ExStart);
        (action, (from != to).then_some(StateChange { from, to }))
    }

    /// Effects of a change of a neighbour's state on the interface.
    pub(crate) fn neighbor_changed(&mut self, router: RouterId, change: StateChange) {
        if change.crosses_two_way() {
            // RFC 5614, 4.2.3.
            self.mdr_neighbor_change = true;
            self.advertised_change = true;
        }
        if change.to == NeighborState::Full {
            self.barred.remove(router);
        }
        let neighbor = self.neighbors.get_mut(&router).expect("an event is of a known neighbour");
        if change.to < NeighborState::TwoWay {
            neighbor.manet.lose();
        }
        if change.to == NeighborState::Down {
            neighbor.manet.reset();
        }
    }

    /// The neighbours that began anew and are Full again, once.
    pub(crate) fn take_full_again(&mut self) -> Vec<RouterId> {
        let state = |router: &RouterId| self.neighbors.get(router).map(|neighbor| neighbor.state);
        let full: Vec<_> =
            self.anew.iter().copied().filter(|router| state(router) == Some(NeighborState::Full)).collect();
        self.anew.retain(|router| state(router).is_some_and(|state| state != NeighborState::Full));
        full
    }

    /// A packet other than a Hello was received from a neighbour: it is alive (RFC 4222, 2, recommendation 2). That counts if a
    /// Hello is missing; otherwise a neighbour that goes after such a packet would be missed later than by its Hellos.
    pub(crate) fn hear(&mut self, now: Instant, router: RouterId) {
        let dead_interval = self.config.router_dead_interval;
        let is_late = now + (dead_interval - missing_after(self.config.hello_interval));
        if let Some(neighbor) = self.neighbors.get_mut(&router).filter(|one| one.state >= NeighborState::Init)
            && neighbor.timers.expiry(NeighborTimer::Inactivity).is_none_or(|expiry| expiry <= is_late)
        {
            neighbor.timers.set(NeighborTimer::Inactivity, now + dead_interval);
        }
    }

    /// A Hello of a neighbour was received.
    pub(crate) fn hear_hello(&mut self, now: Instant, router: RouterId, signal: Option<f32>, sequence: Option<u16>) {
        let (interval, dead_interval) = (self.config.hello_interval, self.config.router_dead_interval);
        let neighbor = self.neighbors.get_mut(&router).expect("the sender of a Hello was added");
        neighbor.hear_hello(now, signal, sequence, interval, dead_interval);
        if let Some(missed) = neighbor.timers.expiry(NeighborTimer::MissedHello) {
            self.timers.set_at_latest(InterfaceTimer::Silence, missed);
        }
    }

    /// Updates the cost of the link to a neighbour by what arrived of it. True if it changed.
    pub(crate) fn update_link_cost(&mut self, router: RouterId) -> bool {
        let Some(neighbor) = self.neighbors.get_mut(&router).filter(|_| self.config.link_cost == LinkCost::Etx) else {
            return false;
        };
        let changed = neighbor.delivery.update_cost(self.config.cost);
        self.advertised_change |= changed;
        changed
    }

    /// A neighbour is silent. True if it is waited for, since the channel, or its link with ETX, loses Hellos.
    pub(crate) fn bear_silence(&mut self, now: Instant, router: RouterId) -> bool {
        let bidirectional = self.neighbors.values().filter(|one| one.is_bidirectional());
        let mut losses: Vec<f64> = bidirectional.filter_map(|one| one.delivery.loss()).collect();
        let of_channel = channel_loss(&mut losses);
        let Some(neighbor) = self.neighbors.get_mut(&router) else { return false };
        let of_link = neighbor.delivery.loss().filter(|_| self.config.link_cost == LinkCost::Etx);
        let loss = of_link.map_or(of_channel, |loss| loss.max(of_channel));
        let longest = patience(self.config.router_dead_interval, self.config.hello_interval, loss);
        let until = neighbor.manet.heard + longest;
        let waits = neighbor.is_bidirectional() && until > now;
        if waits {
            neighbor.timers.set(NeighborTimer::Inactivity, until);
        }
        waits
    }

    /// The neighbours with an expired timer.
    pub(crate) fn due_neighbors(&self, now: Instant) -> Vec<RouterId> {
        if self.timers.is_due(InterfaceTimer::Silence, now) {
            let due = self.neighbors.iter().filter(|(_, neighbor)| neighbor.is_due(now));
            return due.map(|(router, _)| *router).collect();
        }
        let due = |neighbor: &Neighbor| neighbor.next_exchange_timeout().is_some_and(|at| at <= now);
        self.adjacent().filter(|(_, neighbor)| due(neighbor)).map(|(router, _)| router).collect()
    }

    /// Restarts the timer for the silence of neighbours.
    pub(crate) fn restart_silence_timer(&mut self) {
        match self.neighbors.values().filter_map(Neighbor::next_silence_timeout).min() {
            Some(next) => self.timers.set(InterfaceTimer::Silence, next),
            None => self.timers.stop(InterfaceTimer::Silence),
        }
    }

    /// Adds a new LSA to the retransmission lists of the neighbours that must get it, and removes it from their request
    /// lists unless they wait for a newer one (RFC 5614, 8.1, step 1). `sender` is the neighbour here that sent it.
    pub(crate) fn list_for_retransmission(
        &mut self,
        now: Instant,
        header: &LsaHeader,
        sender: Option<RouterId>,
        most: usize,
    ) -> Listed {
        let interval = self.config.rxmt_interval;
        let mut listed = Listed::default();
        self.for_each_adjacent(|router, neighbor| {
            if !neighbor.is_exchanging() {
                return;
            }
            // Only a neighbour that is not Full has requests.
            if let Some(theirs) = neighbor.exchange.requests.get(&header.key) {
                let order = header.compare_instance(theirs);
                if order.is_ge() {
                    neighbor.exchange.requests.remove(&header.key);
                }
                if order.is_le() {
                    return;
                }
            }
            let acknowledged = neighbor.acked.get(&header.key).is_some_and(|ack| ack.compare_instance(header).is_eq());
            if sender == Some(router) || acknowledged {
                return;
            }
            if neighbor.retransmissions.len() >= most {
                listed.overflown.push(router);
                return;
            }
            neighbor.retransmissions.add(header.key, now, interval);
            listed.any = true;
        });
        listed
    }

    /// An LSA is flooded here now: it is not retransmitted before RxmtInterval.
    pub(crate) fn postpone_retransmissions(&mut self, now: Instant, key: LsaKey) {
        let interval = self.config.rxmt_interval;
        self.for_each_adjacent(|_, neighbor| neighbor.retransmissions.postpone(key, now, interval));
    }
}

#[cfg(test)]
mod tests;
