//! Explicit congestion notification (RFC 3168) in the lab: queues with CoDel mark ECN-capable packets instead of
//! dropping them.

use anabranch_mptcp::{EcnMode, EndpointConfig};
use anabranch_policy::path_manager;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::link::{Discipline, QueueConfig, QueueLimit};
use anabranch_sim::reference::{Bottleneck, connection, upload};
use anabranch_sim::topology::{PathConfig, ServerAddresses, disjoint_paths};
use anabranch_sim::{LinkConfig, RunResult, World, WorldConfig};

/// An upload of 20 s over two paths of 10 Mbit/s, 20 ms and 40 ms, whose queues run CoDel.
fn upload_over_codel(congestion: &'static str, ecn: EcnMode) -> RunResult {
    let mut world = World::new(WorldConfig { seed: 1, ..WorldConfig::default() });
    let manager = || table::build(path_manager::TABLE, "full_mesh", &Settings::new()).expect("in the table");
    let client = world.add_host("client", &EndpointConfig::default(), manager());
    let server = world.add_host("server", &EndpointConfig::default(), manager());
    let queue = QueueConfig { limit: QueueLimit::Packets(1_000), discipline: Discipline::CODEL };
    let path = |(name, delay_ms): (&str, u64)| {
        let bottleneck = Bottleneck::new(10, delay_ms, 1_000);
        PathConfig {
            name: name.to_owned(),
            access_up: LinkConfig { queue, ..bottleneck.forward() },
            access_down: bottleneck.backward(),
            ..PathConfig::default()
        }
    };
    let paths = [("a", 10), ("b", 20)].map(path);
    let paths = disjoint_paths(&mut world, client, server, &paths, ServerAddresses::One);
    let mut config = connection(congestion, true);
    config.tcp.ecn = ecn;
    world.add_flow(upload("bulk", (client, paths[0].client), paths[0].server, Instant::ZERO, &config));
    world.run_until(Instant::ZERO + Duration::from_secs(20));
    world.results()
}

/// Packets dropped and packets marked in the forward direction, by path.
fn dropped_and_marked(result: &RunResult) -> [(u64, u64); 2] {
    ["a/access up", "b/access up"].map(|link| {
        let counters = &result.link(link).expect("it is there").counters;
        (counters.drops.total(), counters.marked)
    })
}

// Each subflow negotiates ECN itself, and packets that its queue would drop are marked: nothing is lost or
// retransmitted, and the goodput is the same.
#[test]
fn with_marks_in_place_of_drops_a_transfer_over_two_paths_loses_nothing() {
    for congestion in ["new_reno", "cubic", "lia", "olia", "balia"] {
        let dropped = upload_over_codel(congestion, EcnMode::Accept);
        let marked = upload_over_codel(congestion, EcnMode::Request);
        for (drops, marks) in dropped_and_marked(&dropped) {
            assert!(drops > 5 && marks == 0, "{congestion}, nobody asks: {drops}, {marks}");
        }
        for (drops, marks) in dropped_and_marked(&marked) {
            // A sender that does not slow down gets one mark for every second packet.
            assert!(drops == 0 && (5..100).contains(&marks), "{congestion}: {drops}, {marks}");
        }
        let [without, with] = [&dropped, &marked].map(|result| &result.flows[0]);
        assert_eq!(with.client.stats.bytes_retransmitted, 0, "{congestion}");
        assert_eq!(with.client.stats.timeouts, 0, "{congestion}");
        assert!(without.client.stats.bytes_retransmitted > 0, "{congestion}");
        let [without, with] = [without, with].map(|flow| flow.server.read);
        // Which of the two is ahead depends on the congestion control, by a few per cent.
        assert!(with as f64 > 0.93 * without as f64, "{congestion}: {with} bytes, {without} with drops");
        // One path carries 25 MB in 20 s.
        assert!(with > 35_000_000, "{congestion}: {with}");
    }
}
