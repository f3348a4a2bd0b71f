//! Parses `[[beside]]`: TCP connections that compete with the transfer.

use super::model::{Beside, Bursts, Draw, Drawn, Heading, Path};
use super::references::missing;
use super::{network, transfer};
use anabranch_policy::combination::Combination;
use anabranch_policy::time::Duration;
use anabranch_settings::choices::choice;
use anabranch_settings::connection::ConnectionSettings;
use anabranch_settings::contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::reader::{Item, Reader};

const KEYS: &[&str] = &["name", "count", "congestion", "path", "direction", "size", "interval", "start", "connection"];

/// Default start: a random time in the first second, so that seeds differ.
pub const START: Draw<Duration> =
    Draw::Uniform { low: Duration::ZERO, high: Duration::from_secs(1), drawn: Drawn::PerRun };

/// Parses them; by default their data has the direction of the transfer.
pub fn beside(top: &Reader<'_>, paths: &[Path], heading: Heading) -> Result<Vec<Beside>, Diagnostic> {
    let mut made: Vec<Beside> = Vec::new();
    for item in top.list("beside")? {
        if top.get("mesh").or_else(|| top.get("moving")).is_some() {
            return Err(item.error("connections of others go over [[paths]]; an ad-hoc network has none"));
        }
        let one = one(&item, paths, heading)?;
        if made.iter().any(|known| known.name == one.name) {
            let message = format!("there are two [[beside]] with the name '{}': give them a 'name' each", one.name);
            return Err(item.error(message));
        }
        made.push(one);
    }
    Ok(made)
}

fn one(item: &Item<'_>, paths: &[Path], heading: Heading) -> Result<Beside, Diagnostic> {
    let table = item.table("a [[beside]]", KEYS)?;
    let congestion_item = table.required("congestion")?;
    let mut alone = Combination { congestion: choice(&congestion_item)?, ..Combination::default() };
    contender::check(&alone).map_err(|message| congestion_item.error(message))?;
    let congestion = std::mem::take(&mut alone.congestion);
    let start = table.get("start").map(|item| network::draw(&item, &["per_run"])).transpose()?;
    let settings = table.get("connection").map(|item| ConnectionSettings::read(&item)).transpose()?;
    Ok(Beside {
        name: table.text_or("name", &congestion.name)?,
        count: table.get("count").map_or(Ok(1), |item| item.count(0..=1000))? as u32,
        path: path(&table, paths)?,
        heading: table.get("direction").map_or(Ok(heading), |item| item.word(&transfer::HEADINGS))?,
        bursts: bursts(&table)?,
        start: start.unwrap_or(START),
        connection: settings.unwrap_or_default(),
        congestion,
    })
}

fn path(table: &Reader<'_>, paths: &[Path]) -> Result<usize, Diagnostic> {
    let names: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
    match table.get("path") {
        None if paths.len() == 1 => Ok(0),
        None => Err(table.error(format!(
            "a [[beside]] has no 'path', which it needs where there are several: {}",
            names.join(", ")
        ))),
        Some(item) => {
            let name = item.text()?;
            names.iter().position(|known| *known == name).ok_or_else(|| item.error(missing("path", name, &names)))
        }
    }
}

fn bursts(table: &Reader<'_>) -> Result<Option<Bursts>, Diagnostic> {
    match (table.quantity("size")?, table.get("interval")) {
        (None, None) => Ok(None),
        (Some(size), Some(_)) => Ok(Some(Bursts { size, interval: transfer::interval(table)? })),
        _ => Err(table.error("'size' and 'interval' of messages stand together; without both there is no end of data")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Document, Scenario};

    const TEXT: &str = r#"
        name = "s"
        duration = "5 s"
        connection.receive_buffer = "1 MB"
        [transfer]
        kind = "endless"
        direction = "download"
        connections = 3
        [[paths]]
        name = "wifi"
        links = [{ rate = "5 Mbit/s", paused = ["1..2 s"] }]
        [[paths]]
        name = "lte"
        links = [{ rate = "5 Mbit/s" }]
        [[beside]]
        name = "cubic"
        congestion = "cubic"
        count = 4
        path = "lte"
        [[beside]]
        name = "calls"
        congestion = { name = "cubic", beta = 0.5 }
        path = "wifi"
        direction = "upload"
        size = "200 B"
        interval = "20 ms"
        start = "1 s"
        connection = { ecn = "request" }
    "#;

    fn with(option: &str) -> Result<Scenario, Diagnostic> {
        Document::embedded("s.toml", TEXT, &[option.to_owned()]).scenario()
    }

    #[test]
    fn others_have_a_control_a_path_and_the_direction_of_the_transfer() {
        let scenario = with("seeds=2").unwrap();
        assert_eq!(scenario.connections, 3);
        assert_eq!(scenario.paths[0].links[0].paused, [(Duration::from_secs(1), Duration::from_secs(2))]);
        let [cubic, calls] = scenario.beside.as_slice() else { panic!("two kinds") };
        assert_eq!((cubic.name.as_str(), cubic.count, cubic.path), ("cubic", 4, 1));
        assert_eq!((cubic.heading, cubic.bursts, cubic.start), (Heading::Download, None, START));
        assert_eq!((calls.heading, calls.path, calls.congestion.name.as_str()), (Heading::Upload, 0, "cubic"));
        assert_eq!(calls.bursts.map(|bursts| (bursts.size.0, bursts.interval)), Some((200, Duration::from_millis(20))));
        assert_eq!(calls.connection.iter().collect::<Vec<_>>(), [("ecn", "request".to_owned())]);
        assert!(with("beside=[]").unwrap().beside.is_empty());
        assert_eq!(with("beside.cubic.count=0").unwrap().beside[0].count, 0);
    }

    #[test]
    fn others_that_cannot_be_are_refused_with_the_reason() {
        let cases = [
            ("beside.cubic.path=lt", "there is no path 'lt': known are wifi, lte; did you mean 'lte'?"),
            ("beside.cubic.congestion=cubik", "'cubik' is not a congestion policy"),
            ("beside.cubic.congestion={ name = \"cubic\", gamma = 1 }", "has no setting 'gamma'"),
            ("beside.cubic.count=1001", "it must lie from 0 to 1000"),
            ("beside.cubic.cuont=1", "unknown key 'cuont' in a [[beside]]; did you mean 'count'?"),
            ("beside.calls.name=cubic", "there are two [[beside]] with the name 'cubic'"),
            ("beside.cubic.size=1 kB", "'size' and 'interval' of messages stand together"),
            ("beside.calls.interval=1 us", "at least 10 us apart"),
            ("beside.cubic.direction=up", "'up' is not one of upload, download"),
            ("transfer.connections=0", "0 is not possible here: it must lie from 1 to 1000"),
            ("transfer={ kind = \"finite\", size = \"1 MB\", connections = 2 }", "'connections' has no meaning"),
            ("paths.wifi.links.0.paused=[\"3 s..\"]", "a pause has an end"),
        ];
        for (option, expected) in cases {
            let error = with(option).expect_err(option).to_string();
            assert!(error.contains(expected), "{option}: {error}");
        }
        let nowhere = TEXT.replace("path = \"lte\"", "");
        let error = Document::embedded("s.toml", &nowhere, &[]).scenario().unwrap_err().to_string();
        assert!(error.contains("s.toml:15") && error.contains("where there are several: wifi, lte"), "{error}");
    }
}
