//! One run: sender, paths, seed and latency.

use super::datagrams::{self, Programs};
use super::ends::{Lasts, failed};
use super::engine;
use super::judge::{Delays, Judge};
use super::kernel;
use super::schedule::Frame;
use crate::calibrate::side_by_side::RealTimeRun;
use crate::emulation;
use crate::scenario::Scenario;
use crate::stream::policy;
use anabranch_emulate::{Hosts, HostsConfig, Relay, Report};
use anabranch_system::raise_priority;
use std::time::Duration;

/// The kernel's congestion control.
const CONGESTION: &str = "cubic";
/// What a run costs a machine, as a rate, Mbit/s: most of it is the programs' own work.
const COST: f64 = 6.0;

/// Who carries the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Who {
    /// The kernel's TCP on the path at this place.
    Tcp(usize),
    /// The kernel's multipath TCP at both ends.
    Kernel,
    /// Somebody else's programs.
    Programs(Programs),
    /// Our engine at both ends or at the receiving one.
    Ours(Ours),
}

impl Who {
    /// Our engine, if it takes part.
    pub fn ours(&self) -> Option<&Ours> {
        match self {
            Self::Ours(ours) => Some(ours),
            _ => None,
        }
    }
}

/// Our engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ours {
    /// Its policies.
    pub policy: String,
    /// The kernel's multipath TCP is the sender.
    pub linux_sends: bool,
}

/// A run to be done.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// Who.
    pub who: Who,
    /// Its name in results.
    pub name: String,
    /// The luck of the links.
    pub seed: u64,
    /// For those that delay or abandon; none if the run is good for all of them.
    pub latency: Option<Duration>,
    /// The paths.
    pub scenario: &'a Scenario,
    /// The stream.
    pub frames: &'a [Frame],
}

/// A run that was done.
#[derive(Clone, Debug)]
pub struct Done {
    /// When frames came.
    pub delays: Delays,
    /// What the links did, and how late they were.
    pub report: Report,
}

impl RealTimeRun for Trial<'_> {
    type Done = Done;

    fn rate(&self) -> f64 {
        COST
    }

    fn name(&self) -> String {
        format!("{}, seed {}", self.name, self.seed)
    }

    fn run(&self) -> Result<Done, String> {
        raise_priority();
        let hosts = HostsConfig {
            paths: self.scenario.paths.iter().map(|path| path.name.clone()).collect(),
            mtu: 1500,
            mptcp: true,
            congestion: Some(CONGESTION.to_owned()),
            settings: Vec::new(),
        };
        let places: Vec<usize> = (0..self.scenario.paths.len()).collect();
        let network = emulation::build(self.scenario, &places, self.seed).map_err(|error| error.to_string())?;
        let lasts = Lasts { stream: self.frames.last().map_or(Duration::ZERO, |frame| frame.at) };
        let done = |(judge, report): (Judge, Report)| Done { delays: judge.delays(), report };
        if let Who::Ours(ours) = &self.who {
            let contender = policy::of(&ours.policy, self.latency.unwrap_or_default());
            let contender = contender.map_err(|error| error.to_string())?;
            let run = engine::Run { scenario: self.scenario, contender: &contender, frames: self.frames, lasts };
            if !ours.linux_sends {
                return run.ours(network).map(done);
            }
            let (hosts, ends) = Hosts::new(&hosts).map_err(failed("set up Linux"))?;
            return run.linux_to_ours(network, &hosts, ends).map(done);
        }
        let (hosts, ends) = Hosts::new(&hosts).map_err(failed("set up Linux"))?;
        let relay = Relay::start(network, ends, None).map_err(failed("start the links"))?;
        let judge = match &self.who {
            Who::Tcp(place) => kernel::run(Some(*place), &hosts, self.frames, lasts),
            Who::Programs(programs) => {
                datagrams::run(*programs, &hosts, self.frames, self.latency.unwrap_or_default(), lasts)
            }
            Who::Kernel | Who::Ours(_) => kernel::run(None, &hosts, self.frames, lasts),
        };
        let report = relay.stop().map_err(failed("stop the links"))?;
        Ok(done((judge?, report)))
    }

    fn report(done: &Done) -> &Report {
        &done.report
    }
}
