//! Choices that the RFC leaves open: the observed behaviour of Linux (docs/wire-profile.md).

use super::peer::{Peer, SYN_ACK, capable, options};
use crate::pair::{address, config};
use anabranch_mptcp::Protocol;
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, PathAction};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::{CapableKeys, DataAck, Dss, Mapping, dss_checksum};
use anabranch_wire::tcp::{TcpOptions, Timestamps};
use anabranch_wire::{Flags, MptcpOption, Packet};

const UNSPECIFIED: MptcpOption = MptcpOption::TcpReset { transient: false, flags: 0, reason: 0 };

fn announces(packet: &Packet) -> bool {
    packet.segment.options.mptcp.iter().any(|option| matches!(option, MptcpOption::AddAddress { .. }))
}

/// Makes the endpoint announce its second address.
fn announce(peer: &mut Peer) {
    let connection = peer.id();
    peer.orders.clone().give_to(&mut peer.host, peer.now, PathAction::Announce { connection, local: AddressId(2) });
    peer.settle();
}

#[test]
fn data_with_the_keys_is_acknowledged_with_8_octets_though_it_names_no_number() {
    let mut peer = Peer::connected(config());
    peer.take();
    let (sender, receiver) = (peer.keys.local.0, peer.keys.remote.0);
    let keys = CapableKeys::BothWithData { sender, receiver, length: 3, checksum: None };
    peer.send(0, Flags::ACK, options(vec![capable(keys)]), b"abc");
    let said = peer.take();
    let acks: Vec<DataAck> = said.iter().filter_map(|packet| packet.segment.options.dss?.data_ack).collect();
    assert_eq!(acks, [DataAck::Long(peer.number(3))]);
}

#[test]
fn before_any_number_of_the_peers_acknowledgements_have_4_octets() {
    let mut peer = Peer::connected(config());
    peer.take();
    peer.write(b"hello");
    let acks: Vec<_> = peer.take().iter().filter_map(|packet| packet.segment.options.dss?.data_ack).collect();
    assert_eq!(acks, [DataAck::Short(peer.number(0) as u32)]);
}

#[test]
fn an_announcement_and_an_echo_go_without_dss() {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.take();
    announce(&mut peer);
    let (address_id, address, port) = (9, address(0, 1), None);
    let hmac = peer.keys.sign_add_address(address_id, address, port);
    let option = MptcpOption::AddAddress { address_id, address, port, truncated_hmac: Some(hmac) };
    peer.send(0, Flags::ACK, options(vec![option]), &[]);
    let said = peer.take();
    assert_eq!(said.iter().filter(|packet| announces(packet)).count(), 2);
    assert!(said.iter().filter(|packet| announces(packet)).all(|packet| packet.segment.options.dss.is_none()));
}

#[test]
fn the_data_ack_that_an_echo_took_the_place_of_follows_it() {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.take();
    let (address_id, address, port) = (9, address(0, 1), None);
    let hmac = peer.keys.sign_add_address(address_id, address, port);
    let option = MptcpOption::AddAddress { address_id, address, port, truncated_hmac: Some(hmac) };
    // Without DATA_ACK, so that there is room for both.
    let dss = Dss { data_ack: None, ..peer.map(5, peer.flows[0].nxt, b"again", false) };
    peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), ..options(vec![option]) }, b"again");
    let said = peer.take();
    assert_eq!(said.iter().map(announces).collect::<Vec<_>>(), [true, false]);
    let acknowledged = said[1].segment.options.dss.and_then(|dss| dss.data_ack).map(|ack| peer.offset_of(ack));
    assert_eq!(acknowledged, Some(10));
}

#[test]
fn an_announcement_is_repeated_after_one_two_and_four_timeouts() {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.take();
    let start = peer.now;
    announce(&mut peer);
    let mut times: Vec<Instant> = peer.take().iter().filter(|packet| announces(packet)).map(|_| peer.now).collect();
    while peer.now.since(start) < Duration::from_secs(60) {
        peer.run(Duration::from_millis(1));
        times.extend(peer.take().iter().filter(|packet| announces(packet)).map(|_| peer.now));
    }
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_nanos() / 10_000_000).collect();
    // The round trip took no time: the timeout is the minimum, 200 ms.
    assert_eq!(waits, [20, 40, 80], "hundredths of a second");
}

/// A connection with timestamps and a second subflow.
fn with_timestamps() -> Peer {
    let mut peer = Peer::new(config());
    let stamped = |mptcp| TcpOptions {
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        window_scale: Some(0),
        ..options(mptcp)
    };
    peer.stamps = Some(stamped(Vec::new()));
    peer.open(vec![capable(CapableKeys::None)]);
    peer.acknowledge_keys();
    peer.send_data(0, 0, b"hello");
    peer.join(1);
    peer.take();
    peer
}

#[test]
fn a_reset_has_timestamps_a_window_and_mp_tcprst() {
    let mut peer = with_timestamps();
    let id = peer.id();
    peer.host.abort(peer.now, id).unwrap();
    peer.settle();
    let said = peer.take();
    assert_eq!(said.len(), 2);
    for packet in said {
        assert_eq!(packet.segment.flags, Flags::RST | Flags::ACK);
        assert!(packet.segment.options.timestamps.is_some() && packet.segment.window > 0);
        let fast_close = MptcpOption::FastClose { key: peer.keys.local.0 };
        assert_eq!(packet.segment.options.mptcp, [fast_close, UNSPECIFIED]);
    }
}

#[test]
fn a_reset_without_a_reason_does_not_forbid_another_attempt() {
    let mut peer = with_timestamps();
    peer.send(1, Flags::RST | Flags::ACK, options(vec![UNSPECIFIED]), &[]);
    let closed = anabranch_mptcp::Event::SubflowClosed(peer.id(), SubflowId(1), CloseReason::Reset);
    assert!(peer.events.contains(&closed), "{:?}", peer.events);
}

#[test]
fn both_zeros_of_ones_complement_are_the_same_checksum() {
    for sent in [0x0000, 0xffff] {
        let mut config = config();
        config.checksum = true;
        let mut peer = Peer::connected(config);
        // The sum of everything else, as payload, makes the checksum zero.
        let number = peer.number(0);
        let payload = dss_checksum(number, 1, 2, [&[0, 0][..]]).to_be_bytes();
        assert_eq!(dss_checksum(number, 1, 2, [&payload[..]]), 0);
        let mut dss = peer.map(0, 1, &payload, false);
        dss.mapping = dss.mapping.map(|mapping| Mapping { checksum: Some(sent), ..mapping });
        peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, &payload);
        assert_eq!(peer.received, payload, "{sent:#06x}");
        assert_eq!(peer.protocol(), Protocol::Multipath, "{sent:#06x} is no wrong checksum");
        // Of both numbers, ours comes first.
        let number = peer.remote.data_seq(0);
        peer.take();
        peer.write(&dss_checksum(number, 1, 2, [&[0, 0][..]]).to_be_bytes());
        let checksums: Vec<_> =
            peer.take().iter().filter_map(|packet| super::peer::mapping(packet)?.checksum).collect();
        assert_eq!(checksums, [0]);
    }
}

#[test]
fn syn_and_syn_ack_offer_what_the_peer_offers() {
    for bits in 0..8_u8 {
        let mut peer = Peer::new(config());
        let offer = TcpOptions {
            timestamps: (bits & 1 != 0).then_some(Timestamps { value: 1, echo: 0 }),
            sack_permitted: bits & 2 != 0,
            window_scale: (bits & 4 != 0).then_some(7),
            ..TcpOptions::default()
        };
        peer.stamps = Some(offer.clone());
        let answer = peer.open(vec![capable(CapableKeys::None)]);
        let got = &answer.segment.options;
        assert_eq!(answer.segment.flags, SYN_ACK);
        assert_eq!(got.timestamps.is_some(), offer.timestamps.is_some());
        assert_eq!(got.sack_permitted, offer.sack_permitted);
        assert_eq!(got.window_scale.is_some(), offer.window_scale.is_some());
    }
}
