//! Paths that pass shorter packets than their first link: black holes, and routers that say so. The kernel, which receives, must take
//! what is cut.

use crate::middlebox::{Seen, Way};
use crate::scene::{Hosts, Role, Scene};
use crate::traffic::{End, exchange};
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::time::Instant;
use anabranch_sim::LinkMtu;

use anabranch_wire::{Checksum, Ecn, IpHeader};
use libtest_mimic::Trial;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(50);

/// Largest packet that passes, bytes of IP.
const NARROW: u32 = 1_400;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        for (checksum, with) in [(false, "without"), (true, "with")] {
            let name =
                format!("path_mtu::a_path_that_swallows_long_packets_carries_shorter_ones_{with}_checksums_{family}");
            trials.push(Trial::test(name, move || {
                black_hole(v6, checksum);
                Ok(())
            }));
        }
        trials.push(Trial::test(format!("path_mtu::a_router_that_says_what_passes_is_believed_{family}"), move || {
            told(v6);
            Ok(())
        }));
    }
    trials
}

/// Both paths are narrow on the way to the kernel.
fn black_hole(v6: bool, checksum: bool) {
    let mut scene = Scene::new(2, v6).links(5, 0.0);
    if checksum {
        scene = scene.set("mptcp/checksum_enabled", 1);
    }
    for [_, to_kernel] in &mut scene.links {
        to_kernel.mtu = Some(LinkMtu { bytes: NARROW, from: Instant::ZERO });
    }
    scene.run(|hosts| async move {
        let config = ConnectionConfig { checksum, ..hosts.config() };
        let (stream, socket) = hosts.open(Role::WeOpen, config).await;
        exchange(stream, socket, &End::new(3_000_000), &End::new(100_000), PATIENCE).await;
        let carries = |seen: &Seen| seen.way == Way::ToKernel && seen.packet.segment.payload.len() > 500;
        // The transfer may be over before the second path is used.
        let long: Vec<Seen> = hosts.middleboxes.iter().flat_map(|path| path.seen(carries)).collect();
        let passing = |seen: &Seen| seen.bytes.len() <= NARROW as usize;
        assert!(long.iter().any(passing) && !long.iter().all(passing), "{} packets", long.len());
        hosts.nothing_lingers().await;
    });
}

/// A router before the narrow link drops long packets and says so, as RFC 1191 and RFC 8201 ask for.
fn told(v6: bool) {
    Scene::new(1, v6).links(5, 0.0).run(|hosts| async move {
        let router = hosts.middleboxes[0].clone();
        let words = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&words);
        hosts.middleboxes[0].obey(move |way, packet| {
            if way == Way::ToUs || packet.wire_len() <= NARROW as usize {
                return vec![packet];
            }
            let mut bytes = Vec::new();
            packet.emit(&mut bytes).expect("it came as bytes");
            bytes.truncate(packet.ip.encoded_len() + 8);
            let message = too_big(&packet.ip, &bytes);
            said.lock().expect("nobody panicked with it").push(message.len());
            router.invent_bytes(Way::ToUs, message);
            Vec::new()
        });
        let (stream, socket) = hosts.open(Role::WeOpen, hosts.config()).await;
        exchange(stream, socket, &End::new(500_000), &End::new(1_000), PATIENCE).await;
        let words = words.lock().expect("nobody panicked with it").len();
        // What was under way when the first word came; nothing after it.
        assert!((1..=20).contains(&words), "{words}");
        // Black holes end at other lengths.
        of_the_length_told(&hosts);
    });
}

fn of_the_length_told(hosts: &Hosts) {
    // A DATA_ACK of 32 bits is four bytes shorter.
    let told = NARROW as usize - 4..=NARROW as usize;
    let full = hosts.middleboxes[0].seen(|seen| seen.way == Way::ToKernel && told.contains(&seen.bytes.len()));
    assert!(full.len() > 100, "{} packets of the length that passes", full.len());
}

/// The message, from the packet's destination's neighbour.
fn too_big(about: &IpHeader, quoted: &[u8]) -> Vec<u8> {
    let (protocol, start) = if about.source.is_ipv4() { (1, [3, 4]) } else { (58, [2, 0]) };
    let [m0, m1] = (NARROW as u16).to_be_bytes();
    let mut message = [&start[..], &[0, 0, 0, 0, m0, m1], quoted].concat();
    let header =
        IpHeader { source: about.destination, destination: about.source, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
    let mut checksum = Checksum::new();
    if about.source.is_ipv6() {
        checksum.add_pseudo_header(&header, protocol, message.len() as u32);
    }
    checksum.add_bytes(&message);
    message[2..4].copy_from_slice(&checksum.finish().to_be_bytes());
    let mut bytes = Vec::new();
    header.emit(protocol, message.len(), &mut bytes).expect("a short packet");
    bytes.extend_from_slice(&message);
    bytes
}
