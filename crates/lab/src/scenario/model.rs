//! A validated scenario.

mod beside;
mod generator;
mod network;
mod results;
mod traffic;

pub use anabranch_settings::receive_buffer::ReceiveBuffer;
pub use beside::{Beside, Bursts};
pub use generator::{AccessLink, Generator, GeneratorKind, GeneratorRoute};
pub use network::{
    Background, BurstLoss, CoveragePoint, Direction, Draw, Drawn, Link, LinkRate, Mesh, Moving, Path, Queue, QueueLimit,
};
pub use results::{
    Claim, Derived, DerivedKind, Differences, Figure, FigureKind, Matrix, Order, Parameter, Sensitivity, Statement,
    Sweep, WindowKind, WindowMetric,
};
pub use traffic::{Footage, Heading, MessageUnit, Transfer, Video};

use crate::metric;
use anabranch_policy::time::Duration;
use anabranch_settings::baseline::Baseline;
use anabranch_settings::connection::ConnectionSettings;
use anabranch_settings::contender::{Choices, Contender, Scheme};
use anabranch_sim::datagrams::DatagramFlow;

/// Metrics, figures and claims of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    pub sweep: Option<Sweep>,
    /// Comparison of schemes on each baseline.
    pub matrix: Option<Matrix>,
    /// Effect on a comparison of parameters that the paper does not state.
    pub sensitivity: Option<Sensitivity>,
    /// Metrics over time windows.
    pub metrics: Vec<WindowMetric>,
    /// Metrics computed from several runs.
    pub derived: Vec<Derived>,
    /// Figures of the report.
    pub figures: Vec<Figure>,
    /// A policy to compare with all others.
    pub differences: Option<Differences>,
    /// Published statements.
    pub claims: Vec<Claim>,
}

/// Runs per policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    /// In a full run.
    pub all: u32,
    /// In a quick run.
    pub quick: u32,
}

/// What a scenario says of itself.
#[derive(Clone, PartialEq, Debug)]
pub struct About {
    /// One line.
    pub title: String,
    /// The paper it reproduces, if any.
    pub paper: String,
    /// Purpose, and choices where the paper is ambiguous.
    pub description: String,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Letters, digits, `_` and `-`.
    pub name: String,
    pub about: About,
    /// Duration of a run.
    pub duration: Duration,
    /// Start of a run that means exclude.
    pub warm_up: Duration,
    pub seeds: Seeds,
    /// Sampling interval of time series.
    pub sample: Duration,
    pub transfer: Transfer,
    /// The video, for `Transfer::Video`.
    pub video: Option<Video>,
    /// The sender; the client sends requests in any case.
    pub heading: Heading,
    /// Number of connections with such a transfer each; zero without a transfer.
    pub connections: u32,
    /// Key of the contents of files that it names, traces of rates and of a video; empty: there are none.
    pub files: String,
    /// Settings of both ends.
    pub connection: ConnectionSettings,
    pub paths: Vec<Path>,
    /// The ad-hoc network whose lanes are the paths, if any.
    pub mesh: Option<Mesh>,
    /// The network of mobile nodes, which has no paths.
    pub moving: Option<Moving>,
    /// Links shared by all paths, after their own.
    pub shared: Vec<Link>,
    /// Cross traffic at the routers of the paths.
    pub generators: Vec<Generator>,
    /// Competing TCP connections.
    pub beside: Vec<Beside>,
    /// Programs that send datagrams.
    pub datagrams: Vec<DatagramFlow>,
    /// Contenders: each scheme under each baseline.
    pub policies: Vec<Contender>,
    pub schemes: Vec<Scheme>,
    pub baselines: Vec<Baseline>,
    /// Policies of the families that a scheme does not specify.
    pub defaults: Choices,
    pub results: Results,
}

/// Greatest number of moving nodes that can be watched.
const MOST_NODES: usize = 200;
/// Most paths of a scenario that is watched: a page cannot show more, and each costs time at every frame.
const MOST_PATHS: usize = 32;

impl Scenario {
    /// Why it cannot be watched in a browser; none: it can.
    pub fn cannot_be_watched(&self) -> Option<String> {
        if self.moving.as_ref().is_some_and(|moving| moving.nodes > MOST_NODES) {
            Some(format!("a network of more than {MOST_NODES} nodes cannot be watched"))
        } else if self.paths.len() > MOST_PATHS {
            Some(format!("{} paths are too many to be watched: at most {MOST_PATHS}", self.paths.len()))
        } else if !self.datagrams.is_empty() {
            let reason = "programs that send datagrams cannot be watched: their sessions are not built for browsers";
            Some(reason.to_owned())
        } else {
            None
        }
    }

    /// Label and unit of a built-in metric or of one of this scenario.
    pub fn metric(&self, name: &str) -> Option<(String, &'static str)> {
        if let Some(metric) = metric::find(name) {
            return Some((metric.label.to_owned(), metric.unit));
        }
        if let Some(derived) = self.results.derived.iter().find(|metric| metric.name == name) {
            return Some((derived.label.clone(), derived.unit));
        }
        if let Some((name, program)) = name.split_once(':') {
            let metric = metric::find(name).filter(|metric| metric::is_of_datagrams(metric))?;
            let flow = self.datagrams.iter().find(|flow| flow.name == program)?;
            return Some((format!("{}: {}", flow.name, metric.label), metric.unit));
        }
        let own = self.results.metrics.iter().find(|metric| metric.name == name)?;
        Some((own.label.clone(), own.unit()))
    }
}
