//! What a router knows of one neighbour on one interface (RFC 2328, 10; RFC 5614, 3.3).

mod state_machine;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::sync::Arc;

use anabranch_policy::{Instant, LinkForecaster};
use anabranch_wire::ospf::{DescriptionFlags, InterfaceId, LsaHeader, LsaKey, Options, Packet, RouterId};

use crate::config::HELLO_REPEAT_COUNT;
use crate::neighborhood::Level;

pub use state_machine::NeighborState;
pub(crate) use state_machine::{NeighborAction, NeighborEvent, transition};

/// A neighbour on an interface.
pub struct Neighbor {
    pub(crate) state: NeighborState,
    /// Its link-local address.
    pub(crate) address: Ipv6Addr,
    /// Its own number for its interface.
    pub(crate) interface: InterfaceId,
    pub(crate) priority: u8,
    /// When it is given up for silence; in state Down when it is forgotten.
    pub(crate) inactive_at: Instant,
    pub(crate) manet: ManetNeighbor,
    pub(crate) exchange: Exchange,
    /// Link state request list: what it has and this router lacks.
    pub(crate) requests: BTreeMap<LsaKey, LsaHeader>,
    /// Link state retransmission list: what it has not acknowledged, and when it is sent again.
    pub(crate) retransmissions: BTreeMap<LsaKey, Instant>,
    /// No retransmission is due before this.
    pub(crate) retransmit_at: Instant,
    /// Acked LSA list (RFC 5614, 8.4): what it acknowledged and this router has not seen.
    pub(crate) acked: BTreeMap<LsaKey, LsaHeader>,
    pub(crate) forecaster: Option<Box<dyn LinkForecaster>>,
    /// Hellos reported to the forecaster as missing since the last one came.
    pub(crate) missed: u16,
    /// When the next Hello is missing, if there is a forecaster to be told.
    pub(crate) missed_at: Instant,
}

/// What RFC 5614, 3.3, adds.
#[derive(Default)]
pub(crate) struct ManetNeighbor {
    /// Neighbour Hello Sequence Number; none before the first Hello.
    pub sequence: Option<u16>,
    /// When the last Hello came in.
    pub heard: Instant,
    /// Hellos in a row without a gap in their sequence numbers.
    pub consecutive: u16,
    /// Hellos in a row that said, openly or by silence, that it hears this router.
    pub hears_us: u16,
    pub a_bit: bool,
    pub full_hello_received: bool,
    pub level: Level,
    pub parent: RouterId,
    pub backup_parent: RouterId,
    pub child: bool,
    pub dependent: bool,
    pub dependent_selector: bool,
    /// Selected Advertised Neighbor.
    pub selected: bool,
    pub routable: bool,
    pub sets: NeighborSets,
    /// Costs other than 1 of its links to its bidirectional neighbours, by router ID.
    pub metrics: BTreeMap<RouterId, u16>,
    /// Those of its neighbours that it told to doubt the links to.
    pub doubts: BTreeSet<RouterId>,
    pub listing: Listing,
    /// Hellos in which it is still to be listed because the cost of the link to it changed.
    pub metric_repeats: u16,
    pub announced_cost: u16,
}

/// The neighbour's neighbours, each set in the order of router IDs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct NeighborSets {
    /// BNS: whom it has as bidirectional neighbours.
    pub bidirectional: Vec<RouterId>,
    /// DNS: whom of them it made dependent.
    pub dependent: Vec<RouterId>,
    /// SANS: whom of them it selected to advertise.
    pub selected: Vec<RouterId>,
}

impl NeighborSets {
    /// Whether `router` is one of the neighbour's bidirectional neighbours.
    pub fn hears(&self, router: RouterId) -> bool {
        self.bidirectional.binary_search(&router).is_ok()
    }
}

/// In which list of a Hello a neighbour stands (RFC 5614, 4.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum List {
    /// List 1.
    Down,
    /// List 2.
    Init,
    /// List 3.
    Dependent,
    /// List 4.
    Selected,
    /// List 5.
    Unselected,
}

/// In which list a neighbour was put last, and how many Hellos are still to tell so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Listing {
    pub list: Option<List>,
    pub repeats: u16,
}

impl Listing {
    /// Puts the neighbour into `list`; news is told HelloRepeatCount times.
    pub fn put(&mut self, list: Option<List>) {
        if self.list != list {
            *self = Self { list, repeats: HELLO_REPEAT_COUNT };
        }
    }
}

/// The exchange of databases with the neighbour (RFC 2328, 10).
#[derive(Default)]
pub(crate) struct Exchange {
    /// Sequence number of its Database Descriptions; none before the first attempt.
    pub sequence: Option<u32>,
    /// Whether this router is the master.
    pub master: bool,
    /// Database summary list: what is still to be described.
    pub summary: BTreeSet<LsaKey>,
    /// The last Database Description sent.
    pub sent: Option<Arc<Packet>>,
    /// Flags, options and sequence number of the last one accepted.
    pub received: Option<(DescriptionFlags, Options, u32)>,
    /// When the last Database Description is sent again (master), or may be forgotten (slave, when all is exchanged).
    pub description_at: Option<Instant>,
    /// What the outstanding Link State Request asked for.
    pub requested: BTreeSet<LsaKey>,
    /// When the Link State Request is sent again.
    pub request_at: Option<Instant>,
}

impl Neighbor {
    /// A neighbour of which nothing is known but that it sent a Hello.
    pub(crate) fn new(address: Ipv6Addr, forget_at: Instant, forecaster: Option<Box<dyn LinkForecaster>>) -> Self {
        Self {
            state: NeighborState::Down,
            address,
            interface: InterfaceId::default(),
            priority: 0,
            inactive_at: forget_at,
            manet: ManetNeighbor::default(),
            exchange: Exchange::default(),
            requests: BTreeMap::new(),
            retransmissions: BTreeMap::new(),
            retransmit_at: Instant::NEVER,
            acked: BTreeMap::new(),
            forecaster,
            missed: 0,
            missed_at: Instant::NEVER,
        }
    }

    /// Whether it is a bidirectional neighbour.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.state >= NeighborState::TwoWay
    }

    /// Whether it takes part in flooding.
    pub(crate) fn is_exchanging(&self) -> bool {
        self.state >= NeighborState::Exchange
    }

    /// Clears the lists of LSAs, and what belongs to the exchange.
    pub(crate) fn clear_lists(&mut self) {
        self.requests.clear();
        self.retransmissions.clear();
        self.retransmit_at = Instant::NEVER;
        self.acked.clear();
        self.exchange = Exchange { sequence: self.exchange.sequence, ..Exchange::default() };
    }

    /// When something of the exchange or of flooding is to be done; never below state ExStart.
    pub(crate) fn exchange_deadline(&self) -> Instant {
        let exchange = self.exchange.description_at.into_iter().chain(self.exchange.request_at).min();
        self.retransmit_at.min(exchange.unwrap_or(Instant::NEVER))
    }

    /// When its silence is to be noticed.
    pub(crate) fn silence_deadline(&self) -> Instant {
        self.inactive_at.min(self.missed_at)
    }
}
