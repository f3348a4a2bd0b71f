//! Metrics of programs' datagrams: for all programs, and by name if there are several.
//!
//! Datagrams of the warm-up are not counted, nor those sent too late to arrive before the end.

use super::super::window::Window;
use crate::metric::{Series, of_program};
use crate::record::Curve;
use crate::scenario::Scenario;
use crate::statistics::quantile;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::datagrams::{DatagramFlow, DatagramsResult, FlowScore, Pattern, Sent};

/// Datagrams of the last second are not counted, or of the longest deadline if that is longer.
const TIME_TO_ARRIVE: Duration = Duration::from_secs(1);
/// UDP and IPv4 headers of a program's datagram, bytes.
const HEADERS: u64 = 28;

/// One direction of a program, and the range of its datagrams that counts.
struct Counted<'a> {
    flow: &'a DatagramFlow,
    score: &'a FlowScore,
    begin: Instant,
    end: Instant,
}

impl<'a> Counted<'a> {
    fn has(&self, sent: &Sent) -> bool {
        (self.begin..self.end).contains(&sent.at)
    }

    fn sent(&self) -> impl Iterator<Item = &'a Sent> {
        self.score.sent.iter().filter(|sent| self.has(sent))
    }

    /// Send and arrival times of delivered datagrams in order of arrival.
    fn came(&self) -> impl Iterator<Item = (Instant, Instant)> {
        let sent = self.score.order.iter().filter_map(|number| self.score.sent.get(*number as usize));
        sent.filter(|sent| self.has(sent)).filter_map(|sent| Some((sent.at, sent.arrived?)))
    }

    fn is_in_time(&self, sent: &Sent) -> bool {
        let delay = sent.arrived.map(|arrived| arrived.since(sent.at));
        delay.is_some_and(|delay| self.flow.deadline.is_none_or(|deadline| delay <= deadline))
    }

    /// Jitter (RFC 3550, section 6.4.1) after each delivered datagram, ms.
    fn jitter(&self) -> Vec<f64> {
        let (mut jitter, mut before) = (0.0, None);
        let mut all = Vec::new();
        for (sent, arrived) in self.came() {
            let transit = arrived.since(sent).as_secs_f64() * 1e3;
            if let Some(before) = before.replace(transit) {
                jitter += ((transit - before).abs() - jitter) / 16.0;
                all.push(jitter);
            }
        }
        all
    }

    /// Longest interval between arrivals, ms; none for programs with pauses.
    fn longest_gap(&self) -> Option<f64> {
        if matches!(self.flow.pattern, Pattern::Requests { .. }) {
            return None;
        }
        // If nothing arrives any more, the gap lasts to the end.
        let first = self.sent().next()?.at;
        let last = self.sent().last()?.at;
        let times = self.came().map(|(_, arrived)| arrived).chain([last]);
        let (longest, _) = times
            .fold((Duration::ZERO, first), |(longest, before), at| (longest.max(at.since(before)), before.max(at)));
        Some(longest.as_secs_f64() * 1e3)
    }

    /// Number of frames, and of those incomplete at their deadline.
    fn frames(&self) -> Option<(u64, u64)> {
        if !matches!(self.flow.pattern, Pattern::Frames { .. }) {
            return None;
        }
        let (mut all, mut incomplete, mut current) = (0, 0, None);
        for sent in self.sent() {
            let (frame, missing) = (sent.frame, !self.is_in_time(sent));
            match &mut current {
                Some((number, bad)) if *number == frame => *bad |= missing,
                _ => {
                    all += 1;
                    incomplete += u64::from(current.is_some_and(|(_, bad)| bad));
                    current = Some((frame, missing));
                }
            }
        }
        Some((all, incomplete + u64::from(current.is_some_and(|(_, bad)| bad))))
    }
}

/// The metrics by name.
pub fn metrics(window: &Window<'_>) -> Vec<(String, f64)> {
    let Some(result) = window.after.datagrams.first() else { return Vec::new() };
    let scenario = window.scenario;
    let flows = &scenario.datagrams;
    let deadline = flows.iter().filter_map(|flow| flow.deadline).max().unwrap_or_default();
    let (begin, late) = (Instant::ZERO + scenario.warm_up, TIME_TO_ARRIVE.max(deadline));
    let end = Instant::ZERO + (scenario.duration - late.min(scenario.duration));
    let counted = |score: &'_ FlowScore| Some(score.flow).and_then(|flow| flows.get(flow)).is_some();
    let all: Vec<Counted<'_>> = result
        .scores
        .iter()
        .filter(|score| counted(score))
        .map(|score| Counted { flow: &flows[score.flow], score, begin, end })
        .collect();
    let mut metrics: Vec<(String, f64)> = Vec::new();
    metrics.extend(of(&all.iter().collect::<Vec<_>>()).into_iter().map(|(name, value)| (name.to_owned(), value)));
    metrics.extend(cost(scenario, result, &all).map(|cost| ("datagram_cost".to_owned(), cost)));
    if flows.len() > 1 {
        for flow in flows {
            let own: Vec<&Counted<'_>> = all.iter().filter(|counted| counted.flow.name == flow.name).collect();
            metrics.extend(of(&own).into_iter().map(|(name, value)| (of_program(name, &flow.name), value)));
        }
    }
    metrics
}

/// Metrics of a set of programs.
fn of(counted: &[&Counted<'_>]) -> Vec<(&'static str, f64)> {
    let sent: f64 = counted.iter().map(|one| one.sent().count() as f64).sum();
    if sent == 0.0 {
        return Vec::new();
    }
    let count = |what: &dyn Fn(&Counted<'_>, &Sent) -> bool| -> f64 {
        counted.iter().map(|one| one.sent().filter(|sent| what(one, sent)).count() as f64).sum()
    };
    let came = count(&|_, sent| sent.arrived.is_some());
    let in_time = count(&|one, sent| one.is_in_time(sent));
    let reordered = count(&|_, sent| sent.reordered);
    let mut metrics = vec![
        ("datagrams", sent),
        ("datagrams_in_time", 100.0 * in_time / sent),
        ("datagrams_lost", 100.0 * (1.0 - came / sent)),
        ("datagrams_late", 100.0 * (came - in_time) / sent),
    ];
    let frames = counted.iter().filter_map(|one| one.frames());
    let (frames, incomplete) = frames.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    if frames > 0 {
        metrics.push(("frames_in_time", 100.0 * (1.0 - incomplete as f64 / frames as f64)));
    }
    if came > 0.0 {
        let delay = |(sent, arrived): (Instant, Instant)| arrived.since(sent).as_secs_f64() * 1e3;
        let delays: Vec<f64> = counted.iter().flat_map(|one| one.came()).map(delay).collect();
        let jitter: Vec<f64> = counted.iter().flat_map(|one| one.jitter()).collect();
        metrics.extend([
            ("datagrams_reordered", 100.0 * reordered / came),
            ("datagram_delay", delays.iter().sum::<f64>() / came),
            ("datagram_delay_p50", quantile(&delays, 0.5)),
            ("datagram_delay_p95", quantile(&delays, 0.95)),
            ("datagram_delay_p99", quantile(&delays, 0.99)),
        ]);
        if !jitter.is_empty() {
            metrics.push(("datagram_jitter", jitter.iter().sum::<f64>() / jitter.len() as f64));
        }
    }
    let gap = counted.iter().filter_map(|one| one.longest_gap()).reduce(f64::max);
    metrics.extend(gap.map(|gap| ("datagram_gap", gap)));
    metrics
}

/// Bytes sent over all paths after the warm-up per byte of programs' datagrams, both with UDP and IPv4 headers.
fn cost(scenario: &Scenario, result: &DatagramsResult, all: &[Counted<'_>]) -> Option<f64> {
    let skip = skip(scenario);
    let octets = result.octets.iter().flat_map(|path| path.iter().skip(skip));
    let octets: u64 = octets.map(|octets| octets.from_client + octets.from_server).sum();
    let begin = Instant::ZERO + scenario.sample * skip as u64;
    let plain = |one: &Counted<'_>| {
        let own = one.score.sent.iter().filter(|sent| sent.at >= begin);
        let answer = match one.flow.pattern {
            Pattern::Requests { answer, .. } => u64::from(answer) + HEADERS,
            Pattern::Even { .. } | Pattern::Frames { .. } => 0,
        };
        own.map(|sent| u64::from(sent.length) + HEADERS + answer).sum::<u64>()
    };
    let plain: u64 = all.iter().map(plain).sum();
    (plain > 0).then(|| octets as f64 / plain as f64)
}

/// Sampling intervals of the warm-up.
fn skip(scenario: &Scenario) -> usize {
    (scenario.warm_up.as_secs_f64() / scenario.sample.as_secs_f64()).round() as usize
}

/// Series of all programs together, and the send rate of each path.
pub fn curves(window: &Window<'_>) -> Vec<Curve> {
    let (Some(result), scenario) = (window.after.datagrams.first(), window.scenario) else { return Vec::new() };
    let length = (scenario.duration.as_nanos() / scenario.sample.as_nanos().max(1)) as usize;
    let at = |time: Instant| ((time - Instant::ZERO).as_nanos() / scenario.sample.as_nanos().max(1)) as usize;
    let (mut bytes, mut delay, mut arrived) = (vec![0.0; length], vec![0.0; length], vec![0.0; length]);
    let (mut sent, mut lost) = (vec![0.0; length], vec![0.0; length]);
    for one in result.scores.iter().flat_map(|score| &score.sent) {
        if let Some(place) = sent.get_mut(at(one.at)) {
            *place += 1.0;
        }
        match one.arrived {
            None => lost.get_mut(at(one.at)).into_iter().for_each(|lost| *lost += 1.0),
            Some(time) if at(time) < length => {
                bytes[at(time)] += f64::from(one.length);
                delay[at(time)] += time.since(one.at).as_secs_f64() * 1e3;
                arrived[at(time)] += 1.0;
            }
            Some(_) => {}
        }
    }
    let interval = scenario.sample.as_secs_f64();
    let share = |part: &[f64], whole: &[f64], factor: f64| -> Vec<f64> {
        part.iter()
            .zip(whole)
            .map(|(part, whole)| if *whole > 0.0 { factor * part / whole } else { f64::NAN })
            .collect()
    };
    let mut curves = vec![
        Curve {
            series: Series::DatagramThroughput,
            path: None,
            values: bytes.iter().map(|bytes| bytes * 8e-6 / interval).collect(),
        },
        Curve { series: Series::DatagramDelay, path: None, values: share(&delay, &arrived, 1.0) },
        Curve { series: Series::DatagramLoss, path: None, values: share(&lost, &sent, 100.0) },
    ];
    for (place, octets) in window.paths.iter().zip(&result.octets) {
        let rate = |at: usize| {
            let octets = octets.get(at).copied().unwrap_or_default();
            (octets.from_client + octets.from_server) as f64 * 8e-6 / interval
        };
        let values = (0..length).map(rate).collect();
        curves.push(Curve { series: Series::DatagramPathThroughput, path: Some(*place), values });
    }
    curves
}
