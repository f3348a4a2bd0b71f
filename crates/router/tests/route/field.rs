//! What happens to routers in the field: hosts with the same addresses, strangers, and what other programs do.

use crate::host::{Killed, inside, journal, pair, routed, state};
use crate::hostile::{ALL, Wire};
use crate::kernel::ip;
use crate::probe::{Probe, Target};
use crate::scene::{Running, Scene, config, wait_for};
use anabranch_emulate::{ChannelModel, Ether, Mesh, MeshConfig};
use anabranch_router::{Family, Question, RouteConfig};
use anabranch_wire::ospf::lls::MdrHello;
use anabranch_wire::ospf::{
    AreaId, Body, Compatibility, Hello, InstanceId, Integrity, InterfaceId, Lls, Options, Packet, RouterId, Tlv,
};
use libtest_mimic::Trial;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 10] = [
        ("field::a_stranger_that_only_says_hello_does_not_silence_the_others", a_stranger_that_only_says_hello),
        ("field::a_relay_that_is_killed_is_replaced_and_used_again_when_it_is_back", a_relay_that_is_killed),
        ("field::an_interface_that_flaps_is_used_again_and_told_once", an_interface_that_flaps),
        ("field::bridges_with_one_address_on_every_host_do_no_harm", bridges_with_one_address_on_every_host_do_no_harm),
        ("field::of_two_neighbours_with_one_router_id_one_changes", of_two_neighbours_with_one_router_id_one_changes),
        ("field::of_two_far_routers_with_one_router_id_one_changes", of_two_far_routers_with_one_router_id_one_changes),
        (
            "field::a_node_with_another_mtu_does_not_silence_the_others",
            a_node_with_another_mtu_does_not_silence_the_others,
        ),
        ("field::routes_and_rules_that_others_remove_come_back", routes_and_rules_that_others_remove_come_back),
        ("field::a_relay_that_ends_loses_next_to_nothing", a_relay_that_ends_loses_next_to_nothing),
        ("field::what_is_dropped_is_counted_by_reason", what_is_dropped_is_counted_by_reason),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

/// What a router has told.
pub type Log = Arc<Mutex<Vec<String>>>;

/// A listener for a router's reports.
pub fn listener() -> (Log, impl FnMut(&str) + Send + 'static) {
    let log = Log::default();
    let heard = Arc::clone(&log);
    (log, move |news: &str| heard.lock().expect("nobody panics").push(news.to_owned()))
}

/// How many lines of the log have these words.
pub fn lines(log: &Log, words: &str) -> usize {
    log.lock().expect("nobody panics").iter().filter(|line| line.contains(words)).count()
}

/// Waits until a router has so many Full neighbours.
pub fn full(router: &Running, wanted: usize) {
    wait_for("Full neighbours", || {
        let answer = router.ask(Question::Neighbors);
        let states = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        if states.iter().filter(|one| one["state"] == "full").count() == wanted { Ok(()) } else { Err(answer) }
    });
}

/// A chain of nodes, each of which hears only the next and the one before.
pub fn chain(nodes: usize) -> MeshConfig {
    let mut chain = MeshConfig::figure_8(vec![ChannelModel::Ideal]);
    chain.positions.truncate(nodes);
    for (node, position) in chain.positions.iter_mut().enumerate() {
        (position.x, position.y) = (100.0 * node as f64, 0.0);
    }
    chain
}

fn bridges_with_one_address_on_every_host_do_no_harm() {
    let pair = pair();
    for namespace in &pair {
        inside(namespace, || {
            ip("-4 address flush dev e0 scope global");
            ip("-4 address flush dev lo scope global");
            ip("link add docker0 type veth peer name container");
            ip("address add 172.17.0.1/16 dev docker0");
            ip("link set docker0 up");
        });
    }
    let routers = pair.each_ref().map(|namespace| Running::start(namespace, config(Family::Ipv6, 1)));
    routers.iter().for_each(|router| full(router, 1));
}

fn of_two_neighbours_with_one_router_id_one_changes() {
    let pair = pair();
    let state = |at: usize| std::env::temp_dir().join(format!("anabranch-one-id-{}-{at}", std::process::id()));
    let keeping = |at| RouteConfig { state: Some(state(at)), ..config(Family::Ipv6, 1) };
    let routers = [0, 1].map(|at| {
        inside(&pair[at], || ip("address add 10.9.9.9/32 dev lo"));
        let (log, tell) = listener();
        (Running::start_telling(&pair[at], keeping(at), tell), log)
    });
    routers.iter().for_each(|(router, _)| full(router, 1));
    let statuses = routers.each_ref().map(|(router, _)| router.ask(Question::Status));
    let changes = |at: usize| statuses[at]["router_id_changes"].as_u64();
    assert_eq!(changes(0).zip(changes(1)).map(|(one, other)| one + other), Some(1), "{statuses:#?}");
    let told: usize = routers.iter().map(|(_, log)| lines(log, "has the Router ID 10.9.9.9 too: this one is")).sum();
    assert_eq!(told, 1);
    // The one that changed has the new ID after a restart too.
    let at = usize::from(changes(1) == Some(1));
    let [one, two] = routers;
    let (changed, stays) = if at == 0 { (one, two) } else { (two, one) };
    changed.0.stop().expect("it ends well");
    let again = Running::start(&pair[at], keeping(at));
    wait_for("the same Router ID", || {
        let status = again.ask(Question::Status);
        if status["router_id"] == statuses[at]["router_id"] { Ok(()) } else { Err(status) }
    });
    [&again, &stays.0].into_iter().for_each(|router| full(router, 1));
    assert_eq!(again.ask(Question::Status)["router_id_changes"], 0);
    std::fs::remove_dir_all(state(at)).expect("it was kept there");
    assert!(!state(1 - at).exists(), "the other one had nothing to keep");
}

fn of_two_far_routers_with_one_router_id_one_changes() {
    let (mesh, air, ends) = Mesh::new(&chain(3)).expect("namespaces were there a moment ago");
    for node in [0, 2] {
        inside(&mesh.nodes()[node].namespace, || ip("address add 223.9.9.9/32 dev lo"));
    }
    let ether = Ether::start(air, ends, None).expect("a thread");
    let routers = mesh.nodes().iter().map(|node| Running::start(&node.namespace, config(Family::Ipv4, 1))).collect();
    let scene = Scene { routers, mesh, ether };
    wait_for("another Router ID", || {
        let statuses = [0, 2].map(|node| scene.routers[node].ask(Question::Status));
        let changes: u64 = statuses.iter().filter_map(|status| status["router_id_changes"].as_u64()).sum();
        if changes > 0 && statuses[0]["router_id"] != statuses[1]["router_id"] { Ok(()) } else { Err(statuses) }
    });
    let far = anabranch_emulate::mesh::loopback_ipv4(3).to_string();
    wait_for("the route to the far end", || {
        let hops = scene.next_hops(1, &far);
        if hops == [2] { Ok(()) } else { Err(hops) }
    });
}

/// The total of a counter of the router's instances.
fn count(router: &Running, counter: &str) -> u64 {
    let status = router.ask(Question::Status);
    let instances = status["instances"].as_array().cloned().unwrap_or_default();
    instances.iter().filter_map(|instance| instance[counter].as_u64()).sum()
}

fn a_node_with_another_mtu_does_not_silence_the_others() {
    let mut near = chain(3);
    near.positions.iter_mut().for_each(|position| position.x /= 4.0);
    let (mesh, air, ends) = Mesh::new(&near).expect("namespaces were there a moment ago");
    // The third one has the largest Router ID: the others would choose it as their MDR.
    inside(&mesh.nodes()[2].namespace, || ip("link set e0 mtu 1400"));
    let ether = Ether::start(air, ends, None).expect("a thread");
    let mut logs = Vec::new();
    let start = |node: &anabranch_emulate::Node| {
        let (log, tell) = listener();
        logs.push(log);
        Running::start_telling(&node.namespace, config(Family::Ipv4, 1), tell)
    };
    let routers = mesh.nodes().iter().map(start).collect();
    let scene = Scene { routers, mesh, ether };
    let to = |node| anabranch_emulate::mesh::loopback_ipv4(node).to_string();
    wait_for("the third one to be told of", || {
        let failed = [0, 1].map(|node| count(&scene.routers[node], "exchanges_failed"));
        if failed.iter().sum::<u64>() > 0 { Ok(()) } else { Err(failed) }
    });
    wait_for("the routes of the two others", || {
        let hops = (scene.next_hops(1, &to(2)), scene.next_hops(2, &to(1)));
        if hops == (vec![2], vec![1]) { Ok(()) } else { Err(hops) }
    });
    assert!(logs.iter().any(|log| lines(log, "since its MTU is 1400") == 1));
    assert_eq!(scene.routers[2].ask(Question::Status)["mtu_changes"], 0);
    // It is repaired while all run.
    assert_eq!(scene.output(3, "ip link set e0 mtu 1500"), "");
    wait_for("the route to the third one", || {
        let hops = scene.next_hops(1, &to(3));
        if hops == [3] { Ok(()) } else { Err(hops) }
    });
    assert_eq!(lines(&logs[2], "the MTU of e0 is 1500 instead of 1400 from now on"), 1);
    assert_eq!(scene.routers[2].ask(Question::Status)["mtu_changes"], 1);
}

fn routes_and_rules_that_others_remove_come_back() {
    let pair = pair();
    let both = |tell| {
        let families = vec![Family::Ipv6, Family::Ipv4];
        Running::start_telling(&pair[0], RouteConfig { families, ..config(Family::Ipv4, 1) }, tell)
    };
    let (log, tell) = listener();
    let routers = [both(tell), Running::start(&pair[1], config(Family::Ipv4, 1))];
    routed(&pair);
    // What another daemon leaves when it starts again.
    inside(&pair[0], || {
        ip("route flush table 199");
        ip("rule del priority 199");
        ip("-6 rule del priority 32768");
    });
    wait_for("the rules", || {
        let found = state(&pair[0]);
        let rules = found.iter().filter(|line| line.contains("lookup 199")).count();
        if rules == 4 { Ok(()) } else { Err(found) }
    });
    routed(&pair);
    // The neighbour's two addresses, and two rules. They may be found at different times.
    let counted = |status: &serde_json::Value| status["routes_and_rules_restored"].as_u64();
    wait_for("the counter", || {
        let status = routers[0].ask(Question::Status);
        if counted(&status) >= Some(3) { Ok(()) } else { Err(status) }
    });
    assert_eq!(lines(&log, "another program removed or changed"), 1);
    let routes = routers[0].ask(Question::Routes);
    let mut there = routes.as_array().into_iter().flatten().filter(|route| route["prefix"] == "10.9.9.2/32");
    assert!(there.any(|route| route["installed"] == true), "{routes:#}");
}

/// In figure 8 M1 has three ways to M8, by M2, M3 and M4, over which the flows of the probes spread.
fn a_relay_that_ends_loses_next_to_nothing() {
    let mut scene = Scene::new(vec![ChannelModel::Ideal], &config(Family::Ipv4, 1));
    let far = anabranch_emulate::mesh::loopback_ipv4(8).to_string();
    wait_for("the routes", || {
        let hops = scene.next_hops(1, &far);
        if hops == [2, 3, 4] { Ok(()) } else { Err(hops) }
    });
    let probes: Vec<Probe> = (0..8).map(|flow| Probe::start(&scene, Target::Ipv4, flow)).collect();
    wait_for("answers", || if probes.iter().all(|probe| probe.answered() > 50) { Ok(()) } else { Err(()) });
    let marks: Vec<_> = probes.iter().map(Probe::mark).collect();
    // Two of the three, so that most flows are concerned.
    for _ in 0..2 {
        scene.routers.remove(1).stop().expect("it ends well");
    }
    let enough = |probe: &Probe, mark| probe.since(mark).answered + probe.since(mark).lost >= 500;
    let all = || probes.iter().zip(&marks).all(|(probe, mark)| enough(probe, mark));
    wait_for("500 probes", || if all() { Ok(()) } else { Err(()) });
    let lost: Vec<u32> = probes.iter().zip(&marks).map(|(probe, mark)| probe.since(mark).lost).collect();
    eprintln!("lost of 500 probes on each of eight flows while two relays end: {lost:?}");
    // Silence would cost a flow 200 probes and more.
    assert!(lost.iter().all(|lost| *lost < 100), "{lost:?}");
}

fn what_is_dropped_is_counted_by_reason() {
    let pair = pair();
    let mut slower = config(Family::Ipv4, 1);
    slower.manet.hello_interval = anabranch_policy::time::Duration::from_secs(2);
    let routers = [Running::start(&pair[0], config(Family::Ipv4, 1)), Running::start(&pair[1], slower)];
    wait_for("Hellos that do not fit", || {
        let statuses = routers.each_ref().map(|router| router.ask(Question::Status));
        let counted = |status: &serde_json::Value| status["instances"][0]["dropped"]["hello_interval"].as_u64();
        if statuses.iter().all(|status| counted(status) > Some(0)) { Ok(()) } else { Err(statuses) }
    });
}

/// A Hello in the IPv4 instance of a router with the largest Router ID and priority, which calls itself an MDR and hears these.
fn tempting(wire: &Wire, sequence: u16, heard: &[RouterId]) -> Vec<u8> {
    let own = RouterId(0xdfff_fffe);
    let (mut hello, lls) = (
        Hello {
            interface: InterfaceId(1),
            priority: 255,
            hello_interval: 1,
            router_dead_interval: 3,
            options: Options::V6 | Options::E | Options::R | Options::AF,
            designated_router: own,
            neighbors: heard.to_vec(),
            ..Hello::default()
        },
        MdrHello { sequence, ..MdrHello::default() },
    );
    hello.options = hello.options | Options::L;
    let lls = Some(Lls { tlvs: vec![Tlv::MdrHello(lls)] });
    let (area, instance) = (AreaId::BACKBONE, InstanceId::IPV4);
    let packet = Packet { router: own, area, instance, body: Body::Hello(hello), lls };
    let mut bytes = Vec::new();
    let integrity = Integrity::Checksum { source: wire.own, destination: ALL };
    packet.encode(integrity, Compatibility::default(), &mut bytes).expect("it fits");
    bytes
}

/// A node that says Hello with the largest priority, lists the others, and answers nothing else.
fn a_stranger_that_only_says_hello() {
    let mut near = chain(3);
    near.positions.iter_mut().for_each(|position| position.x /= 4.0);
    let (mesh, air, ends) = Mesh::new(&near).expect("namespaces were there a moment ago");
    let wire = Wire::open(&mesh.nodes()[2].namespace);
    let ether = Ether::start(air, ends, None).expect("a thread");
    let heard = [1, 2].map(|node| RouterId(anabranch_emulate::mesh::loopback_ipv4(node).to_bits()));
    let end = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&end);
    let talking = std::thread::spawn(move || {
        let mut sequence = 0;
        while !ended.load(Ordering::Relaxed) {
            wire.send(&tempting(&wire, sequence, &heard));
            sequence = sequence.wrapping_add(1);
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    });
    let mut logs = Vec::new();
    let start = |node: &anabranch_emulate::Node| {
        let (log, tell) = listener();
        logs.push(log);
        Running::start_telling(&node.namespace, config(Family::Ipv4, 1), tell)
    };
    let routers = mesh.nodes()[..2].iter().map(start).collect();
    let scene = Scene { routers, mesh, ether };
    let to = |node| anabranch_emulate::mesh::loopback_ipv4(node).to_string();
    wait_for("the stranger to be told of", || {
        let failed = [0, 1].map(|node| count(&scene.routers[node], "exchanges_failed"));
        if failed.iter().sum::<u64>() > 0 { Ok(()) } else { Err(failed) }
    });
    wait_for("the routes of the two others", || {
        let hops = (scene.next_hops(1, &to(2)), scene.next_hops(2, &to(1)));
        if hops == (vec![2], vec![1]) { Ok(()) } else { Err(hops) }
    });
    assert!(logs.iter().any(|log| lines(log, "does not finish the exchange of databases") == 1));
    end.store(true, Ordering::Relaxed);
    talking.join().expect("it does not panic");
}

/// Two relays between two ends, one of which is killed.
fn a_relay_that_is_killed() {
    let mut diamond = chain(4);
    for (position, (x, y)) in
        diamond.positions.iter_mut().zip([(0.0, 0.0), (100.0, 60.0), (100.0, -60.0), (200.0, 0.0)])
    {
        (position.x, position.y) = (x, y);
    }
    let (mesh, air, ends) = Mesh::new(&diamond).expect("namespaces were there a moment ago");
    let ether = Ether::start(air, ends, None).expect("a thread");
    let journal = journal("relay");
    let relay = Killed::start(&mesh.nodes()[1].namespace, &journal);
    let mut logs = Vec::new();
    let start = |node: usize| {
        let (log, tell) = listener();
        logs.push(log);
        Running::start_telling(&mesh.nodes()[node].namespace, config(Family::Ipv4, 1), tell)
    };
    let routers = [0, 2, 3].map(start).into();
    let scene = Scene { routers, mesh, ether };
    let far = anabranch_emulate::mesh::loopback_ipv4(4).to_string();
    let over = |wanted: &[u8]| {
        wait_for("the route to the far end", || {
            let hops = scene.next_hops(1, &far);
            if hops == wanted { Ok(()) } else { Err(hops) }
        });
    };
    over(&[2, 3]);
    relay.kill();
    let begun = std::time::Instant::now();
    over(&[3]);
    // RouterDeadInterval is 3 s, and the last Hello up to a second old.
    eprintln!("a killed relay was left after {:?}", begun.elapsed());
    // The other end may have told of it before.
    wait_for("the neighbour to be lost", || {
        let told = lines(&logs[0], "the neighbour 10.26.255.2 on e0 is lost");
        if told == 1 { Ok(()) } else { Err(told) }
    });
    assert!(scene.routers[0].ask(Question::Status)["neighbors_lost"].as_u64() >= Some(1));
    let relay = Killed::start(scene.node(2), &journal);
    over(&[2, 3]);
    relay.kill();
    drop(scene);
    let _ = std::fs::remove_dir_all(journal);
}

fn an_interface_that_flaps() {
    let pair = pair();
    let (log, tell) = listener();
    let routers = [
        Running::start_telling(&pair[0], config(Family::Ipv4, 1), tell),
        Running::start(&pair[1], config(Family::Ipv4, 1)),
    ];
    routed(&pair);
    for time in 1..=4 {
        let reached = |what: &str, up: bool| {
            wait_for(what, || {
                let status = routers[0].ask(Question::Status);
                let found = (status["interfaces"][0]["up"] == up, status["interfaces_lost"].as_u64());
                if found == (true, Some(time)) { Ok(()) } else { Err(status) }
            });
        };
        inside(&pair[0], || ip("link set e0 down"));
        reached("the interface to be lost", false);
        inside(&pair[0], || ip("link set e0 up"));
        reached("the interface to be used", true);
    }
    routed(&pair);
    full(&routers[0], 1);
    assert_eq!(lines(&log, "e0 is down"), 1);
}
