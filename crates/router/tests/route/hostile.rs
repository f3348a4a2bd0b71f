//! Hostile packets on a real interface: counted, reported once, and without effect.

use crate::host::{inside, pair};
use crate::scene::{Running, config, wait_for};
use anabranch_router::{Family, Question, RouteConfig};
use anabranch_system::Namespace;
use anabranch_wire::ospf::authentication::{Algorithm, SecurityAssociation};
use anabranch_wire::ospf::{AreaId, Body, Compatibility, Hello, InstanceId, Integrity, Options, Packet, RouterId};
use libtest_mimic::Trial;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read as _;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub const ALL: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 5);

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 4] = [
        ("hostile::what_is_refused_is_counted_and_told_once", what_is_refused_is_counted_and_told_once),
        ("hostile::without_the_key_nobody_becomes_a_neighbour", without_the_key_nobody_becomes_a_neighbour),
        ("hostile::what_was_recorded_is_refused_when_it_is_sent_again", what_was_recorded_is_refused),
        ("hostile::a_restarted_sender_is_believed_at_once", a_restarted_sender_is_believed_at_once),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

/// A router's configuration, with this key if any.
fn keyed(key: Option<&[u8]>) -> RouteConfig {
    let association = |key: &[u8]| SecurityAssociation::new(1, Algorithm::HmacSha256, key.to_vec());
    RouteConfig { authentication: key.map(association), ..config(Family::Ipv4, 1) }
}

const KEY: Option<&[u8]> = Some(b"a key of the mesh");

/// A raw socket beside the router's on `e0`.
pub struct Wire {
    socket: Socket,
    interface: u32,
    pub own: Ipv6Addr,
}

impl Wire {
    pub fn open(namespace: &Namespace) -> Self {
        inside(namespace, || {
            let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::from(89))).expect("root may");
            let table = std::fs::read_to_string("/proc/thread-self/net/if_inet6").expect("it is there");
            let line = table.lines().find(|line| line.ends_with(" e0") && line.starts_with("fe80"));
            let mut words = line.expect("e0 has an address").split_whitespace();
            let own = u128::from_str_radix(words.next().expect("an address"), 16).expect("a number");
            let number = u32::from_str_radix(words.next().expect("an index"), 16).expect("a number");
            socket.join_multicast_v6(&ALL, number).expect("it is there");
            socket.set_multicast_if_v6(number).expect("it is there");
            socket.set_multicast_loop_v6(false).expect("an option");
            socket.set_multicast_hops_v6(1).expect("an option");
            socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a time");
            Self { socket, interface: number, own: own.into() }
        })
    }

    pub fn send(&self, bytes: &[u8]) {
        let to = SocketAddrV6::new(ALL, 0, 0, self.interface);
        self.socket.send_to(bytes, &to.into()).expect("the link is up");
    }

    /// The packets received during `time`.
    fn hear(&self, time: Duration) -> Vec<Vec<u8>> {
        let (until, mut all) = (Instant::now() + time, Vec::new());
        while Instant::now() < until {
            let mut buffer = [0; 2048];
            if let Ok(length) = (&self.socket).read(&mut buffer) {
                all.push(buffer[..length].to_vec());
            }
        }
        all
    }
}

fn refused(router: &Running, kind: &str) -> u64 {
    router.ask(Question::Status)["refused"][kind].as_u64().unwrap_or_default()
}

fn neighbours(router: &Running) -> usize {
    router.ask(Question::Neighbors).as_array().map_or(0, Vec::len)
}

fn at_work(router: &Running) {
    wait_for("the router", || {
        let status = router.ask(Question::Status);
        if status["sent_packets"].as_u64() > Some(0) { Ok(()) } else { Err(status) }
    });
}

fn full(routers: [&Running; 2]) {
    for router in routers {
        wait_for("an adjacency", || {
            let shown = router.ask(Question::Neighbors);
            if shown[0]["state"] == "full" { Ok(()) } else { Err(shown) }
        });
    }
}

fn told(heard: &Receiver<String>) -> Vec<String> {
    heard.try_iter().collect()
}

/// A forged packet with a correct checksum.
fn honest(wire: &Wire, change: impl FnOnce(&mut Hello)) -> Vec<u8> {
    let mut hello = Hello {
        hello_interval: 1,
        router_dead_interval: 3,
        options: Options::V6 | Options::E | Options::R | Options::AF,
        ..Hello::default()
    };
    change(&mut hello);
    let (router, area, instance) = (RouterId(99), AreaId::BACKBONE, InstanceId::IPV4);
    let packet = Packet { router, area, instance, body: Body::Hello(hello), lls: None };
    let mut bytes = Vec::new();
    let integrity = Integrity::Checksum { source: wire.own, destination: ALL };
    packet.encode(integrity, Compatibility::default(), &mut bytes).expect("it fits");
    bytes
}

fn what_is_refused_is_counted_and_told_once() {
    let [one, two] = pair();
    let (tell, heard) = channel();
    let router = Running::start_telling(&one, keyed(None), move |news| drop(tell.send(news.to_owned())));
    at_work(&router);
    let wire = Wire::open(&two);
    let good = honest(&wire, |_| {});
    let mut summed_wrong = good.clone();
    summed_wrong[30] ^= 1;
    let mut short = good[..20].to_vec();
    short[2..4].copy_from_slice(&2000_u16.to_be_bytes());
    let patient = honest(&wire, |hello| hello.hello_interval = 9);
    for _ in 0..100 {
        [&summed_wrong, &short, &patient, &good].into_iter().for_each(|bytes| wire.send(bytes));
        std::thread::sleep(Duration::from_millis(2));
    }
    wait_for("a hundred of each", || {
        let counts = [refused(&router, "checksum"), refused(&router, "malformed")];
        if counts == [100, 100] { Ok(()) } else { Err(counts) }
    });
    let mut told = told(&heard);
    told.sort();
    assert_eq!(told.len(), 4, "{told:#?}");
    for what in ["wrong checksum", "no OSPFv3 packet", "another HelloInterval", "without what RFC 5614 adds"] {
        assert!(told.iter().any(|news| news.contains(what) && news.contains(&wire.own.to_string())), "{told:#?}");
    }
    assert_eq!(neighbours(&router), 0);
    router.stop().expect("it ends well");
}

fn without_the_key_nobody_becomes_a_neighbour() {
    let [one, two] = pair();
    let (tell, heard) = channel();
    let router = Running::start_telling(&one, keyed(KEY), move |news| drop(tell.send(news.to_owned())));
    at_work(&router);
    for key in [None, Some(&b"another key of us"[..])] {
        let before = refused(&router, "not_authentic");
        let stranger = Running::start(&two, keyed(key));
        wait_for("refusals", || {
            let count = refused(&router, "not_authentic") - before;
            if count >= 3 { Ok(()) } else { Err(count) }
        });
        assert_eq!((neighbours(&router), neighbours(&stranger)), (0, 0));
        stranger.stop().expect("it ends well");
    }
    assert_eq!(told(&heard).len(), 1, "one sender, one reason");
    let friend = Running::start(&two, keyed(KEY));
    full([&router, &friend]);
}

fn what_was_recorded_is_refused() {
    let [one, two] = pair();
    let router = Running::start(&one, keyed(KEY));
    let friend = Running::start(&two, keyed(KEY));
    let recorder = Wire::open(&one);
    full([&router, &friend]);
    let recorded = recorder.hear(Duration::from_secs(3));
    assert!(recorded.len() >= 2, "{}", recorded.len());
    // From the same host, so with the same source.
    let wire = Wire::open(&two);
    let count = 50 * recorded.len() as u64;
    for bytes in (0..50).flat_map(|_| &recorded) {
        wire.send(bytes);
        std::thread::sleep(Duration::from_millis(1));
    }
    wait_for("all to be refused", || {
        let refused = refused(&router, "replayed");
        if refused >= count { Ok(()) } else { Err((refused, count)) }
    });
    full([&router, &friend]);
    // A changed byte invalidates the authentication.
    let before = refused(&router, "not_authentic");
    let mut forged = recorded[0].clone();
    forged[17] ^= 1;
    wire.send(&forged);
    wait_for("the forgery", || if refused(&router, "not_authentic") > before { Ok(()) } else { Err(()) });
}

fn a_restarted_sender_is_believed_at_once() {
    let [one, two] = pair();
    let router = Running::start(&one, keyed(KEY));
    let friend = Running::start(&two, keyed(KEY));
    full([&router, &friend]);
    friend.stop().expect("it ends well");
    // Sequence numbers start at the time in seconds.
    std::thread::sleep(Duration::from_millis(1_100));
    let before = refused(&router, "replayed");
    let friend = Running::start(&two, keyed(KEY));
    wait_for("the friend to hear of it", || if neighbours(&friend) == 1 { Ok(()) } else { Err(()) });
    full([&router, &friend]);
    assert_eq!(refused(&router, "replayed"), before);
}
