//! Parses an ad-hoc network of mobile nodes: `[moving]`.

use super::model::Moving;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::reader::{Item, Reader};

const MOVING: &[&str] = &[
    "nodes",
    "same_density",
    "area",
    "range",
    "broadcast_rate",
    "shadows",
    "speed",
    "hello_interval",
    "dead_interval",
    "probe_interval",
    "probe_bytes",
    "download",
    "cut_speed",
];

/// Parses `[moving]`; defaults are those of RFC 5614, appendix E.
pub fn moving(top: &Reader<'_>) -> Result<Option<Moving>, Diagnostic> {
    let Some(item) = top.get("moving") else { return Ok(None) };
    for key in ["paths", "shared", "mesh", "transfer"] {
        if let Some(item) = top.get(key) {
            return Err(item.error(format!("a scenario with [moving] nodes has no '{key}': it carries probes")));
        }
    }
    let table = item.table("moving nodes", MOVING)?;
    let nodes = |item: Item<'_>| Ok::<usize, Diagnostic>(item.count(2..=10_000)? as usize);
    Ok(Some(Moving {
        speed: speeds(&table)?,
        range: between(&table, "range", (1.0, "a range lies between 1 and 100000 metres"))?.unwrap_or(250.0),
        cut_speed: between(&table, "cut_speed", (0.1, "a speed lies between 0.1 and 100000 m/s"))?,
        same_density: table.get("same_density").map(nodes).transpose()?,
        nodes: nodes(table.required("nodes")?)?,
        area: pair(&table, "area", 1.0)?.unwrap_or((500.0, 500.0)),
        broadcast_rate: table.quantity("broadcast_rate")?.unwrap_or(Rate::from_bits_per_second(11_000_000)),
        shadows: table.flag("shadows", false)?,
        hello_interval: table.quantity("hello_interval")?.unwrap_or(Duration::from_secs(2)),
        dead_interval: table.quantity("dead_interval")?.unwrap_or(Duration::from_secs(6)),
        probe_interval: probe_interval(&table)?,
        download: download(&table)?,
        probe_bytes: table.get("probe_bytes").map(|item| item.count(40..=1500)).transpose()?.unwrap_or(40) as u32,
    }))
}

/// Mean time between two probes. Without a least one a run would not end.
fn probe_interval(table: &Reader<'_>) -> Result<Duration, Diagnostic> {
    let Some(item) = table.get("probe_interval") else { return Ok(Duration::from_millis(100)) };
    let interval: Duration = item.quantity()?;
    if interval < Duration::from_micros(10) {
        return Err(item.error("probes are sent at least 10 us apart, on average"));
    }
    Ok(interval)
}

/// Duration of a download.
fn download(table: &Reader<'_>) -> Result<Option<Duration>, Diagnostic> {
    let Some(item) = table.get("download") else { return Ok(None) };
    let probes = ["probe_interval", "probe_bytes", "cut_speed"].iter().find(|key| table.get(key).is_some());
    if let Some(key) = probes {
        return Err(item.error(format!("downloads are instead of probes: leave '{key}' out")));
    }
    let each: Duration = item.quantity()?;
    if each < Duration::from_secs(1) {
        return Err(item.error("a download takes 1 s or more"));
    }
    Ok(Some(each))
}

/// Minimum and maximum speed.
fn speeds(table: &Reader<'_>) -> Result<Option<(f64, f64)>, Diagnostic> {
    let speed = pair(table, "speed", 0.001)?;
    match table.get("speed").filter(|_| speed.is_some_and(|(least, most)| least > most)) {
        Some(item) => Err(item.error("the least speed comes first")),
        None => Ok(speed),
    }
}

/// Two numbers of at least `least`.
fn pair(table: &Reader<'_>, key: &str, least: f64) -> Result<Option<(f64, f64)>, Diagnostic> {
    let Some(item) = table.get(key) else { return Ok(None) };
    let numbers = item.list()?.iter().map(Item::number).collect::<Result<Vec<f64>, _>>()?;
    match numbers[..] {
        [one, other] if one >= least && other >= least => Ok(Some((one, other))),
        _ => Err(item.error(format!("two numbers are expected here, {least} or more"))),
    }
}

/// A number from `least` to 100000, or the error `wrong`.
fn between(table: &Reader<'_>, key: &str, (least, wrong): (f64, &str)) -> Result<Option<f64>, Diagnostic> {
    let Some(item) = table.get(key) else { return Ok(None) };
    let number = item.number()?;
    if (least..=100_000.0).contains(&number) { Ok(Some(number)) } else { Err(item.error(wrong)) }
}
