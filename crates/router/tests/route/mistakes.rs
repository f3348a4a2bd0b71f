//! Mistakes of users, and links that are not up: what is told, and what goes on.

use crate::field::{lines, listener};
use crate::host::{inside, pair, state};
use crate::kernel::ip;
use crate::scene::{Running, config, wait_for};
use anabranch_policy::time::Duration;
use anabranch_router::{Family, MeshInterface, Question, RouteConfig};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 7] = [
        ("mistakes::two_interfaces_in_one_network_are_told", two_interfaces_in_one_network_are_told),
        ("mistakes::a_neighbour_of_another_instance_is_told", a_neighbour_of_another_instance_is_told),
        ("mistakes::an_interface_that_is_named_twice_is_told", an_interface_that_is_named_twice_is_told),
        ("mistakes::an_interface_that_is_down_at_the_start_is_told", an_interface_that_is_down_at_the_start_is_told),
        (
            "mistakes::a_link_that_is_down_does_not_hide_the_way_to_its_network",
            a_link_that_is_down_does_not_hide_the_way_to_its_network,
        ),
        (
            "mistakes::a_neighbour_that_was_lost_is_not_said_to_have_been_heard",
            a_neighbour_that_was_lost_is_not_said_to_have_been_heard,
        ),
        (
            "mistakes::a_full_neighbour_on_a_point_to_point_link_is_said_to_be_routable",
            a_full_neighbour_on_a_point_to_point_link_is_said_to_be_routable,
        ),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

fn an_interface_that_is_named_twice_is_told() {
    let e0 = |point_to_point| MeshInterface { name: "e0".to_owned(), point_to_point, cost: None };
    let once = RouteConfig { interfaces: vec![e0(false)], ..config(Family::Ipv6, 0) };
    let name = || vec!["e0".to_owned()];
    for twice in [
        RouteConfig { interfaces: vec![e0(false), e0(false)], ..once.clone() },
        RouteConfig { interfaces: vec![e0(false), e0(true)], ..once.clone() },
        RouteConfig { lanes: name(), ..once.clone() },
        RouteConfig { passive: name(), ..once.clone() },
    ] {
        let said = twice.check_alone().expect_err("it cannot be").to_string();
        let wanted =
            "'e0' is named twice: an interface is --interface, --point-to-point, --lane or --passive, and once";
        assert_eq!(said, wanted);
    }
    once.check_alone().expect("it is named once");
}

/// Without a word it would seem to be used.
fn an_interface_that_is_down_at_the_start_is_told() {
    let pair = pair();
    inside(&pair[0], || ip("link set e0 down"));
    let (log, tell) = listener();
    let router = Running::start_telling(&pair[0], config(Family::Ipv6, 1), tell);
    wait_for("the sentence", || match lines(&log, "e0 is down or has no link-local address") {
        1 => Ok(()),
        count => Err(count),
    });
    let status = router.ask(Question::Status);
    assert_eq!(status["interfaces_lost"], 0, "it was never there");
}

/// It must not be taken for another router with the same ID.
fn two_interfaces_in_one_network_are_told() {
    let pair = pair();
    inside(&pair[0], || {
        ip("link add e1 type veth peer name e2");
        ip("link set e1 up");
        ip("link set e2 up");
    });
    let (log, tell) = listener();
    let both = ["e1", "e2"].map(|name| MeshInterface { name: name.to_owned(), point_to_point: false, cost: None });
    let router = RouteConfig { interfaces: both.into(), ..config(Family::Ipv6, 0) };
    let router = Running::start_telling(&pair[0], router, tell);
    wait_for("the sentences", || {
        let told = ["e1 hears what this router sends on e2", "e2 hears what this router sends on e1"];
        let told = told.map(|words| lines(&log, words));
        if told == [1, 1] { Ok(()) } else { Err((told, router.ask(Question::Status))) }
    });
    assert_eq!(lines(&log, "the router ID of this router"), 0);
}

/// Both seem to work, and neither has a neighbour.
fn a_neighbour_of_another_instance_is_told() {
    let pair = pair();
    let (log, tell) = listener();
    let router = Running::start_telling(&pair[0], config(Family::Ipv6, 1), tell);
    let _other = Running::start(&pair[1], RouteConfig { instance: 3, ..config(Family::Ipv6, 1) });
    wait_for("the sentence", || match lines(&log, "is of instance 3, which this router does not run") {
        1 => Ok(()),
        count => Err((count, router.ask(Question::Status))),
    });
}

/// The cable of a network in which two routers are is pulled out of one, whose address stays.
fn a_link_that_is_down_does_not_hide_the_way_to_its_network() {
    let pair = pair();
    for (number, namespace) in [(1, &pair[0]), (2, &pair[1])] {
        inside(namespace, || {
            ip("link add lan type veth peer name far");
            ip(&format!("address add 10.77.0.{number}/24 dev lan"));
            ip("link set lan up");
            ip("link set far up");
        });
    }
    let both = RouteConfig { passive: vec!["lan".to_owned()], ..config(Family::Ipv4, 1) };
    let _routers = pair.each_ref().map(|namespace| Running::start(namespace, both.clone()));
    let way = |wanted: bool| {
        let found = state(&pair[0]);
        let there = found.iter().any(|line| line.starts_with("10.77.0.0/24 via 10.9.0.2 dev e0"));
        if there == wanted { Ok(()) } else { Err(found) }
    };
    wait_for("another network of that router", || {
        let found = state(&pair[0]);
        if found.iter().any(|line| line.starts_with("10.9.9.2 via")) { Ok(()) } else { Err(found) }
    });
    assert_eq!(way(false), Ok(()), "the link's own way is the better one");
    // Its address stays, without a carrier.
    inside(&pair[0], || ip("link set far down"));
    wait_for("the way of the mesh", || way(true));
    inside(&pair[0], || ip("link set far up"));
    wait_for("the link's own way", || way(false));
}

fn a_neighbour_that_was_lost_is_not_said_to_have_been_heard() {
    let pair = pair();
    let router = Running::start(&pair[0], config(Family::Ipv6, 1));
    let other = Running::start(&pair[1], config(Family::Ipv6, 1));
    let look = |wanted: &str| {
        let neighbors = router.ask(Question::Neighbors);
        let one = &neighbors[0];
        let is_heard = one["heard_seconds_ago"].is_number();
        if one["state"] == wanted && is_heard == (wanted != "down") { Ok(()) } else { Err(neighbors) }
    };
    wait_for("the neighbour", || look("full"));
    // It can say nothing more, though the link stays up.
    let silence = || std::fs::write("/proc/sys/net/ipv6/conf/e0/disable_ipv6", "1").expect("it is there");
    inside(&pair[1], silence);
    wait_for("its loss", || look("down"));
    drop(other);
}

/// Routes lead there, though RFC 5614 has the word for others only.
fn a_full_neighbour_on_a_point_to_point_link_is_said_to_be_routable() {
    let pair = pair();
    let routers = [&pair[0], &pair[1]].map(|namespace| {
        let e0 = MeshInterface { name: "e0".to_owned(), point_to_point: true, cost: None };
        let mut config = RouteConfig { interfaces: vec![e0], ..config(Family::Ipv6, 0) };
        config.point_to_point.hello_interval = Duration::from_secs(1);
        config.point_to_point.router_dead_interval = Duration::from_secs(4);
        Running::start(namespace, config)
    });
    wait_for("the neighbour", || {
        let neighbor = routers[0].ask(Question::Neighbors)[0].clone();
        if neighbor["state"] == "full" && neighbor["routable"] == true { Ok(()) } else { Err(neighbor) }
    });
}
