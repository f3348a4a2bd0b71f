//! Creates the record of a run: series on the sampling grid, and metrics.

use super::window::{Window, interface};
use super::{capacity, competition, datagrams, settings, video};
use crate::metric::Series;
use crate::record::{Curve, Record, hexadecimal};
use crate::scenario::Scenario;
use crate::scenario::model::{Transfer, WindowKind, WindowMetric};
use crate::statistics::quantile;
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::Duration;
use anabranch_settings::connection::segment_size;
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::application::Checked;
use anabranch_sim::link::DropCause;
use anabranch_sim::recorder::{ConnectionSeries, Measurements, Sums};
use anabranch_sim::{FlowResult, RunResult, Side};

/// The record of a run.
pub fn record(
    scenario: &Scenario,
    contender: &Contender,
    paths: &[usize],
    window: &Window<'_>,
    keep_curves: bool,
) -> Result<Record, Diagnostic> {
    let made = if scenario.transfer == Transfer::None {
        Record { trace_hash: window.after.trace_hash, seed: window.after.seed, ..Record::default() }
    } else {
        of_transfer(scenario, contender, paths, window)?
    };
    let Record { mut curves, mut metrics, .. } = made;
    metrics.extend(competition::metrics(window).into_iter().map(|(name, value)| (name.to_owned(), value)));
    metrics.extend(datagrams::metrics(window));
    metrics.extend(drops(scenario, window.after));
    curves.extend(datagrams::curves(window));
    metrics.extend(made.video.iter().flat_map(video::metrics));
    for own in &scenario.results.metrics {
        let path = own.path.as_ref().and_then(|name| scenario.paths.iter().position(|path| path.name == *name));
        let curve = curves.iter().find(|curve| curve.series == own.series && curve.path == path);
        let value = curve.and_then(|curve| in_window(curve, own, scenario.sample));
        metrics.extend(value.map(|value| (own.name.clone(), value)));
    }
    if !keep_curves {
        curves.clear();
    }
    Ok(Record { metrics, curves, background: capacity::background(scenario, paths, window.after), ..made })
}

/// Metrics of the transfer's connections.
fn of_transfer(
    scenario: &Scenario,
    contender: &Contender,
    paths: &[usize],
    window: &Window<'_>,
) -> Result<Record, Diagnostic> {
    let results = window.after;
    let fail = |what: String| Diagnostic::plain(format!("{}, seed {}: {what}", contender.name, results.seed));
    let flow = results.flow("transfer").ok_or_else(|| fail("the transfer is missing".to_owned()))?;
    if let Some(error) = flow.failed {
        return Err(fail(format!("the connection could not be opened: {error}")));
    }
    if let Some(Checked::Wrong { from }) =
        window.own().map(|flow| flow.receiver().checked).find(|checked| matches!(checked, Checked::Wrong { .. }))
    {
        return Err(fail(format!("the bytes delivered differ from those sent, at {from} or after")));
    }
    let measured = flow.measurements.as_deref().ok_or_else(|| fail("nothing was measured".to_owned()))?;
    let unit = segment_size(contender.multipath, &settings::connection(scenario, contender).tcp) as f64;
    let mut curves = connection_curves(scenario, &measured.series);
    curves.extend(path_curves(scenario, paths, flow, measured, unit));
    let metrics = totals(scenario, window, flow, measured);
    let video = video::outcome(scenario, flow).map_err(fail)?;
    let received_digest = match flow.receiver().checked {
        Checked::Sha256(digest) if flow.receiver().end_of_stream.is_some() => Some(hexadecimal(&digest)),
        _ => None,
    };
    let (seed, trace_hash) = (results.seed, results.trace_hash);
    Ok(Record { seed, trace_hash, metrics, curves, received_digest, video, ..Record::default() })
}

/// Computes a metric of the scenario from the values with intervals in its window.
fn in_window(curve: &Curve, metric: &WindowMetric, sample: Duration) -> Option<f64> {
    let ((from, to), sample) = (metric.window, sample.as_secs_f64());
    let window = from.as_secs_f64()..to.map_or(f64::INFINITY, Duration::as_secs_f64);
    let middle = |at: usize| (at as f64 + 0.5) * sample;
    let values = curve.values.iter().enumerate().map(|(at, value)| (middle(at), *value));
    let values: Vec<(f64, f64)> = values.filter(|(time, value)| window.contains(time) && value.is_finite()).collect();
    match &metric.kind {
        WindowKind::Mean if values.is_empty() => None,
        WindowKind::Mean => Some(values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64),
        WindowKind::FallsBelow(level) => turn(&values, |value| value < *level).map(|time| time - sample / 2.0),
        WindowKind::RisesAbove(level) => turn(&values, |value| value > *level).map(|time| time - sample / 2.0),
        WindowKind::Lasts => Some(values.last().map_or(0.0, |(time, _)| time + sample / 2.0 - window.start)),
        // Needs the runs of two schemes.
        WindowKind::ShareAbove(_) => None,
    }
}

/// The time that best separates values for which `after` is false from later ones for which it is true, with the fewest
/// exceptions; none if it is always true or always false.
fn turn(values: &[(f64, f64)], after: impl Fn(f64) -> bool) -> Option<f64> {
    let mut exceptions = values.iter().filter(|(_, value)| !after(*value)).count();
    let mut best = (exceptions, 0);
    for (at, (_, value)) in values.iter().enumerate() {
        exceptions = if after(*value) { exceptions + 1 } else { exceptions - 1 };
        if exceptions < best.0 {
            best = (exceptions, at + 1);
        }
    }
    if best.1 == 0 { None } else { values.get(best.1).map(|(time, _)| *time) }
}

/// Values with a count above zero; the others are NaN.
fn where_counted(values: &[f64], counts: &[u64], factor: f64) -> Vec<f64> {
    values.iter().zip(counts).map(|(value, count)| if *count > 0 { value * factor } else { f64::NAN }).collect()
}

fn connection_curves(scenario: &Scenario, series: &ConnectionSeries) -> Vec<Curve> {
    let interval = scenario.sample.as_secs_f64();
    let curve = |series: Series, values: Vec<f64>| Curve { series, path: None, values };
    let scaled = |values: &[u64], factor: f64| values.iter().map(|value| *value as f64 * factor).collect();
    let throughput: Vec<f64> = scaled(&series.delivered_bytes, 8e-6 / interval);
    let mut sum = 0.0;
    let cumulative = throughput.iter().enumerate().map(|(at, value)| {
        sum += value;
        sum / (at as f64 + 1.0)
    });
    let cumulative = cumulative.collect();
    let held = series.receive_readable.iter().zip(&series.receive_out_of_order);
    let held = held.map(|(readable, waiting)| (readable + waiting) as f64 / 1e3).collect();
    vec![
        curve(Series::Throughput, throughput),
        curve(Series::CumulativeThroughput, cumulative),
        curve(Series::SentDsn, scaled(&series.data_seq_sent, 1e-6)),
        curve(Series::ReceivedDsn, scaled(&series.data_seq_received, 1e-6)),
        curve(Series::DeliveredDsn, scaled(&series.data_seq_delivered, 1e-6)),
        curve(Series::OutOfOrderDsn, scaled(&series.out_of_order_max, 1e-3)),
        curve(Series::Delay, where_counted(&series.delay_mean, &series.delay_count, 1e3)),
        curve(Series::Jitter, where_counted(&series.jitter_mean, &series.delay_count, 1e3)),
        curve(Series::ReceiveBuffer, held),
    ]
}

/// One set of curves per path in use. A path may have several subflows in sequence. If two overlap, the later one
/// determines window and RTT, and their bytes are summed.
fn path_curves(
    scenario: &Scenario,
    paths: &[usize],
    flow: &FlowResult,
    measured: &Measurements,
    segment: f64,
) -> Vec<Curve> {
    let interval = scenario.sample.as_secs_f64();
    let length = measured.series.time.len();
    let mut curves = Vec::new();
    let mut shares = Vec::new();
    for (order, place) in paths.iter().enumerate() {
        let empty = || vec![f64::NAN; length];
        let (mut cwnd, mut rtt, mut in_flight, mut sent) = (empty(), empty(), empty(), empty());
        for subflow in measured.subflows.iter().filter(|subflow| interface(flow.sender, subflow) == order) {
            for (row, time) in subflow.time.iter().enumerate() {
                let at = (time / interval).round() as usize;
                let Some(at) = at.checked_sub(1).filter(|at| *at < length) else { continue };
                // Until the first measured round trip the subflow does not exist for the peer.
                if subflow.smoothed_rtt[row] > 0.0 {
                    cwnd[at] = subflow.cwnd[row] as f64 / segment;
                    rtt[at] = subflow.smoothed_rtt[row] * 1e3;
                    in_flight[at] = in_flight[at].max(0.0) + subflow.in_flight[row] as f64 / 1e3;
                }
                sent[at] = sent[at].max(0.0) + subflow.sent_bytes[row] as f64 * 8e-6 / interval;
            }
        }
        let path = Some(*place);
        shares.push(Curve { series: Series::PathShare, path, values: sent.clone() });
        curves.extend([
            Curve { series: Series::Cwnd, path, values: cwnd },
            Curve { series: Series::Rtt, path, values: rtt },
            Curve { series: Series::InFlight, path, values: in_flight },
            Curve { series: Series::PathThroughput, path, values: sent },
        ]);
    }
    let total = |at: usize| shares.iter().map(|curve| curve.values[at].max(0.0)).sum::<f64>();
    let totals: Vec<f64> = (0..length).map(total).collect();
    for share in &mut shares {
        let of_total =
            |(value, total): (&f64, &f64)| if *total > 0.0 { 100.0 * value.max(0.0) / total } else { f64::NAN };
        share.values = share.values.iter().zip(&totals).map(of_total).collect();
    }
    curves.extend(shares);
    curves
}

/// What was measured of a flow until the end of the warm-up. Where no state was kept then, as of transfers that end by
/// themselves, it is what the rows of the warm-up have.
fn sums_of_warm_up(window: &Window<'_>, flow: &FlowResult, measured: &Measurements) -> Sums {
    if let Some(before) = window.before {
        let of_flow = before.flow(&flow.name).and_then(|flow| flow.measurements.as_deref());
        return of_flow.map_or_else(Sums::default, |measured| measured.sums);
    }
    let series = &measured.series;
    let mut sums = Sums::default();
    for row in 0..window.rows_of_warm_up(&series.time).min(series.time.len()) {
        let (delays, arrived) = (series.delay_count[row], series.segments_arrived[row]);
        sums.delivered += series.delivered_bytes[row];
        sums.delays += delays;
        sums.delay += (series.delay_mean[row] * delays as f64 * 1e9).round() as u64;
        sums.arrived += arrived;
        sums.distance += (series.out_of_order_mean[row] * arrived as f64).round() as u64;
    }
    sums
}

/// Mean of what came to a sum since an earlier state of it; both are sum and number.
fn mean_since((sum, count): (u64, u64), (earlier, fewer): (u64, u64)) -> Option<f64> {
    let count = count.saturating_sub(fewer);
    (count > 0).then(|| sum.saturating_sub(earlier) as f64 / count as f64)
}

fn totals(scenario: &Scenario, window: &Window<'_>, flow: &FlowResult, measured: &Measurements) -> Vec<(String, f64)> {
    let series = &measured.series;
    let (sums, warm_up) = (measured.sums, sums_of_warm_up(window, flow, measured));
    let mean = |of: fn(&Sums) -> (u64, u64)| mean_since(of(&sums), of(&warm_up));
    let distances = series.out_of_order_max.iter().skip(window.rows_of_warm_up(&series.time));
    let distances = distances.copied().chain([measured.rest.out_of_order_max]);
    let mut metrics: Vec<(String, f64)> = Vec::new();
    let mut put = |name: &str, value: Option<f64>| metrics.extend(value.map(|value| (name.to_owned(), value)));
    put("throughput", window.own().map(|flow| throughput(window, flow)).sum());
    put("delay", mean(|sums| (sums.delay, sums.delays)).map(|mean| mean / 1e6));
    put("jitter", jitter(window, measured));
    put("peak_out_of_order_dsn", distances.max().map(|peak| peak as f64));
    put("mean_out_of_order_dsn", mean(|sums| (sums.distance, sums.arrived)));
    if matches!(scenario.transfer, Transfer::Finite(_)) {
        put("completion", flow.completion().map(Duration::as_secs_f64));
    }
    let of_warm_up = window.before.and_then(|before| before.flow(&flow.name)).map_or(0, |it| it.client.latencies.len());
    let latencies = flow.client.latencies.get(of_warm_up..).unwrap_or_default();
    let sum: f64 = latencies.iter().map(|latency| latency.as_secs_f64()).sum();
    put("response_time", (!latencies.is_empty()).then(|| sum * 1e3 / latencies.len() as f64));
    for (name, value) in message_delays(window, flow) {
        put(name, Some(value));
    }
    let sender = match flow.sender {
        Side::Client => &flow.client.stats,
        Side::Server => &flow.server.stats,
    };
    put("blocked_episodes", Some(sender.blocked_episodes as f64));
    put("timeouts", Some(sender.timeouts as f64));
    put("retransmitted", Some(sender.bytes_retransmitted as f64 / 1e3));
    put("reinjected", Some(sender.bytes_reinjected as f64 / 1e3));
    put("duplicated", Some(sender.bytes_duplicated as f64 / 1e3));
    put("duplicate_received", Some(flow.receiver().stats.duplicate_bytes_received as f64 / 1e3));
    let given_up = flow.receiver().stats.abandoned;
    if scenario.video.is_some() {
        for reason in [Reason::Expired, Reason::Blocked, Reason::Overtaken, Reason::Withdrawn] {
            put(&format!("given_up_{reason}"), Some(given_up.of(reason).bytes as f64 / 1e3));
        }
    }
    metrics
}

/// Packets dropped, of the transfer and of cross traffic; by corruption and by an MTU where a link has such.
fn drops(scenario: &Scenario, results: &RunResult) -> Vec<(String, f64)> {
    let drops = results.drops();
    let queue = drops.get(DropCause::Overflow) + drops.get(DropCause::CoDel);
    let mut counts =
        vec![("queue", queue), ("loss", drops.get(DropCause::Loss)), ("down", drops.get(DropCause::LinkDown))];
    let links = || scenario.paths.iter().flat_map(|path| &path.links).chain(&scenario.shared);
    counts.extend(links().any(|link| link.corruption.is_some()).then(|| ("corrupt", drops.get(DropCause::Corrupt))));
    counts.extend(links().any(|link| link.mtu.is_some()).then(|| ("too_big", drops.get(DropCause::TooBig))));
    counts.into_iter().map(|(cause, count)| (format!("dropped_{cause}"), count as f64)).collect()
}

/// Delays of the transfer's messages.
fn message_delays(window: &Window<'_>, flow: &FlowResult) -> Vec<(&'static str, f64)> {
    let delays = window.delays_of_messages(flow);
    if delays.is_empty() {
        return Vec::new();
    }
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    vec![("messages", delays.len() as f64), ("message_delay", mean), ("message_delay_p99", quantile(&delays, 0.99))]
}

/// Mean difference of successive delays in ms. A row that the end of the warm-up divides counts.
fn jitter(window: &Window<'_>, measured: &Measurements) -> Option<f64> {
    let (series, rest) = (&measured.series, &measured.rest);
    let rows = series.jitter_mean.iter().zip(&series.delay_count).skip(window.rows_of_warm_up(&series.time));
    let rows = rows.map(|(mean, count)| (mean * 1e3, *count));
    let of_rest = rest.jitter as f64 / 1e6 / rest.jitters.max(1) as f64;
    let (sum, count) = rows
        .chain([(of_rest, rest.jitters)])
        .fold((0.0, 0), |(sum, total), (mean, count)| (sum + mean * count as f64, total + count));
    (count > 0).then(|| sum / count as f64)
}

/// Mbit/s: of an endless transfer after the warm-up, of a finite one over its duration.
fn throughput(window: &Window<'_>, flow: &FlowResult) -> Option<f64> {
    if let Some(time) = flow.completion().filter(|time| *time > Duration::ZERO) {
        return Some(flow.goodput(time) / 1e6);
    }
    let measured = flow.measurements.as_deref()?;
    let bytes = measured.sums.delivered - sums_of_warm_up(window, flow, measured).delivered;
    let seconds = (window.scenario.duration - window.scenario.warm_up).as_secs_f64();
    (seconds > 0.0).then(|| bytes as f64 * 8e-6 / seconds)
}

#[cfg(test)]
mod tests {
    use super::turn;
    use crate::metric::Series;
    use crate::scenario::Document;
    use crate::simulation::{self, Extras};
    use anabranch_policy::combination::Choice;
    use anabranch_settings::contender::Contender;

    /// One path of 10 Mbit/s and 20 ms.
    const PATH: &str = r#"
        name = "s"
        connection.receive_buffer = "10 MB"
        [[paths]]
        links = [{ rate = "10 Mbit/s", delay = "20 ms" }]
    "#;

    /// Metrics of a run with these top-level lines, and these keys of the link.
    fn metrics(top: &str, link: &str) -> impl Fn(&str) -> f64 + use<> {
        let path = PATH.replace("delay", &format!("{link} delay"));
        let scenario = Document::embedded("s.toml", &format!("{top}\n{path}"), &[]).scenario().expect("a scenario");
        let mut contender = Contender::plain();
        contender.policies.congestion = Choice::new("new_reno");
        let record = simulation::run(&scenario, &contender, &[0], 1, &Extras::default()).expect("a run");
        move |name| record.metrics.iter().find(|(metric, _)| metric == name).map_or(f64::NAN, |(_, value)| *value)
    }

    /// Asserts that two values differ by a thousandth at most.
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= b.abs() / 1000.0, "{a} and {b}");
    }

    #[test]
    fn packets_lost_by_corruption_and_by_an_mtu_are_counted_where_a_link_has_such() {
        let transfer = "transfer = { kind = \"finite\", size = \"1 MB\" }\nduration = \"60 s\"";
        let corrupting = metrics(transfer, "corruption = \"2 %\",");
        // Of 700 segments and their acknowledgements, a fiftieth.
        assert!((5.0..60.0).contains(&corrupting("dropped_corrupt")), "{}", corrupting("dropped_corrupt"));
        assert!(corrupting("dropped_loss") == 0.0 && corrupting("dropped_too_big").is_nan());
        let narrow = metrics(transfer, "mtu = \"1000 B\",");
        assert!(
            narrow("dropped_too_big") >= 1.0 && narrow("dropped_corrupt").is_nan(),
            "{}",
            narrow("dropped_too_big")
        );
        let usual = metrics(transfer, "");
        assert!(usual("dropped_corrupt").is_nan() && usual("dropped_too_big").is_nan());
        assert_eq!(metrics(transfer, "corruption = \"0 %\",")("dropped_corrupt"), 0.0);
    }

    #[test]
    fn what_is_measured_of_a_transfer_that_ends_within_an_interval_does_not_depend_on_the_intervals() {
        let transfer = "transfer = { kind = \"finite\", size = \"1 MB\" }\n";
        let run = |sample: &str| metrics(&format!("{transfer}duration = \"60 s\"\nsample = \"{sample}\""), "");
        let (fine, middle, coarse) = (run("2 ms"), run("500 ms"), run("10 s"));
        // In slow start the queue, and so the delay, grows to the end, where it is most of the time of the transfer.
        assert!(fine("delay") > 150.0, "{} ms", fine("delay"));
        for other in [middle, coarse] {
            for metric in ["delay", "longest_stall", "peak_out_of_order_dsn", "mean_out_of_order_dsn", "completion"] {
                close(other(metric), fine(metric));
            }
            assert!((other("jitter") / fine("jitter") - 1.0).abs() < 0.02, "{} ms", other("jitter"));
        }
    }

    #[test]
    fn a_warm_up_and_a_run_may_end_within_an_interval() {
        let run =
            |sample: &str| metrics(&format!("duration = \"10.4 s\"\nwarm_up = \"700 ms\"\nsample = \"{sample}\""), "");
        let (fine, coarse) = (run("100 ms"), run("2 s"));
        for metric in ["throughput", "delay", "mean_out_of_order_dsn"] {
            close(coarse(metric), fine(metric));
        }
    }

    #[test]
    fn the_warm_up_of_a_transfer_that_ends_is_excluded() {
        let top = "transfer = { kind = \"finite\", size = \"1 MB\" }\nduration = \"60 s\"\nsample = \"100 ms\"";
        let (all, later) = (metrics(top, ""), metrics(&format!("{top}\nwarm_up = \"500 ms\""), ""));
        // The queue, and the delay, grow to the end.
        assert!(later("delay") > 1.3 * all("delay"), "{} and {} ms", later("delay"), all("delay"));
    }

    #[test]
    fn a_stall_at_the_end_of_a_run_counts() {
        let stall = metrics("duration = \"14.9 s\"\nsample = \"5 s\"", "down = [\"10 s..\"],")("longest_stall");
        assert!((4.85..4.95).contains(&stall), "{stall} s");
    }

    #[test]
    fn a_transfer_that_never_opens_is_one_stall_from_its_start_to_the_end_of_the_run() {
        for more in ["", "warm_up = \"3 s\"", "transfer = { kind = \"finite\", size = \"1 MB\" }"] {
            let stall = metrics(&format!("duration = \"10 s\"\n{more}"), "down = [\"0 s..\"],")("longest_stall");
            assert_eq!(stall, 10.0, "{more}");
        }
    }

    #[test]
    fn a_path_without_an_established_subflow_has_no_window_and_no_round_trip() {
        let text = r#"
            name = "s"
            duration = "40 s"
            connection = { receive_buffer = "1 MB", max_timeouts = 3 }
            [[paths]]
            links = [{ rate = "10 Mbit/s", delay = "10 ms", queue = "50 packets" }]
            [[paths]]
            name = "b"
            links = [{ rate = "10 Mbit/s", delay = "20 ms", queue = "50 packets", down = ["10..30 s"] }]
        "#;
        let scenario = Document::embedded("s.toml", text, &[]).scenario().expect("a scenario");
        let record =
            simulation::run(&scenario, &Contender::plain(), &[0, 1], 1, &Extras { curves: true, ..Extras::default() });
        let record = record.expect("a run");
        for series in [Series::Rtt, Series::Cwnd] {
            let curve =
                record.curves.iter().find(|curve| curve.series == series && curve.path == Some(1)).expect("one");
            assert!(curve.values.iter().all(|value| *value != 0.0), "{series:?}: {:?}", curve.values);
            // It tries to join again, in vain.
            assert!(curve.values.iter().filter(|value| value.is_nan()).count() > 20, "{series:?}: {:?}", curve.values);
            assert!(curve.values.last().is_some_and(|value| *value > 0.0), "{series:?}: {:?}", curve.values);
        }
    }

    #[test]
    fn response_times_of_the_warm_up_do_not_count() {
        let transfer = "transfer = { kind = \"request_response\", request = \"1 kB\", response = \"10 kB\" }\n";
        let times = "duration = \"20 s\"\nwarm_up = \"10 s\"\n";
        let slow_at_first = r#"coverage = [{ at = "9.9 s", rate = "1 %" }, { at = "9.9 s", rate = "100 %" }]"#;
        let of = |link: &str| metrics(&format!("{transfer}{times}"), link)("response_time");
        let (slow, fast) = (of(&format!("{slow_at_first},")), of(""));
        assert!((slow / fast - 1.0).abs() < 0.05, "{slow} ms after a slow warm-up, {fast} ms without");
    }

    fn at_each_second(values: &[f64]) -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect()
    }

    #[test]
    fn a_turn_is_where_the_fewest_values_are_on_the_wrong_side() {
        // Second 4 has two exceptions, seconds 1 and 6; all others have at least three.
        let values = at_each_second(&[90.0, 40.0, 80.0, 70.0, 30.0, 20.0, 60.0, 10.0]);
        assert_eq!(turn(&values, |value| value < 50.0), Some(4.0));
    }

    #[test]
    fn a_series_that_stays_on_one_side_does_not_turn() {
        let low = at_each_second(&[10.0, 20.0, 30.0]);
        assert_eq!(turn(&low, |value| value < 50.0), None);
        assert_eq!(turn(&low, |value| value > 50.0), None);
        assert_eq!(turn(&[], |value| value > 50.0), None);
    }
}
