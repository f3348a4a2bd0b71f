//! Metrics of ad-hoc networks.

use crate::scenario::Scenario;
use crate::scenario::model::Mesh;
use anabranch_sim::mesh::NodeId;
use anabranch_sim::mesh::paper::Whole;
use anabranch_sim::mesh::paper::measure::{Delays, LaneMeasured};
use anabranch_sim::mesh::paper::network::PLACES;
use anabranch_sim::mesh::results::Captured;
use anabranch_sim::mesh::snapshot::Snapshot;

/// Name and value of a metric.
type Value = (String, f64);

fn named(name: &str, value: f64) -> Value {
    (name.to_owned(), value)
}

/// 100 or 0: the mean over runs is a percentage.
fn yes(does: bool) -> f64 {
    if does { 100.0 } else { 0.0 }
}

/// All metrics; `receive_buffer` is in bytes, if fixed.
pub fn metrics(scenario: &Scenario, mesh: &Mesh, whole: &Whole, receive_buffer: Option<u64>) -> Vec<Value> {
    let Whole { measured, snapshots, cost, memory, .. } = whole;
    let total = |count: fn(&LaneMeasured) -> u64| measured.lanes.iter().map(count).sum::<u64>() as f64;
    let volume = measured.bytes as f64 / 1e6;
    let nodes = PLACES.len() as f64;
    let mut metrics = vec![
        named("volume", volume),
        named("segments_sent", total(|lane| lane.sent)),
        named("segments_received", total(|lane| lane.received)),
        named("segments_sent_again", total(|lane| lane.sent_again)),
        named("segments_received_again", total(|lane| lane.received_again)),
        named("energy", cost.joules / nodes),
        named("energy_active", cost.joules_active / nodes),
    ];
    if volume > 0.0 {
        metrics.push(named("energy_per_megabyte", cost.joules / volume));
    }
    for (at, lane) in measured.lanes.iter().enumerate().filter(|(_, lane)| lane.delay.count() > 0) {
        metrics.push((format!("segment_delay_e{at}"), lane.delay.mean().as_secs_f64() * 1e3));
        metrics.push((format!("segment_delay_p95_e{at}"), lane.delay.quantile(0.95).as_secs_f64() * 1e3));
    }
    metrics.extend(disjoint_lanes(snapshots, measured.lanes.len()).map(|share| named("disjoint_lanes", share)));
    metrics.extend(captures(&measured.captured));
    metrics.extend(answers(&measured.lanes.iter().map(|lane| lane.answer).collect::<Vec<_>>()));
    metrics.extend(buffer_rule(&measured.lanes, measured.goodput, receive_buffer));
    if mesh.routers.is_some() {
        let seconds = measured.duration.unwrap_or(scenario.duration).as_secs_f64();
        metrics.push(named("control_traffic", measured.control));
        metrics.push(named("calculations", cost.calculations as f64 / nodes / seconds));
        metrics.push(named("lsas_received", cost.lsas_received as f64 / nodes / seconds));
        metrics.push(named("router_memory", *memory as f64 / 1e3));
    }
    metrics
}

/// Percentage of pairs of lanes without common nodes, over all snapshots. The first lane uses all next hops in any case
/// and is not counted.
fn disjoint_lanes(snapshots: &[Snapshot], lanes: usize) -> Option<f64> {
    let seen = snapshots.iter().map(|snapshot| snapshot.disjointness(NodeId(0), 1..lanes));
    let (pairs, disjoint) = seen.fold((0, 0), |sum, seen| (sum.0 + seen.pairs, sum.1 + seen.disjoint));
    (pairs > 0).then(|| disjoint as f64 / pairs as f64 * 100.0)
}

/// Captures on the interfaces of M1 to M8, both directions together; sent by M1 and received by M8 on each; and whether
/// nodes in the middle captured more than their neighbours.
fn captures(captured: &[Vec<Captured>]) -> Vec<Value> {
    let at = |node: usize| captured.get(node).into_iter().flatten().map(|radio| radio.total()).sum::<u64>();
    let mut metrics: Vec<Value> =
        (0..captured.len()).map(|node| (format!("captured_m{}", node + 1), at(node) as f64)).collect();
    let more = |one: usize, others: [usize; 2]| others.into_iter().all(|other| at(one) > at(other));
    metrics.push(named("m3_has_most", yes(more(2, [1, 3]))));
    metrics.push(named("m6_has_most", yes(more(5, [4, 6]))));
    let (Some(first), Some(last)) = (captured.first(), captured.last()) else { return metrics };
    metrics.push(named("sent_m1", first.iter().map(|radio| radio.sent).sum::<u64>() as f64));
    metrics.push(named("received_m8", last.iter().map(|radio| radio.received).sum::<u64>() as f64));
    for (radio, (sent, received)) in first.iter().zip(last).enumerate() {
        let (sent, received) = (sent.sent as f64, received.received as f64);
        metrics.push((format!("sent_m1_e{radio}"), sent));
        metrics.push((format!("received_m8_e{radio}"), received));
        if sent > 0.0 {
            metrics.push((format!("arrived_e{radio}"), received / sent * 100.0));
        }
    }
    metrics
}

/// Delays of acknowledgements: of all segments, and per interface.
fn answers(lanes: &[Delays]) -> Vec<Value> {
    let of = |delays: &Delays, place: &str| {
        let mean = delays.mean().map(|mean| (format!("answer_delay{place}"), mean * 1e3));
        let deviation = delays.deviation().map(|deviation| (format!("answer_deviation{place}"), deviation * 1e3));
        mean.into_iter().chain(deviation)
    };
    let all = lanes.iter().fold(Delays::default(), |sum, one| sum.and(*one));
    let mut metrics: Vec<Value> = of(&all, "").collect();
    metrics.extend(lanes.iter().enumerate().flat_map(|(at, lane)| of(lane, &format!("_e{at}"))));
    if let Some((first, others)) = lanes.split_first().filter(|(_, others)| !others.is_empty()) {
        let least = |of: fn(&Delays) -> Option<f64>| {
            others.iter().filter_map(of).all(|other| of(first).is_some_and(|own| own < other))
        };
        metrics.push(named("e0_is_fastest", yes(least(Delays::mean))));
        metrics.push(named("e0_is_steadiest", yes(least(Delays::deviation))));
    }
    metrics
}

/// The paper's condition on buffers, B >= (3 max RTT + max RTO) x sum of bandwidths, from measurements: mean RTT and
/// RTO of the slowest interface, and the total rate in bytes per second.
fn buffer_rule(lanes: &[LaneMeasured], carried: f64, buffer: Option<u64>) -> Vec<Value> {
    let longest = |of: fn(&LaneMeasured) -> f64| lanes.iter().map(of).fold(0.0, f64::max);
    let (round_trip, timeout) = (longest(|lane| lane.round_trip), longest(|lane| lane.timeout));
    let needed = (3.0 * round_trip + timeout) * carried;
    if needed <= 0.0 {
        return Vec::new();
    }
    let mut metrics = vec![
        named("longest_rtt", round_trip * 1e3),
        named("longest_rto", timeout * 1e3),
        named("buffer_needed", needed / 1e3),
    ];
    metrics.extend(buffer.map(|bytes| named("buffer_met", bytes as f64 / needed * 100.0)));
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::Duration;

    fn value(metrics: &[Value], name: &str) -> Option<f64> {
        metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    #[test]
    fn a_node_has_captured_what_its_radios_sent_and_received() {
        let radio = |sent, received| Captured { sent, received };
        // M1 sends 10 and 5, of which M3 has 8 and 1; 3 return.
        let mut captured = vec![vec![radio(0, 0); 2]; 8];
        captured[0] = vec![radio(10, 2), radio(5, 1)];
        captured[1] = vec![radio(2, 2), radio(4, 4)];
        captured[2] = vec![radio(8, 8), radio(1, 1)];
        captured[6] = vec![radio(3, 3), radio(0, 0)];
        captured[7] = vec![radio(2, 9), radio(1, 4)];
        let metrics = captures(&captured);
        let of = |name: &str| value(&metrics, name);
        assert_eq!((of("captured_m1"), of("captured_m2"), of("captured_m3")), (Some(18.0), Some(12.0), Some(18.0)));
        assert_eq!((of("captured_m8"), of("captured_m7")), (Some(16.0), Some(6.0)));
        // M3 has 18 packets, M2 12 and M4 none; M6 has none, M7 6.
        assert_eq!((of("m3_has_most"), of("m6_has_most")), (Some(100.0), Some(0.0)));
        assert_eq!((of("sent_m1_e1"), of("received_m8_e1"), of("arrived_e0")), (Some(5.0), Some(4.0), Some(90.0)));
        assert_eq!((of("sent_m1"), of("received_m8")), (Some(15.0), Some(13.0)));
        captured[0][1] = radio(0, 1);
        assert_eq!(value(&captures(&captured), "arrived_e1"), None);
    }

    #[test]
    fn e0_is_fastest_if_its_mean_is_the_least() {
        let delays = |millis: &[u64]| {
            let mut delays = Delays::default();
            millis.iter().for_each(|millis| delays.add(Duration::from_millis(*millis)));
            delays
        };
        let near = |one: Option<f64>, other: f64| assert!((one.unwrap() - other).abs() < 1e-9, "{one:?} {other}");
        let metrics = answers(&[delays(&[10, 30]), delays(&[40]), Delays::default()]);
        near(value(&metrics, "answer_delay_e0"), 20.0);
        near(value(&metrics, "answer_deviation_e0"), 10.0);
        // 10, 30 and 40 ms.
        near(value(&metrics, "answer_delay"), 80.0 / 3.0);
        assert_eq!((value(&metrics, "answer_delay_e2"), value(&metrics, "e0_is_fastest")), (None, Some(100.0)));
        // A single segment has no deviation.
        assert_eq!(value(&metrics, "e0_is_steadiest"), Some(0.0));
        let metrics = answers(&[delays(&[50]), delays(&[40])]);
        assert_eq!(value(&metrics, "e0_is_fastest"), Some(0.0));
        assert_eq!(value(&answers(&[delays(&[50])]), "e0_is_fastest"), None);
    }

    #[test]
    fn the_condition_on_buffers_takes_the_longest_of_each() {
        let lane = |round_trip, timeout| LaneMeasured { round_trip, timeout, ..LaneMeasured::default() };
        // (3 x 0.2 s + 0.5 s) x 100 kB/s = 110 kB, of which 22 kB are a fifth.
        let lanes = [lane(0.2, 0.4), lane(0.1, 0.5)];
        let metrics = buffer_rule(&lanes, 100e3, Some(22_000));
        let near = |name: &str, other: f64| assert!((value(&metrics, name).unwrap() - other).abs() < 1e-9, "{name}");
        near("longest_rtt", 200.0);
        near("longest_rto", 500.0);
        near("buffer_needed", 110.0);
        near("buffer_met", 20.0);
        assert_eq!(value(&buffer_rule(&lanes, 100e3, None), "buffer_met"), None);
        assert!(buffer_rule(&[], 100e3, Some(1)).is_empty());
    }
}
