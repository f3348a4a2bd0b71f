//! Parses `[[datagrams]]`: programs that send datagrams between client and server.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity::Size;
use anabranch_settings::reader::{Item, Reader};
use anabranch_sim::datagrams::{DatagramFlow, LARGEST_PAYLOAD, LEAST_PAYLOAD, Pattern};

const COMMON: &[&str] = &["name", "kind", "count", "start", "stop", "deadline"];
const CALL: &[&str] = &["rate", "size", "direction"];
const FRAMES: &[&str] = &["rate", "size", "interval", "direction"];
const REQUESTS: &[&str] = &["request", "answer", "interval"];

/// Default start of programs: the session keys are established after one RTT.
const START: Duration = Duration::from_secs(1);
/// Default payload in bytes.
const SIZE: u32 = 1_200;
/// Bytes of a DNS query, and of a response.
const REQUEST: u32 = 60;
const ANSWER: u32 = 200;
/// Default directions.
const BOTH: [bool; 2] = [true, true];
/// Maximum number of programs.
const MOST: usize = 1_000;
/// Minimum interval: shorter ones would need too much memory.
const SHORTEST: Duration = Duration::from_micros(10);

/// Parses them; a table with a `count` defines several programs.
pub fn datagrams(top: &Reader<'_>) -> Result<Vec<DatagramFlow>, Diagnostic> {
    let mut made: Vec<DatagramFlow> = Vec::new();
    for item in top.list("datagrams")? {
        if top.get("mesh").or_else(|| top.get("moving")).is_some() {
            return Err(item.error("programs send datagrams over [[paths]]; an ad-hoc network has none"));
        }
        let (flow, count) = one(&item)?;
        let name = |number: u64| if number == 0 { flow.name.clone() } else { format!("{} {}", flow.name, number + 1) };
        for number in 0..count {
            let flow = DatagramFlow { name: name(number), ..flow.clone() };
            if made.iter().any(|known| known.name == flow.name) {
                let message =
                    format!("there are two [[datagrams]] with the name '{}': give them a 'name' each", flow.name);
                return Err(item.error(message));
            }
            made.push(flow);
        }
        if made.len() > MOST {
            return Err(item.error(format!("there are at most {MOST} programs that send datagrams")));
        }
    }
    Ok(made)
}

fn one(item: &Item<'_>) -> Result<(DatagramFlow, u64), Diagnostic> {
    let known: Vec<&str> = [COMMON, CALL, FRAMES, REQUESTS].concat();
    let table = item.table("a [[datagrams]]", &known)?;
    let kind_item = table.required("kind")?;
    let (own, word) =
        (kind_item.word(&[("call", CALL), ("frames", FRAMES), ("requests", REQUESTS)])?, kind_item.text()?);
    if let Some((key, item)) = table.items().find(|(key, _)| !COMMON.contains(key) && !own.contains(key)) {
        return Err(item.error(format!("'{key}' has no meaning for datagrams of kind \"{word}\"")));
    }
    let directions = [("upload", [true, false]), ("download", [false, true]), ("both", BOTH)];
    let (start, stop) = times(&table)?;
    let flow = DatagramFlow {
        name: table.text_or("name", word)?,
        pattern: pattern(&table, word)?,
        sends: table.get("direction").map_or(Ok(BOTH), |item| item.word(&directions))?,
        start,
        stop,
        deadline: positive(&table, "deadline")?,
    };
    Ok((flow, table.get("count").map_or(Ok(1), |item| item.count(0..=MOST as u64))?))
}

/// Traffic pattern of a program of this kind.
fn pattern(table: &Reader<'_>, kind: &str) -> Result<Pattern, Diagnostic> {
    let size_or = |key: &str, default: u32| Ok::<u32, Diagnostic>(size(table, key)?.unwrap_or(default));
    Ok(match kind {
        "call" => {
            let (rate, size): (Rate, u32) = (table.required("rate")?.quantity()?, size_or("size", SIZE)?);
            if rate.time_for(size.into()) < SHORTEST {
                return Err(table.error("datagrams come at least 10 us apart"));
            }
            Pattern::Even { rate, size }
        }
        "frames" => Pattern::Frames {
            rate: table.required("rate")?.quantity()?,
            interval: interval(table)?,
            size: size_or("size", SIZE)?,
        },
        _ => Pattern::Requests {
            interval: interval(table)?,
            request: size_or("request", REQUEST)?,
            answer: size_or("answer", ANSWER)?,
        },
    })
}

/// Start and end.
fn times(table: &Reader<'_>) -> Result<(Instant, Instant), Diagnostic> {
    let start = Instant::ZERO + table.quantity("start")?.unwrap_or(START);
    let Some(item) = table.get("stop") else { return Ok((start, Instant::NEVER)) };
    let stop = Instant::ZERO + item.quantity()?;
    if stop > start { Ok((start, stop)) } else { Err(item.error("it must lie after 'start'")) }
}

fn positive(table: &Reader<'_>, key: &str) -> Result<Option<Duration>, Diagnostic> {
    match table.get(key).map(|item| Ok((item, item.quantity::<Duration>()?))).transpose()? {
        Some((item, Duration::ZERO)) => Err(item.error("a deadline is longer than nothing")),
        time => Ok(time.map(|(_, time)| time)),
    }
}

fn interval(table: &Reader<'_>) -> Result<Duration, Diagnostic> {
    let item = table.required("interval")?;
    let interval: Duration = item.quantity()?;
    if interval < SHORTEST { Err(item.error("it must be at least 10 us")) } else { Ok(interval) }
}

fn size(table: &Reader<'_>, key: &str) -> Result<Option<u32>, Diagnostic> {
    let Some(item) = table.get(key) else { return Ok(None) };
    let size: Size = item.quantity()?;
    if size.0 < LEAST_PAYLOAD.into() || size.0 > LARGEST_PAYLOAD.into() {
        let message = format!("a datagram carries from {LEAST_PAYLOAD} to {LARGEST_PAYLOAD} bytes");
        return Err(item.error(message));
    }
    Ok(Some(size.0 as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::model::Transfer;
    use crate::scenario::{Document, Scenario};

    const TEXT: &str = r#"
        name = "s"
        duration = "5 s"
        [[paths]]
        name = "wifi"
        links = [{ rate = "5 Mbit/s" }]
        [[datagrams]]
        name = "call"
        kind = "call"
        rate = "1 Mbit/s"
        size = "1000 B"
        deadline = "150 ms"
        count = 2
        [[datagrams]]
        name = "camera"
        kind = "frames"
        rate = "2 Mbit/s"
        interval = "40 ms"
        direction = "upload"
        start = "2 s"
        stop = "4 s"
        [[datagrams]]
        name = "dns"
        kind = "requests"
        interval = "1 s"
        [[policies]]
        name = "copies"
        datagram = "duplicate"
        [[policies]]
        name = "patient"
        datagram = { name = "lowest_delay", patience = 20 }
    "#;

    fn with(option: &str) -> Result<Scenario, Diagnostic> {
        Document::embedded("s.toml", TEXT, &[option.to_owned()]).scenario()
    }

    #[test]
    fn programs_have_a_pattern_a_direction_and_a_time_and_need_no_transfer() {
        let scenario = with("seeds=2").unwrap();
        assert_eq!((scenario.transfer, scenario.connections), (Transfer::None, 0));
        let [call, second, camera, dns] = scenario.datagrams.as_slice() else { panic!("four programs") };
        assert_eq!(call.pattern, Pattern::Even { rate: Rate::from_bits_per_second(1_000_000), size: 1_000 });
        assert_eq!((call.sends, call.start, call.stop), (BOTH, Instant::ZERO + START, Instant::NEVER));
        assert_eq!((call.deadline, second.name.as_str()), (Some(Duration::from_millis(150)), "call 2"));
        let (rate, interval) = (Rate::from_bits_per_second(2_000_000), Duration::from_millis(40));
        assert_eq!(camera.pattern, Pattern::Frames { rate, interval, size: SIZE });
        assert_eq!((camera.sends, camera.stop), ([true, false], Instant::ZERO + Duration::from_secs(4)));
        assert_eq!(dns.pattern, Pattern::Requests { interval: Duration::from_secs(1), request: 60, answer: 200 });
        let policies: Vec<String> = scenario.policies.iter().map(|policy| policy.datagram.to_string()).collect();
        assert_eq!(policies, ["duplicate", "lowest_delay (patience = 20)"]);
    }

    #[test]
    fn programs_that_cannot_be_are_refused_with_the_reason() {
        let cases = [
            ("datagrams.call.kind=cal", "'cal' is not one of call, frames, requests; did you mean 'call'?"),
            ("datagrams.call.interval=1 s", "'interval' has no meaning for datagrams of kind \"call\""),
            ("datagrams.call.rate=0 bit/s", "it must lie between 1 bit/s and"),
            ("datagrams.call.size=70000 B", "a datagram carries from 8 to 65535 bytes"),
            ("datagrams.call.size=8 B", ""),
            ("datagrams.dns.name=call", "there are two [[datagrams]] with the name 'call'"),
            ("datagrams.camera.stop=2 s", "it must lie after 'start'"),
            ("datagrams.call.deadline=0 s", "a deadline is longer than nothing"),
            ("policies.copies.datagram=duplicates", "'duplicates' is not a datagram policy"),
            ("policies.patient.datagram.patient=1", "has no setting 'patient'"),
        ];
        for (option, reason) in cases {
            match with(option) {
                Ok(_) => assert_eq!(reason, "", "{option}"),
                Err(error) => {
                    assert!(!reason.is_empty() && error.message().contains(reason), "{option}: {}", error.message());
                }
            }
        }
    }

    #[test]
    fn a_scenario_without_datagrams_still_needs_a_connection() {
        let error = with("datagrams=[]").expect_err("there is nothing to do");
        assert!(error.message().contains("connection"), "{}", error.message());
    }
}
