//! The calibration cases: networks and settings on which the lab is compared with real time.
//!
//! Latin hypercube sampling: the range of each quantity is divided into as many equal strata as there are paths (for
//! buffer and congestion control: cases). Each stratum is used once; a random stream with a fixed seed shuffles the
//! strata and places the value within its stratum. Rates, RTTs and queues are log-uniform; losses are uniform from 0 to
//! 3 %, and every third path has none.

use anabranch_lab::scenario::{Document, Scenario};
use anabranch_lab::spread::{logarithmic, rounded, tidy};
use anabranch_policy::combination::{Choice, Combination};
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::random::RandomStream;
use serde::Serialize;
use std::fmt::Write;

/// Seed of the set of cases.
const SEED: u64 = 1;
/// Packet size in bytes for queue capacities.
const PACKET: f64 = 1500.0;
/// Minimum queue in packets: fewer cannot hold a pair of segments and an acknowledgement.
const LEAST_QUEUE: f64 = 4.0;
/// Receive buffers in bytes as an application requests them; 0: automatic.
const BUFFERS: [u64; 9] = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 0, 0, 0, 0];
/// Numbers of paths, with the number of cases for each.
const CASES: [(usize, usize); 3] = [(1, 14), (2, 14), (3, 8)];
/// Sampling interval of the lab in seconds; the warm-up is a multiple of it.
const SAMPLE: f64 = 0.5;

/// A path: one link in each direction.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CasePath {
    /// Mbit/s.
    pub rate: f64,
    /// RTT without queueing, ms.
    pub round_trip: f64,
    /// Loss ratio from the sender to the receiver.
    pub loss: f64,
    /// Queue capacity in packets, each direction.
    pub queue: u64,
}

/// A network with the settings of both ends.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Case {
    pub name: String,
    /// Congestion control of the kernel; also of the engine on single-path cases.
    pub congestion: &'static str,
    /// Receive buffer requested by the application, bytes; none: automatic.
    pub receive_buffer: Option<u64>,
    pub paths: Vec<CasePath>,
}

/// `count` values in [0, 1): one per stratum, in random order.
fn strata(random: &mut RandomStream, count: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order.into_iter().map(|stratum| (stratum as f64 + random.uniform()) / count as f64).collect()
}

/// All cases.
pub fn all() -> Vec<Case> {
    let paths: usize = CASES.iter().map(|(paths, cases)| paths * cases).sum();
    let count: usize = CASES.iter().map(|(_, cases)| cases).sum();
    let stream = |name: &str| RandomStream::new(SEED, &format!("calibrate/{name}"));
    let of_paths = |name: &str| strata(&mut stream(name), paths).into_iter();
    let (mut rates, mut round_trips) = (of_paths("rate"), of_paths("round trip"));
    let (mut losses, mut queues) = (of_paths("loss"), of_paths("queue"));
    let mut path = || {
        let rate = rounded(logarithmic(rates.next()?, 1.0, 100.0));
        let round_trip = rounded(logarithmic(round_trips.next()?, 5.0, 200.0));
        // The lowest third is lossless.
        let loss = ((losses.next()? * 1.5 - 0.5) * 3e4).round() / 1e6;
        let product = rate * 1e6 * round_trip * 1e-3 / 8.0 / PACKET;
        let queue = (logarithmic(queues.next()?, 0.2, 4.0) * product).round().max(LEAST_QUEUE) as u64;
        Some(CasePath { rate, round_trip, loss: loss.max(0.0), queue })
    };
    let (mut buffers, mut controls) = (strata(&mut stream("buffer"), count), strata(&mut stream("control"), count));
    let mut cases = Vec::new();
    for (paths, amount) in CASES {
        for number in 1..=amount {
            let buffer = BUFFERS[(buffers.pop().unwrap_or(0.0) * BUFFERS.len() as f64) as usize];
            let cubic = controls.pop().unwrap_or(0.0) < 0.6;
            cases.push(Case {
                name: format!("{}_{number:02}", ["", "one", "two", "three"][paths]),
                congestion: if cubic { "cubic" } else { "new_reno" },
                receive_buffer: Some(buffer).filter(|bytes| *bytes > 0),
                paths: (0..paths).filter_map(|_| path()).collect(),
            });
        }
    }
    cases
}

/// The stack under test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stack {
    /// The Anabranch engine.
    Ours,
    /// Linux; in the lab, the engine with the settings of Linux.
    Kernel,
}

/// Phases of a run, seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Span {
    /// From the first SYN, not measured.
    pub warm_up: f64,
    /// Measured.
    pub measured: f64,
}

impl Case {
    /// Whether it uses MPTCP; else plain TCP.
    pub fn multipath(&self) -> bool {
        self.paths.len() > 1
    }

    /// The network in one line.
    pub fn describe(&self) -> String {
        let path = |path: &CasePath| {
            let loss = if path.loss > 0.0 { format!(" {} %", tidy(path.loss * 100.0)) } else { String::new() };
            format!("{} Mbit/s {} ms q{}{loss}", tidy(path.rate), tidy(path.round_trip), path.queue)
        };
        self.paths.iter().map(path).collect::<Vec<_>>().join(" + ")
    }

    /// Description of the receive buffer.
    pub fn buffer(&self) -> String {
        self.receive_buffer.map_or("auto".to_owned(), |bytes| format!("{} KiB", bytes >> 10))
    }

    /// As a scenario file, with `receive_buffer` and further lines of `[connection]`.
    pub fn text(&self, span: Span, connection: &str) -> String {
        let mut text = format!(
            "name = \"{}\"\ntitle = \"{}\"\nduration = \"{} s\"\nwarm_up = \"{} s\"\nsample = \"{SAMPLE} s\"\n\n\
             [connection]\n{connection}",
            self.name,
            self.describe(),
            span.warm_up + span.measured,
            span.warm_up
        );
        for (at, path) in self.paths.iter().enumerate() {
            let _ = write!(
                text,
                "\n[[paths]]\nname = \"path{at}\"\n\n[[paths.links]]\nname = \"link\"\nrate = \"{} Mbit/s\"\n\
                 delay = \"{} ms\"\nqueue = \"{} packets\"\nloss = {}\nloss_direction = \"forward\"\n",
                tidy(path.rate),
                tidy(path.round_trip / 2.0),
                path.queue,
                tidy(path.loss)
            );
        }
        text
    }

    /// The scenario as `stack` runs it.
    pub fn scenario(&self, stack: Stack, span: Span) -> Result<Scenario, Diagnostic> {
        let connection = match stack {
            Stack::Ours => self.receive_buffer.map_or(String::new(), |size| format!("receive_buffer = \"{size} B\"\n")),
            Stack::Kernel => anabranch_lab::kernel_model::connection(self.receive_buffer, self.paths.len()),
        };
        let connection = if connection.is_empty() {
            "receive_buffer = { initial = \"128 KiB\", max = \"6 MiB\" }\n".to_owned()
        } else {
            connection
        };
        Document::embedded(&self.name, &self.text(span, &connection), &[]).scenario()
    }

    /// The contender of this stack.
    pub fn contender(&self, stack: Stack) -> Contender {
        let policies = match (stack, self.multipath()) {
            (Stack::Ours, true) => Combination::default(),
            (Stack::Ours, false) => Combination { congestion: Choice::new(self.congestion), ..Combination::default() },
            (Stack::Kernel, _) => anabranch_lab::kernel_model::policies(self.congestion),
        };
        let name = if stack == Stack::Ours { "ours" } else { "kernel" };
        Contender {
            name: name.to_owned(),
            label: name.to_owned(),
            multipath: self.multipath(),
            policies,
            ..Contender::plain()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_has_more_than_thirty_cases_and_reaches_all_corners_of_the_ranges() {
        let cases = all();
        assert!(cases.len() >= 30, "{}", cases.len());
        let paths: Vec<CasePath> = cases.iter().flat_map(|case| case.paths.clone()).collect();
        let within = |value: fn(&CasePath) -> f64, low: f64, high: f64| {
            let values: Vec<f64> = paths.iter().map(value).collect();
            let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
            assert!(least >= low && most <= high, "{least} to {most}");
            assert!(least <= low + 0.1 * (high - low) && most >= high - 0.1 * (high - low), "{least} to {most}");
        };
        within(|path| path.rate, 1.0, 100.0);
        within(|path| path.round_trip, 5.0, 200.0);
        within(|path| path.loss, 0.0, 0.03);
        for buffer in BUFFERS {
            let wanted = Some(buffer).filter(|bytes| *bytes > 0);
            assert!(cases.iter().any(|case| case.receive_buffer == wanted), "{buffer}");
        }
    }

    #[test]
    fn each_case_is_a_scenario_that_the_lab_understands_for_both_stacks() {
        for case in all() {
            for stack in [Stack::Ours, Stack::Kernel] {
                let scenario = case.scenario(stack, Span { warm_up: 1.0, measured: 2.0 }).unwrap();
                assert_eq!(scenario.paths.len(), case.paths.len());
                anabranch_settings::contender::check(&case.contender(stack).policies).unwrap();
            }
        }
    }

    #[test]
    fn names_differ() {
        let mut names: Vec<String> = all().into_iter().map(|case| case.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all().len());
    }
}
