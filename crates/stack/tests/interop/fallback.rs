//! Plain TCP in the end: peers without MPTCP, and middleboxes that take its options at each stage. The data arrives, and
//! the fallback is counted and explained.

use crate::middlebox::{Middlebox, Way};
use crate::scene::{Hosts, Role, Scene};
use crate::traffic::{End, exchange};
use anabranch_mptcp::Protocol;
use anabranch_mptcp::{ConnectionConfig, FallbackCause};
use anabranch_wire::{Flags, Packet};
use libtest_mimic::Trial;
use socket2::{Domain, Socket, Type};
use std::net::SocketAddr;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(40);

/// Which packets lose their options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Syn,
    SynAck,
    ThirdAck,
    /// All of the client's after its SYN.
    Client,
    /// All of the server's after its SYN/ACK.
    Server,
    /// All after the handshake.
    Both,
}

impl Stage {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Syn, "the_syn"),
        (Self::SynAck, "the_syn_ack"),
        (Self::ThirdAck, "the_third_ack"),
        (Self::Client, "all_that_the_client_sends_after_its_syn"),
        (Self::Server, "all_that_the_server_sends_after_its_syn_ack"),
        (Self::Both, "all_after_the_handshake"),
    ];

    /// Why we say that the connection is plain TCP.
    fn causes(self, role: Role) -> &'static [FallbackCause] {
        use FallbackCause::{NotCapable, OptionsStripped, Peer};
        match (self, role) {
            (Self::Syn, _) | (Self::SynAck, Role::WeOpen) => &[NotCapable],
            // The kernel answers our key without its own.
            (Self::SynAck | Self::ThirdAck | Self::Client, Role::TheKernelOpens) => &[OptionsStripped],
            // Who notices first tells the other with an infinite mapping, unless that is taken, too.
            (Self::ThirdAck | Self::Client, Role::WeOpen) => &[OptionsStripped, Peer],
            (Self::Server | Self::Both, _) => &[OptionsStripped, Peer],
        }
    }
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (role, who) in Role::ALL {
        for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
            for (stage, what) in Stage::ALL {
                trials.push(Trial::test(format!("fallback::{who}_and_options_go_from_{what}_{family}"), move || {
                    stripped(role, stage, v6);
                    Ok(())
                }));
            }
            trials.push(Trial::test(format!("fallback::{who}_and_the_kernel_is_without_mptcp_{family}"), move || {
                disabled(role, v6);
                Ok(())
            }));
            trials.push(Trial::test(format!("fallback::{who}_and_the_kernel_uses_plain_tcp_{family}"), move || {
                plain(role, v6, true);
                plain(role, v6, false);
                Ok(())
            }));
        }
    }
    trials
}

/// Takes all options of MPTCP.
pub fn strip(mut packet: Packet) -> Packet {
    packet.segment.options.mptcp.clear();
    packet.segment.options.dss = None;
    packet
}

fn obey(middlebox: &Middlebox, stage: Stage, role: Role) {
    let from_client = if role == Role::WeOpen { Way::ToKernel } else { Way::ToUs };
    let mut third_acks = 0;
    middlebox.obey(move |way, packet| {
        let syn = packet.segment.flags.contains(Flags::SYN);
        let client = way == from_client;
        third_acks += u32::from(client && !syn);
        let hit = match stage {
            Stage::Syn => syn && client,
            Stage::SynAck => syn && !client,
            Stage::ThirdAck => third_acks == 1 && client && !syn,
            Stage::Client => client && !syn,
            Stage::Server => !client && !syn,
            Stage::Both => !syn,
        };
        vec![if hit { strip(packet) } else { packet }]
    });
}

fn stripped(role: Role, stage: Stage, v6: bool) {
    Scene::new(1, v6).run(|hosts| async move {
        obey(&hosts.middleboxes[0], stage, role);
        let (stream, socket) = hosts.open(role, hosts.config()).await;
        exchange(stream, socket, &End::new(200_000), &End::new(300_000), PATIENCE).await;
        explained(&hosts, stage.causes(role));
        hosts.nothing_lingers().await;
    });
}

/// One fallback was counted, for one of these causes.
fn explained(hosts: &Hosts, causes: &[FallbackCause]) {
    let counted = hosts.stack.counters().endpoint.fallbacks;
    let of = |cause: &FallbackCause| match cause {
        FallbackCause::NotCapable => counted.not_capable,
        FallbackCause::SynLost => counted.syn_lost,
        FallbackCause::OptionsStripped => counted.options_stripped,
        FallbackCause::NoMapping => counted.no_mapping,
        FallbackCause::Checksum => counted.checksum,
        FallbackCause::Peer => counted.peer,
    };
    assert_eq!(causes.iter().map(of).sum::<u64>(), 1, "expected one of {causes:?}, counted {counted:?}");
    assert_eq!(counted.total(), 1, "{counted:?}");
}

/// A kernel that was told to do without.
fn disabled(role: Role, v6: bool) {
    Scene::new(1, v6).set("mptcp/enabled", 0).run(|hosts| async move {
        let (stream, socket) = hosts.open_with(role, plain_socket(&hosts), hosts.config()).await;
        assert_eq!(stream.protocol(), Some(Protocol::Tcp));
        assert_eq!(stream.fallback(), Some(FallbackCause::NotCapable));
        exchange(stream, socket, &End::new(200_000), &End::new(300_000), PATIENCE).await;
        explained(&hosts, &[FallbackCause::NotCapable]);
        hosts.nothing_lingers().await;
    });
}

fn plain_socket(hosts: &Hosts) -> Socket {
    let address: SocketAddr = hosts.our_address();
    Socket::new(Domain::for_address(address), Type::STREAM, None).expect("TCP is there")
}

/// The kernel's plain TCP, and we offer MPTCP or do not.
fn plain(role: Role, v6: bool, offers: bool) {
    Scene::new(2, v6).run(|hosts| async move {
        let config = ConnectionConfig { multipath: offers, ..hosts.config() };
        let (stream, socket) = hosts.open_with(role, plain_socket(&hosts), config).await;
        assert_eq!(stream.protocol(), Some(Protocol::Tcp));
        assert_eq!(stream.fallback(), offers.then_some(FallbackCause::NotCapable));
        exchange(stream, socket, &End::new(200_000), &End::new(300_000), PATIENCE).await;
        assert_eq!(hosts.stack.counters().endpoint.fallbacks.total(), u64::from(offers));
        hosts.nothing_lingers().await;
    });
}
