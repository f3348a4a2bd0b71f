//! One interface: its state machine (RFC 2328, 9.3, changed by RFC 5614, 6.3) and what it owns.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_policy::Instant;
use anabranch_wire::ospf::{LsaHeader, LsaKey, RouterId};

use crate::config::{InterfaceConfig, InterfaceKind, Manet};
use crate::election::Selection;
use crate::neighbor::Neighbor;
use crate::neighborhood::Level;

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

/// What happens to an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InterfaceEvent {
    /// It can send and receive.
    InterfaceUp,
    /// It cannot.
    InterfaceDown,
    /// It has listened long enough.
    WaitTimer,
    /// MDRs were selected (RFC 5614, 6.2, in the place of NeighborChange).
    Selected(Level),
}

/// The kinds of interface by which the state machine differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Manet,
    PointToPoint,
    Loopback,
}

/// The state that follows. The caller starts and stops the timers that belong to it.
pub(crate) fn transition(state: InterfaceState, kind: Kind, event: InterfaceEvent) -> InterfaceState {
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
        // The level is selected right after; until then it is none.
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

/// An interface.
pub struct Interface {
    pub(crate) config: InterfaceConfig,
    pub(crate) state: InterfaceState,
    /// When Waiting ends.
    pub(crate) wait_until: Instant,
    /// When the next Hello is sent.
    pub(crate) hello_at: Instant,
    /// When it would be sent without jitter.
    pub(crate) hello_due: Instant,
    /// Hello Sequence Number of the next Hello.
    pub(crate) hello_sequence: u16,
    /// Hellos until the next full one.
    pub(crate) hellos_to_full: u16,
    pub(crate) selection: Selection,
    /// MDRNeighborChange.
    pub(crate) mdr_neighbor_change: bool,
    /// Whether something changed that the Selected Advertised Neighbors depend on.
    pub(crate) advertised_change: bool,
    pub(crate) neighbors: BTreeMap<RouterId, Neighbor>,
    /// Those in state ExStart or greater, in order: the few that have lists of LSAs and timers other than for silence.
    pub(crate) adjacent: Vec<RouterId>,
    /// No neighbour's Inactivity Timer fires, and no Hello is missing, before this.
    pub(crate) silence_at: Instant,
    /// Costs of links to neighbours that are not the interface's.
    pub(crate) link_costs: BTreeMap<RouterId, u16>,
    /// What links that are doubted cost in addition.
    pub(crate) doubt_costs: BTreeMap<RouterId, u16>,
    /// The neighbours that the last Hello said are doubted.
    pub(crate) doubts_told: BTreeSet<RouterId>,
    /// LSAs to be flooded, and when.
    pub(crate) flood: BTreeSet<LsaKey>,
    pub(crate) flood_at: Instant,
    /// Acknowledgments to be sent, with when the LSA came in, and when.
    pub(crate) acknowledgments: BTreeMap<LsaKey, (LsaHeader, Instant)>,
    pub(crate) acknowledge_at: Instant,
}

impl Interface {
    pub(crate) fn new(config: InterfaceConfig) -> Self {
        Self {
            config,
            state: InterfaceState::Down,
            wait_until: Instant::NEVER,
            hello_at: Instant::NEVER,
            hello_due: Instant::NEVER,
            hello_sequence: 0,
            hellos_to_full: 0,
            selection: Selection::default(),
            mdr_neighbor_change: false,
            advertised_change: false,
            neighbors: BTreeMap::new(),
            adjacent: Vec::new(),
            silence_at: Instant::NEVER,
            link_costs: BTreeMap::new(),
            doubt_costs: BTreeMap::new(),
            doubts_told: BTreeSet::new(),
            flood: BTreeSet::new(),
            flood_at: Instant::NEVER,
            acknowledgments: BTreeMap::new(),
            acknowledge_at: Instant::NEVER,
        }
    }

    /// The parameters of RFC 5614, if it is a MANET interface.
    pub(crate) fn manet(&self) -> Option<&Manet> {
        match &self.config.kind {
            InterfaceKind::Manet(manet) => Some(manet),
            InterfaceKind::PointToPoint | InterfaceKind::Loopback => None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
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
        let usual = self.link_costs.get(&neighbor).copied().unwrap_or(self.config.cost);
        usual.saturating_add(self.doubt_costs.get(&neighbor).copied().unwrap_or(0))
    }

    /// InfTransDelay in whole seconds, at least 1.
    pub(crate) fn transmission_delay(&self) -> u16 {
        let seconds = self.config.inf_trans_delay.as_nanos().div_ceil(1_000_000_000);
        u16::try_from(seconds).unwrap_or(u16::MAX).max(1)
    }

    /// When it next needs something to be done, its neighbours included; or a little before.
    pub(crate) fn deadline(&self) -> Instant {
        let own = self.wait_until.min(self.hello_at).min(self.flood_at).min(self.acknowledge_at);
        self.adjacent().map(|(_, neighbor)| neighbor.exchange_deadline()).fold(own.min(self.silence_at), Instant::min)
    }

    /// The neighbours in state ExStart or greater, in order.
    pub(crate) fn adjacent(&self) -> impl Iterator<Item = (RouterId, &Neighbor)> {
        self.adjacent.iter().filter_map(|router| Some((*router, self.neighbors.get(router)?)))
    }

    /// Does something with each of the neighbours in state ExStart or greater, in order.
    pub(crate) fn for_each_adjacent(&mut self, mut act: impl FnMut(RouterId, &mut Neighbor)) {
        for router in &self.adjacent {
            if let Some(neighbor) = self.neighbors.get_mut(router) {
                act(*router, neighbor);
            }
        }
    }

    /// Notes that a neighbour entered state ExStart or left it downwards.
    pub(crate) fn set_adjacent(&mut self, router: RouterId, adjacent: bool) {
        match (self.adjacent.binary_search(&router), adjacent) {
            (Err(place), true) => self.adjacent.insert(place, router),
            (Ok(place), false) => {
                self.adjacent.remove(place);
            }
            (Ok(_), true) | (Err(_), false) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::InterfaceEvent as On;
    use super::InterfaceState as S;
    use super::*;

    #[test]
    fn rfc5614_6_3_a_manet_interface_waits_before_mdrs_are_selected() {
        let mut state = transition(S::Down, Kind::Manet, On::InterfaceUp);
        assert_eq!(state, S::Waiting);
        state = transition(state, Kind::Manet, On::Selected(Level::Mdr));
        assert_eq!(state, S::Waiting);
        state = transition(state, Kind::Manet, On::WaitTimer);
        assert_eq!(transition(state, Kind::Manet, On::Selected(Level::Other)), S::DrOther);
        assert_eq!(transition(state, Kind::Manet, On::Selected(Level::BackupMdr)), S::Backup);
        assert_eq!(transition(state, Kind::Manet, On::Selected(Level::Mdr)), S::Dr);
    }

    #[test]
    fn rfc2328_9_3_other_interfaces_come_up_at_once_and_all_go_down() {
        assert_eq!(transition(S::Down, Kind::PointToPoint, On::InterfaceUp), S::PointToPoint);
        assert_eq!(transition(S::Down, Kind::Loopback, On::InterfaceUp), S::Loopback);
        for state in [S::Down, S::Loopback, S::Waiting, S::PointToPoint, S::DrOther, S::Backup, S::Dr] {
            assert_eq!(transition(state, Kind::Manet, On::InterfaceDown), S::Down);
        }
    }
}
