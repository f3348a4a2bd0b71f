//! TCP over chains and over the paper's mesh, compared with tables made with ns-3 3.37 (NewReno, segments of 1448
//! bytes, long preamble, range 150 m for decoding, interference and carrier sense, 100 m between nodes, 60 s; kB/s of
//! 1000 bytes). One figure differs from the design: over one hop at 11 Mbit/s ns-3 measured 570.3 with an application
//! that wrote 512 bytes at a time into a full buffer, so that half of the segments were not full. With full segments it
//! measured 663.5. `docs/measurements/radio.md` has the settings and all figures.

use crate::scene::{FIGURE_8, flow, host, lanes, mesh_at, route, seconds};
use anabranch_mptcp::{BufferSize, ConnectionConfig};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_sim::Application;
use anabranch_sim::application::Sending;
use anabranch_sim::mesh::NodeId;
use anabranch_sim::mesh::paper::network::PLACES;
use anabranch_sim::radio::{MediumConfig, Position, Reach};
use anabranch_sim::reference::connection;

/// A channel as in ns-3.
fn like_ns3(megabits: f64) -> MediumConfig {
    MediumConfig { data_rate: Rate::from_bits_per_second((megabits * 1e6) as u64), ..MediumConfig::as_in_ns3() }
}

/// Packets of 1500 bytes, at most 90 in flight. The receive buffer must not limit the sender: otherwise our receiver
/// acknowledges every segment, while ns-3's still acknowledges every second one.
fn new_reno() -> ConnectionConfig {
    let mut config = connection("new_reno", false);
    config.receive_buffer = BufferSize::Fixed(524_288);
    config.send_buffer = 131_072;
    config.tcp.mtu = 1500;
    config.tcp.min_rto = Duration::from_secs(1);
    config.tcp.delayed_ack = Duration::from_millis(200);
    config
}

/// kB/s of one TCP connection over `hops` hops.
fn chain(seed: u64, hops: u32, medium: &MediumConfig, tcp: &ConnectionConfig) -> f64 {
    let positions: Vec<Position> = (0..=hops).map(|node| Position { x: f64::from(node) * 100.0, y: 0.0 }).collect();
    let links: Vec<(u32, u32)> = (0..hops).map(|node| (node, node + 1)).collect();
    let mut world = mesh_at(seed, &positions, std::slice::from_ref(medium));
    let [from, to] = [0, hops].map(|node| {
        let host = host(&mut world, &format!("host {node}"), "full_mesh");
        let interface = world.attach_to_node(host, NodeId(node));
        route(&mut world, &links, interface, NodeId(node), 0);
        interface
    });
    flow(&mut world, "tcp", (from, to), Application::upload(Sending::Endless), tcp);
    world.run_until(seconds(60));
    world.results().flows[0].server.read as f64 / 60e3
}

/// Mean over three seeds.
fn chains(hops: u32, medium: &MediumConfig) -> f64 {
    (1..=3).map(|seed| chain(seed, hops, medium, &new_reno())).sum::<f64>() / 3.0
}

/// What ns-3.37 measured, kB/s: Mbit/s, and over one to four hops.
const NS3: [(f64, [f64; 4]); 4] = [
    (11.0, [663.5, 272.3, 183.1, 143.3]),
    (5.5, [427.4, 161.2, 114.4, 88.1]),
    (2.0, [192.1, 81.2, 56.4, 46.2]),
    (1.0, [102.5, 43.6, 32.8, 26.5]),
];

#[test]
fn tcp_over_one_to_four_hops_is_as_fast_as_in_ns3() {
    let mut wrong = Vec::new();
    for (rate, row) in NS3 {
        for (hops, expected) in (1..).zip(row) {
            let seen = chains(hops, &like_ns3(rate));
            eprintln!("{rate} Mbit/s, {hops} hops: {seen:.1} kB/s, {expected} in ns-3");
            if (seen / expected - 1.0).abs() > 0.05 {
                wrong.push((rate, hops, seen, expected));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
#[ignore = "prints a table of docs/measurements/radio.md"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn table() {
    println!("\n| Mbit/s | | 1 hop | 2 | 3 | 4 |\n|---|---|---|---|---|---|");
    for (rate, measured) in NS3 {
        let standard = MediumConfig { data_rate: like_ns3(rate).data_rate, ..MediumConfig::default() };
        let simulated = [like_ns3(rate), standard].map(|medium| [1, 2, 3, 4].map(|hops| chains(hops, &medium)));
        for (name, [one, two, three, four]) in
            ["ns-3.37", "as in ns-3", "default"].into_iter().zip([measured, simulated[0], simulated[1]])
        {
            println!("| {rate} | {name} | {one:.1} | {two:.1} | {three:.1} | {four:.1} |");
        }
    }
}

#[test]
fn rts_costs_a_chain_of_three_hops_a_quarter_as_in_ns3() {
    let seen = chains(3, &MediumConfig { rts_threshold: 0, ..like_ns3(11.0) });
    eprintln!("RTS: {seen:.1} kB/s, 136.5 in ns-3");
    assert!((seen / 136.5 - 1.0).abs() < 0.05, "{seen}");
}

/// Three hops at 11 Mbit/s with other segment sizes, other acknowledgements, and with all nodes in range.
#[test]
fn what_changes_three_hops_changes_them_as_in_ns3() {
    let with = |change: fn(&mut ConnectionConfig)| {
        let mut config = new_reno();
        change(&mut config);
        config
    };
    let (disk, all) = (like_ns3(11.0), MediumConfig { reach: Reach::disk(1000.0), ..like_ns3(11.0) });
    let rows = [
        ("segments of 1000", &disk, with(|config| config.tcp.mtu = 1052), 150.8),
        ("segments of 700", &disk, with(|config| config.tcp.mtu = 752), 119.8),
        ("segments of 536", &disk, with(|config| config.tcp.mtu = 588), 100.5),
        ("every segment acknowledged", &disk, with(|config| config.tcp.delayed_ack = Duration::ZERO), 152.3),
        ("all hear all", &all, new_reno(), 223.0),
    ];
    let mut wrong = Vec::new();
    for (name, medium, tcp, expected) in rows {
        let seen = (1..=3).map(|seed| chain(seed, 3, medium, &tcp)).sum::<f64>() / 3.0;
        eprintln!("{name}: {seen:.1} kB/s, {expected} in ns-3");
        if (seen / expected - 1.0).abs() > 0.05 {
            wrong.push((name, seen, expected));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// kB/s of one TCP connection on each plane, each on its lane of the paper's table 3 (the first on M2 and M5, as the
/// second).
fn figure_8(planes: &[MediumConfig]) -> Vec<f64> {
    let positions: Vec<Position> = PLACES.iter().map(|(x, y)| Position { x: *x, y: *y }).collect();
    let mut world = mesh_at(1, &positions, planes);
    let hosts = [("M1", NodeId(0)), ("M8", NodeId(7))].map(|(name, node)| (host(&mut world, name, "full_mesh"), node));
    let made = lanes(&mut world, &FIGURE_8, &hosts, planes.len() as u8);
    for lane in 0..planes.len() {
        let middle = [(1, 4), (1, 4), (2, 5), (3, 6)][lane];
        let chain = [(0, middle.0), middle, (middle.1, 7)];
        for (end, node) in [(0, NodeId(0)), (1, NodeId(7))] {
            route(&mut world, &chain, made[end][lane], node, lane as u8);
        }
        let ends = (made[0][lane], made[1][lane]);
        flow(&mut world, &format!("lane {lane}"), ends, Application::upload(Sending::Endless), &new_reno());
    }
    world.run_until(seconds(60));
    world.results().flows.iter().map(|flow| flow.server.read as f64 / 60e3).collect()
}

#[test]
fn tcp_on_the_planes_of_figure_8_is_as_fast_as_in_ns3() {
    let rts = |rate| MediumConfig { rts_threshold: 0, ..like_ns3(rate) };
    let rows: [(&[f64], bool, &[f64]); 5] = [
        (&[11.0], false, &[185.0]),
        (&[11.0], true, &[135.7]),
        (&[11.0, 5.5, 2.0, 1.0], true, &[135.7, 97.6, 52.1, 29.7]),
        (&[11.0, 5.5, 2.0, 1.0], false, &[185.0, 115.0, 56.0, 33.0]),
        (&[11.0; 4], true, &[136.0, 135.0, 136.0, 135.0]),
    ];
    let mut wrong = Vec::new();
    for (rates, with_rts, expected) in rows {
        let planes: Vec<MediumConfig> =
            rates.iter().map(|rate| if with_rts { rts(*rate) } else { like_ns3(*rate) }).collect();
        let seen = figure_8(&planes);
        eprintln!("planes {rates:?}, RTS {with_rts}: {seen:.1?} kB/s, {expected:?} in ns-3");
        for ((seen, expected), rate) in seen.iter().zip(expected).zip(rates) {
            if (seen / expected - 1.0).abs() > 0.05 {
                wrong.push((*rate, with_rts, *seen, *expected));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// kB/s of each of four planes whose radios, four at each node, are all on one channel.
fn four_planes_on_one_channel(seed: u64, medium: &MediumConfig) -> Vec<f64> {
    let place = |index: usize| PLACES[index % 8];
    let positions: Vec<Position> = (0..32).map(place).map(|(x, y)| Position { x, y }).collect();
    let mut world = mesh_at(seed, &positions, std::slice::from_ref(medium));
    for lane in 0..4 {
        let middle = [(1, 4), (1, 4), (2, 5), (3, 6)][lane as usize];
        let node = |node: u32| 8 * lane + node;
        let chain = [(0, middle.0), middle, (middle.1, 7)].map(|(one, other)| (node(one), node(other)));
        let [from, to] = [0, 7].map(|end| {
            let host = host(&mut world, &format!("host {lane} {end}"), "full_mesh");
            let interface = world.attach_to_node(host, NodeId(node(end)));
            route(&mut world, &chain, interface, NodeId(node(end)), 0);
            interface
        });
        flow(&mut world, &format!("lane {lane}"), (from, to), Application::upload(Sending::Endless), &new_reno());
    }
    world.run_until(seconds(60));
    world.results().flows.iter().map(|flow| flow.server.read as f64 / 60e3).collect()
}

/// ns-3 measured 137 to 195 kB/s in total, unevenly: additional radios do not add capacity to a channel.
#[test]
fn four_planes_on_one_channel_carry_no_more_than_one() {
    for with_rts in [false, true] {
        let rts_threshold = if with_rts { 0 } else { u32::MAX };
        let seen = four_planes_on_one_channel(1, &MediumConfig { rts_threshold, ..like_ns3(11.0) });
        eprintln!("four planes on one channel, RTS {with_rts}: {seen:.1?} kB/s");
        let total: f64 = seen.iter().sum();
        assert!((120.0..210.0).contains(&total), "{seen:?}");
    }
}
