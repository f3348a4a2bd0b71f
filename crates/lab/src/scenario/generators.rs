//! Parses generators of cross traffic, and the names of routers.

use super::model::{AccessLink, GeneratorKind, GeneratorRoute};
use super::model::{Generator, Path};
use super::network::{self, DEFAULT_QUEUE};
use anabranch_policy::combination::{Choice, Combination};
use anabranch_policy::time::Duration;
use anabranch_settings::contender;
use anabranch_settings::diagnostic::{Diagnostic, did_you_mean};
use anabranch_settings::quantity::{Packets, Size};
use anabranch_settings::reader::{Item, Reader};

/// Keys of generators of both kinds.
const COMMON: &[&str] = &["name", "kind", "count", "routes", "access", "start"];
const FTP: &[&str] = &["window", "congestion"];
const VBR: &[&str] = &["rate", "sizes", "on", "off"];

/// ns-2's `window_`, packets.
const NS2_WINDOW: u64 = 20;

/// A named router: its path, and the number of links before it.
struct Router {
    name: String,
    path: usize,
    place: usize,
}

pub fn generators(top: &Reader<'_>, paths: &[Path]) -> Result<Vec<Generator>, Diagnostic> {
    let routers = routers(top, paths)?;
    let mut made: Vec<Generator> = Vec::new();
    for item in top.list("generators")? {
        let generator = generator(&item, &routers)?;
        if made.iter().any(|known| known.name == generator.name) {
            return Err(item.error(format!("there are two generators with the name '{}'", generator.name)));
        }
        made.push(generator);
    }
    Ok(made)
}

/// Named routers of all paths: those between a path's links, from the client to the server.
fn routers(top: &Reader<'_>, paths: &[Path]) -> Result<Vec<Router>, Diagnostic> {
    let mut routers: Vec<Router> = Vec::new();
    // Lanes of a mesh are not paths of the file.
    let items = if paths.is_empty() { Vec::new() } else { top.list("paths")? };
    for (path, item) in items.iter().enumerate() {
        let Some(names) = item.open("a path")?.get("routers") else { continue };
        let between = paths.get(path).map_or(0, |path| path.links.len().saturating_sub(1));
        let listed = names.texts()?;
        if listed.len() != between {
            let message = format!("{} names for the {between} routers between the links of this path", listed.len());
            return Err(names.error(message));
        }
        for (at, name) in listed.into_iter().enumerate() {
            if routers.iter().any(|known| known.name == name) {
                return Err(names.error(format!("there are two routers with the name '{name}'")));
            }
            routers.push(Router { name, path, place: at + 1 });
        }
    }
    Ok(routers)
}

fn generator(item: &Item<'_>, routers: &[Router]) -> Result<Generator, Diagnostic> {
    let known: Vec<&str> = [COMMON, FTP, VBR].concat();
    let table = item.table("a generator", &known)?;
    let kind_item = table.required("kind")?;
    let (own, word) = (kind_item.word(&[("ftp", FTP), ("vbr", VBR)])?, kind_item.text()?);
    if let Some((key, item)) = table.items().find(|(key, _)| !COMMON.contains(key) && !own.contains(key)) {
        return Err(item.error(format!("'{key}' has no meaning for a generator of kind \"{word}\"")));
    }
    let start = table.get("start").map(|item| network::draw(&item, &["per_run"])).transpose()?;
    Ok(Generator {
        name: table.text_or("name", word)?,
        kind: if word == "ftp" { ftp(&table)? } else { vbr(&table)? },
        count: table.get("count").map_or(Ok(1), |item| item.count(0..=1000))? as u32,
        routes: routes(&table.required("routes")?, routers)?,
        access: access(&table.required("access")?)?,
        start: start.unwrap_or(super::model::Draw::Fixed(Duration::ZERO)),
    })
}

fn ftp(table: &Reader<'_>) -> Result<GeneratorKind, Diagnostic> {
    let window = match table.get("window") {
        None => Some(NS2_WINDOW),
        Some(item) if item.text().is_ok_and(|text| text == "unlimited") => None,
        Some(item) => Some(item.quantity::<Packets>()?.0),
    };
    let congestion = table.text_or("congestion", "new_reno")?;
    if let Some(item) = table.get("congestion") {
        let alone = Combination { congestion: Choice::new(&congestion), ..Combination::default() };
        contender::check(&alone).map_err(|message| item.error(message))?;
    }
    Ok(GeneratorKind::Ftp { window, congestion })
}

fn vbr(table: &Reader<'_>) -> Result<GeneratorKind, Diagnostic> {
    let sizes_item = table.required("sizes")?;
    let (least, most): (Size, Size) = match sizes_item.text()?.contains("..") {
        true => sizes_item.range()?,
        false => sizes_item.quantity().map(|size| (size, size))?,
    };
    if least.0 < 40 || most.0 > 65_535 {
        return Err(sizes_item.error("a packet has from 40 to 65535 bytes"));
    }
    let span = |key: &str| match table.quantity::<Duration>(key)? {
        Some(Duration::ZERO) => Err(table.error(format!("'{key}' must be above zero"))),
        time => Ok(time),
    };
    let on_off = match (span("on")?, span("off")?) {
        (None, None) => None,
        (Some(on), Some(off)) => Some((on, off)),
        _ => return Err(table.error("'on' and 'off' stand together, or neither")),
    };
    let rate = table.required("rate")?.quantity()?;
    Ok(GeneratorKind::Vbr { rate, sizes: (least.0 as u32, most.0 as u32), on_off })
}

/// Parses `[["R1", "R2"], ["R2", "R1"]]`.
fn routes(item: &Item<'_>, routers: &[Router]) -> Result<Vec<GeneratorRoute>, Diagnostic> {
    let mut made: Vec<GeneratorRoute> = Vec::new();
    for item in item.list()? {
        let names = item.list()?;
        let [from, to] = names.as_slice() else {
            return Err(item.error("a route has two routers: [\"R1\", \"R2\"], from the source to the sink"));
        };
        let (from, to) = (router(from, routers)?, router(to, routers)?);
        if from.path != to.path {
            let message = format!("'{}' and '{}' are not routers of one path", from.name, to.name);
            return Err(item.error(message));
        }
        if from.place == to.place {
            return Err(item.error("source and sink hang on the same router, so that no link of the path is used"));
        }
        let end = |router: &Router| (router.name.clone(), router.place);
        let route = GeneratorRoute { path: from.path, from: end(from), to: end(to) };
        if made.contains(&route) {
            return Err(item.error("this route is there already: 'count' says how many sources it has"));
        }
        made.push(route);
    }
    Ok(made)
}

fn router<'a>(item: &Item<'_>, routers: &'a [Router]) -> Result<&'a Router, Diagnostic> {
    let name = item.text()?;
    routers.iter().find(|router| router.name == name).ok_or_else(|| {
        let known = routers.iter().map(|router| router.name.as_str());
        let hint = match routers {
            [] => ": give the routers between a path's links names, e.g. routers = [\"R1\", \"R2\"]".to_owned(),
            _ => format!(": known are {}{}", known.clone().collect::<Vec<_>>().join(", "), did_you_mean(name, known)),
        };
        item.error(format!("there is no router '{name}'{hint}"))
    })
}

fn access(item: &Item<'_>) -> Result<AccessLink, Diagnostic> {
    let table = item.table("an access link", &["rate", "delay", "queue"])?;
    Ok(AccessLink {
        rate: table.required("rate")?.quantity()?,
        delay: table.quantity("delay")?.unwrap_or(Duration::ZERO),
        queue: table.get("queue").map_or(Ok(DEFAULT_QUEUE), |item| network::queue(&item))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Document, Scenario};
    use anabranch_policy::rate::Rate;

    const TEXT: &str = r#"
        name = "s"
        duration = "5 s"
        connection.receive_buffer = "1 MB"
        [[paths]]
        name = "A"
        routers = ["R1", "R2"]
        links = [{ rate = "5 Mbit/s" }, { rate = "5 Mbit/s" }, { rate = "5 Mbit/s" }]
        [[paths]]
        name = "B"
        routers = ["R3"]
        links = [{ rate = "5 Mbit/s" }, { rate = "5 Mbit/s" }]
        [[generators]]
        name = "f"
        kind = "ftp"
        routes = [["R1", "R2"], ["R2", "R1"]]
        access = { rate = "100 Mbit/s", delay = "25 ms" }
        [[generators]]
        name = "v"
        kind = "vbr"
        count = 3
        rate = "448 kbit/s"
        sizes = "100..200 B"
        routes = [["R2", "R1"]]
        access = { rate = "1 Mbit/s", queue = "50 packets" }
    "#;

    fn with(option: &str) -> Result<Scenario, Diagnostic> {
        Document::embedded("s.toml", TEXT, &[option.to_owned()]).scenario()
    }

    #[test]
    fn generators_hang_on_routers_by_name() {
        let scenario = with("seeds=2").unwrap();
        let [ftp, vbr] = scenario.generators.as_slice() else { panic!("two generators") };
        assert_eq!(ftp.kind, GeneratorKind::Ftp { window: Some(20), congestion: "new_reno".to_owned() });
        assert_eq!((ftp.count, vbr.count), (1, 3));
        let end = |name: &str, place| (name.to_owned(), place);
        let there = GeneratorRoute { path: 0, from: end("R1", 1), to: end("R2", 2) };
        let back = GeneratorRoute { path: 0, from: end("R2", 2), to: end("R1", 1) };
        assert_eq!((&ftp.routes[..], &vbr.routes[..]), (&[there, back.clone()][..], &[back][..]));
        let rate = Rate::from_bits_per_second(448_000);
        assert_eq!(vbr.kind, GeneratorKind::Vbr { rate, sizes: (100, 200), on_off: None });
        assert_eq!(ftp.access.delay, Duration::from_millis(25));
    }

    #[test]
    fn their_settings_can_be_set_from_the_command_line() {
        let ftp = |option: &str| with(option).map(|scenario| scenario.generators[0].clone()).unwrap();
        assert_eq!(ftp("generators.f.count=0").count, 0);
        let unlimited = GeneratorKind::Ftp { window: None, congestion: "new_reno".to_owned() };
        assert_eq!(ftp("generators.f.window=unlimited").kind, unlimited);
        let cubic = GeneratorKind::Ftp { window: Some(20), congestion: "cubic".to_owned() };
        assert_eq!(ftp("generators.f.congestion=cubic").kind, cubic);
        assert!(with("generators=[]").unwrap().generators.is_empty());
    }

    #[test]
    fn generators_that_cannot_be_are_refused_with_the_reason() {
        let cases = [
            ("paths.A.routers=[\"R1\"]", "1 names for the 2 routers between the links of this path"),
            ("paths.B.routers=[\"R1\"]", "there are two routers with the name 'R1'"),
            ("generators.f.routes=[[\"R1\", \"R9\"]]", "there is no router 'R9': known are R1, R2, R3"),
            ("generators.f.routes=[[\"R1\", \"R3\"]]", "'R1' and 'R3' are not routers of one path"),
            ("generators.f.routes=[[\"R1\", \"R1\"]]", "hang on the same router"),
            ("generators.f.routes=[[\"R1\"]]", "a route has two routers"),
            ("generators.f.routes=[[\"R1\", \"R2\"], [\"R1\", \"R2\"]]", "this route is there already"),
            ("generators.f.rate=1 Mbit/s", "'rate' has no meaning for a generator of kind \"ftp\""),
            ("generators.v.window=3 packets", "'window' has no meaning for a generator of kind \"vbr\""),
            ("generators.f.congestion=renoo", "'renoo' is not a congestion policy"),
            ("generators.f.kind=cbr", "'cbr' is not one of ftp, vbr"),
            ("generators.f.windou=3 packets", "did you mean 'window'?"),
            ("generators.f.name=v", "two generators with the name 'v'"),
            ("generators.v.on=1 s", "'on' and 'off' stand together"),
            ("generators.v.sizes=10 B", "from 40 to 65535 bytes"),
            ("generators.v.sizes=200..100 B", "reversed"),
            ("generators.v.access.loss=1 %", "unknown key 'loss' in an access link"),
        ];
        for (option, expected) in cases {
            let error = with(option).expect_err(option).to_string();
            assert!(error.contains(expected), "{option}: {error}");
        }
        let nameless = TEXT.replace("routers = [\"R1\", \"R2\"]", "").replace("routers = [\"R3\"]", "");
        let error = Document::embedded("s.toml", &nameless, &[]).scenario().unwrap_err().to_string();
        assert!(error.contains("give the routers between a path's links names"), "{error}");
    }
}
