//! What is known of all connections, the path manager, and the commands that wait.

use crate::addresses::Addresses;
use crate::command::Command;
use crate::connection::Connection;
use crate::sample::{Endpoints, Token};
use crate::settings::Settings;
use crate::status::{ConnectionStatus, Counters, Decision, SubflowStatus};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::path_manager::{Measurements, PathAction, PathManager};
use anabranch_policy::time::{Duration, Instant};
use core::fmt;
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Decides about the subflows of all connections of a host.
pub struct Steering {
    pub(super) settings: Settings,
    pub(super) manager: Box<dyn PathManager>,
    /// Interval of [`Measured`](anabranch_policy::path_manager::PathEvent::Measured); none: never.
    pub(super) measured_every: Option<Duration>,
    pub(super) addresses: Addresses,
    /// Subflows from these addresses are backups, whatever the path manager says.
    pub(super) reserved: BTreeSet<IpAddr>,
    /// Subflows that another machine has made backups: see [`Steering::inherit`].
    pub(super) inherited: BTreeSet<(Token, Endpoints)>,
    pub(super) connections: BTreeMap<Token, Connection>,
    pub(super) tokens: BTreeMap<ConnectionId, Token>,
    pub(super) next_connection: u64,
    pub(super) actions: Vec<PathAction>,
    pub(super) commands: VecDeque<Command>,
    pub(super) decisions: VecDeque<Decision>,
    /// What the path manager asked for.
    pub(super) wake: Option<Instant>,
    /// Connections of the last sample that no event has announced: its event may be on its way. None if events were
    /// lost since, or were not heard before: the next sample's are taken up at once.
    pub(super) unannounced: Option<BTreeSet<Token>>,
    /// Connections that their programs have closed, and whose sockets are still there: for a minute if the peer does not close too.
    pub(super) ended: BTreeSet<Token>,
    /// Events were lost: what the next sample lacks is gone.
    pub(super) overrun: bool,
    pub(super) counters: Counters,
}

impl fmt::Debug for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steering").field("connections", &self.connections.len()).finish_non_exhaustive()
    }
}

impl Steering {
    pub fn new(manager: Box<dyn PathManager>, settings: Settings) -> Self {
        let measured_every = match manager.measurements() {
            Measurements::Never => None,
            Measurements::EveryRoundTrip => Some(Duration::ZERO),
            Measurements::Every(interval) => Some(interval),
        };
        Self {
            settings,
            manager,
            measured_every,
            addresses: Addresses::default(),
            reserved: BTreeSet::new(),
            inherited: BTreeSet::new(),
            connections: BTreeMap::new(),
            tokens: BTreeMap::new(),
            next_connection: 0,
            actions: Vec::new(),
            commands: VecDeque::new(),
            decisions: VecDeque::new(),
            wake: None,
            unannounced: None,
            ended: BTreeSet::new(),
            overrun: false,
            counters: Counters::default(),
        }
    }

    /// The next command, if any.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When [`Steering::handle_timeout`] is due, samples aside.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let lifted = self.connections.values().flat_map(|c| &c.subflows).filter_map(|subflow| subflow.lifted_until);
        lifted.chain(self.wake).min()
    }

    /// What is known of each connection, in order of token.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionStatus<'_>> {
        self.connections.iter().map(|(token, known)| ConnectionStatus {
            token: *token,
            role: known.role,
            initial: known.initial,
            fallback: known.fallback,
            adopted: known.adopted,
            blocked: known.estimator.blocked(),
            busy_share: known.estimator.busy_share(),
            goodput: known.goodput,
            subflows: known
                .subflows
                .iter()
                .map(|subflow| SubflowStatus {
                    id: subflow.id,
                    endpoints: subflow.endpoints,
                    suspended: subflow.suspended,
                    rate: subflow.rate,
                    loss_rate: subflow.loss_rate,
                    sample: subflow.sample.as_ref(),
                })
                .collect(),
            closed: known.closed.iter().collect(),
        })
    }

    /// How many connections are known.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// The last decisions, the oldest first.
    pub fn decisions(&self) -> impl DoubleEndedIterator<Item = &Decision> {
        self.decisions.iter()
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }
}
