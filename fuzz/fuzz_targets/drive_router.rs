//! A router of an ad-hoc network among neighbours who send anything: it never panics, its memory has bounds, and time goes
//! on.

#![no_main]

use anabranch_policy::{Duration, Instant};
use anabranch_routing::{Config, InterfaceChange, InterfaceConfig, InterfaceKind, Reception, Router};
use anabranch_wire::ospf::{AreaId, Body, Compatibility, InstanceId, Integrity, InterfaceId, Packet, RouterId};
use core::net::Ipv6Addr;
use libfuzzer_sys::fuzz_target;

/// Neighbours that can speak, with router IDs 1 and up; the router under test is 9.
const NEIGHBORS: u8 = 4;

fuzz_target!(|data: &[u8]| {
    let mut router = router();
    let mut now = Instant::ZERO;
    let mut rest = data;
    while let Some((step, after)) = rest.split_first_chunk::<4>() {
        let [what, who, tenths, length] = *step;
        let (bytes, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        pass(&mut router, &mut now, Duration::from_millis(u64::from(tenths) * 100));
        let interface = InterfaceId(u32::from(who >> 7) + 1);
        match what % 16 {
            0 => drop(router.handle_interface(now, interface, InterfaceChange::Down)),
            1 => drop(router.handle_interface(now, interface, InterfaceChange::Up)),
            2 => pass(&mut router, &mut now, Duration::from_secs(20 * u64::from(tenths))),
            _ => hear(&mut router, now, interface, [what, who], bytes),
        }
        while router.poll_event().is_some() {}
        assert!(router.lsas(now).count() <= 110, "a hundred, and the router's own");
    }
});

fn router() -> Router {
    let mut config = Config::new(RouterId(9));
    config.limits.lsas = 100;
    config.limits.neighbors = 10;
    config.limits.retransmissions = 50;
    config.limits.acked = 50;
    let mut router = Router::new(config).expect("a configuration that can be");
    for number in [1, 2] {
        let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, number, 9);
        let mut config = InterfaceConfig::manet(InterfaceId(u32::from(number)), link_local);
        if number == 2 {
            config.kind = InterfaceKind::PointToPoint;
        }
        (config.hello_interval, config.router_dead_interval) = (Duration::from_secs(20), Duration::from_secs(60));
        router.add_interface(Instant::ZERO, config).expect("an interface that can be");
        router
            .handle_interface(Instant::ZERO, InterfaceId(u32::from(number)), InterfaceChange::Up)
            .expect("it is there");
    }
    router
}

/// The payload of an OSPF packet becomes one of the router's own area and of a neighbour.
fn hear(router: &mut Router, now: Instant, interface: InterfaceId, [what, who]: [u8; 2], body: &[u8]) {
    let neighbor = who % NEIGHBORS + 1;
    let kind = what % 5 + 1;
    let mut bytes = vec![3, kind, 0, 0, 0, 0, 0, neighbor];
    bytes.resize(16, 0);
    bytes.extend(body);
    // A block of link-local signalling may follow Hellos: the last 16 bytes.
    let length = bytes.len() - if kind < 3 && body.len() > 36 { 16 } else { 0 };
    bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    repair(&mut bytes);
    let Ok(decoded) = Packet::decode(&bytes, Integrity::Authenticated, Compatibility::ACCEPTING) else { return };
    let mut packet = decoded.packet;
    (packet.area, packet.instance) = (AreaId::BACKBONE, InstanceId::IPV6);
    if let Body::Hello(hello) = &mut packet.body {
        (hello.hello_interval, hello.router_dead_interval) = (20, 60);
    }
    let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, interface.0 as u16, u16::from(neighbor));
    router.handle_packet(now, interface, &Reception { source, multicast: who & 64 == 0, signal: None }, &packet);
    while router.poll_transmit().is_some() {}
}

/// Makes the sums of the advertisements of an update right.
fn repair(bytes: &mut [u8]) {
    let mut at = 20;
    while bytes[1] == 4 && at + 20 <= bytes.len() {
        let length = usize::from(u16::from_be_bytes([bytes[at + 18], bytes[at + 19]]));
        if length < 20 || at + length > bytes.len() {
            return;
        }
        let lsa = &mut bytes[at + 2..at + length];
        lsa[14..16].fill(0);
        let (c0, c1) = lsa.iter().fold((0i64, 0i64), |(c0, c1), byte| {
            let c0 = (c0 + i64::from(*byte)) % 255;
            (c0, (c1 + c0) % 255)
        });
        let behind = lsa.len() as i64 - 15;
        let x = (behind * c0 - c1).rem_euclid(255);
        let y = (-c0 - x).rem_euclid(255);
        lsa[14..16].copy_from_slice(&[x, y].map(|byte| if byte == 0 { 255 } else { byte as u8 }));
        at += length;
    }
}

/// Lets time pass with all timers.
fn pass(router: &mut Router, now: &mut Instant, span: Duration) {
    let end = *now + span;
    let mut before = None;
    while let Some(at) = router.poll_timeout().filter(|at| *at <= end) {
        assert!(before.is_none_or(|before| at > before), "time goes on");
        before = Some(at.max(*now));
        *now = at.max(*now);
        router.handle_timeout(*now);
        while router.poll_transmit().is_some() {}
    }
    *now = end;
}
