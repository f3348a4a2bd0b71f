//! Runs many histories on several threads and counts their outcomes.

use crate::history::behaviour::Counts;
use crate::history::verdict::{Outcome, play};
use crate::history::{History, Kind};
use crate::shrink::shrink;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Settings of a campaign.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The pairs of sides, in turn.
    pub kinds: Vec<Kind>,
    /// Whether the literal peer lies.
    pub hostile: bool,
    /// Seed of the histories' seeds.
    pub seed: u64,
    /// Limit of histories.
    pub histories: u64,
    /// Time limit.
    pub time: Option<Duration>,
    /// Number of threads.
    pub jobs: usize,
    /// Whether to continue after a failure.
    pub keep_going: bool,
    /// Folder for failures.
    pub folder: PathBuf,
}

/// Results of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Histories and octets by outcome.
    pub outcomes: BTreeMap<Outcome, (u64, u64)>,
    /// Files of failed histories.
    pub failures: Vec<PathBuf>,
    /// What the literal peer did.
    pub behaviours: Counts,
}

impl Tally {
    /// What the literal peer did, for users: in how many histories it was sent, and in how many it arrived at an engine
    /// whose connection had not ended.
    pub fn table(&self) -> String {
        let mut text = format!("{:<48}{:>10}{:>10}", "behaviour, in histories", "sent", "arrived");
        for (name, sent, arrived) in self.behaviours.rows() {
            let _ = write!(text, "\n{name:<48}{sent:>10}{arrived:>10}");
        }
        text
    }

    /// A line of text for users.
    pub fn line(&self, seconds: f64) -> String {
        let count: u64 = self.outcomes.values().map(|(count, _)| count).sum();
        let octets: u64 = self.outcomes.values().map(|(_, octets)| octets).sum();
        let mut text = format!(
            "{count} histories, {:.0}/s, {:.1} MB carried, {} failed",
            count as f64 / seconds.max(0.001),
            octets as f64 / 1e6,
            self.failures.len()
        );
        for (outcome, (count, _)) in &self.outcomes {
            let _ = write!(text, ", {outcome:?} {count}");
        }
        text
    }
}

/// The history with this number, from its kind and seed.
pub fn history(kinds: &[Kind], seed: u64, number: u64) -> History {
    let kind = kinds[(number % kinds.len() as u64) as usize];
    let seed = seed.wrapping_mul(0x9e37_79b9).wrapping_add(number) & 0xffff_ffff_ffff;
    if kind == Kind::Twins { History::draw_twins(seed) } else { History::draw_changing(kind, seed) }
}

/// A failing history in the format of the corpus, with its transcript.
pub fn file(history: &History, why: &str) -> String {
    let mut text = String::new();
    for line in why.lines() {
        let _ = writeln!(text, "# {line}");
    }
    let _ = write!(text, "{history}");
    for line in play(history, true).transcript {
        let _ = writeln!(text, "#: {line}");
    }
    text
}

/// Shrinks the failing history and writes it to a file; returns the file.
pub fn write_down(folder: &Path, history: &History, why: String) -> PathBuf {
    let (small, why) = shrink(history, why);
    let kind = Kind::NAMES.iter().find(|(_, kind)| *kind == history.kind).map_or("", |(name, _)| name);
    let path = folder.join(format!("{kind}-{}.txt", history.seed));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, file(&small, &why)));
    if let Err(error) = written {
        eprintln!("{}: {error}", path.display());
    }
    path
}

/// Plays histories up to the limit of number or time, or until one fails.
pub fn run(orders: &Orders, progress: &(dyn Fn(&Tally, f64) + Sync)) -> Tally {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (tally, told) = (Mutex::new(Tally::default()), Mutex::new(Instant::now()));
    let begun = Instant::now();
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= orders.histories || orders.time.is_some_and(|time| begun.elapsed() >= time) {
                return;
            }
            let mut history = history(&orders.kinds, orders.seed, number);
            if orders.hostile {
                history = History::draw_hostile(history.seed);
            }
            let played = play(&history, false);
            tally.lock().expect("no thread panics with it").behaviours.count(played.seen);
            match played.outcome {
                Ok(outcome) => {
                    let mut tally = tally.lock().expect("no thread panics with it");
                    let entry = tally.outcomes.entry(outcome).or_default();
                    *entry = (entry.0 + 1, entry.1 + played.octets);
                }
                Err(why) => {
                    stop.fetch_or(!orders.keep_going, Ordering::Relaxed);
                    eprintln!("history {number} ({:?}, seed {}): {why}", history.kind, history.seed);
                    let path = write_down(&orders.folder, &history, why);
                    eprintln!("written to {}", path.display());
                    tally.lock().expect("no thread panics with it").failures.push(path);
                }
            }
            let mut told = told.lock().expect("no thread panics with it");
            if told.elapsed() >= Duration::from_secs(10) {
                *told = Instant::now();
                progress(&tally.lock().expect("no thread panics with it"), begun.elapsed().as_secs_f64());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..orders.jobs.max(1) {
            scope.spawn(work);
        }
    });
    tally.into_inner().expect("no thread panics with it")
}
