//! Emitting and parsing results in the same value.

#[allow(dead_code)]
mod strategies;

use anabranch_wire::mptcp::Dss;
use anabranch_wire::tcp::{FIXED_HEADER, OPTION_SPACE};
use anabranch_wire::{Packet, UdpPacket};
use bytes::Bytes;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_valid_packet_survives_the_wire(packet in strategies::packet()) {
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).expect("the strategy makes packets that can be emitted");
        prop_assert_eq!(bytes.len(), packet.wire_len());
        prop_assert_eq!(packet.segment.header_len() % 4, 0);
        prop_assert!(packet.segment.header_len() <= FIXED_HEADER + OPTION_SPACE);
        let parsed = Packet::parse(&Bytes::from(bytes)).expect("we understand ourselves");
        prop_assert_eq!(parsed, packet);
    }

    #[test]
    fn a_careless_packet_survives_the_wire_or_is_refused_as_a_whole(packet in strategies::careless_packet()) {
        let mut bytes = b"before".to_vec();
        match packet.emit(&mut bytes) {
            Err(_) => prop_assert_eq!(bytes, b"before"),
            Ok(()) => {
                let parsed = Packet::parse(&Bytes::from(bytes).slice(6..)).expect("we understand ourselves");
                prop_assert_eq!(parsed, packet);
            }
        }
    }

    #[test]
    fn no_dss_is_longer_than_the_longest(dss in strategies::dss()) {
        prop_assert!(dss.encoded_len() <= Dss::MAX_ENCODED_LEN);
        prop_assert_eq!(dss.encoded_len(), dss.option_len().next_multiple_of(4));
    }

    #[test]
    fn what_the_link_appends_is_not_payload(packet in strategies::packet(), padding in 1..50usize) {
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).expect("the strategy makes packets that can be emitted");
        bytes.resize(bytes.len() + padding, 0xa5);
        prop_assert_eq!(Packet::parse(&Bytes::from(bytes)), Ok(packet));
    }

    #[test]
    fn a_udp_packet_survives_the_wire(
        ip in strategies::ip_header(),
        source_port: u16,
        destination_port: u16,
        payload in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let packet = UdpPacket { ip, source_port, destination_port, payload: payload.into() };
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).expect("short enough");
        prop_assert_eq!(bytes.len(), packet.wire_len());
        prop_assert_eq!(UdpPacket::parse(&Bytes::from(bytes)), Ok(packet));
    }
}
