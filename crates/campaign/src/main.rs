//! Plays random histories between the engine and its peers, and writes down those that go wrong.
#![allow(clippy::print_stdout)]

use anabranch_campaign::campaign::{Orders, run};
use anabranch_campaign::history::verdict::play;
use anabranch_campaign::history::{History, Kind};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Which pairs meet.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Pair {
    /// The engine meets itself.
    Engine,
    /// The engine meets the literal peer, as client and as server in turn.
    Literal,
    /// Both.
    All,
    /// The engine meets a literal peer that lies.
    Hostile,
    /// The engine listens, and meets two literal peers with the same key.
    Twins,
}

impl Pair {
    fn kinds(self) -> Vec<Kind> {
        match self {
            Self::Engine => vec![Kind::Engines],
            Self::Twins => vec![Kind::Twins],
            Self::Literal | Self::Hostile => vec![Kind::EngineClient, Kind::EngineServer],
            Self::All => vec![Kind::Engines, Kind::EngineClient, Kind::EngineServer],
        }
    }
}

/// Plays random histories between the engine and a peer, and writes down those that go wrong.
#[derive(Parser, Debug)]
#[command(name = "anabranch-campaign")]
struct Arguments {
    /// Which pairs meet.
    #[arg(long, value_enum, default_value = "all")]
    pair: Pair,
    /// Seeds the histories.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Most histories.
    #[arg(long, default_value_t = 10_000)]
    histories: u64,
    /// Most minutes.
    #[arg(long)]
    minutes: Option<f64>,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Go on after a failure.
    #[arg(long)]
    keep_going: bool,
    /// Where histories that fail are written, made as small as can be.
    #[arg(long, default_value = "crates/campaign/corpus")]
    corpus: PathBuf,
    /// Play this history only, and print its packets.
    #[arg(long)]
    replay: Option<PathBuf>,
}

fn replay(path: &PathBuf) -> Result<bool, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let history: History = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let played = play(&history, true);
    for line in &played.transcript {
        println!("{line}");
    }
    match &played.outcome {
        Ok(outcome) => println!("{outcome:?}, {} octets", played.octets),
        Err(why) => println!("FAILED: {why}"),
    }
    Ok(played.outcome.is_ok())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(path) = &arguments.replay {
        return match replay(path) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(2)
            }
        };
    }
    let orders = Orders {
        kinds: arguments.pair.kinds(),
        hostile: matches!(arguments.pair, Pair::Hostile),
        seed: arguments.seed,
        histories: arguments.histories,
        time: arguments.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0)),
        jobs: arguments.jobs,
        keep_going: arguments.keep_going,
        folder: arguments.corpus,
    };
    let begun = Instant::now();
    let tally = run(&orders, &|tally, seconds| eprintln!("{}", tally.line(seconds)));
    println!("{}", tally.line(begun.elapsed().as_secs_f64()));
    println!("{}", tally.table());
    if tally.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
