//! A run that can be stopped at any simulated time, looked at, and continued.

use super::application::application;
use super::extras::{Extras, check_wire};
use super::{beside, capture, datagrams, generators, measure, network, settings};
use super::{steering, traffic, window};
use crate::record::Record;
use crate::scenario::Scenario;
use crate::scenario::model::{Heading, Transfer};
use anabranch_mptcp::{ConnectionInfo, EndpointConfig};
use anabranch_policy::time::{Duration, Instant};
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::{FlowConfig, FlowId, HostId, RunResult, Side, World, WorldConfig};
use std::cell::RefCell;
use std::rc::Rc;

/// Hosts and links of a scenario that is neither an ad-hoc network nor a network of mobile nodes, with all transfers.
pub struct Simulation {
    world: World,
    client: HostId,
    server: HostId,
    /// The connections of the transfer.
    flows: Vec<FlowId>,
    paths: Vec<usize>,
    lines: network::Lines,
    /// Whether it ends with its transfers.
    finite: bool,
    /// Results at the end of the warm-up.
    before: Option<RunResult>,
    steered: Option<Rc<RefCell<steering::Tally>>>,
    capture: Option<capture::Capture>,
}

impl Simulation {
    /// Builds it at the beginning of time; `paths` are indices of the scenario's.
    ///
    /// # Errors
    /// A policy cannot be built, or a capture not be written.
    pub fn new(
        scenario: &Scenario,
        contender: &Contender,
        paths: &[usize],
        seed: u64,
        extras: &Extras,
    ) -> Result<Self, Diagnostic> {
        let mut world = World::new(WorldConfig { seed, wire: extras.wire, ..WorldConfig::default() });
        let manager = || {
            let built = || contender.policies.build_path_manager();
            let cannot = |error| Diagnostic::plain(format!("{}: {error}", contender.name));
            extras.own.path_manager(built).map_err(cannot)
        };
        let client = world.add_host("client", &EndpointConfig::default(), manager()?);
        // Both ends have path managers, since either may send: LM3 and similar ones act at the sender.
        let server = world.add_host("server", &EndpointConfig::default(), manager()?);
        let lines = network::build(&mut world, scenario, paths, client, server);
        traffic::add(&mut world, scenario, paths, &lines);
        generators::add(&mut world, scenario, paths, &lines);
        beside::add(&mut world, scenario, paths, &lines);

        let mut config = settings::connection(scenario, contender);
        extras.own.apply(&mut config);
        let transfer = FlowConfig {
            name: beside::own_name(0),
            client,
            from: lines.interfaces.first().copied(),
            to: lines.server,
            start: Instant::ZERO,
            stop: Instant::NEVER,
            application: application(scenario, extras),
            client_config: config.clone(),
            server_config: config,
            record: Some(scenario.sample),
        };
        let flows = beside::add_own(&mut world, scenario, &transfer, &extras.own_by_connection);
        datagrams::add(&mut world, scenario, contender, &lines)?;
        let steered = steering::add(&mut world, scenario, contender, (client, server))?;
        let capture = match &extras.pcap {
            Some(directory) => {
                let name = capture::file_name(scenario, contender, paths);
                Some(capture::start(&mut world, &directory.join(name), &lines)?)
            }
            _ => None,
        };
        let finite = matches!(scenario.transfer, Transfer::Finite(_) | Transfer::Video) || extras.send.is_some();
        let paths = paths.to_vec();
        Ok(Self { world, client, server, flows, paths, lines, finite, before: None, steered, capture })
    }

    /// Advances to this time since the beginning, at most to the end of the transfers if all of them end. Returns
    /// whether they have ended.
    pub fn advance(&mut self, scenario: &Scenario, time: Duration) -> bool {
        let time = Instant::ZERO + time.min(scenario.duration);
        if self.finite {
            return self.world.run_until_finished(time);
        }
        let warm = Instant::ZERO + scenario.warm_up;
        if self.before.is_none() && scenario.warm_up > Duration::ZERO && time >= warm {
            self.world.run_until(warm);
            self.before = Some(self.world.results());
        }
        self.world.run_until(time);
        false
    }

    /// Advances to the next delivery of a packet by a link. Returns whether the transfers, or the scenario, have ended.
    pub fn step(&mut self, scenario: &Scenario) -> bool {
        let end = Instant::ZERO + scenario.duration;
        let warm = Instant::ZERO + scenario.warm_up;
        if !self.finite && self.before.is_none() && scenario.warm_up > Duration::ZERO {
            if self.world.run_until_delivery(warm) {
                return false;
            }
            self.before = Some(self.world.results());
        }
        !self.world.run_until_delivery(end) || (self.finite && self.world.run_until_finished(self.world.now()))
    }

    /// The hosts and links.
    pub fn world(&mut self) -> &mut World {
        &mut self.world
    }

    /// Which links are those of which path.
    pub fn lines(&self) -> &network::Lines {
        &self.lines
    }

    /// The indices of the paths in use among the scenario's, in the order of [`Self::lines`].
    pub fn paths(&self) -> &[usize] {
        &self.paths
    }

    /// State of a connection of the transfer, by its index, at its sender and its receiver; none where it does not exist
    /// yet or any more.
    pub fn info(&self, connection: usize, heading: Heading) -> [Option<ConnectionInfo>; 2] {
        let of = |side: Side, host: HostId| {
            let connection = self.world.connection(*self.flows.get(connection)?, side)?;
            self.world.endpoint(host).info(self.world.now(), connection)
        };
        let (client, server) = (of(Side::Client, self.client), of(Side::Server, self.server));
        if heading == Heading::Upload { [client, server] } else { [server, client] }
    }

    /// Bytes read so far: of the transfer's connections, and of other flows.
    pub fn delivered(&self) -> (u64, u64) {
        let of = |is_own: bool| {
            let flows = self.world.flows().filter(|flow| self.flows.contains(flow) == is_own);
            flows.map(|flow| self.world.bytes_read(flow)).sum()
        };
        (of(true), of(false))
    }

    /// Hash over all events until now.
    pub fn trace_hash(&mut self) -> u64 {
        self.world.results().trace_hash
    }

    /// What was measured until now.
    ///
    /// # Errors
    /// A capture cannot be written, or decoded packets are not what was encoded.
    pub fn finish(self, scenario: &Scenario, contender: &Contender, extras: &Extras) -> Result<Record, Diagnostic> {
        let Self { mut world, paths, before, steered, capture, .. } = self;
        let results = world.results();
        drop(world);
        capture.map_or(Ok(()), capture::Capture::finish)?;
        check_wire(&results)?;
        let window = window::Window { scenario, paths: &paths, before: before.as_ref(), after: &results };
        let mut record = measure::record(scenario, contender, &paths, &window, extras.curves)?;
        record.metrics.extend(steered.iter().flat_map(steering::metrics));
        Ok(record)
    }
}
