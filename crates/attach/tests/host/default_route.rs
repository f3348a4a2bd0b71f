//! The host's default route through a device that the test holds: which packets it receives, and which keep the host's
//! own routes.
//!
//! Besides the uplinks there is a network with a neighbour:
//!
//! ```text
//!   ours                                  neighbour
//!   lan0  192.168.7.1, fd07::1  --------  192.168.7.2, fd07::2  eth0
//! ```

mod ended;

pub use ended::{child, is_child};

use crate::kernel::{ip, sysctl};
use crate::scene::{Scene, output};
use anabranch_attach::{
    DefaultRoute, HostError, Ipv6, LedRoute, asked_to_end, end_kill_switch, listen_for_the_end, plan_default_route,
};
use anabranch_stack::device::open_tun;
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, Socket, Type};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Datagrams sent to detect a route: more than the kernel sends by itself.
const MANY: u64 = 50;

const MTU: u16 = 1_400;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 16] = [
        ("default_route::each_packet_takes_its_way", ways),
        ("default_route::with_a_kill_switch_each_packet_takes_the_same_way", ways_with_kill_switch),
        ("default_route::what_comes_back_arrives_also_with_strict_reverse_path_filtering", echoed),
        ("default_route::a_connection_that_ran_before_goes_on", connection_before),
        ("default_route::an_address_that_an_uplink_gets_later_keeps_its_routes", changed_address),
        ("default_route::an_uplink_that_is_made_anew_can_be_bound_to", made_anew),
        ("default_route::who_is_behind_a_gateway_takes_the_same_way", gateway),
        ("default_route::ipv6_that_the_far_end_has_not_is_refused_at_once", no_ipv6),
        ("default_route::nothing_is_left_after_sigterm", ended::after_sigterm),
        ("default_route::after_a_kill_the_hosts_own_routes_are_taken_and_the_next_start_cleans", ended::after_kill),
        ("default_route::a_kill_switch_holds_until_it_is_asked_to_end", ended::kill_switch),
        ("default_route::a_kill_switch_goes_with_the_next_start_without_it", ended::kill_switch_replaced),
        ("default_route::a_plan_changes_nothing_and_is_what_is_done", ended::dry_run),
        ("default_route::there_is_one_of_them", one),
        ("default_route::one_whose_journal_is_elsewhere_is_left_as_it_is", elsewhere),
        ("default_route::what_has_begun_goes_on_while_nothing_new_begins", retired),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

/// The scene with its neighbour.
struct Place {
    scene: Scene,
    neighbour: Namespace,
}

impl Place {
    fn new() -> Self {
        let scene = Scene::new();
        let neighbour = Namespace::new().expect("namespaces were there a moment ago");
        let there = format!("/proc/{}/fd/{}", std::process::id(), neighbour.file().as_raw_fd());
        scene.in_ours(|| {
            ip(&format!("link add lan0 type veth peer name eth0 netns {there}"));
            sysctl("ipv6.conf.lan0.addr_gen_mode", "1");
            ip("address add 192.168.7.1/24 dev lan0");
            ip("address add fd07::1/64 dev lan0 nodad");
            ip("link set lan0 up");
        });
        let place = Self { scene, neighbour };
        place.in_neighbour(|| {
            ip("link set lo up");
            sysctl("ipv6.conf.eth0.addr_gen_mode", "1");
            ip("address add 192.168.7.2/24 dev eth0");
            ip("address add fd07::2/64 dev eth0 nodad");
            ip("link set eth0 up");
            ip("route add default via 192.168.7.1");
            ip("-6 route add default via fd07::1");
        });
        place.scene.in_world(|| {
            ip("address add 203.0.113.9/32 dev lo");
            ip("address add 2001:db8::9/128 dev lo nodad");
        });
        // Carriers take a moment.
        while place.scene.state().iter().any(|line| line.contains("linkdown")) {
            std::thread::sleep(Duration::from_millis(20));
        }
        place
    }

    fn in_neighbour<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.neighbour.run(work).expect("the namespace can be entered")
    }

    fn end_kill_switch(&self) -> bool {
        self.scene.in_ours(|| end_kill_switch(Some(self.scene.journal()))).expect("we may")
    }
}

fn route() -> DefaultRoute {
    DefaultRoute {
        uplinks: Vec::new(),
        servers: vec![address("203.0.113.1"), address("2001:db8::1")],
        gateways: Vec::new(),
        kill_switch: false,
        mtu: MTU,
        ipv6: Ipv6::Carried,
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn begin(scene: &Scene, route: DefaultRoute) -> Result<(LedRoute, Reader), HostError> {
    let led = LedRoute::begin(route, Some(scene.journal()), |name| open_tun(name, MTU));
    led.map(|(led, device)| (led, Reader::new(device, false)))
}

/// The same, with datagrams echoed.
fn begin_echo(scene: &Scene, route: DefaultRoute) -> (LedRoute, Reader) {
    let led = LedRoute::begin(route, Some(scene.journal()), |name| open_tun(name, MTU));
    let (led, device) = led.expect("we may");
    (led, Reader::new(device, true))
}

/// Packets sent by each device, in the calling thread's namespace.
fn sent() -> Vec<(String, u64)> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("/proc is there");
    let count = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        Some((name.trim().to_owned(), numbers.split_whitespace().nth(9)?.parse().ok()?))
    };
    text.lines().filter_map(count).collect()
}

/// How a socket is bound before it sends.
#[derive(Clone, Copy)]
enum Bound {
    No,
    Device(&'static str),
    Address(&'static str),
}

/// The devices through which datagrams leave, in the calling thread's namespace.
fn way(bound: Bound, to: &str, port: u16) -> Vec<String> {
    let to = SocketAddr::new(address(to), port);
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, None).expect("a socket");
    match bound {
        Bound::No => {}
        Bound::Device(name) => socket.bind_device(Some(name.as_bytes())).expect("the device is there"),
        Bound::Address(from) => socket.bind(&SocketAddr::new(address(from), 0).into()).expect("the address is there"),
    }
    socket.set_broadcast(true).expect("it can");
    let before = sent();
    for _ in 0..MANY {
        // Errors from unreachable hosts or closed ports are ignored.
        let _ = socket.send_to(b"where to?", &to.into());
    }
    std::thread::sleep(Duration::from_millis(20));
    let old = |name: &str| before.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
    let busy = sent().into_iter().filter(|(name, count)| count - old(name) >= MANY);
    busy.map(|(name, _)| name.split_once('-').map_or(name.clone(), |_| "ours".to_owned())).collect()
}

/// The device of a packet while our device has the default route.
const WAYS: &[(Bound, &str, u16, &str)] = &[
    (Bound::No, "203.0.113.9", 443, "ours"),
    (Bound::No, "2001:db8::9", 443, "ours"),
    // Traffic to the server never enters the device.
    (Bound::No, "203.0.113.1", 443, "up0"),
    (Bound::No, "2001:db8::1", 443, "up0"),
    // Destinations on a link or with a specific route.
    (Bound::No, "192.168.7.2", 443, "lan0"),
    (Bound::No, "fd07::2", 443, "lan0"),
    (Bound::No, "10.2.0.1", 443, "up1"),
    (Bound::No, "172.16.5.5", 443, "lan0"),
    (Bound::No, "224.0.0.251", 5353, "up0"),
    (Bound::No, "255.255.255.255", 67, "up0"),
    // DNS does not go to the neighbour.
    (Bound::No, "192.168.7.2", 53, "ours"),
    (Bound::No, "fd07::2", 53, "ours"),
    (Bound::No, "10.1.0.1", 53, "ours"),
    (Bound::No, "8.8.8.8", 53, "ours"),
    // Bound sockets keep their device.
    (Bound::Device("up0"), "203.0.113.9", 443, "up0"),
    (Bound::Device("up1"), "203.0.113.9", 443, "up1"),
    (Bound::Device("up1"), "2001:db8::9", 443, "up1"),
    (Bound::Device("up1"), "10.2.0.1", 53, "up1"),
    (Bound::Address("10.1.0.2"), "203.0.113.9", 443, "up0"),
    // Still decided by the main table.
    (Bound::Address("10.2.0.2"), "203.0.113.9", 443, "up0"),
    (Bound::Address("fd01::2"), "2001:db8::9", 443, "up0"),
    (Bound::Address("192.168.7.1"), "203.0.113.9", 443, "up0"),
];

fn ways() {
    all_ways(&route());
}

fn ways_with_kill_switch() {
    all_ways(&DefaultRoute { kill_switch: true, ..route() });
}

fn all_ways(route: &DefaultRoute) {
    let place = Place::new();
    place.scene.in_ours(|| ip("route add 172.16.0.0/16 via 192.168.7.2"));
    let before = place.scene.state();
    place.scene.run(|| async {
        let (led, device) = begin(&place.scene, route.clone()).expect("we may");
        for &(bound, to, port, by) in WAYS {
            let from = match bound {
                Bound::No => "anywhere".to_owned(),
                Bound::Device(name) | Bound::Address(name) => name.to_owned(),
            };
            // The kernel may have chosen that address itself.
            let by = if route.kill_switch && from == "fd01::2" { "ours" } else { by };
            assert_eq!(way(bound, to, port), [by], "from {from} to {to} port {port}");
        }
        // The host's own rules still select the uplink by source address.
        ip("route add default via 10.2.0.1 dev up1 table 77");
        ip("rule add from 10.2.0.2 lookup 77");
        assert_eq!(way(Bound::Address("10.2.0.2"), "203.0.113.9", 443), ["up1"]);
        ip("rule delete from 10.2.0.2 lookup 77");
        ip("route flush table 77");
        // DNS over TCP as well; the kernel's second SYN follows later.
        let before = sent();
        for _ in 0..MANY {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            socket.set_nonblocking(true).expect("it can");
            let _ = socket.connect(&SocketAddr::new(address("192.168.7.2"), 53).into());
        }
        std::thread::sleep(Duration::from_millis(50));
        let now = sent();
        assert!(now.iter().zip(&before).any(|(now, before)| now.0 == led.device() && now.1 - before.1 >= MANY));
        led.end().expect("all is undone");
        drop(device);
        place.end_kill_switch();
    });
    place.scene.assert_as_before(&before);
}

/// Reads packets from the device (otherwise the counters do not increase) until told to end; optionally echoes
/// datagrams as their target would.
struct Reader {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    fn new(device: OwnedFd, sends_back: bool) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut packet = vec![0; 65_536];
            while !told.load(Ordering::Relaxed) {
                match nix::unistd::read(&device, &mut packet) {
                    Ok(length) if sends_back && packet[0] >> 4 == 4 && packet[9] == 17 => {
                        // The checksum is independent of the order.
                        packet[12..20].rotate_left(4);
                        packet[20..24].rotate_left(2);
                        let _ = nix::unistd::write(&device, &packet[..length]);
                    }
                    Ok(_) => {}
                    Err(nix::errno::Errno::EAGAIN) => std::thread::sleep(Duration::from_millis(1)),
                    Err(_) => return,
                }
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Reader {
    /// Closes the device.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Whether a datagram to a host of the world is answered.
fn answered(to: &str) -> bool {
    let any = if address(to).is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("it can");
    if socket.connect((address(to), 7)).is_err() {
        return false;
    }
    let mut answer = [0; 100];
    (0..3).any(|_| socket.send(b"hear me").is_ok() && socket.recv(&mut answer).is_ok())
}

/// A host of the world that answers datagrams.
fn world_answers(scene: &Scene) {
    for own in ["203.0.113.1:7", "203.0.113.9:7", "[2001:db8::9]:7"] {
        let socket = scene.in_world(|| UdpSocket::bind(own)).expect("the port is free");
        std::thread::spawn(move || {
            let mut bytes = [0; 2_000];
            while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                let _ = socket.send_to(&bytes[..length], from);
            }
        });
    }
}

fn echoed() {
    let place = Place::new();
    place.scene.in_ours(|| {
        sysctl("ipv4.conf.all.rp_filter", "1");
        sysctl("ipv4.conf.default.rp_filter", "1");
    });
    place.scene.run(|| async {
        let (led, _device) = begin_echo(&place.scene, route());
        // No host there answers: the device does.
        assert!(answered("198.51.100.7"));
        led.end().expect("all is undone");
    });
}

/// A listener; the one before may be held for a moment by a child between fork and exec.
fn bound(own: &str) -> TcpListener {
    for _ in 0..100 {
        match TcpListener::bind(own) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => std::thread::sleep(Duration::from_millis(20)),
            other => return other.expect("the port is free"),
        }
    }
    panic!("{own} is in use for two seconds");
}

/// A connection whose other end echoes.
fn connection(from: &Scene, to: &str, inbound: bool) -> TcpStream {
    let listener = if inbound { from.in_ours(|| bound("[::]:22")) } else { from.in_world(|| bound("0.0.0.0:22")) };
    let to = SocketAddr::new(address(to), 22);
    let connect = || TcpStream::connect(to).expect("it listens");
    let stream = if inbound { from.in_world(connect) } else { from.in_ours(connect) };
    let (mut accepted, _) = listener.accept().expect("it was connected");
    std::thread::spawn(move || {
        let mut bytes = [0; 1_000];
        while let Ok(length @ 1..) = accepted.read(&mut bytes) {
            if accepted.write_all(&bytes[..length]).is_err() {
                return;
            }
        }
    });
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("it can");
    stream
}

fn exchange(stream: &mut TcpStream) {
    let mut bytes = [0; 5];
    stream.write_all(b"still").expect("the connection lives");
    stream.read_exact(&mut bytes).expect("the connection lives");
    assert_eq!(&bytes, b"still");
}

fn connection_before() {
    let place = Place::new();
    let (mut out, mut into) =
        (connection(&place.scene, "203.0.113.9", false), connection(&place.scene, "10.2.0.2", true));
    exchange(&mut out);
    exchange(&mut into);
    place.scene.run(|| async {
        let (led, _device) = begin(&place.scene, DefaultRoute { kill_switch: true, ..route() }).expect("we may");
        exchange(&mut out);
        exchange(&mut into);
        // And a new one from outside.
        drop((out, into));
        for own in ["10.1.0.2", "fd02::2"] {
            exchange(&mut connection(&place.scene, own, true));
        }
        led.end().expect("it can be left");
    });
    assert!(place.end_kill_switch());
}

fn changed_address() {
    let place = Place::new();
    place.scene.run(|| async {
        let (led, _device) = begin(&place.scene, DefaultRoute { kill_switch: true, ..route() }).expect("we may");
        place.scene.in_ours(|| {
            ip("address add 10.1.0.77/24 dev up0");
            ip("address delete 10.1.0.2/24 dev up0");
            ip("address replace 10.1.0.77/24 dev up0");
            ip("route replace default via 10.1.0.1 dev up0 metric 100");
        });
        let mut rules = String::new();
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            rules = output("ip", "rule");
            if rules.contains("from 10.1.0.77 ") && !rules.contains("from 10.1.0.2 ") {
                break;
            }
        }
        assert!(rules.contains("from 10.1.0.77 ") && !rules.contains("from 10.1.0.2 "), "{rules}");
        assert_eq!(way(Bound::Address("10.1.0.77"), "203.0.113.9", 443), ["up0"]);
        assert_eq!(way(Bound::No, "203.0.113.9", 443), ["ours"]);
        // The server's address changes.
        led.set_servers(vec![address("203.0.113.9")]).expect("we may");
        assert_eq!(way(Bound::No, "203.0.113.9", 443), ["up0"]);
        assert_eq!(way(Bound::No, "203.0.113.1", 443), ["ours"]);
        led.end().expect("it can be left");
    });
    assert!(place.end_kill_switch());
}

fn made_anew() {
    let place = Place::new();
    place.scene.run(|| async {
        let (led, _device) = begin(&place.scene, DefaultRoute { kill_switch: true, ..route() }).expect("we may");
        place.scene.in_ours(|| ip("link delete up1"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(way(Bound::No, "203.0.113.9", 443), ["ours"]);
        place.scene.add_uplink(1);
        // On a busy machine the kernel takes its time to see that the new link has a carrier, and drops packets until
        // then.
        let up = (0..500).any(|_| {
            let up = output("ip", "-brief link show dev up1").contains(" UP ");
            std::thread::sleep(Duration::from_millis(if up { 0 } else { 2 }));
            up
        });
        assert!(up);
        // At once: the rule was there all the time.
        assert_eq!(way(Bound::Device("up1"), "203.0.113.9", 443), ["up1"]);
        led.end().expect("it can be left");
    });
    assert!(place.end_kill_switch());
}

fn gateway() {
    let place = Place::new();
    let before = place.scene.state();
    place.scene.run(|| async {
        let route = DefaultRoute { gateways: vec!["lan0".to_owned()], ..route() };
        let (led, _device) = begin_echo(&place.scene, route);
        assert!(place.in_neighbour(|| answered("198.51.100.7")));
        // The sender of a packet that is too long gets an ICMP error.
        let largest = place.in_neighbour(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            for _ in 0..3 {
                let _ = socket.send_to(&[0; 1_450], "198.51.100.7:9");
                std::thread::sleep(Duration::from_millis(50));
            }
            output("ip", "route get 198.51.100.7")
        });
        assert!(largest.contains("mtu 1400"), "{largest}");
        // The host does not forward other packets.
        assert!(!place.in_neighbour(|| answered("10.1.0.1")));
        led.end().expect("all is undone");
    });
    place.scene.assert_as_before(&before);
    let refused = |gateway: &str| {
        let route = DefaultRoute { gateways: vec![gateway.to_owned()], ..route() };
        let outcome = place.scene.run(|| async { begin(&place.scene, route).map(|_| ()) });
        outcome.expect_err("it cannot be one").to_string()
    };
    assert_eq!(refused("wlan0"), "'wlan0' cannot be a gateway's interface: there is no such interface");
    assert!(refused("up0").contains("it is an uplink"));
    place.scene.assert_as_before(&before);
}

fn no_ipv6() {
    let place = Place::new();
    world_answers(&place.scene);
    let before = place.scene.state();
    place.scene.run(|| async {
        let (led, device) = begin(&place.scene, DefaultRoute { ipv6: Ipv6::Refused, ..route() }).expect("we may");
        let start = std::time::Instant::now();
        let error = TcpStream::connect((address("2001:db8::9"), 22)).expect_err("there is no route");
        assert!(error.kind() == ErrorKind::ConnectionRefused, "{error}");
        assert!(start.elapsed() < Duration::from_secs(5), "it is not silence");
        assert_eq!(way(Bound::No, "203.0.113.9", 443), ["ours"]);
        // The host has no such route itself; its unreachability returns when the device is gone.
        assert!(!answered("2001:db8::9"));
        drop(device);
        // On a busy machine the kernel removes it with a delay.
        let back = (0..50).any(|_| {
            let answered = answered("2001:db8::9");
            std::thread::sleep(Duration::from_millis(if answered { 0 } else { 100 }));
            answered
        });
        assert!(back);
        led.end().expect("all is undone");
    });
    place.scene.assert_as_before(&before);
}

fn one() {
    let place = Place::new();
    let before = place.scene.state();
    place.scene.run(|| async {
        let (led, _device) = begin(&place.scene, route()).expect("we may");
        let while_one = place.scene.state();
        assert!(matches!(begin(&place.scene, route()), Err(HostError::AlreadyUp)));
        assert_eq!(place.scene.state(), while_one);
        led.end().expect("all is undone");
    });
    place.scene.assert_as_before(&before);
}

fn elsewhere() {
    let place = Place::new();
    let other = place.scene.journal().join("other");
    let before = place.scene.state();
    place.scene.run(|| async {
        let (led, _device) = begin(&place.scene, route()).expect("we may");
        let while_one = place.scene.state();
        let second = LedRoute::begin(route(), Some(&other), |name| open_tun(name, MTU));
        assert!(matches!(second, Err(HostError::RulesOfAnother)));
        assert_eq!(place.scene.state(), while_one);
        led.end().expect("all is undone");
    });
    std::fs::remove_dir(&other).expect("it is empty");
    place.scene.assert_as_before(&before);
}

fn retired() {
    let place = Place::new();
    world_answers(&place.scene);
    place.scene.run(|| async {
        let (led, _device) = begin(&place.scene, route()).expect("we may");
        led.retire().expect("rules can be removed");
        assert!(answered("203.0.113.9"));
        assert_eq!(way(Bound::Address("198.18.0.1"), "203.0.113.9", 443), ["ours"]);
        led.end().expect("all is undone");
    });
}
