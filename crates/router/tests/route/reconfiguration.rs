//! Another configuration for a router that runs.

use crate::field::{full, lines, listener};
use crate::host::{inside, journal, pair, routed, state};
use crate::kernel::ip;
use crate::scene::{Running, config, wait_for};
use anabranch_policy::time::Duration;
use anabranch_router::{ConfigRead, Family, MeshInterface, NewConfig, Question, RouteConfig};
use anabranch_routing::bfd::BfdSettings;
use anabranch_system::Namespace;
use anabranch_wire::ospf::authentication::{Algorithm, SecurityAssociation};
use libtest_mimic::Trial;
use std::os::fd::AsRawFd;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 3] = [
        ("reconfiguration::a_fault_in_the_file_is_told_and_counted", a_fault_in_the_file_is_told_and_counted),
        (
            "reconfiguration::interfaces_costs_and_intervals_change_while_other_routes_stay",
            interfaces_costs_and_intervals_change_while_other_routes_stay,
        ),
        ("reconfiguration::another_key_in_the_same_file_needs_a_restart", another_key_in_the_same_file_needs_a_restart),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

fn another_key_in_the_same_file_needs_a_restart() {
    let pair = pair();
    let keyed = |key: &[u8]| {
        let association = SecurityAssociation::new(1, Algorithm::HmacSha256, key.to_vec());
        RouteConfig { authentication: Some(association), ..on(&[("e0", None)]) }
    };
    let (log, tell) = listener();
    let (sender, news) = unbounded_channel();
    let router = Running::start_following(&pair[0], keyed(b"a key of the mesh"), tell, news);
    for key in [b"a key of the mesh", b"another of theirs"] {
        sender.send(Ok(NewConfig { config: keyed(key), left: Vec::new() })).expect("it runs");
    }
    wait_for("both", || {
        let taken = router.ask(Question::Status)["configurations_taken"].as_u64();
        if taken == Some(2) { Ok(()) } else { Err(taken) }
    });
    assert_eq!(lines(&log, "the configuration was read again"), 2);
    assert_eq!(lines(&log, "the configuration was read again; a restart is needed for key"), 1);
}

fn a_fault_in_the_file_is_told_and_counted() {
    let pair = pair();
    let (log, tell) = listener();
    let (sender, news) = unbounded_channel();
    let router = Running::start_following(&pair[0], on(&[("e0", None)]), tell, news);
    sender.send(Err("mesh.toml has no table [route]".to_owned())).expect("it runs");
    wait_for("the refusal", || {
        let status = router.ask(Question::Status);
        let counts = [&status["configurations_taken"], &status["configurations_refused"]];
        if counts == [0, 1] { Ok(()) } else { Err(status) }
    });
    assert_eq!(lines(&log, "the configuration stays as it was: mesh.toml has no table [route]"), 1);
}

/// Another link between two namespaces, `e1` at both ends.
fn second_link(pair: &[Namespace; 2]) {
    let there = format!("/proc/{}/fd/{}", std::process::id(), pair[1].file().as_raw_fd());
    inside(&pair[0], || ip(&format!("link add e1 type veth peer name e1 netns {there}")));
    for (number, namespace) in [(1, &pair[0]), (2, &pair[1])] {
        inside(namespace, || {
            std::fs::write("/proc/sys/net/ipv6/conf/e1/accept_dad", "0").expect("it is there");
            ip(&format!("address add 10.8.0.{number}/24 dev e1"));
            ip("link set e1 up");
        });
    }
}

fn on(interfaces: &[(&str, Option<u16>)]) -> RouteConfig {
    let interface = |(name, cost): &(&str, Option<u16>)| MeshInterface {
        name: (*name).to_owned(),
        point_to_point: false,
        cost: *cost,
    };
    let mut config = RouteConfig { interfaces: interfaces.iter().map(interface).collect(), ..config(Family::Ipv4, 0) };
    // Links change often in this test.
    config.router.min_ls_interval = Duration::from_secs(1);
    config
}

/// Waits until the first one's route to the other's loopback leads over these interfaces.
fn routed_over(pair: &[Namespace; 2], wanted: &[&str]) {
    wait_for("the route over these interfaces", || {
        let table = inside(&pair[0], || {
            let output = std::process::Command::new("ip").args(["route", "show", "table", "199", "10.9.9.2"]).output();
            String::from_utf8_lossy(&output.expect("ip runs").stdout).into_owned()
        });
        let mut words = table.split_whitespace();
        let mut found = Vec::new();
        while let Some(word) = words.next() {
            found.extend((word == "dev").then(|| words.next().unwrap_or_default().to_owned()));
        }
        if found == wanted { Ok(()) } else { Err((table, state(&pair[0]))) }
    });
}

fn removed(router: &Running) -> Option<u64> {
    router.ask(Question::Status)["routes_removed"].as_u64()
}

fn interfaces_costs_and_intervals_change_while_other_routes_stay() {
    let pair = pair();
    second_link(&pair);
    let of_e0 = ["forwarding", "accept_redirects"].map(|name| format!("/proc/sys/net/ipv4/conf/e0/{name}"));
    let settings = || {
        let read = |path: &String| std::fs::read_to_string(path).expect("it is there").trim().to_owned();
        inside(&pair[0], || of_e0.each_ref().map(read))
    };
    let before_all = ["0", "1"];
    inside(&pair[0], || {
        of_e0.iter().zip(before_all).for_each(|(path, value)| std::fs::write(path, value).expect("it is there"));
    });
    let ((log, tell), (_, nothing)) = (listener(), listener());
    let (sender, news) = unbounded_channel();
    let (other_sender, other_news) = unbounded_channel();
    let place = journal("reconfiguration");
    let first = RouteConfig { keep_settings: false, journal: Some(place.clone()), ..on(&[("e0", None)]) };
    let router = Running::start_following(&pair[0], first, tell, news);
    let both = on(&[("e0", None), ("e1", None)]);
    let other = Running::start_following(&pair[1], both.clone(), nothing, other_news);
    routed(&pair);
    assert_eq!(settings(), ["1", "0"]);
    let take = |sender: &UnboundedSender<ConfigRead>, config: RouteConfig, left: &[&str]| {
        let left = left.iter().map(|key| (*key).to_owned()).collect();
        sender.send(Ok(NewConfig { config, left })).expect("it runs");
    };
    let before = removed(&router);
    // The neighbour has not told of its other address yet.
    take(&sender, both, &["table", "key"]);
    routed_over(&pair, &["e0", "e1"]);
    assert_eq!(lines(&log, "the configuration was read again; a restart is needed for table, key"), 1);
    take(&sender, on(&[("e0", Some(10)), ("e1", None)]), &[]);
    routed_over(&pair, &["e1"]);
    assert_eq!(removed(&router), before, "no route was lost meanwhile");
    // What cannot be is told, and changes nothing.
    take(&sender, on(&[("e1", None), ("e9", None)]), &[]);
    let mut wrong = on(&[("e1", None)]);
    wrong.manet.router_dead_interval = Duration::from_secs(1);
    take(&sender, wrong, &[]);
    wait_for("two sentences", || {
        let said = lines(&log, "the configuration stays as it was");
        if said == 2 { Ok(()) } else { Err(said) }
    });
    assert_eq!(lines(&log, "stays as it was: there is no network interface 'e9'"), 1);
    routed_over(&pair, &["e1"]);
    full(&router, 2);
    let mut last = on(&[("e1", None)]);
    last.bfd = Some(BfdSettings::default());
    take(&sender, last.clone(), &[]);
    full(&router, 1);
    routed_over(&pair, &["e1"]);
    // Other intervals, which only hold if both have them.
    for sender in [&sender, &other_sender] {
        last.manet.router_dead_interval = Duration::from_secs(4);
        take(sender, last.clone(), &[]);
    }
    wait_for("the new configurations", || {
        let status = router.ask(Question::Status);
        let counts = [&status["configurations_taken"], &status["configurations_refused"]];
        if counts == [4, 2] { Ok(()) } else { Err(status) }
    });
    full(&router, 1);
    full(&other, 1);
    routed_over(&pair, &["e1"]);
    // What is no longer named has the settings of before.
    assert_eq!(settings(), before_all);
    // An interface comes back under its old number.
    take(&sender, RouteConfig { manet: last.manet.clone(), ..on(&[("e0", None)]) }, &[]);
    take(&other_sender, RouteConfig { manet: last.manet.clone(), ..on(&[("e0", None)]) }, &[]);
    routed_over(&pair, &["e0"]);
    assert_eq!(settings(), ["1", "0"]);
    drop(router);
    // It is empty after a run without faults.
    let _ = std::fs::remove_dir_all(place);
}
