//! A run under way: over paths, or in an ad-hoc network.

use anabranch_lab::scenario::Scenario;
use anabranch_lab::simulation::{AdHoc, Extras, Simulation};
use anabranch_mptcp::ConnectionInfo;
use anabranch_policy::time::Duration;
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::World;

pub enum Running {
    Paths(Box<Simulation>),
    AdHoc(Box<AdHoc>),
}

impl Running {
    pub fn new(
        scenario: &Scenario,
        contender: &Contender,
        paths: &[usize],
        seed: u64,
        extras: &Extras,
    ) -> Result<Self, Diagnostic> {
        Ok(if scenario.mesh.is_some() || scenario.moving.is_some() {
            Self::AdHoc(Box::new(AdHoc::new(scenario, contender, paths, seed, extras)?))
        } else {
            Self::Paths(Box::new(Simulation::new(scenario, contender, paths, seed, extras)?))
        })
    }

    pub fn world(&mut self) -> &mut World {
        match self {
            Self::Paths(run) => run.world(),
            Self::AdHoc(run) => run.world(),
        }
    }

    /// The longest that it can last: routers of an ad-hoc network have time before the transfer begins.
    pub fn duration(&self, scenario: &Scenario) -> Duration {
        match self {
            Self::Paths(_) => scenario.duration,
            Self::AdHoc(run) => run.duration(),
        }
    }

    /// Advances to this time. Returns whether it has ended.
    pub fn advance(&mut self, scenario: &Scenario, to: Duration) -> bool {
        match self {
            Self::Paths(run) => run.advance(scenario, to) || to >= scenario.duration,
            Self::AdHoc(run) => run.advance(to),
        }
    }

    /// Advances to the next delivery of a packet. Returns whether it has ended.
    pub fn step(&mut self, scenario: &Scenario) -> bool {
        match self {
            Self::Paths(run) => run.step(scenario),
            Self::AdHoc(run) => run.step(),
        }
    }

    /// The first connection of the transfer, or the present one, at sender and receiver.
    pub fn info(&self, scenario: &Scenario) -> [Option<ConnectionInfo>; 2] {
        match self {
            Self::Paths(run) => run.info(0, scenario.heading),
            Self::AdHoc(run) => run.info(),
        }
    }

    /// Bytes read so far: of the transfer, and of flows of others. Of connections that follow each other the present one counts.
    pub fn delivered(&self) -> (u64, u64) {
        match self {
            Self::Paths(run) => run.delivered(),
            Self::AdHoc(run) => (run.delivered(), 0),
        }
    }

    pub fn trace_hash(&mut self) -> u64 {
        self.world().results().trace_hash
    }
}
