//! Effects of competing connections: queue loss, fairness, throughput left to others, stalls and delays. All exclude
//! the warm-up.
//!
//! **Fair share.** Each path is a bottleneck; with shared links, all paths are one bottleneck. The fair share at a
//! bottleneck is the throughput of all connections over it divided by their number; a connection counts once, however
//! many of its subflows cross the bottleneck. The share of the others is their throughput over the bottlenecks they
//! use, divided by the sum of their fair shares there. The transfer's connections are counted on the same bottlenecks.

use super::network::present;
use super::window::{Window, interface};
use super::{beside, generators};
use crate::scenario::model::{Beside, Transfer};
use crate::statistics::quantile;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::histogram::Histogram;
use anabranch_sim::link::{DropCause, LinkCounters};
use anabranch_sim::{FlowResult, Side};

/// The metrics by name.
pub fn metrics(window: &Window<'_>) -> Vec<(&'static str, f64)> {
    let mut metrics = queues(window);
    if matches!(window.scenario.transfer, Transfer::Endless | Transfer::Finite(_)) {
        metrics.extend(arrivals(window));
        metrics.extend(among(window));
        // A transfer that is not greedy has no fair share.
        metrics.extend(others(window));
    }
    if window.scenario.transfer == Transfer::None {
        metrics.extend(throughput_of_others(window));
    }
    metrics.extend(messages(window));
    metrics
}

/// Shares of packets dropped and marked by queues in the direction of data, of those sent into the paths.
fn queues(window: &Window<'_>) -> Vec<(&'static str, f64)> {
    let Some(flow) = window.own().next() else { return Vec::new() };
    let (forward, scenario) = (flow.sender == Side::Client, window.scenario);
    let direction = if forward { "forward" } else { "backward" };
    let present = present(scenario, window.paths);
    let used = || present.iter().filter_map(|place| scenario.paths.get(*place));
    let name = |part: &str, at: usize| format!("{part}/{at}/{direction}");
    let shared = (0..scenario.shared.len()).map(|at| name("shared", at));
    let links: Vec<String> =
        used().flat_map(|path| (0..path.links.len()).map(|at| name(&path.name, at))).chain(shared).collect();
    let first: Vec<String> =
        if forward { used().map(|path| name(&path.name, 0)).collect() } else { vec!["server/out".to_owned()] };
    let sum = |links: &[String], what: fn(&LinkCounters) -> u64| -> f64 {
        links.iter().map(|link| window.counted(link, what)).sum::<u64>() as f64
    };
    let sent = sum(&first, |link| link.offered_packets) + from_routers(window, forward);
    if sent == 0.0 {
        return Vec::new();
    }
    let dropped = sum(&links, |link| link.drops.get(DropCause::Overflow) + link.drops.get(DropCause::CoDel));
    let marked = sum(&links, |link| link.marked);
    let mut metrics = vec![("loss_caused", 100.0 * dropped / sent)];
    metrics.extend((marked > 0.0).then_some(("marked", 100.0 * marked / sent)));
    metrics
}

/// Packets that generators send into the paths in this direction. Their links to the routers are not the paths'; sinks
/// send acknowledgements against the direction of the route.
fn from_routers(window: &Window<'_>, forward: bool) -> f64 {
    let scenario = window.scenario;
    let mut sent = 0;
    for generator in &scenario.generators {
        for route in generator.routes.iter().filter(|route| window.paths.contains(&route.path)) {
            let end = if (route.from.1 < route.to.1) == forward { "source" } else { "sink" };
            for name in generators::names(scenario, generator, route) {
                sent += window.counted(&format!("{name}/{end}/out"), |link| link.delivered_packets);
            }
        }
    }
    sent as f64
}

/// Longest stall, and the 95th percentile of delay, over all connections of the transfer.
fn arrivals(window: &Window<'_>) -> Vec<(&'static str, f64)> {
    let (mut longest, mut delays): (f64, _) = (0.0, Histogram::default());
    for flow in window.own() {
        let Some(measured) = flow.measurements.as_deref() else { continue };
        let rows = measured.series.time.iter().zip(&measured.series.longest_silence);
        // Silence after the end of a connection is no stall.
        let end = flow.receiver().end_of_stream.map_or(f64::INFINITY, |end| (end - Instant::ZERO).as_secs_f64());
        let counted = rows.filter(|(time, _)| window.row_counts(**time) && **time <= end);
        longest = counted.fold(longest, |longest, (_, silence)| longest.max(*silence));
        // What no row has: after the last one, and of a connection that has ended until then.
        let rest = [measured.rest.silence, if end.is_finite() { Duration::ZERO } else { measured.rest.waiting }];
        let whole = if window.scenario.warm_up == Duration::ZERO { measured.sums.silence } else { Duration::ZERO };
        longest = rest.iter().chain([&whole]).fold(longest, |longest, silence| longest.max(silence.as_secs_f64()));
        let earlier = window.before.and_then(|before| before.flow(&flow.name)?.measurements.as_deref());
        delays.add_since(&measured.delay, earlier.map(|earlier| &earlier.delay));
    }
    let mut metrics = vec![("longest_stall", longest)];
    if delays.count() > 0 {
        metrics.push(("delay_p95", delays.quantile(0.95).as_secs_f64() * 1e3));
    }
    metrics
}

/// Fairness among the connections of the transfer.
fn among(window: &Window<'_>) -> Vec<(&'static str, f64)> {
    let goodputs: Vec<f64> = window.own().map(|flow| window.read(flow)).collect();
    let (count, sum) = (goodputs.len() as f64, goodputs.iter().sum::<f64>());
    if goodputs.len() < 2 || sum == 0.0 {
        return Vec::new();
    }
    let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
    vec![("jain", jain(&goodputs)), ("least_share", least * count / sum)]
}

/// Jain's fairness index: 1 if all are equal, 1/n if one has all.
fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * values.iter().map(|value| value * value).sum::<f64>())
}

/// Greedy connections of others, on paths that exist in this run.
fn competitors<'a>(window: &Window<'a>) -> impl Iterator<Item = &'a Beside> {
    let present = present(window.scenario, window.paths);
    window.scenario.beside.iter().filter(move |beside| beside.bursts.is_none() && present.contains(&beside.path))
}

fn flows<'a>(window: &Window<'a>, beside: &'a Beside) -> impl Iterator<Item = &'a FlowResult> {
    let after = window.after;
    (0..beside.count).filter_map(move |number| after.flow(&beside::name(beside, number)))
}

/// Ratios to the fair share, of the others and of the transfer.
fn others(window: &Window<'_>) -> Vec<(&'static str, f64)> {
    let (mut theirs, mut fair_to_them, mut own, mut fair_to_own) = (0.0, 0.0, 0.0, 0.0);
    for bottleneck in bottlenecks(window) {
        let here = || competitors(window).filter(|beside| bottleneck.contains(&beside.path));
        let count = here().map(|beside| beside.count).sum::<u32>() as f64;
        if count == 0.0 {
            continue;
        }
        let of_others: f64 = here().flat_map(|beside| flows(window, beside)).map(|flow| window.read(flow)).sum();
        let of_own: f64 = window.own().map(|flow| window.read(flow) * part(window, flow, &bottleneck)).sum();
        let connections = f64::from(window.scenario.connections);
        let fair = (of_others + of_own) / (count + connections);
        theirs += of_others;
        fair_to_them += count * fair;
        own += of_own;
        fair_to_own += connections * fair;
    }
    if fair_to_them == 0.0 || window.seconds() == 0.0 {
        return Vec::new();
    }
    vec![
        ("others_throughput", theirs * 8e-6 / window.seconds()),
        ("others_share", theirs / fair_to_them),
        ("own_share", own / fair_to_own),
    ]
}

/// Throughput of the others if there is no transfer, Mbit/s.
fn throughput_of_others(window: &Window<'_>) -> Option<(&'static str, f64)> {
    let read: f64 = competitors(window).flat_map(|beside| flows(window, beside)).map(|flow| window.read(flow)).sum();
    (read > 0.0).then(|| ("others_throughput", read * 8e-6 / window.seconds()))
}

/// Sets of path indices, one per bottleneck.
fn bottlenecks(window: &Window<'_>) -> Vec<Vec<usize>> {
    match window.scenario.shared.is_empty() {
        true => window.paths.iter().map(|path| vec![*path]).collect(),
        false => vec![present(window.scenario, window.paths)],
    }
}

/// Share of a connection's data on these paths, by acknowledged bytes.
fn part(window: &Window<'_>, flow: &FlowResult, paths: &[usize]) -> f64 {
    let Some(measured) = flow.measurements.as_deref() else { return 0.0 };
    let (mut there, mut all) = (0.0, 0.0);
    for subflow in &measured.subflows {
        let rows = subflow.time.iter().zip(&subflow.acked_bytes).filter(|(time, _)| window.row_counts(**time));
        let acked: f64 = rows.map(|(_, bytes)| *bytes as f64).sum();
        let path = window.paths.get(interface(flow.sender, subflow));
        all += acked;
        there += if path.is_some_and(|path| paths.contains(path)) { acked } else { 0.0 };
    }
    if all > 0.0 { there / all } else { 0.0 }
}

/// Delays of the others' messages in ms, from their creation until read. Counted like the transfer's own messages.
fn messages(window: &Window<'_>) -> Vec<(&'static str, f64)> {
    let senders = window.scenario.beside.iter().filter(|beside| beside.bursts.is_some());
    let delays: Vec<f64> =
        senders.flat_map(|beside| flows(window, beside)).flat_map(|flow| window.delays_of_messages(flow)).collect();
    if delays.is_empty() {
        return Vec::new();
    }
    vec![("others_message_delay", quantile(&delays, 0.5)), ("others_message_delay_p99", quantile(&delays, 0.99))]
}

#[cfg(test)]
mod tests {
    use crate::record::Record;
    use crate::scenario::Document;
    use crate::simulation::{self, Extras};
    use anabranch_policy::combination::Choice;
    use anabranch_settings::contender::Contender;

    /// A shared bottleneck of 20 Mbit/s, 40 ms and a queue of one bandwidth-delay product, behind faster paths.
    const SHARED: &str = r#"
        name = "s"
        duration = "40 s"
        warm_up = "10 s"
        sample = "1 s"
        connection.receive_buffer = "16 MB"
        connection.send_buffer = "16 MB"
        [[paths]]
        name = "A"
        links = [{ rate = "1 Gbit/s", delay = "1 ms" }]
        [[paths]]
        name = "B"
        links = [{ rate = "1 Gbit/s", delay = "1 ms" }]
        [[shared]]
        rate = "20 Mbit/s"
        delay = "19 ms"
        queue = "68 packets"
    "#;

    fn run(text: &str, control: &str, paths: &[usize], seed: u64) -> Record {
        let scenario = Document::embedded("s.toml", text, &[]).scenario().expect("it is a scenario");
        let mut contender = Contender::plain();
        contender.policies.congestion = Choice::new(control);
        contender.multipath = paths.len() > 1;
        simulation::run(&scenario, &contender, paths, seed, &Extras::default()).expect("it runs")
    }

    #[test]
    fn no_more_is_lost_than_is_sent_where_cross_traffic_fills_a_link() {
        // 20 Mbit/s into a link of 8 Mbit/s: 60 % is lost, whatever a TCP sends that hardly gets through.
        let run = |route: &str, direction: &str| {
            let text = format!(
                r#"
                name = "s"
                duration = "20 s"
                connection.receive_buffer = "1 MB"
                transfer = {{ kind = "endless", direction = "{direction}" }}
                [[paths]]
                routers = ["R1", "R2"]
                links = [{{ rate = "50 Mbit/s" }}, {{ rate = "8 Mbit/s" }}, {{ rate = "50 Mbit/s" }}]
                [[generators]]
                kind = "vbr"
                rate = "20 Mbit/s"
                sizes = "1000 B"
                routes = [{route}]
                access = {{ rate = "100 Mbit/s" }}
                "#
            );
            let record = run(&text, "cubic", &[0], 1);
            record.metrics.iter().find(|(name, _)| name == "loss_caused").expect("it is there").1
        };
        for (route, direction) in [(r#"["R1", "R2"]"#, "upload"), (r#"["R2", "R1"]"#, "download")] {
            let lost = run(route, direction);
            assert!((58.0..=61.0).contains(&lost), "{direction}: {lost} %");
        }
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let values: Vec<f64> = values.collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn two_cubics_share_a_bottleneck() {
        let text = format!("{SHARED}\n[[beside]]\ncongestion = \"cubic\"\npath = \"A\"\n");
        let records: Vec<Record> = (1..=4).map(|seed| run(&text, "cubic", &[0], seed)).collect();
        let of = |name: &str| mean(records.iter().map(|record| record.metric(name).expect("it is measured")));
        let (theirs, own) = (of("others_share"), of("own_share"));
        assert!((theirs + own - 2.0).abs() < 1e-9, "{theirs} {own}");
        assert!((0.75..1.25).contains(&theirs), "{theirs}");
        // Together they fill the link: 20 Mbit/s less headers of 52 in 1,500 bytes.
        let sum = of("throughput") + of("others_throughput");
        assert!((sum / 19.3 - 1.0).abs() < 0.02, "{sum}");
        assert!(records[0].metric("jain").is_none() && of("loss_caused") > 0.0);
    }

    #[test]
    fn two_subflows_of_lia_over_one_bottleneck_take_about_what_one_connection_takes_and_uncoupled_ones_more() {
        let text = format!("{SHARED}\n[[beside]]\ncongestion = \"new_reno\"\npath = \"B\"\n");
        let own = |control: &str| {
            mean((1..=4).map(|seed| run(&text, control, &[0, 1], seed).metric("own_share").expect("it is measured")))
        };
        let (lia, reno) = (own("lia"), own("new_reno"));
        assert!((0.7..1.2).contains(&lia), "{lia}");
        assert!(reno > lia + 0.15, "{reno}, LIA {lia}");
    }

    #[test]
    fn who_comes_by_another_path_competes_at_the_shared_link() {
        let text = format!("{SHARED}\n[[beside]]\ncongestion = \"new_reno\"\ncount = 3\npath = \"A\"\n");
        let record = run(&text, "new_reno", &[1], 1);
        // One of four connections, on a path that the others do not use.
        let throughput = record.metric("throughput").expect("it is measured");
        assert!((2.5..8.0).contains(&throughput), "{throughput}");
        assert!(record.metric("others_share").is_some_and(|share| (0.7..1.3).contains(&share)));
    }

    #[test]
    fn a_crowd_is_measured_as_one_and_by_how_evenly_it_shares() {
        let text = format!("{SHARED}\n[transfer]\nkind = \"endless\"\nconnections = 10\n");
        let record = run(&text, "new_reno", &[0], 1);
        let of = |name: &str| record.metric(name).expect("it is measured");
        assert!((of("throughput") / 19.3 - 1.0).abs() < 0.05, "{}", of("throughput"));
        assert!((0.8..1.0).contains(&of("jain")) && (0.1..1.0).contains(&of("least_share")));
        assert!((0.1..5.0).contains(&of("loss_caused")), "{}", of("loss_caused"));
        // At most the RTT, the queue and one or two retransmissions.
        assert!((40.0..400.0).contains(&of("delay_p95")), "{}", of("delay_p95"));
        assert!(record.metric("others_share").is_none());
    }

    #[test]
    fn on_two_bottlenecks_the_share_of_others_is_counted_where_they_are() {
        let paths =
            "[[paths]]\nname = \"A\"\nlinks = [{ rate = \"10 Mbit/s\", delay = \"20 ms\", queue = \"40 packets\" }]\n";
        let rest = SHARED.split("[[paths]]").next().expect("what stands before the paths");
        let text = format!(
            "{rest}{paths}{}[[beside]]\ncongestion = \"new_reno\"\npath = \"A\"\n",
            paths.replace("\"A\"", "\"B\"")
        );
        let record = run(&text, "new_reno", &[0, 1], 1);
        let of = |name: &str| record.metric(name).expect("it is measured");
        // B is used by the transfer only, about 9.6 Mbit/s; A is shared.
        let on_a = of("throughput") - 9.6;
        assert!((of("own_share") - 2.0 * on_a / (on_a + of("others_throughput"))).abs() < 0.1, "{record:?}");
        assert!((0.6..1.4).contains(&of("others_share")), "{}", of("others_share"));
    }

    #[test]
    fn a_pause_is_a_stall_of_the_transfer_and_messages_of_others_wait() {
        let text = SHARED.replace("delay = \"19 ms\"", "delay = \"19 ms\"\npaused = [\"20..23 s\"]")
            + "[[beside]]\nname = \"calls\"\ncongestion = \"cubic\"\npath = \"A\"\nsize = \"200 B\"\ninterval = \"20 ms\"\n";
        let record = run(&text, "cubic", &[0], 1);
        let of = |name: &str| record.metric(name).expect("it is measured");
        // Packets in flight arrive within 19 ms of the pause's start.
        assert!((2.95..3.1).contains(&of("longest_stall")), "{}", of("longest_stall"));
        assert!((20.0..80.0).contains(&of("others_message_delay")), "{}", of("others_message_delay"));
        assert!(of("others_message_delay_p99") > 1_000.0);
        assert!(record.metric("others_share").is_none());
    }
}
