//! The paper's mesh: the routes that its figure asks for are in the kernels, and carry packets.

use crate::probe::{Probe, Target};
use crate::scene::{Scene, config, same, wait_for};
use anabranch_net::emulate::{ChannelModel, mesh};
use anabranch_net::route::{Family, Question};
use libtest_mimic::Trial;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 3] = [
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
    // The other way it is the same figure: layers and lanes are mirrored.
    for (node, hops) in [(8, vec![5, 6, 7]), (5, vec![2, 3]), (6, vec![2, 3, 4]), (7, vec![3, 4])] {
        wait_for(&format!("M{node} to M1"), || same(scene.next_hops(node, &m1), hops.clone()));
    }
}

fn every_node_has_the_next_hops_of_figure_8() {
    let scene = Scene::new(vec![ChannelModel::Ideal], &config(Family::Ipv4, 1));
    routes_are_there(&scene);
    let probe = Probe::start(&scene, Target::Ipv4, 0);
    // Those of the last second do not count.
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
