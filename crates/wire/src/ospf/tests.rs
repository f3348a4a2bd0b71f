//! Bytes by hand from the figures of the RFCs.

use super::lls::{MdrDescription, MdrHello, MdrMetric, MdrMetrics};
use super::lsa::{RouterLsa, Scope};
use super::*;
use crate::error::{EmitError, ParseError};
use core::net::Ipv4Addr;
use core::net::Ipv6Addr;

mod lsas;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const SUMMED: Integrity = Integrity::Checksum { source: SOURCE, destination: ALL_SPF_ROUTERS };
const STRICT: Compatibility =
    Compatibility { accept_misplaced_mdr_bits: false, accept_checksum_over_lls: false, ..Compatibility::ACCEPTING };

/// Bytes from hexadecimal digits; blanks and text after `;` in a line are comments.
fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.lines().flat_map(|line| line.split(';').next()).collect();
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn router(last: u8) -> RouterId {
    RouterId(Ipv4Addr::new(192, 1, 1, last).to_bits())
}

fn packet(body: Body, lls: Option<Lls>) -> Packet {
    Packet { router: router(3), area: AreaId(1), instance: InstanceId(65), body, lls }
}

/// Asserts that the packet is encoded as these bytes without checksums, and decoded from them.
fn assert_is(packet: &Packet, text: &str) {
    let bytes = hex(text);
    let mut encoded = Vec::new();
    packet.encode(Integrity::Authenticated, STRICT, &mut encoded).unwrap();
    assert_eq!(encoded, bytes);
    assert_eq!(packet.encoded_len(), bytes.len());
    let decoded = Packet::decode(&bytes, Integrity::Authenticated, STRICT).unwrap();
    assert_eq!(decoded, Decoded { packet: packet.clone(), dropped_lls: None, dropped_lsas: vec![] });
}

fn hello() -> Hello {
    Hello {
        interface: InterfaceId(7),
        priority: 1,
        options: Options::V6 | Options::E | Options::R | Options::AF,
        hello_interval: 2,
        router_dead_interval: 6,
        designated_router: router(1),
        backup_designated_router: router(2),
        neighbors: vec![router(1), router(4)],
    }
}

fn mdr_hello() -> Tlv {
    Tlv::MdrHello(MdrHello {
        sequence: 7,
        full_adjacencies: false,
        differential: true,
        down: 1,
        init: 2,
        dependent: 3,
        selected_advertised: 4,
    })
}

fn lls(tlvs: Vec<Tlv>) -> Option<Lls> {
    Some(Lls { tlvs })
}

#[test]
fn a_hello_is_as_in_rfc_5340_a_3_2_and_its_mdr_hello_as_in_rfc_5614_a_2_3() {
    // Without checksums options have bit AT, 0x400; with link-local signalling L, 0x200.
    let text = "
        03 01 002c  c0010103  00000001  0000 41 00
        00000007    01 000713 0002 0006 c0010101 c0010102 c0010101 c0010104
        0000 0004   000e 0008 0007 0001 01 02 03 04 ; four words: this one and three of the value";
    assert_is(&packet(Body::Hello(hello()), lls(vec![mdr_hello()])), text);
}

#[test]
fn a_database_description_is_as_in_rfc_5340_a_3_3_and_its_mdr_dd_as_in_rfc_5614_a_2_4() {
    let header = LsaHeader {
        age: 3600,
        key: LsaKey { kind: LsaType::ROUTER, advertising: router(1), id: LinkStateId(5) },
        sequence: LsaSequence::INITIAL,
        checksum: 0xabcd,
        length: 24,
    };
    let description = DatabaseDescription {
        options: Options::V6,
        interface_mtu: 1500,
        flags: DescriptionFlags { init: true, more: true, master: true, ipv6_mtu_differs: true },
        sequence: 0x0102_0304,
        headers: vec![header],
    };
    let roles = MdrDescription { designated_router: router(8), backup_designated_router: RouterId::NONE };
    let text = "
        03 02 0030  c0010103  00000001  0000 41 00
        00 000601   05dc 00 17 01020304
        0e10 2001   00000005 c0010101 80000001 abcd 0018
        0000 0006   000f 0008 c0010108 00000000 0011 0004 000005dc";
    let lls = lls(vec![Tlv::MdrDescription(roles), Tlv::Ipv6Mtu(1500)]);
    assert_is(&packet(Body::DatabaseDescription(description.clone()), lls), text);
    let quiet = DatabaseDescription { flags: DescriptionFlags::default(), headers: vec![], ..description };
    let text = "03 02 001c c0010103 00000001 0000 41 00 00 000401 05dc 00 00 01020304";
    assert_is(&packet(Body::DatabaseDescription(quiet), None), text);
}

#[test]
fn the_first_of_each_kind_of_signalling_is_found() {
    let roles = |last| MdrDescription { designated_router: router(last), backup_designated_router: RouterId::NONE };
    let metric = |default| MdrMetric { default, metrics: MdrMetrics::InOrder(vec![1]) };
    let tlvs = vec![
        Tlv::MdrDescription(roles(1)),
        Tlv::MdrMetric(metric(2)),
        Tlv::MdrDescription(roles(3)),
        Tlv::MdrMetric(metric(4)),
    ];
    let lls = Lls { tlvs };
    assert_eq!((lls.mdr_description(), lls.mdr_metric()), (Some(&roles(1)), Some(&metric(2))));
    assert_eq!(lls.mdr_hello(), None);
    let hello = Lls { tlvs: vec![mdr_hello()] };
    assert!(hello.mdr_hello().is_some_and(|hello| hello.sequence == 7));
    assert_eq!((hello.mdr_description(), hello.mdr_metric()), (None, None));
}

#[test]
fn numbers_are_printed_as_routers_and_rfcs_write_them() {
    assert_eq!(format!("{} {:?}", router(3), AreaId::BACKBONE), "192.1.1.3 0.0.0.0");
    assert_eq!(format!("{:?} {:?}", LsaType::LINK, LsaSequence::INITIAL), "0x0008 0x80000001");
    assert_eq!(format!("{:?} {:?}", Options::AF | Options::V6, PrefixOptions::LA), "0x000101 0x02");
    let prefix = Prefix::v6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 32).unwrap();
    assert_eq!(
        (format!("{prefix:?}"), prefix.address_v6().segments()[..3].to_vec()),
        ("2001:db8::/32".to_owned(), vec![0x2001, 0xdb8, 0])
    );
}

#[test]
fn options_hold_others_only_whole() {
    let options = Options::V6 | Options::R;
    assert!(options.contains(Options::R) && options.contains(Options::NONE));
    assert!(!options.contains(Options::R | Options::E) && !options.contains(Options::E));
    let prefix = PrefixOptions::LA.with(PrefixOptions::NU);
    assert!(prefix.contains(PrefixOptions::LA) && prefix.contains(PrefixOptions::NONE));
    assert!(!prefix.contains(PrefixOptions::P) && !PrefixOptions::LA.contains(prefix));
}

#[test]
fn requests_and_acknowledgments_are_as_in_rfc_5340_a_3_4_and_a_3_6() {
    let key = LsaKey { kind: LsaType::LINK, advertising: router(9), id: LinkStateId(2) };
    let request = LinkStateRequest { keys: vec![key, LsaKey { kind: LsaType::INTRA_AREA_PREFIX, ..key }] };
    let text = "
        03 03 0028  c0010103  00000001  0000 41 00
        0000 0008   00000002  c0010109
        0000 2009   00000002  c0010109";
    assert_is(&packet(Body::LinkStateRequest(request), None), text);
    let header = LsaHeader { age: 1, key, sequence: LsaSequence::MAX, checksum: 0x0102, length: 44 };
    let text = "
        03 05 0024  c0010103  00000001  0000 41 00
        0001 0008   00000002  c0010109  7fffffff 0102 002c";
    let acknowledgment = LinkStateAcknowledgment { headers: vec![header] };
    assert_is(&packet(Body::LinkStateAcknowledgment(acknowledgment), None), text);
}

/// A router-LSA without links: the smallest there is.
fn lone_router(last: u8) -> std::sync::Arc<Lsa> {
    let key = LsaKey { kind: LsaType::ROUTER, advertising: router(last), id: LinkStateId(0) };
    let body = LsaBody::Router(RouterLsa { options: Options::R, ..RouterLsa::default() });
    Lsa::new(key, LsaSequence::INITIAL, body).unwrap()
}

#[test]
fn the_header_of_an_advertisement_says_what_its_bytes_say() {
    let lsa = lone_router(9);
    let field = [lsa.bytes()[16], lsa.bytes()[17]];
    let header = lsa.header(5);
    assert_eq!((header.age, header.key, header.sequence), (5, lsa.key(), LsaSequence::INITIAL));
    assert_eq!((header.checksum, header.length), (u16::from_be_bytes(field), 24));
    assert_ne!(lsa.checksum(), 0, "Fletcher's checksum is never zero here (RFC 2328, section 12.1.7)");
    // Logs do not contain the bytes.
    let text = format!("{lsa:?}");
    assert!(text.starts_with("Lsa { key: ") && text.contains("Router(") && !text.contains("bytes"), "{text}");
}

#[test]
fn an_update_is_as_in_rfc_5340_a_3_5_with_fletchers_checksum_over_all_but_the_age() {
    // The sums over 2001 00000000 c0010103 80000001 .... 0018 00000010, modulo 255:
    //   bytes     20 01 00 00 00 00 c0 01 01 03 80 00 00 01  x  y 00 18 00 00 00 10
    //   weights   22 21 20 19 18 17 16 15 14 13 12 11 10  9  8  7  6  5  4  3  2  1
    //   c0 = 32 + 1 + 192 + 1 + 1 + 3 + 128 + 1 + 24 + 16 = 399 = 144
    //   c1 = 704 + 21 + 3072 + 15 + 14 + 39 + 1536 + 9 + 120 + 16 = 5546 = 191
    // x + y = -144 and 8 x + 7 y = -191: x = 7 * 144 - 191 = 817 = 52, y = -144 - 52 = -196 = 59.
    let text = "
        03 04 0044  c0010103  00000001  0000 41 00
        00000002
        0005 2001   00000000  c0010103  80000001 343b 0018 00 000010
        0e10 2001   00000000  c0010103  80000001 343b 0018 00 000010";
    let lsa = lone_router(3);
    let lsas = vec![AgedLsa { age: 5, lsa: lsa.clone() }, AgedLsa { age: lsa::MAX_AGE, lsa }];
    assert_is(&packet(Body::LinkStateUpdate(LinkStateUpdate { lsas }), None), text);
}

#[test]
fn the_checksum_covers_the_pseudo_header_and_not_the_link_local_signalling() {
    let acknowledgment = packet(Body::LinkStateAcknowledgment(LinkStateAcknowledgment::default()), None);
    let empty = Packet { router: RouterId(0x0101_0101), area: AreaId(0), instance: InstanceId(0), ..acknowledgment };
    let mut bytes = Vec::new();
    empty.encode(SUMMED, STRICT, &mut bytes).unwrap();
    // fe80 + 1 + ff02 + 5, length 10, protocol 59, 0305 + 0010 + 0101 + 0101 = 20308, folded 030a, complement fcf5.
    assert_eq!(bytes, hex("0305 0010 01010101 00000000 fcf5 0000"));

    let hello = packet(Body::Hello(hello()), lls(vec![mdr_hello()]));
    let plain = |ways: Compatibility| {
        let mut bytes = Vec::new();
        hello.encode(SUMMED, ways, &mut bytes).unwrap();
        bytes
    };
    let (ours, theirs) = (plain(STRICT), plain(Compatibility { send_checksum_over_lls: true, ..STRICT }));
    // 0004 + 000e + 0008 + 0007 + 0001 + 0102 + 0304 = 0428, complement fbd7.
    assert_eq!(ours[44..46], [0xfb, 0xd7]);
    // Only the length in the pseudo-header differs, by the 16 bytes of the block.
    let sum = |bytes: &[u8]| u16::from_be_bytes([bytes[12], bytes[13]]);
    assert_eq!(sum(&ours), sum(&theirs) + 16);
    assert_eq!((&ours[..12], &ours[14..]), (&theirs[..12], &theirs[14..]));
    assert_eq!(Packet::decode(&theirs, SUMMED, STRICT), Err(ParseError::BadChecksum));
    for bytes in [ours, theirs] {
        assert_eq!(Packet::decode(&bytes, SUMMED, Compatibility::ACCEPTING).unwrap().packet, hello);
    }
}

#[test]
fn the_bits_of_an_mdr_hello_are_read_where_a_known_implementation_has_them_only_if_asked_to() {
    let mdr_hello = |text: &str, compatibility| {
        let bytes =
            [hex("03 01 0024 00000001 00000000 0000 0000  00000000 00 000200 0000 0000 0000000000000000"), hex(text)];
        let decoded = Packet::decode(&bytes.concat(), Integrity::Authenticated, compatibility).unwrap();
        let hello = *decoded.packet.lls.unwrap().mdr_hello().unwrap();
        (hello.full_adjacencies, hello.differential)
    };
    for (bits, strictly, leniently) in [
        ("0000", (false, false), (false, false)),
        ("0001", (false, true), (false, true)),
        ("0002", (true, false), (true, false)),
        ("0100", (false, false), (false, true)),
        ("0200", (false, false), (true, false)),
        ("0300", (false, false), (true, true)),
        ("0201", (false, true), (true, true)),
        ("0303", (true, true), (true, true)),
        ("fcfc", (false, false), (false, false)),
    ] {
        let block = format!("0000 0004 000e 0008 0009 {bits} 00000000");
        assert_eq!(mdr_hello(&block, STRICT), strictly, "{bits}");
        assert_eq!(mdr_hello(&block, Compatibility::ACCEPTING), leniently, "{bits}");
    }
    let mut sent = Vec::new();
    let tlv = MdrHello { full_adjacencies: true, differential: true, ..MdrHello::default() };
    let hello = packet(Body::Hello(Hello::default()), lls(vec![Tlv::MdrHello(tlv)]));
    hello.encode(SUMMED, Compatibility::ALIKE, &mut sent).unwrap();
    assert_eq!(sent[46..48], [0x03, 0x00]);
}

#[test]
fn metrics_are_as_in_rfc_5614_a_2_5_and_padded_to_whole_words() {
    let metric = |metrics| Tlv::MdrMetric(MdrMetric { default: 10, metrics });
    let hello = |metrics| packet(Body::Hello(Hello::default()), lls(vec![metric(metrics)]));
    let begin = "03 01 0024 c0010103 00000001 0000 4100 00000000 00 000600 0000 0000 0000000000000000";
    let named = MdrMetrics::Named(vec![(router(1), 20), (router(2), 30), (router(4), 40)]);
    let text = "0000 0008 0010 0016 000a 0001 c0010101 c0010102 c0010104 0014 001e 0028 0000";
    assert_is(&hello(named), &format!("{begin}\n{text}"));
    let text = "0000 0004 0010 0006 000a 0000 0014 0000";
    assert_is(&hello(MdrMetrics::InOrder(vec![20])), &format!("{begin}\n{text}"));
    assert_is(&hello(MdrMetrics::Named(vec![])), &format!("{begin}\n0000 0003 0010 0004 000a 0001"));
}

#[test]
fn unknown_values_are_kept_and_duplicates_count_once() {
    let unknown = Tlv::Unknown { kind: 1, value: vec![0, 0, 0, 1, 2].into() };
    let second = Tlv::MdrHello(MdrHello { sequence: 9, ..MdrHello::default() });
    let hello = packet(Body::Hello(Hello::default()), lls(vec![unknown, mdr_hello(), second]));
    let text = "
        03 01 0024 c0010103 00000001 0000 4100 00000000 00 000600 0000 0000 0000000000000000
        0000 000a  0001 0005 00000001 02000000
        000e 0008 0007 0001 01020304  000e 0008 0009 0000 00000000";
    assert_is(&hello, text);
    assert_eq!(hello.lls.unwrap().mdr_hello().map(|hello| hello.sequence), Some(7));
}

#[test]
fn bad_link_local_signalling_is_dropped_alone() {
    let hello = hex("03 01 0024 c0010103 00000001 0000 4100 00000000 00 000200 0000 0000 0000000000000000");
    let decode = |block: &str| {
        let decoded = Packet::decode(&[hello.clone(), hex(block)].concat(), Integrity::Authenticated, STRICT).unwrap();
        assert_eq!(decoded.packet, packet(Body::Hello(Hello::default()), None));
        decoded.dropped_lls
    };
    assert_eq!(decode(""), Some(ParseError::Truncated));
    assert_eq!(decode("0000 0000 000e 0008"), Some(ParseError::BadLength), "no room for its own header");
    assert_eq!(decode("0000 0005 000e 0008 0000 0000 00000000"), Some(ParseError::Truncated));
    assert_eq!(decode("0000 0002 000e 0008"), Some(ParseError::BadLength), "a value that is not there");
    assert_eq!(decode("0000 0003 000e 0007 00000000 00000000"), Some(ParseError::BadLength));
    assert_eq!(decode("0000 0003 000e 0004 00000000"), Some(ParseError::BadLength), "an MDR-Hello of four bytes");
    assert_eq!(decode("0000 0005 000e 000c 00000000 00000000 00000000"), Some(ParseError::BadLength));
    assert_eq!(decode("0000 0003 0010 0003 00000000"), Some(ParseError::BadLength), "a metric without its flags");
    assert_eq!(decode("0000 0003 0010 0005 00010000 00000000"), Some(ParseError::BadLength), "half a metric");
    assert_eq!(decode("0000 0004 0010 0008 00010001 00000000"), Some(ParseError::BadLength), "a name without a metric");
    assert_eq!(decode("0000 0002 ffff ffff"), Some(ParseError::BadLength));
    assert_eq!(decode("0000 0002 0063"), Some(ParseError::Truncated));

    let mut bytes = Vec::new();
    let whole = packet(Body::Hello(Hello::default()), lls(vec![mdr_hello()]));
    whole.encode(SUMMED, STRICT, &mut bytes).unwrap();
    bytes[47] ^= 1;
    let decoded = Packet::decode(&bytes, SUMMED, STRICT).unwrap();
    assert_eq!((decoded.packet.lls, decoded.dropped_lls), (None, Some(ParseError::BadChecksum)));
}

#[test]
fn what_follows_a_packet_without_the_l_bit_is_ignored() {
    let bytes = hex("03 05 0010 c0010103 00000001 0000 4100 0000 0003 000e");
    let decoded = Packet::decode(&bytes, Integrity::Authenticated, STRICT).unwrap();
    assert_eq!(decoded.packet, packet(Body::LinkStateAcknowledgment(LinkStateAcknowledgment::default()), None));
}

#[test]
fn lengths_that_contradict_themselves_are_refused() {
    let decode = |text: &str| Packet::decode(&hex(text), Integrity::Authenticated, STRICT).map(|_| ());
    let router_and_rest = "c0010103 00000001 0000 4100";
    assert_eq!(decode(""), Err(ParseError::Truncated));
    assert_eq!(decode("03 05 0010 c0010103 00000001 0000 41"), Err(ParseError::Truncated));
    assert_eq!(decode(&format!("03 05 000f {router_and_rest}")), Err(ParseError::BadLength));
    assert_eq!(decode(&format!("03 05 0011 {router_and_rest}")), Err(ParseError::Truncated));
    assert_eq!(decode(&format!("02 05 0010 {router_and_rest}")), Err(ParseError::Unsupported), "OSPFv2");
    assert_eq!(decode(&format!("03 00 0010 {router_and_rest}")), Err(ParseError::Unsupported));
    assert_eq!(decode(&format!("03 06 0010 {router_and_rest}")), Err(ParseError::Unsupported));
    for kind in 1..=5 {
        // A packet must not end within a word.
        let text = format!("03 0{kind} 0012 {router_and_rest} 0000");
        assert_eq!(decode(&text), Err(ParseError::BadLength), "type {kind}");
    }
    let hello = "00000000 00 000000 0000 0000 0000000000000000";
    assert_eq!(decode(&format!("03 01 0024 {router_and_rest} {hello}")), Ok(()));
    assert_eq!(decode(&format!("03 01 0027 {router_and_rest} {hello} 010203")), Err(ParseError::BadLength));
    let lsa = "0005 2001 00000000 c0010103 80000001 343b 0018 00 000010";
    assert_eq!(decode(&format!("03 04 002c {router_and_rest} 00000001 {lsa}")), Ok(()));
    assert_eq!(decode(&format!("03 04 002c {router_and_rest} 00000002 {lsa}")), Err(ParseError::BadLength));
    assert_eq!(decode(&format!("03 04 002c {router_and_rest} 00000000 {lsa}")), Err(ParseError::BadLength));
    for length in ["0000", "0013", "0019", "ffff"] {
        let lsa = lsa.replace("0018", length);
        assert_eq!(decode(&format!("03 04 002c {router_and_rest} 00000001 {lsa}")), Err(ParseError::BadLength));
    }
}

#[test]
fn what_the_wire_cannot_carry_is_not_encoded() {
    let encode = |packet: &Packet| {
        let mut bytes = vec![1];
        let result = packet.encode(SUMMED, STRICT, &mut bytes);
        assert!(result.is_ok() || bytes == [1], "nothing was written");
        result
    };
    let with = |count| Hello { neighbors: vec![RouterId(1); count], ..Hello::default() };
    // 65 535 - 36 bytes leave room for 16 374 neighbours.
    assert_eq!(encode(&packet(Body::Hello(with(16_374)), None)), Ok(()));
    assert_eq!(encode(&packet(Body::Hello(with(16_375)), None)), Err(EmitError::TooLong));
    assert_eq!(encode(&packet(Body::Hello(with(16_374)), lls(vec![]))), Err(EmitError::TooLong));
    let update = Body::LinkStateUpdate(LinkStateUpdate::default());
    assert_eq!(encode(&packet(update, lls(vec![]))), Err(EmitError::BadValue));
    let unknown = Tlv::Unknown { kind: 14, value: vec![].into() };
    assert_eq!(encode(&packet(Body::Hello(with(0)), lls(vec![unknown]))), Err(EmitError::BadValue));
    let long = Tlv::Unknown { kind: 40_000, value: vec![0; 65_536].into() };
    assert_eq!(encode(&packet(Body::Hello(with(0)), lls(vec![long]))), Err(EmitError::TooLong));
    // More words than Data Length counts.
    let many = vec![Tlv::Unknown { kind: 40_000, value: vec![0; 65_532].into() }; 4];
    assert_eq!(encode(&packet(Body::Hello(with(0)), lls(many))), Err(EmitError::TooLong));
}

#[test]
fn instances_have_the_families_of_rfc_5838() {
    use AddressFamily::{Ipv4Multicast, Ipv4Unicast, Ipv6Multicast, Ipv6Unicast};
    for (instance, family) in [
        (0, Some(Ipv6Unicast)),
        (31, Some(Ipv6Unicast)),
        (32, Some(Ipv6Multicast)),
        (63, Some(Ipv6Multicast)),
        (64, Some(Ipv4Unicast)),
        (95, Some(Ipv4Unicast)),
        (96, Some(Ipv4Multicast)),
        (127, Some(Ipv4Multicast)),
        (128, None),
        (255, None),
    ] {
        assert_eq!(InstanceId(instance).address_family(), family, "{instance}");
    }
    assert_eq!(InstanceId::IPV4.address_family(), Some(Ipv4Unicast));
}

#[test]
fn prefixes_have_no_bits_behind_their_length() {
    let v4 = Prefix::v4(Ipv4Addr::new(112, 26, 4, 9), 22).unwrap();
    assert_eq!((v4.address_v4(), v4.length()), (Some(Ipv4Addr::new(112, 26, 4, 0)), 22));
    assert_eq!(v4.bits() >> 96, 0x701a_0400);
    assert_eq!(Some(v4), Prefix::v4(Ipv4Addr::new(112, 26, 7, 255), 22));
    assert!(v4.contains("112.26.7.1".parse().unwrap()) && !v4.contains("112.26.8.1".parse().unwrap()));
    assert_eq!(Prefix::v4(Ipv4Addr::UNSPECIFIED, 33), None);
    assert_eq!(Prefix::v6(SOURCE, 129), None);
    assert_eq!(Prefix::host_v6(SOURCE).address_v4(), None);
    assert_eq!(Prefix::v6(SOURCE, 0), Some(Prefix::DEFAULT));
    assert!(Prefix::DEFAULT.contains(SOURCE.into()));
    assert!(!Prefix::v6(SOURCE, 64).unwrap().contains("10.0.0.1".parse().unwrap()));
    let host = Prefix::host("10.0.0.1".parse().unwrap());
    assert!(host.contains("10.0.0.1".parse().unwrap()) && !host.contains("10.0.0.2".parse().unwrap()));
    assert_eq!(host, Prefix::host_v4(Ipv4Addr::new(10, 0, 0, 1)));
}
