use super::*;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::link::{Cargo, DropCause, Impairments, Link, LinkConfig, LossModel, Schedule};
use anabranch_sim::random::RandomStream;
use anabranch_system::packet_pipe;
use anabranch_wire::ip::{IpHeader, PROTOCOL_UDP};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

/// A packet of `length` bytes that contains its number.
fn packet(number: u32, length: usize, destination: &str) -> Vec<u8> {
    let [source, destination] = ["10.0.1.1", destination].map(|text| text.parse::<IpAddr>().expect("an address"));
    let source = if destination.is_ipv6() { "fd00:1::1".parse().expect("an address") } else { source };
    let header = IpHeader { source, destination, ecn: anabranch_wire::Ecn::Capable0, dscp: 0, hop_limit: 64 };
    let mut bytes = Vec::new();
    header.emit(PROTOCOL_UDP, length - header.encoded_len(), &mut bytes).expect("a small packet");
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.resize(length, 0);
    bytes
}

fn number(packet: &[u8]) -> u32 {
    let header = if packet[0] >> 4 == 6 { 40 } else { 20 };
    u32::from_be_bytes(*packet[header..].first_chunk().expect("it carries its number"))
}

/// Minimal cargo for the lab's links: number and length.
struct Numbers;

impl Cargo for Numbers {
    type Item = (u32, u32);
    fn length(&self, item: &Self::Item) -> u32 {
        item.1
    }
    fn mark_congestion(&mut self, _: &mut Self::Item) -> bool {
        true
    }
    fn corrupt(&mut self, _: &mut Self::Item, _: u32) {}
    fn duplicate(&mut self, item: &Self::Item) -> Self::Item {
        *item
    }
    fn discard(&mut self, _: Self::Item, _: DropCause) {}
}

/// Two links of the lab in series, driven by hand: which packets arrive, and when.
fn by_hand(links: [(&str, &LinkConfig); 2], seed: u64, arrivals: &[(Instant, u32, u32)]) -> Vec<(Instant, u32)> {
    let mut cargo = Numbers;
    let mut offered = arrivals.to_vec();
    for (name, config) in links {
        let mut link = Link::new(config, seed, &format!("link/{name}"));
        let mut delivered = Vec::new();
        let mut collect = |link: &mut Link<(u32, u32)>, until: Instant| {
            while link.poll_timeout() <= until && link.poll_timeout() != Instant::NEVER {
                let due = link.poll_timeout();
                link.handle_timeout(due, &mut Numbers);
                while let Some((number, length)) = link.poll_delivery(due) {
                    delivered.push((due, number, length));
                }
            }
        };
        for (at, number, length) in offered {
            collect(&mut link, at);
            link.handle_packet(at, (number, length), &mut cargo);
        }
        collect(&mut link, Instant::NEVER);
        offered = delivered;
    }
    offered.into_iter().map(|(at, number, _)| (at, number)).collect()
}

fn hard_links() -> [LinkConfig; 2] {
    let mut first = LinkConfig::new(Rate::from_bits_per_second(5_000_000), Duration::from_millis(7), 12);
    first.loss = vec![LossModel::Uniform(0.02), LossModel::bursts(0.02, 3.0)];
    first.impairments.duplication = 0.01;
    let mut second = LinkConfig::new(Rate::from_bits_per_second(4_000_000), Duration::from_millis(3), 9);
    let seconds = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    second.schedule = Schedule::DownDuring(vec![(seconds(1), seconds(2))]);
    second.impairments = Impairments { reordering: 0.05, held_back: Duration::from_millis(4), ..Default::default() };
    [first, second]
}

#[test]
fn packets_meet_the_same_fate_at_the_same_instants_as_on_the_links_of_the_lab() {
    let [first, second] = hard_links();
    for seed in 0..20 {
        let mut random = RandomStream::new(seed, "arrivals");
        let mut at = Instant::ZERO;
        let arrivals: Vec<(Instant, u32, u32)> = (0..3_000)
            .map(|number| {
                at += Duration::from_secs_f64(random.exponential(0.001));
                (at, number, 60 + random.below(1_440) as u32)
            })
            .collect();
        let mut network = Network::new(seed);
        let (here, there) = (network.add_port(), network.add_port());
        let far = network.add_link("A/1/forward", &second, Hop::Port(there));
        let near = network.add_link("A/0/forward", &first, Hop::Link(far));
        network.connect(here, Hop::Link(near));
        let mut delivered = Vec::new();
        for (at, number, length) in &arrivals {
            network.handle_packet(*at, here, &packet(*number, *length as usize, "10.0.0.2"));
        }
        while network.poll_timeout() != Instant::NEVER {
            network.handle_timeout(network.poll_timeout());
        }
        while let Some(delivery) = network.poll_delivery() {
            assert_eq!(delivery.port, there);
            delivered.push((delivery.at, number(delivery.frame.bytes())));
            network.give_back(delivery.frame);
        }
        assert_eq!(delivered, by_hand([("A/0/forward", &first), ("A/1/forward", &second)], seed, &arrivals));
        assert!(delivered.len() > 500 && delivered.len() < 2_900, "it was hard: {}", delivered.len());
        assert_eq!(network.under_way(), 0);
    }
}

#[test]
fn answers_are_routed_by_their_destination_and_what_has_no_route_is_counted() {
    let mut network = Network::new(1);
    let ports: Vec<PortId> = (0..3).map(|_| network.add_port()).collect();
    let prefix = |text: &str, bits| Prefix { address: text.parse().expect("an address"), bits };
    let routes = network.add_routes(vec![
        (prefix("10.0.1.0", 24), Hop::Port(ports[0])),
        (prefix("fd00:1::", 64), Hop::Port(ports[0])),
        (prefix("10.0.2.0", 24), Hop::Port(ports[1])),
    ]);
    network.connect(ports[2], Hop::Routes(routes));
    let offers = ["10.0.1.77", "10.0.2.1", "fd00:1::5", "fd00:2::1", "10.0.3.1", "224.0.0.251", "ff02::2", "fe80::1"];
    for destination in offers {
        network.handle_packet(Instant::ZERO, ports[2], &packet(0, 100, destination));
    }
    network.handle_packet(Instant::ZERO, ports[2], &[]);
    network.handle_packet(Instant::ZERO, ports[2], &[0x45; 19]);
    network.handle_packet(Instant::ZERO, ports[2], &[0x60; 39]);
    // Its port is not connected.
    network.handle_packet(Instant::ZERO, ports[0], &packet(0, 100, "10.0.2.1"));
    let to: Vec<PortId> = core::iter::from_fn(|| network.poll_delivery()).map(|delivery| delivery.port).collect();
    assert_eq!(to, [ports[0], ports[1], ports[0]]);
    assert_eq!((network.counters().no_route, network.counters().malformed), (6, 3));
}

#[test]
fn changes_happen_at_their_time_and_before_what_is_due_at_the_same() {
    let mut network = Network::new(1);
    let (here, there) = (network.add_port(), network.add_port());
    let config = LinkConfig::new(Rate::from_bits_per_second(8_000_000), Duration::from_millis(1), 10);
    let link = network.add_link("A/0/forward", &config, Hop::Port(there));
    network.connect(here, Hop::Link(link));
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    network.schedule(at(10_000), Change::Rate(link, Rate::from_bits_per_second(800_000)));
    network.schedule(at(5_000), Change::State(link, true));
    network.schedule(at(3_000), Change::State(link, false));
    let send = |network: &mut Network, micros| network.handle_packet(at(micros), here, &packet(0, 1000, "10.0.0.2"));
    // 1 ms to send and 1 ms in flight. The third is in flight when the link goes down; the fourth arrives while it is
    // down.
    [0, 500, 1_500, 4_000, 5_000, 10_000].into_iter().for_each(|micros| send(&mut network, micros));
    while network.poll_timeout() != Instant::NEVER {
        network.handle_timeout(network.poll_timeout());
    }
    let times: Vec<Instant> = core::iter::from_fn(|| network.poll_delivery()).map(|delivery| delivery.at).collect();
    // The second arrives exactly when the link goes down: it is delivered.
    assert_eq!(times, [at(2_000), at(3_000), at(7_000), at(21_000)]);
    let (_, counters) = network.links().next().expect("there is a link");
    assert_eq!(counters.drops.get(DropCause::LinkDown), 2);
}

/// Reads a packet, waiting at most `patience`.
fn read(descriptor: &OwnedFd, patience: std::time::Duration) -> Option<Vec<u8>> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut watched = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    let patience = PollTimeout::try_from(patience).expect("a short time");
    let ready = poll(&mut watched, patience).expect("it can be waited for");
    (ready > 0).then(|| {
        let mut bytes = vec![0; 2_000];
        let length = nix::unistd::read(descriptor, &mut bytes).expect("it is readable");
        bytes.truncate(length);
        bytes
    })
}

#[test]
fn a_relay_loses_the_packets_that_the_lab_would_and_keeps_the_order_of_the_others() -> io::Result<()> {
    let mut config = LinkConfig::new(Rate::from_bits_per_second(100_000_000), Duration::from_millis(2), 1_000);
    config.loss = vec![LossModel::Uniform(0.1)];
    let mut network = Network::new(7);
    let (here, there) = (network.add_port(), network.add_port());
    let link = network.add_link("A/0/forward", &config, Hop::Port(there));
    network.connect(here, Hop::Link(link));
    let (left, left_port) = packet_pipe()?;
    let (right, right_port) = packet_pipe()?;
    let relay = Relay::start(network, vec![left_port, right_port], None)?;
    for number in 0..1_000 {
        assert!(nix::unistd::write(&left, &packet(number, 500, "10.0.0.2")).is_ok());
    }
    let patience = std::time::Duration::from_secs(2);
    let mut busy = Duration::ZERO;
    let mut received = Vec::new();
    while let Some(packet) = read(&right, patience) {
        received.push(number(&packet));
        busy = relay.clock().now().since(Instant::ZERO);
    }
    let report = relay.stop()?;
    // Uniform loss draws one random number per packet, whatever the time.
    let arrivals: Vec<(Instant, u32, u32)> =
        (0..1_000).map(|number| (Instant::ZERO + Duration::from_millis(u64::from(number)), number, 500)).collect();
    let nothing = LinkConfig::default();
    let expected = by_hand([("A/0/forward", &config), ("nothing", &nothing)], 7, &arrivals);
    assert_eq!(received, expected.iter().map(|(_, number)| *number).collect::<Vec<_>>());
    let counters = report.links[0].counters;
    assert_eq!((counters.offered_packets, counters.delivered_packets), (1_000, received.len() as u64));
    assert_eq!(report.ports[0].read_packets, 1_000);
    assert_eq!(report.ports[1].written_packets, received.len() as u64);
    assert_eq!(report.lateness.count(), received.len() as u64);
    // A packet leaves every 40 µs, turns begin every 100 µs on average; those that read a full batch, and the first ones, follow
    // each other.
    let most = busy.as_micros() / 100 + 1_000 / 32 + 10;
    assert!(report.turns <= most, "{} turns in {busy:?}", report.turns);
    Ok(())
}

#[test]
fn a_relay_outlives_a_host_that_goes_away() -> io::Result<()> {
    let mut network = Network::new(7);
    let (here, there) = (network.add_port(), network.add_port());
    network.connect(here, Hop::Port(there));
    let (left, left_port) = packet_pipe()?;
    let (right, right_port) = packet_pipe()?;
    let relay = Relay::start(network, vec![left_port, right_port], None)?;
    assert!(nix::unistd::write(&left, &packet(1, 100, "10.0.0.2")).is_ok());
    let patience = std::time::Duration::from_secs(20);
    assert_eq!(read(&right, patience).map(|packet| number(&packet)), Some(1));
    drop(right);
    assert!(nix::unistd::write(&left, &packet(2, 100, "10.0.0.2")).is_ok());
    drop(left);
    std::thread::sleep(std::time::Duration::from_millis(100));
    let report = relay.stop()?;
    assert_eq!(report.ports[1].written_packets, 1);
    Ok(())
}
