//! Human-readable reports.

use anabranch_perf::{About, Interval, PathInterval, PathTotal, Plan, Report, Side, Stopper, StreamReport, Transfer};
use std::fmt::Write;

/// Columns of intervals.
pub const HEAD: &str =
    "      seconds  way   path                                Mbit/s  share   RTT ms  cwnd kB  resent kB  state\n";

fn way(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

/// The sender's counters of a path that we receive on: the same ports, swapped.
fn sender_of<'a>(path: &PathInterval, senders: Option<&'a Interval>) -> Option<&'a PathInterval> {
    let is_it = |theirs: &&PathInterval| {
        theirs.stream == path.stream
            && theirs.local.port() == path.remote.port()
            && theirs.remote.port() == path.local.port()
    };
    senders?.paths.iter().find(is_it)
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// An interval: one line for the total, and one per path.
pub fn interval(up: bool, interval: &Interval, senders: Option<&Interval>) -> String {
    let mut text = String::new();
    let mark = if interval.omitted { "  omitted" } else { "" };
    // Formatting to a String cannot fail.
    let _ = writeln!(
        text,
        "{:6.2}-{:6.2}  {:<4}  {:<32} {:>9.2}{mark}",
        interval.start,
        interval.end,
        way(up),
        "all",
        interval.bits_per_second / 1e6
    );
    for path in &interval.paths {
        let sender = sender_of(path, senders).unwrap_or(path);
        let kilobytes = |bytes: Option<u64>| optional(bytes.map(|bytes| bytes as f64 / 1e3));
        let _ = writeln!(
            text,
            "                     {:<32} {:>9.2}  {:>3.0} %  {:>7}  {:>7}  {:>9}  {}",
            name(path.stream, path.subflow, &path.name, path.remote),
            path.bits_per_second / 1e6,
            path.share * 100.0,
            optional(sender.rtt_ms),
            kilobytes(sender.cwnd),
            kilobytes(sender.retransmitted),
            path.state
        );
    }
    text
}

/// Stream and subflow, interface, and remote address.
fn name(stream: u32, subflow: u32, name: &str, remote: std::net::SocketAddr) -> String {
    format!("{stream}.{subflow} {name} to {}", remote.ip())
}

/// One end of a direction.
fn side(text: &mut String, word: &str, side: &Side) {
    let _ = writeln!(
        text,
        "  {word:<9} {:>9.2} Mbit/s  {:.3} MB in {:.2} s",
        side.bits_per_second / 1e6,
        side.bytes as f64 / 1e6,
        side.seconds
    );
    for path in &side.paths {
        let _ = writeln!(text, "    {}", total(path));
    }
}

fn total(path: &PathTotal) -> String {
    let mut text = format!(
        "{:<32} {:>10.3} MB  {:>3.0} %",
        name(path.stream, path.subflow, &path.name, path.remote),
        path.bytes as f64 / 1e6,
        path.share * 100.0
    );
    if let Some(bytes) = path.retransmitted {
        let _ = write!(text, "  resent {:.1} kB", bytes as f64 / 1e3);
    }
    if let Some(rtt) = path.rtt_ms {
        let _ = write!(text, "  RTT {rtt:.1} ms");
    }
    if let Some(rtt) = path.min_rtt_ms {
        let _ = write!(text, " (least {rtt:.1})");
    }
    if let Some(cwnd) = path.max_cwnd {
        let _ = write!(text, "  largest cwnd {:.0} kB", cwnd as f64 / 1e3);
    }
    text
}

fn transfer(text: &mut String, up: bool, transfer: &Transfer) {
    let _ = writeln!(text, "{}", if up { "up, client to server" } else { "down, server to client" });
    transfer.sent.iter().for_each(|sent| side(text, "sent", sent));
    transfer.received.iter().for_each(|received| side(text, "received", received));
}

/// Description of the measuring hosts.
pub fn about(about: &About) -> String {
    let policies = if about.policies.is_empty() { String::new() } else { format!(" with {}", about.policies) };
    format!("{}{policies} on {}, {}", about.stack, about.host, about.kernel)
}

fn stream(stream: &StreamReport) -> String {
    let cause = stream.fallback.as_ref().map_or_else(String::new, |cause| format!(", because {cause}"));
    format!("stream {}: {}{cause}", stream.stream, stream.protocol)
}

/// That a test ended before its time.
pub fn interrupted(stopper: Stopper) -> String {
    let end = match stopper {
        Stopper::Client => "client",
        Stopper::Server => "server",
    };
    format!("interrupted at the {end}; the results until then")
}

pub fn report(report: &Report) -> String {
    let mut text = report.interrupted.map_or_else(String::new, |stopper| format!("\n{}\n", interrupted(stopper)));
    let _ = writeln!(text, "\nclient: {}", about(&report.client));
    if let Some(server) = &report.server {
        let _ = writeln!(text, "server: {}", about(server));
    }
    for one in &report.streams {
        let _ = writeln!(text, "{}", stream(one));
    }
    report.up.iter().for_each(|up| transfer(&mut text, true, up));
    report.down.iter().for_each(|down| transfer(&mut text, false, down));
    text
}

/// Results at the server's end.
pub fn sides(up: Option<&Side>, down: Option<&Side>) -> String {
    let mut text = String::new();
    up.into_iter().for_each(|up| side(&mut text, "received", up));
    down.into_iter().for_each(|down| side(&mut text, "sent", down));
    text
}

/// Description of the plan.
pub fn plan(plan: &Plan) -> String {
    use anabranch_perf::{Direction, Length};
    let direction = match plan.direction {
        Direction::Up => "up",
        Direction::Down => "down",
        Direction::Both => "both ways",
    };
    let length = match plan.length {
        Length::Seconds(seconds) => format!("{seconds} s"),
        Length::Bytes(bytes) => format!("{bytes} bytes"),
    };
    let noun = if plan.streams == 1 { "stream" } else { "streams" };
    format!("{direction}, {length}, {} {noun}", plan.streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(local: &str, remote: &str, rtt_ms: Option<f64>) -> PathInterval {
        PathInterval {
            stream: 0,
            subflow: 1,
            name: "wlan0".to_owned(),
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            bytes: 1_250_000,
            bits_per_second: 10e6,
            share: 1.0,
            rtt_ms,
            cwnd: rtt_ms.map(|_| 14_600),
            retransmitted: rtt_ms.map(|_| 2_920),
            state: "established".to_owned(),
        }
    }

    fn second(path: PathInterval) -> Interval {
        Interval { start: 0.0, end: 1.0, omitted: false, bytes: 1_250_000, bits_per_second: 10e6, paths: vec![path] }
    }

    #[test]
    fn columns_stand_under_their_heads() {
        let text = interval(true, &second(path("10.0.0.2:4000", "10.0.0.1:5201", Some(12.34))), None);
        let lines: Vec<&str> = text.lines().collect();
        for (word, head) in [("10.00", "Mbit/s"), ("100 %", "share"), ("12.3", "RTT ms"), ("14.6", "cwnd kB")] {
            let end = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
            assert_eq!(end(lines[1], word), end(HEAD, head), "{word}\n{HEAD}{text}");
        }
        assert!(lines[0].starts_with("  0.00-  1.00  up    all"));
        assert!(lines[1].contains("0.1 wlan0 to 10.0.0.1"));
    }

    #[test]
    fn a_receiver_borrows_what_only_the_sender_knows() {
        let ours = second(path("10.0.0.2:4000", "10.0.0.1:5201", None));
        let theirs = second(path("10.0.0.1:5201", "192.0.2.7:4000", Some(12.34)));
        assert!(interval(false, &ours, Some(&theirs)).contains("12.3"));
        let another = second(path("10.0.0.1:5201", "192.0.2.7:4001", Some(12.34)));
        assert!(!interval(false, &ours, Some(&another)).contains("12.3"));
    }
}
