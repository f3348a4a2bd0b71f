//! Bidirectional Forwarding Detection between our routers: what Hellos would find after minutes is found at once. With
//! FRRouting's `bfdd` see `frr`.

use crate::scene::{Running, Scene, config, wait_for};
use anabranch_emulate::ChannelModel;
use anabranch_policy::time::Duration;
use anabranch_router::{Family, Question};
use anabranch_routing::bfd::BfdSettings;
use libtest_mimic::Trial;
use serde_json::Value;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 2] = [
        ("bfd::a_neighbor_that_is_cut_off_silently_is_lost", a_neighbor_that_is_cut_off_silently_is_lost),
        ("bfd::a_neighbor_without_it_is_judged_by_hellos", a_neighbor_without_it_is_judged_by_hellos),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

/// State of BFD with each neighbour, null without a session.
pub fn sessions(router: &Running) -> Vec<Value> {
    let Value::Array(neighbors) = router.ask(Question::Neighbors) else { return Vec::new() };
    neighbors.iter().map(|neighbor| neighbor["bfd"].clone()).collect()
}

/// Neighbours that a router has lost by BFD.
pub fn lost(router: &Running) -> u64 {
    router.ask(Question::Status)["bfd"]["lost_neighbors"].as_u64().unwrap_or(0)
}

fn a_neighbor_that_is_cut_off_silently_is_lost() {
    let mut config = config(Family::Ipv4, 1);
    config.bfd = Some(BfdSettings::default());
    // Hellos find nothing within this test.
    config.manet.router_dead_interval = Duration::from_secs(600);
    let scene = Scene::new(vec![ChannelModel::Ideal], &config);
    let first = &scene.routers[0];
    wait_for("all sessions of M1 to be up", || {
        let found = sessions(first);
        if !found.is_empty() && found.iter().all(|state| state == "up") { Ok(()) } else { Err(found) }
    });
    let before = sessions(first).len();
    // Everybody is out of M1's range.
    for other in 2..=scene.routers.len() {
        scene.set_link(1, other, 0, None);
    }
    wait_for("M1 to have lost all neighbours", || {
        let Value::Array(left) = first.ask(Question::Neighbors) else { return Err(Value::Null) };
        let heard: Vec<&Value> = left.iter().filter(|neighbor| neighbor["state"] != "down").collect();
        if heard.is_empty() { Ok(()) } else { Err(Value::Array(left.clone())) }
    });
    assert_eq!(lost(first), before as u64);
}

fn a_neighbor_without_it_is_judged_by_hellos() {
    let plain = config(Family::Ipv4, 1);
    let mut detecting = plain.clone();
    detecting.bfd = Some(BfdSettings::default());
    let mut scene = Scene::new(vec![ChannelModel::Ideal], &plain);
    let namespace = scene.node(1).clone();
    let first = scene.routers.remove(0);
    first.stop().expect("it ends well");
    let first = Running::start(&namespace, detecting);
    wait_for("M1 to be adjacent, without a session that is up", || {
        let Value::Array(neighbors) = first.ask(Question::Neighbors) else { return Err(Value::Null) };
        let full = neighbors.iter().any(|neighbor| neighbor["state"] == "full" && neighbor["bfd"] == "down");
        if full { Ok(()) } else { Err(Value::Array(neighbors)) }
    });
    // Several detection times, in which nobody answers.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(lost(&first), 0);
    assert!(sessions(&first).iter().all(|state| state == "down"));
}
