//! `anabranch stream compare`: a synthetic stream over emulated paths in real time, with the installed transports: the
//! kernel's TCP and MPTCP, SRT, RIST, and Anabranch.

mod datagrams;
mod ends;
mod engine;
mod judge;
mod kernel;
mod message;
mod options;
mod outcome;
mod packet;
mod schedule;
mod trial;

pub use options::CompareOptions;

use crate::calibrate::{emulated, side_by_side};
use crate::console::{print, remark};
use crate::emulation;
use crate::stream::policy;
use anabranch_lab::library;
use anabranch_lab::scenario::Scenario;
use anabranch_lab::scenario::model::Draw;
use anabranch_policy::combination::Combination;
use anabranch_settings::diagnostic::Diagnostic;
use datagrams::Programs;
use outcome::{Entry, Outcome};
use schedule::Frame;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trial::{Ours, Trial, Who};

/// Contenders with Anabranch: name, label, and reliability settings.
const ENGINES: [(&str, &str, &str); 5] = [
    ("mptcp_to_ours", "Linux MPTCP to Anabranch", ""),
    (
        "mptcp_to_ours_subflow",
        "Linux MPTCP to Anabranch, subflow level",
        ",reliability=both_ends,reliability.level=subflow",
    ),
    ("ours", "Anabranch at both ends", ""),
    ("ours_spe", "Anabranch, the receiver abandons", ",reliability=spe"),
    ("ours_full", "Anabranch, nothing abandoned", ",reliability=full"),
];
/// Name that selects all combinations of [`Combination::NAMED`].
const SCHEMES: &str = "schemes";

/// A possible contender.
struct Candidate {
    name: String,
    /// Description.
    label: String,
    who: Who,
    /// Its behaviour depends on the requested latency.
    by_latency: bool,
    /// Indices of the paths that it uses.
    paths: Vec<usize>,
    /// A published combination, which must be selected explicitly.
    scheme: bool,
}

/// All candidates for the paths of a scenario.
fn candidates(scenario: &Scenario, policy: &str) -> Vec<Candidate> {
    let all: Vec<usize> = (0..scenario.paths.len()).collect();
    let make = |name: &str, label: &str, who: Who, by_latency: bool, paths: &[usize]| Candidate {
        name: name.to_owned(),
        label: label.to_owned(),
        who,
        by_latency,
        paths: paths.to_vec(),
        scheme: false,
    };
    let mut known = Vec::new();
    for (place, path) in scenario.paths.iter().enumerate() {
        let label = format!("Linux TCP on {}", path.name);
        known.push(make(&format!("tcp_{}", path.name), &label, Who::Tcp(place), false, &[place]));
    }
    known.push(make("mptcp", "Linux MPTCP", Who::Kernel, false, &all));
    for (place, path) in scenario.paths.iter().enumerate() {
        let who = Who::Programs(Programs::Srt(place));
        known.push(make(&format!("srt_{}", path.name), &format!("SRT on {}", path.name), who, true, &[place]));
    }
    let rist = Who::Programs(Programs::Rist(all.len()));
    known.push(make("rist", "RIST, paths shared", rist, true, &all));
    let on_all = Who::Programs(Programs::RistTwice(all.len()));
    known.push(make("rist_twice", "RIST, all on every path", on_all, true, &all));
    for (name, label, more) in ENGINES {
        let ours = Who::Ours(Ours { policy: format!("{policy}{more}"), linux_sends: name.starts_with("mptcp") });
        known.push(make(name, label, ours, !more.contains("full"), &all));
    }
    known.extend(Combination::NAMED.iter().map(|(name, words)| {
        let ours = Who::Ours(Ours { policy: (*name).to_owned(), linux_sends: false });
        let by_latency = words.contains("reliability");
        Candidate { scheme: true, ..make(name, &format!("{name}, at both ends"), ours, by_latency, &all) }
    }));
    known
}

/// Runs the comparison; returns whether it was completed.
pub fn compare(options: &CompareOptions) -> Result<bool, Diagnostic> {
    let scenario = emulated_scenario(options)?;
    let chosen = choose(&scenario, options)?;
    let (latencies, seeds) = (options.latencies(), options.seeds());
    for ours in chosen.iter().filter_map(|contender| contender.who.ours()) {
        latencies.iter().try_for_each(|latency| policy::of(&ours.policy, *latency).map(drop))?;
    }
    let frames = schedule::frames(options.frames(), options.rate);
    std::fs::create_dir_all(&options.out)
        .map_err(|error| Diagnostic::file(&options.out, "make the directory", &error))?;
    let path = options.out.join("stream.jsonl");
    let mut file = std::fs::File::create(&path).map_err(|error| Diagnostic::file(&path, "write", &error))?;
    let trials = trials(&chosen, seeds, &latencies, &scenario, &frames);
    remark(&format!("{} runs of {} frames in real time", trials.len(), frames.len()));
    let stop = crate::ending::watch()?;
    let mut entries = Vec::new();
    let tally = side_by_side::all(trials, &stop, |trial, done| {
        let entry = Entry::of(&trial, &done);
        let line = serde_json::to_string(&entry).map_err(|error| Diagnostic::plain(error.to_string()))?;
        writeln!(file, "{line}").map_err(|error| Diagnostic::file(&path, "write", &error))?;
        entries.push(entry);
        Ok(())
    })?;
    let rows = chosen.iter().map(|contender| {
        let least =
            contender.paths.iter().filter_map(|place| least_delay(&scenario, *place)).fold(f64::INFINITY, f64::min);
        (contender.name.as_str(), contender.label.as_str(), least)
    });
    let outcome = Outcome::new(rows, &entries, &latencies, &frames, &scenario, tally);
    let results = options.out.join("stream.json");
    let json = serde_json::to_string_pretty(&outcome).map_err(|error| Diagnostic::plain(error.to_string()))? + "\n";
    std::fs::write(&results, &json).map_err(|error| Diagnostic::file(&results, "write", &error))?;
    if options.json {
        print(&json);
    } else {
        print(&format!("{}written: {}, {}\n", outcome.table(), results.display(), path.display()));
    }
    Ok(!stop.load(Ordering::Relaxed))
}

/// The scenario, if its paths can be emulated here.
fn emulated_scenario(options: &CompareOptions) -> Result<Scenario, Diagnostic> {
    if let Some(reason) = emulated::missing() {
        return Err(Diagnostic::plain(format!("no paths can be emulated: {reason}")));
    }
    let scenario = library::open(&options.scenario, &options.set)?.scenario()?;
    if scenario.mesh.is_some() || scenario.moving.is_some() {
        let message = format!("{} is an ad-hoc network: this needs paths from one host to another", scenario.name);
        return Err(Diagnostic::plain(message));
    }
    let places: Vec<usize> = (0..scenario.paths.len()).collect();
    emulation::build(&scenario, &places, 1)?;
    Ok(scenario)
}

/// One run per candidate, seed and latency; a single latency for candidates that ignore it.
fn trials<'a>(
    chosen: &[Candidate],
    seeds: u32,
    latencies: &[Duration],
    scenario: &'a Scenario,
    frames: &'a [Frame],
) -> Vec<Trial<'a>> {
    let mut trials = Vec::new();
    for (contender, seed) in chosen.iter().flat_map(|contender| (1..=seeds).map(move |seed| (contender, seed))) {
        let wanted: Vec<Option<Duration>> =
            if contender.by_latency { latencies.iter().copied().map(Some).collect() } else { vec![None] };
        trials.extend(wanted.into_iter().map(|latency| Trial {
            who: contender.who.clone(),
            name: contender.name.clone(),
            seed: u64::from(seed),
            latency,
            scenario,
            frames,
        }));
    }
    trials
}

/// Selected candidates, or all whose programs are installed.
fn choose(scenario: &Scenario, options: &CompareOptions) -> Result<Vec<Candidate>, Diagnostic> {
    let known = candidates(scenario, &options.policy);
    let names: Vec<String> = known.iter().map(|contender| contender.name.clone()).collect();
    for name in &options.who {
        if !names.contains(name) && name != SCHEMES {
            let hint = anabranch_settings::diagnostic::did_you_mean(name, names.iter().map(String::as_str));
            let hint = if hint.is_empty() {
                format!("; known are {}, and {SCHEMES} for all of papers", names.join(", "))
            } else {
                hint
            };
            return Err(Diagnostic::option("--who", format!("'{name}' is nobody who takes part{hint}")));
        }
    }
    let asked = |name: &str| options.who.iter().any(|who| who == name);
    let wanted = |contender: &Candidate| {
        let group = if contender.scheme { asked(SCHEMES) } else { options.who.is_empty() };
        group || asked(&contender.name)
    };
    let mut chosen = Vec::new();
    for contender in known.into_iter().filter(wanted) {
        let missing = match &contender.who {
            Who::Programs(programs) => programs.missing(),
            _ => None,
        };
        match missing {
            Some(program) if options.who.is_empty() => {
                remark(&format!("without {}: there is no program '{program}'", contender.label));
            }
            Some(program) => {
                let message = format!("'{}' needs the program '{program}', which is not there", contender.name);
                return Err(Diagnostic::option("--who", message));
            }
            None => chosen.push(contender),
        }
    }
    Ok(chosen)
}

/// Minimum end-to-end delay of a path, milliseconds.
fn least_delay(scenario: &Scenario, place: usize) -> Option<f64> {
    let links = scenario.paths.get(place)?.links.iter().chain(&scenario.shared);
    let least = links.map(|link| match link.delay {
        Draw::Fixed(delay) => delay,
        Draw::Uniform { low, .. } => low,
    });
    Some(least.map(|delay| delay.as_secs_f64() * 1e3).sum())
}
