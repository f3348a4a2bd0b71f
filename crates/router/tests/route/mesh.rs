//! The paper's mesh: the routes in its figure are in the kernels, and carry packets.

use crate::probe::{Probe, Target};
use crate::scene::{Scene, config, same, wait_for};
use anabranch_emulate::{ChannelModel, mesh};
use anabranch_router::{Family, Question};
use libtest_mimic::Trial;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 4] = [
        ("mesh::lanes_are_those_of_table_3_and_carry_the_kernels_mptcp", lanes_are_those_of_table_3),
        ("mesh::every_node_has_the_next_hops_of_figure_8", every_node_has_the_next_hops_of_figure_8),
        ("mesh::ipv6_is_routed_too", ipv6_is_routed_too),
        ("mesh::over_the_labs_radio", over_the_labs_radio),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

/// Next hops to M8 of M1 to M4 with full LSAs, measured with another implementation of RFC 5614 on the same graph.
pub const TO_M8: [(usize, &[u8]); 4] = [(1, &[2, 3, 4]), (2, &[5, 6]), (3, &[5, 6, 7]), (4, &[6, 7])];

pub fn routes_are_there(scene: &Scene) {
    let m8 = mesh::loopback_ipv4(8).to_string();
    for (node, hops) in TO_M8 {
        wait_for(&format!("M{node} to M8"), || same(scene.next_hops(node, &m8), hops.to_vec()));
    }
    let m1 = mesh::loopback_ipv4(1).to_string();
    // The figure is symmetric: layers and lanes are mirrored.
    for (node, hops) in [(8, vec![5, 6, 7]), (5, vec![2, 3]), (6, vec![2, 3, 4]), (7, vec![3, 4])] {
        wait_for(&format!("M{node} to M1"), || same(scene.next_hops(node, &m1), hops.clone()));
    }
}

fn every_node_has_the_next_hops_of_figure_8() {
    let scene = Scene::new(vec![ChannelModel::Ideal], &config(Family::Ipv4, 1));
    routes_are_there(&scene);
    let probe = Probe::start(&scene, Target::Ipv4, 0);
    // Probes of the last second do not count.
    std::thread::sleep(Duration::from_secs(3));
    let seen = probe.stop();
    assert!(seen.answered > 50 && seen.lost <= 1, "{seen:?}");
    let routes = scene.routers[0].ask(Question::Routes);
    let to_m8 = routes.as_array().expect("a list").iter().find(|route| route["prefix"] == "10.26.255.8/32");
    let to_m8 = to_m8.expect("it was in the kernel");
    assert_eq!((&to_m8["installed"], to_m8["next_hops"].as_array().map(Vec::len)), (&true.into(), Some(3)), "{to_m8}");
    for router in scene.routers {
        router.stop().expect("it ends well");
    }
}

fn ipv6_is_routed_too() {
    let scene = Scene::new(vec![ChannelModel::Ideal], &config(Family::Ipv6, 1));
    let probe = Probe::start(&scene, Target::Ipv6, 0);
    wait_for("an answer over IPv6", || if probe.answered() > 20 { Ok(()) } else { Err(probe.answered()) });
}

fn over_the_labs_radio() {
    let scene = Scene::new(vec![ChannelModel::Radio(Box::default())], &config(Family::Ipv4, 1));
    let probe = Probe::start(&scene, Target::Ipv4, 0);
    wait_for("an answer over the radio", || if probe.answered() > 20 { Ok(()) } else { Err(probe.answered()) });
}

/// Least bytes that every lane must carry of a transfer over all.
const LANE_CARRIES: u64 = 200_000;

fn lanes_are_those_of_table_3() {
    let mut settings = config(Family::Ipv4, 1);
    settings.lanes = (1..4).map(mesh::device).collect();
    let scene = Scene::new(vec![ChannelModel::Ideal; 4], &settings);
    routes_are_there(&scene);
    // Table 3 of the paper: M1-M2-M5-M8 on e1, M1-M3-M6-M8 on e2, M1-M4-M7-M8 on e3.
    for lane in 1..4_u8 {
        let to = mesh::ipv4(lane.into(), 8).to_string();
        for (node, hop) in [(1, 1 + lane), (1 + usize::from(lane), 4 + lane)] {
            wait_for(&format!("lane {lane} at M{node}"), || {
                let shown = scene.output(node, &format!("ip route show table 199 {to}"));
                let wanted = format!("{to} via 112.26.{lane}.{hop} dev e{lane} ");
                if shown.starts_with(&wanted) { Ok(()) } else { Err(shown) }
            });
        }
    }
    scene.output(8, "ip mptcp limits set subflows 8 add_addr_accepted 8");
    scene.output(1, "ip mptcp limits set subflows 8 add_addr_accepted 8");
    for lane in 1..4 {
        scene.output(8, &format!("ip mptcp endpoint add {} dev e{lane} signal", mesh::ipv4(lane, 8)));
    }
    let inside = |node: usize, work: &(dyn Fn() -> std::io::Result<()> + Sync)| {
        scene.node(node).run(work).expect("it can be entered").expect("the kernel's MPTCP works");
    };
    let sent = |lane: usize| -> u64 {
        let table = scene.node(1).run(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
        let table = table.expect("it can be entered").expect("it is there");
        let line = table.lines().find(|line| line.trim_start().starts_with(&format!("e{lane}:"))).unwrap_or_default();
        line.split_whitespace().nth(9).and_then(|bytes| bytes.parse().ok()).unwrap_or_default()
    };
    let before: Vec<u64> = (0..4).map(sent).collect();
    let listener = scene.node(8).run(|| crate::kernel::mptcp_listener(false, 4_321)).expect("it can be entered");
    let reading = std::thread::spawn(move || {
        use std::io::Read;
        let (mut socket, _) = listener.accept().expect("a connection comes");
        let mut total = 0;
        let mut bytes = vec![0; 65_536];
        while let Ok(length @ 1..) = socket.read(&mut bytes) {
            total += length;
        }
        total
    });
    let carried = |lane: usize| sent(lane) - before[lane];
    let blocks = std::sync::atomic::AtomicUsize::new(0);
    inside(1, &|| {
        use std::io::Write;
        use std::sync::atomic::Ordering;
        let address = std::net::SocketAddr::new(mesh::ipv4(0, 8).into(), 4_321);
        let mut socket = crate::kernel::mptcp_socket(address);
        socket.connect(&address.into())?;
        let block = vec![7; 65_536];
        // The first packets announce the peer's addresses. On a busy machine a lane may join late: 16 MiB, and up to
        // 128 until the last lane has its share.
        for number in 0..2_048 {
            if number >= 256 && number % 16 == 0 && (0..4).all(|lane| carried(lane) > LANE_CARRIES) {
                break;
            }
            socket.write_all(&block)?;
            blocks.fetch_add(1, Ordering::Relaxed);
            if number < 8 {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        Ok(())
    });
    assert_eq!(reading.join().expect("it reads"), blocks.into_inner() * 65_536);
    for lane in 0..4 {
        assert!(carried(lane) > LANE_CARRIES, "e{lane} carried {} bytes", carried(lane));
    }
}
