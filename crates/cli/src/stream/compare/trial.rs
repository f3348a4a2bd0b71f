//! One run: sender, paths, seed and latency.

use super::datagrams::{self, Programs};
use super::ends::{Lasts, failed};
use super::engine;
use super::judge::{Delays, Judge};
use super::kernel;
use super::schedule::Frame;
use crate::calibrate::side_by_side::RealTimeRun;
use crate::emulation;
use crate::stream::policy;
use anabranch_emulate::{Hosts, HostsConfig, Relay, Report};
use anabranch_lab::scenario::Scenario;
use anabranch_system::raise_priority;
use std::time::Duration;

/// The kernel's congestion control.
const CONGESTION: &str = "cubic";
/// Load of a run as a rate, Mbit/s: mostly processing by the programs.
const COST: f64 = 6.0;

/// The transport of the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Who {
    /// The kernel's TCP on the path with this index.
    Tcp(usize),
    /// The kernel's MPTCP at both ends.
    Kernel,
    /// SRT or RIST.
    Programs(Programs),
    /// Anabranch at both ends or at the receiving end.
    Ours(Ours),
}

impl Who {
    /// Anabranch, if it takes part.
    pub fn ours(&self) -> Option<&Ours> {
        match self {
            Self::Ours(ours) => Some(ours),
            _ => None,
        }
    }
}

/// Anabranch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ours {
    pub policy: String,
    /// Whether the kernel's MPTCP is the sender.
    pub linux_sends: bool,
}

/// A run to execute.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    pub who: Who,
    /// Name in results.
    pub name: String,
    /// Seed of the links' random streams.
    pub seed: u64,
    /// Latency set at the ends; none if the run is valid for all latencies.
    pub latency: Option<Duration>,
    pub scenario: &'a Scenario,
    /// Frames of the stream.
    pub frames: &'a [Frame],
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Done {
    /// Delays of frames.
    pub delays: Delays,
    /// Report of the links.
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
