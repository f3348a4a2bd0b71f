//! The model of a scenario, after validation.

mod beside;
mod generator;
mod network;
mod results;
mod traffic;

pub use super::receive_buffer::ReceiveBuffer;
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

use super::connection::ConnectionSettings;
use crate::baseline::Baseline;
use crate::contender::{Choices, Contender, Scheme};
use crate::metric;
use anabranch_policy::time::Duration;
use anabranch_sim::datagrams::DatagramFlow;

/// What is shown of a scenario's runs, and judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// Swept parameter.
    pub sweep: Option<Sweep>,
    /// What is compared on each baseline.
    pub matrix: Option<Matrix>,
    /// How a comparison depends on what the paper does not say.
    pub sensitivity: Option<Sensitivity>,
    /// Further metrics.
    pub metrics: Vec<WindowMetric>,
    /// Metrics made of several runs.
    pub derived: Vec<Derived>,
    /// Figures of the report.
    pub figures: Vec<Figure>,
    /// Which policy is compared with all others.
    pub differences: Option<Differences>,
    /// What the paper says.
    pub claims: Vec<Claim>,
}

/// Runs per policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    /// Usually.
    pub all: u32,
    /// Of a quick run.
    pub quick: u32,
}

/// A whole scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// One line.
    pub title: String,
    /// The paper it comes from, if any.
    pub paper: String,
    /// What it is about and how what the paper leaves open is read.
    pub description: String,
    /// How long a run lasts.
    pub duration: Duration,
    /// What is left out of means at the beginning.
    pub warm_up: Duration,
    /// Runs per policy.
    pub seeds: Seeds,
    /// Spacing of the time series.
    pub sample: Duration,
    /// What is carried.
    pub transfer: Transfer,
    /// The video, if that is what is carried.
    pub video: Option<Video>,
    /// Who sends it; requests are the client's in any case.
    pub heading: Heading,
    /// So many connections do, each for itself; none if there is no transfer.
    pub connections: u32,
    /// What both ends are set to.
    pub connection: ConnectionSettings,
    /// The paths.
    pub paths: Vec<Path>,
    /// The ad-hoc network whose lanes the paths are, if they are that.
    pub mesh: Option<Mesh>,
    /// The network of moving nodes, in which there are no paths.
    pub moving: Option<Moving>,
    /// Links that all paths share, behind their own.
    pub shared: Vec<Link>,
    /// Cross traffic at the routers of the paths.
    pub generators: Vec<Generator>,
    /// TCP connections of others that compete with the transfer.
    pub beside: Vec<Beside>,
    /// Programs that send datagrams.
    pub datagrams: Vec<DatagramFlow>,
    /// What is compared: each scheme under each baseline.
    pub policies: Vec<Contender>,
    /// The schemes.
    pub schemes: Vec<Scheme>,
    /// The baselines.
    pub baselines: Vec<Baseline>,
    /// What is chosen of the families where a scheme does not say.
    pub defaults: Choices,
    /// What is shown and judged.
    pub results: Results,
}

impl Scenario {
    /// Label and unit of a metric, built in or of this scenario.
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
