//! Parses a scenario part by part.

use super::files::Files;
use super::model::{
    About, Beside, Generator, Heading, Link, Mesh, Moving, Path, Results, Scenario, Seeds, Transfer, Video,
};
use super::{beside, datagrams, derived, generators, mesh, moving, network, policies, results, transfer, video};
use anabranch_policy::time::Duration;
use anabranch_settings::baseline::Baseline;
use anabranch_settings::connection;
use anabranch_settings::contender::{Choices, Scheme, contenders};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::reader::{Reader, is_name};
use anabranch_settings::tree::{Node, Source};
use anabranch_sim::datagrams::DatagramFlow;

const KEYS: &[&str] = &[
    "name",
    "title",
    "paper",
    "description",
    "duration",
    "warm_up",
    "seeds",
    "quick_seeds",
    "sample",
    "transfer",
    "video",
    "connection",
    "paths",
    "mesh",
    "moving",
    "shared",
    "generators",
    "beside",
    "datagrams",
    "baselines",
    "defaults",
    "policies",
    "sweep",
    "matrix",
    "sensitivity",
    "metrics",
    "derived",
    "figures",
    "differences",
    "claims",
];

/// The root table of a scenario.
pub fn top<'a>(source: &'a Source, root: &'a Node) -> Result<Reader<'a>, Diagnostic> {
    Reader::new(source, root, "the scenario", KEYS)
}

/// Parses the whole scenario.
pub fn scenario(top: &Reader<'_>, files: &Files<'_>) -> Result<Scenario, Diagnostic> {
    let name = name(top)?;
    let Times { duration, warm_up, sample } = times(top)?;
    let (all, quick) = (seeds(top, "seeds", 20)?, seeds(top, "quick_seeds", 3)?);
    let Network { shared, paths, mesh, moving, generators } = network(top, files)?;
    let Load { transfer, video, heading, connections, beside, datagrams } = load(top, files, &paths)?;
    let Comparison { schemes, baselines, defaults } = comparison(top, files)?;
    let (sweep, metrics) = (results::sweep(top)?, results::metrics(top, sample)?);
    Ok(Scenario {
        about: About {
            title: top.text_or("title", &name)?,
            paper: top.text_or("paper", "")?,
            description: top.text_or("description", "")?,
        },
        name,
        duration,
        warm_up,
        seeds: Seeds { all, quick: quick.min(all) },
        sample,
        transfer,
        video,
        heading,
        connections,
        files: files.key(),
        connection: connection::connection(top, connections > 0)?,
        generators,
        beside,
        datagrams,
        paths,
        mesh,
        moving,
        shared,
        policies: contenders(&schemes, &baselines, &defaults),
        schemes,
        baselines,
        defaults,
        results: Results {
            derived: derived::derived(top, sweep.as_ref(), &metrics)?,
            sweep,
            matrix: results::matrix(top)?,
            sensitivity: results::sensitivity(top)?,
            metrics,
            figures: results::figures(top)?,
            differences: results::differences(top)?,
            claims: results::claims(top)?,
        },
    })
}

fn name(top: &Reader<'_>) -> Result<String, Diagnostic> {
    let item = top.required("name")?;
    let name = item.text()?;
    if !is_name(name) {
        return Err(item.error("a name is made of letters, digits, _ and -: files are called after it"));
    }
    Ok(name.to_owned())
}

fn seeds(top: &Reader<'_>, key: &str, default: u32) -> Result<u32, Diagnostic> {
    top.get(key).map_or(Ok(default), |item| Ok(item.count(1..=100_000)? as u32))
}

/// Duration, warm-up, seeds and sampling.
struct Times {
    duration: Duration,
    warm_up: Duration,
    sample: Duration,
}

/// Most samples of a run, each of which takes a few bytes per series and path.
const MOST_SAMPLES: u64 = 1_000_000;

fn times(top: &Reader<'_>) -> Result<Times, Diagnostic> {
    let item = top.required("duration")?;
    let duration: Duration = item.quantity()?;
    if duration == Duration::ZERO {
        return Err(item.error("a run must last longer than nothing"));
    }
    let warm_up = top.quantity("warm_up")?.unwrap_or(Duration::ZERO);
    if let Some(item) = top.get("warm_up").filter(|_| warm_up >= duration) {
        return Err(item.error("the warm-up is as long as the whole run"));
    }
    let sample = top.quantity("sample")?.unwrap_or(Duration::from_millis(500));
    if let Some(item) = top.get("sample").filter(|_| sample < Duration::from_millis(1) || sample > duration) {
        return Err(item.error("the sampling interval must lie between 1 ms and the duration"));
    }
    let samples = duration.as_nanos() / sample.as_nanos().max(1);
    if samples > MOST_SAMPLES {
        let message =
            format!("these are {samples} samples, and a run has at most {MOST_SAMPLES}: set a longer 'sample'");
        return Err(top.get("sample").unwrap_or(item).error(message));
    }
    Ok(Times { duration, warm_up, sample })
}

struct Network {
    shared: Vec<Link>,
    paths: Vec<Path>,
    mesh: Option<Mesh>,
    moving: Option<Moving>,
    generators: Vec<Generator>,
}

fn network(top: &Reader<'_>, files: &Files<'_>) -> Result<Network, Diagnostic> {
    let shared = top.get("shared").map(|item| network::links(&item, files)).transpose()?.unwrap_or_default();
    let (mesh, paths) = match mesh::mesh(top)? {
        Some((mesh, lanes)) => (Some(mesh), lanes),
        None if top.get("moving").is_some() => (None, Vec::new()),
        None => (None, network::paths(top, files)?),
    };
    let generators = generators::generators(top, &paths)?;
    Ok(Network { shared, paths, mesh, moving: moving::moving(top)?, generators })
}

/// Schemes, baselines and defaults.
struct Comparison {
    schemes: Vec<Scheme>,
    baselines: Vec<Baseline>,
    defaults: Choices,
}

fn comparison(top: &Reader<'_>, files: &Files<'_>) -> Result<Comparison, Diagnostic> {
    let (baselines, defaults) = (policies::baselines(top, files.directory)?, policies::defaults(top)?);
    Ok(Comparison { schemes: policies::schemes(top, &baselines)?, baselines, defaults })
}

/// Traffic.
struct Load {
    transfer: Transfer,
    video: Option<Video>,
    heading: Heading,
    connections: u32,
    beside: Vec<Beside>,
    datagrams: Vec<DatagramFlow>,
}

fn load(top: &Reader<'_>, files: &Files<'_>, paths: &[Path]) -> Result<Load, Diagnostic> {
    let (video, datagrams) = (video::video(top, files)?, datagrams::datagrams(top)?);
    let (transfer, heading, connections) = match &video {
        Some(_) => (Transfer::Video, Heading::Upload, 1),
        None if !datagrams.is_empty() && top.get("transfer").is_none() => (Transfer::None, Heading::Upload, 0),
        None => transfer::transfer(top)?,
    };
    Ok(Load { transfer, video, heading, connections, beside: beside::beside(top, paths, heading)?, datagrams })
}
