//! The router: its parts and its outputs.
//!
//! Its inputs are in `inputs`, and in `leaving` the last one. The modules below call downwards only, in the order of their declaration.

mod inputs;
mod leaving;

mod interfaces;
mod timeouts;

mod exchange;
mod hellos;
mod updates;

mod own_lsas;

mod flooding;

mod grace;

mod neighbors;

use std::cell::OnceCell;
use std::collections::BTreeSet;

use anabranch_policy::Instant;
use anabranch_wire::ospf::RouterId;

use crate::calculation::Calculation;
use crate::calculation::table::TableMaker;
use crate::config::{Config, ConfigError};
use crate::conversation::Conversation;
use crate::counters::Counters;
use crate::database::Database;
use crate::flooding::backup_wait::BackupWaits;
use crate::forecasts::Forecasts;
use crate::handles::NeighborHandle;
use crate::interface::Interface;
use crate::interfaces::Interfaces;
use crate::mdr_selection::MdrSelection;
use crate::next_hops::WeightedHop;
use crate::origination::contents::OwnLsas;
use crate::origination::schedule::Origination;
use crate::output::Output;
use crate::random::Random;
use crate::routing_table::{NextHop, RoutingTable};
use crate::verbs::{Event, Outgoing};

/// One router of an ad-hoc network, in one area.
pub struct Router {
    config: Config,
    pub(crate) interfaces: Interfaces,
    pub(crate) database: Database,
    origination: Origination,
    pub(crate) calculation: Calculation,
    backup_waits: BackupWaits,
    /// Neighbours whose adjacency has to be decided.
    adj_ok: BTreeSet<NeighborHandle>,
    /// Neighbours that restart and are helped.
    helped: BTreeSet<NeighborHandle>,
    selection: MdrSelection,
    pub(crate) forecasts: Forecasts,
    random: Random,
    output: Output,
    /// Computed on demand, valid until the next input.
    table: OnceCell<RoutingTable>,
    /// When the next timer expires.
    wake: Option<Instant>,
}

impl Router {
    /// A router without interfaces.
    ///
    /// # Errors
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            interfaces: Interfaces::default(),
            database: Database::default(),
            origination: Origination::default(),
            calculation: Calculation::new(&config),
            backup_waits: BackupWaits::default(),
            adj_ok: BTreeSet::new(),
            helped: BTreeSet::new(),
            selection: MdrSelection::default(),
            forecasts: Forecasts::new(config.forecast.clone()),
            random: Random::new(config.seed, config.router_id),
            output: Output::new(&config),
            table: OnceCell::new(),
            wake: None,
            config,
        })
    }

    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.output.next_packet()
    }

    pub fn poll_event(&mut self) -> Option<Event> {
        self.output.next_event()
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.wake
    }

    /// The routes with all next hops of equal cost: the prefixes in the database, and the paths of the last
    /// calculation.
    pub fn routes(&self) -> &RoutingTable {
        self.table.get_or_init(|| self.table_maker().make())
    }

    /// The next hops to use among those of a route, or of a part of them, with their shares of the traffic by the
    /// forecasts of their links. Equal shares without forecasts. [`Event::Routes`] reports changes.
    pub fn choose(&self, next_hops: &[NextHop]) -> Vec<WeightedHop> {
        self.forecasts.choose(next_hops)
    }

    /// The next hops of the lanes 1 to `lanes` to a destination, planned for the whole network from this router's
    /// database; none where there is no plan. For
    /// [`LaneSettings::planned_routes`](crate::lanes::LaneSettings::planned_routes).
    pub fn plan_lanes(&self, destination: RouterId, lanes: usize) -> Vec<Option<RouterId>> {
        self.calculation.plan_lanes(destination, lanes)
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn counters(&self) -> &Counters {
        &self.output.counters
    }

    /// The exchange with a known neighbour.
    fn conversation(&mut self, now: Instant, with: NeighborHandle) -> Conversation<'_> {
        let Interface { config, selection, neighbors, .. } = &mut self.interfaces[with.interface];
        Conversation {
            now,
            with,
            neighbor: neighbors.get_mut(&with.router).expect("databases are exchanged with a known neighbour"),
            interface: config,
            selection,
            config: &self.config,
            database: &self.database,
            output: &mut self.output,
        }
    }

    fn own_lsas(&self) -> OwnLsas<'_> {
        OwnLsas { config: &self.config, interfaces: &self.interfaces }
    }

    fn table_maker(&self) -> TableMaker<'_> {
        let Self { config, interfaces, database, calculation, forecasts, .. } = self;
        TableMaker { config, interfaces, database, calculation, forecasts }
    }
}
