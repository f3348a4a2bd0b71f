//! Parses the network of a scenario: paths, links, queues, delays, losses, outages and cross traffic.

use super::files::Files;
use super::model::{
    Background, BurstLoss, CoveragePoint, Direction, Draw, Drawn, Link, LinkRate, Path, Queue, QueueLimit,
};
use super::walk::{Walk, walk};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity::{Packets, Quantity, Share, Size};
use anabranch_settings::reader::{Item, Reader};
use anabranch_sim::link::RateTrace;
use std::sync::Arc;

const LINK_KEYS: &[&str] = &[
    "name",
    "rate",
    "delay",
    "queue",
    "loss",
    "burst_loss",
    "loss_direction",
    "duplication",
    "reordering",
    "corruption",
    "mtu",
    "mtu_from",
    "down",
    "paused",
    "coverage",
    "walk",
];

/// What the links behind all paths are called in the place of a path's name.
const SHARED: &str = "shared";

/// Parses all paths; there must be at least one, and names must be unique.
pub fn paths(top: &Reader<'_>, files: &Files<'_>) -> Result<Vec<Path>, Diagnostic> {
    let item = top.get("paths").ok_or_else(|| {
        top.error("a scenario needs at least one path: add a [[paths]] table with [[paths.links]] in it")
    })?;
    let items = item.list()?;
    if items.is_empty() || items.len() > 64 {
        return Err(item.error(format!("{} paths are not possible: a scenario has from 1 to 64", items.len())));
    }
    let mut paths: Vec<Path> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let path = path(item, at, files)?;
        if paths.iter().any(|known| known.name == path.name) {
            return Err(item.error(format!("there are two paths with the name '{}'", path.name)));
        }
        // Results, captures and the emulation tell links by these names.
        if path.name == SHARED && top.get("shared").is_some() {
            return Err(
                item.error("a path cannot be named 'shared' where there are [[shared]] links, which are called so")
            );
        }
        paths.push(path);
    }
    Ok(paths)
}

fn path(item: &Item<'_>, at: usize, files: &Files<'_>) -> Result<Path, Diagnostic> {
    let table = item.table("a path", &["name", "links", "routers", "background"])?;
    let name = match table.text("name")? {
        Some(name) if name.contains([',', '*']) => {
            let message = "a path's name has no ',', which separates names, and no '*', which stands for all paths";
            return Err(table.required("name")?.error(message));
        }
        Some(name) => name.to_owned(),
        // A to Z, AA to ZZ, AAA to LLL.
        None => char::from(b'A' + (at % 26) as u8).to_string().repeat(at / 26 + 1),
    };
    let links = links(&table.required("links")?, files)?;
    let background = table.get("background").map(|item| background(&item)).transpose()?;
    Ok(Path { name, links, background })
}

/// Parses a list of links.
pub fn links(item: &Item<'_>, files: &Files<'_>) -> Result<Vec<Link>, Diagnostic> {
    let items = item.list()?;
    if items.is_empty() {
        return Err(item.error("a path needs at least one link"));
    }
    items.iter().enumerate().map(|(at, item)| link(item, at, files)).collect()
}

fn link(item: &Item<'_>, at: usize, files: &Files<'_>) -> Result<Link, Diagnostic> {
    let table = item.table("a link", LINK_KEYS)?;
    let directions = [("forward", Direction::Forward), ("backward", Direction::Backward), ("both", Direction::Both)];
    let rate = rate(&table.required("rate")?, files)?;
    let Walk { coverage, down } = changes(&table, &rate)?;
    Ok(Link {
        name: table.text("name")?.map_or_else(|| format!("link {}", at + 1), str::to_owned),
        coverage,
        rate,
        delay: match table.get("delay") {
            Some(item) => draw(&item, DELAY)?,
            None => Draw::Fixed(Duration::ZERO),
        },
        queue: table.get("queue").map_or(Ok(DEFAULT_QUEUE), |item| queue(&item))?,
        loss: table.get("loss").map(|item| draw::<Share>(&item, LOSS)).transpose()?,
        burst_loss: table.get("burst_loss").map(|item| burst_loss(&item)).transpose()?,
        loss_direction: table.get("loss_direction").map_or(Ok(Direction::Both), |item| item.word(&directions))?,
        duplication: table.quantity("duplication")?,
        reordering: table.get("reordering").map(|item| reordering(&item)).transpose()?,
        corruption: table.quantity("corruption")?,
        mtu: mtu(&table)?,
        down,
        paused: table.list("paused")?.iter().map(pause).collect::<Result<_, _>>()?,
    })
}

/// A pause, in which packets wait in the queue.
fn pause(item: &Item<'_>) -> Result<(Duration, Duration), Diagnostic> {
    match item.range_of_time()? {
        (from, Some(to)) => Ok((from, to)),
        (_, None) => Err(item.error("a pause has an end: a link that carries nothing any more is 'down'")),
    }
}

/// The MTU, and when it begins.
fn mtu(table: &Reader<'_>) -> Result<Option<(Size, Duration)>, Diagnostic> {
    let from = table.quantity("mtu_from")?;
    match table.quantity("mtu")? {
        Some(Size(bytes)) if !(576..=65_535).contains(&bytes) => {
            Err(table.error(format!("an MTU of {bytes} bytes is not possible: from 576 to 65535")))
        }
        Some(size) => Ok(Some((size, from.unwrap_or(Duration::ZERO)))),
        None if from.is_some() => Err(table.error("mtu_from says from when on a link has an mtu, and it has none")),
        None => Ok(None),
    }
}

/// Default queue: 1000 packets, as on Linux interfaces.
pub const DEFAULT_QUEUE: Queue = Queue::DropTail(QueueLimit::Packets(Packets(1000)));

fn rate(item: &Item<'_>, files: &Files<'_>) -> Result<LinkRate, Diagnostic> {
    if !item.is_table() {
        return item.quantity::<Rate>().map(LinkRate::Fixed);
    }
    let file = item.table("a rate", &["trace"])?.required("trace")?;
    let path = files.place(file.text()?);
    let text = files.text(file.text()?).map_err(|error| {
        let message = Diagnostic::file(&path, "read", &error);
        file.error(message.message())
    })?;
    let trace = RateTrace::parse(&text).map_err(|error| file.error(format!("{}: {error}", path.display())))?;
    Ok(LinkRate::Trace(Arc::new(trace)))
}

/// Allowed distributions of a delay.
const DELAY: &[&str] = &["per_run", "per_packet", "slowly_varying"];
/// A loss rate drawn per packet would equal its mean, and the lab cannot vary it within a run.
const LOSS: &[&str] = &["per_run"];
/// The share of cross traffic changes in steps, as sources start and stop.
const BACKGROUND: &[&str] = &["per_run", "stepwise"];

/// Parses a value, or a range with one of these `ways` to draw it.
pub fn draw<Q: Quantity>(item: &Item<'_>, ways: &[&str]) -> Result<Draw<Q>, Diagnostic> {
    if !item.is_table() {
        return item.quantity().map(Draw::Fixed);
    }
    let table = item.table("a range", &["uniform", "drawn", "every"])?;
    let (low, high) = table.required("uniform")?.range()?;
    let words: Vec<(&str, &str)> = ways.iter().map(|way| (*way, *way)).collect();
    let way = table.required("drawn")?.word(&words)?;
    let every: Option<Duration> = table.quantity("every")?;
    let drawn = match (way, every) {
        ("per_run", None) => Drawn::PerRun,
        ("per_packet", None) => Drawn::PerPacket,
        ("slowly_varying" | "stepwise", None) => {
            return Err(table.error(format!("a {way} range needs 'every', the time from one draw to the next")));
        }
        // A run with a draw in each nanosecond does not end.
        (_, Some(every)) if every < Duration::from_micros(1) => {
            return Err(table.error("'every' must be 1 us or more"));
        }
        ("slowly_varying", Some(every)) => Drawn::SlowlyVarying(every),
        ("stepwise", Some(every)) => Drawn::Stepwise(every),
        _ => return Err(table.error(format!("'every' has no meaning for drawn = \"{way}\""))),
    };
    Ok(Draw::Uniform { low, high, drawn })
}

fn limit(item: &Item<'_>) -> Result<QueueLimit, Diagnostic> {
    // "500 packets" or a size: the unit decides; the error for an unknown unit lists both.
    let text = item.text()?;
    if text.contains("packet") {
        return item.quantity().map(QueueLimit::Packets);
    }
    item.quantity::<Size>()
        .map(QueueLimit::Bytes)
        .map_err(|error| item.error(format!("a queue holds \"500 packets\" or \"64 kB\": {}", error.message())))
}

pub fn queue(item: &Item<'_>) -> Result<Queue, Diagnostic> {
    if !item.is_table() {
        return limit(item).map(Queue::DropTail);
    }
    let table = item.table("a queue", &["discipline", "limit", "target", "interval"])?;
    let codel = table.required("discipline")?.word(&[("drop_tail", false), ("codel", true)])?;
    let limit = limit(&table.required("limit")?)?;
    let (target, interval) = (table.quantity("target")?, table.quantity("interval")?);
    if codel {
        // RFC 8289, section 4.2: 5 ms and 100 ms.
        let target = target.unwrap_or(Duration::from_millis(5));
        let interval = interval.unwrap_or(Duration::from_millis(100));
        if target >= interval {
            return Err(table.error("CoDel's target must be below its interval"));
        }
        Ok(Queue::CoDel { target, interval, limit })
    } else if target.is_some() || interval.is_some() {
        Err(table.error("'target' and 'interval' belong to discipline = \"codel\" only"))
    } else {
        Ok(Queue::DropTail(limit))
    }
}

fn burst_loss(item: &Item<'_>) -> Result<BurstLoss, Diagnostic> {
    let table = item.table("a burst loss", &["average", "burst"])?;
    let average: Share = table.required("average")?.quantity()?;
    let burst = table.required("burst")?;
    let packets: Packets = burst.quantity()?;
    if average.0 >= 1.0 {
        return Err(table.error("an average loss of 100 % leaves no good state"));
    }
    // A packet at least passes between two bursts.
    let (packets, most) = (packets.0 as f64, packets.0 as f64 / (packets.0 as f64 + 1.0));
    if average.0 > most {
        let what = format!("bursts of {packets} packets on average lose {:.2} % at most", most * 100.0);
        return Err(table.error(format!("{what}: one packet at least passes between two of them")));
    }
    Ok(BurstLoss { average, burst: packets })
}

/// Changes of a link over time: a walk, or coverage and outages.
fn changes(link: &Reader<'_>, rate: &LinkRate) -> Result<Walk, Diagnostic> {
    let Some(item) = link.get("walk") else {
        return Ok(Walk {
            coverage: link.get("coverage").map_or(Ok(Vec::new()), |item| coverage(&item, rate))?,
            down: link.list("down")?.iter().map(Item::range_of_time).collect::<Result<_, _>>()?,
        });
    };
    if let Some(other) = ["coverage", "down"].iter().find_map(|key| link.get(key)) {
        return Err(other.error("the walk of this link says how it changes: leave this out, or the walk"));
    }
    if matches!(rate, LinkRate::Trace(_)) {
        return Err(item.error("a rate from a trace does not change with a walk: use 'down', or a rate that is fixed"));
    }
    walk(&item)
}

fn coverage(item: &Item<'_>, rate: &LinkRate) -> Result<Vec<CoveragePoint>, Diagnostic> {
    let mut points: Vec<CoveragePoint> = Vec::new();
    for item in item.list()? {
        let table = item.table("a point of a coverage", &["at", "rate", "loss"])?;
        let at_item = table.required("at")?;
        let at: Duration = at_item.quantity()?;
        if points.last().is_some_and(|last| at < last.at) {
            return Err(at_item.error("the points of a coverage stand in order of time, and this one is too early"));
        }
        if let Some(item) = table.get("rate").filter(|_| matches!(rate, LinkRate::Trace(_))) {
            return Err(item.error("a rate from a trace does not change with the coverage: leave 'rate' out"));
        }
        let (rate, loss) =
            (table.quantity("rate")?.unwrap_or(Share(1.0)), table.quantity("loss")?.unwrap_or(Share(0.0)));
        if rate.0 <= 0.0 {
            return Err(table.error("a rate of 0 % is a link that is down: say so with 'down'"));
        }
        points.push(CoveragePoint { at, rate, loss });
    }
    Ok(points)
}

fn reordering(item: &Item<'_>) -> Result<(Share, Duration), Diagnostic> {
    let table = item.table("a reordering", &["share", "delay"])?;
    Ok((table.required("share")?.quantity()?, table.required("delay")?.quantity()?))
}

fn background(item: &Item<'_>) -> Result<Background, Diagnostic> {
    let table = item.table("a background", &["share", "tcp", "sizes", "tcp_flows", "on", "off"])?;
    Ok(Background {
        sizes: packet_sizes(&table.required("sizes")?)?,
        on: mean_time(&table, "on")?,
        off: mean_time(&table, "off")?,
        share: draw(&table.required("share")?, BACKGROUND)?,
        tcp: table.required("tcp")?.quantity()?,
        tcp_flows: table.get("tcp_flows").map_or(Ok(4), |item| item.count(1..=1000))? as u32,
    })
}

/// Shares of packet sizes.
fn packet_sizes(sizes: &Item<'_>) -> Result<Vec<(Share, Size)>, Diagnostic> {
    let mut mix = Vec::new();
    for size in sizes.list()? {
        let one = size.table("a packet size", &["share", "size"])?;
        mix.push((one.required("share")?.quantity::<Share>()?, one.required("size")?.quantity::<Size>()?));
    }
    let sum: f64 = mix.iter().map(|(share, _)| share.0).sum();
    if (sum - 1.0).abs() > 1e-6 {
        return Err(sizes.error(format!("the shares of the packet sizes sum to {:.4} %, not to 100 %", sum * 100.0)));
    }
    match mix.iter().find(|(_, size)| size.0 < 40 || size.0 > 65_535) {
        Some((_, size)) => Err(sizes.error(format!("a packet of {} bytes is not possible: from 40 to 65535", size.0))),
        None => Ok(mix),
    }
}

/// Mean on- or off-time of sources; default: 1 s.
fn mean_time(table: &Reader<'_>, key: &str) -> Result<Duration, Diagnostic> {
    match table.quantity::<Duration>(key)? {
        None => Ok(Duration::from_secs(1)),
        Some(time) if time > Duration::ZERO => Ok(time),
        Some(_) => Err(table.error(format!("'{key}' must be above zero"))),
    }
}
