//! Advertisements: their encoding, the comparison of instances, and unknown contents that are kept.

use super::*;
use crate::ospf::lsa::{
    AsExternalLsa, InterAreaPrefixLsa, InterAreaRouterLsa, IntraAreaPrefix, IntraAreaPrefixLsa, LinkKind, LinkLsa,
    LinkPrefix, MetricType, NetworkLsa, RouterFlags, RouterLink,
};
use core::cmp::Ordering;
use std::sync::Arc;

/// Asserts that an advertisement of router 3 with this body is encoded as these bytes, except for the checksum, and
/// decoded from them.
fn assert_is(kind: LsaType, id: u32, body: LsaBody, text: &str) -> Arc<Lsa> {
    let key = LsaKey { kind, advertising: router(3), id: LinkStateId(id) };
    let said = body.clone();
    let lsa = Lsa::new(key, LsaSequence::INITIAL, body).unwrap();
    let mut bytes = lsa.bytes().to_vec();
    assert_eq!(Lsa::decode(&bytes), Ok(AgedLsa { age: 0, lsa: lsa.clone() }));
    bytes[16..18].fill(0);
    assert_eq!(bytes, hex(text));
    assert_eq!(lsa.encoded_len(), bytes.len());
    assert_eq!(usize::from(lsa.header(0).length), bytes.len());
    assert_eq!((lsa.key(), lsa.sequence(), lsa.body()), (key, LsaSequence::INITIAL, &said));
    let aged = AgedLsa { age: 7, lsa: lsa.clone() };
    assert_eq!(aged.header(), LsaHeader { age: 7, ..lsa.header(0) });
    assert_eq!(usize::from(lsa.header(0).length), bytes.len());
    lsa
}

fn link(kind: LinkKind, interface: u32, last: u8) -> RouterLink {
    let (interface, neighbor_interface) = (InterfaceId(interface), InterfaceId(1));
    RouterLink { kind, metric: 1, interface, neighbor_interface, neighbor: router(last) }
}

/// V6, E and R: 0x13.
const OPTIONS: Options = Options::from_bits(0x13);

#[test]
fn the_router_lsa_of_the_example_in_rfc_5614_a_4_1() {
    use LinkKind::{PointToPoint, Transit};
    let links = vec![link(PointToPoint, 1, 1), link(PointToPoint, 1, 2), link(PointToPoint, 1, 4), link(Transit, 2, 5)];
    let flags = RouterFlags { area_border: true, ..RouterFlags::default() };
    let text = "
        0000 2001 00000000 c0010103 80000001 0000 0058
        01 000013
        01 00 0001 00000001 00000001 c0010101
        01 00 0001 00000001 00000001 c0010102
        01 00 0001 00000001 00000001 c0010104
        02 00 0001 00000002 00000001 c0010105";
    assert_is(LsaType::ROUTER, 0, LsaBody::Router(RouterLsa { flags, options: OPTIONS, links }), text);
}

#[test]
fn all_flags_of_a_router_lsa_have_their_places() {
    let flags =
        RouterFlags { area_border: true, as_boundary: true, virtual_link_endpoint: true, nssa_translator: true };
    let links = vec![link(LinkKind::Virtual, 3, 7), link(LinkKind::Other(3), 3, 7)];
    let text = "
        0000 2001 00000000 c0010103 80000001 0000 0038
        17 000013
        04 00 0001 00000003 00000001 c0010107
        03 00 0001 00000003 00000001 c0010107";
    assert_is(LsaType::ROUTER, 0, LsaBody::Router(RouterLsa { flags, options: OPTIONS, links }), text);
}

#[test]
fn the_link_lsa_of_the_example_in_rfc_5614_a_4_2_and_one_with_prefixes() {
    let address = Ipv6Addr::new(0xfe80, 1, 0, 0, 0, 0, 0, 3);
    let body = LinkLsa { priority: 1, options: OPTIONS, address, prefixes: vec![] };
    let text = "
        0000 0008 00000001 c0010103 80000001 0000 002c
        01 000013 fe800001 00000000 00000000 00000003 00000000";
    assert_is(LsaType::LINK, 1, LsaBody::Link(body.clone()), text);
    let prefix = |address: &str, length, options| LinkPrefix {
        prefix: Prefix::v6(address.parse().unwrap(), length).unwrap(),
        options,
    };
    let prefixes = vec![
        prefix("5f00:0:c001:200::", 56, PrefixOptions::NONE),
        prefix("::", 0, PrefixOptions::NU),
        prefix("2001:db8::1", 128, PrefixOptions::LA.with(PrefixOptions::DN)),
    ];
    let text = "
        0000 0008 00000001 c0010103 80000001 0000 0050
        01 000013 fe800001 00000000 00000000 00000003 00000003
        38 00 0000 5f000000 c0010200
        00 01 0000
        80 12 0000 20010db8 00000000 00000000 00000001";
    assert_is(LsaType::LINK, 1, LsaBody::Link(LinkLsa { prefixes, ..body }), text);
}

#[test]
fn a_link_lsa_says_an_ipv4_address_in_the_first_32_bits() {
    let address = Ipv4Addr::new(112, 26, 1, 3);
    let options = OPTIONS | Options::AF;
    let prefix = Prefix::v4(Ipv4Addr::new(112, 26, 1, 0), 24).unwrap();
    let prefixes = vec![LinkPrefix { prefix, options: PrefixOptions::NONE }];
    let body = LinkLsa { priority: 2, options, address: LinkLsa::field_of_v4(address), prefixes };
    assert_eq!(body.address_v4(), address);
    let text = "
        0000 0008 00000009 c0010103 80000001 0000 0034
        02 000113 701a0103 00000000 00000000 00000000 00000001
        18 00 0000 701a0100";
    assert_is(LsaType::LINK, 9, LsaBody::Link(body), text);
}

#[test]
fn the_intra_area_prefix_lsa_of_the_example_in_rfc_5614_a_4_3() {
    let entry = |address: &str, length, metric| IntraAreaPrefix {
        prefix: Prefix::v6(address.parse().unwrap(), length).unwrap(),
        options: PrefixOptions::NONE,
        metric,
    };
    let referenced = LsaKey { kind: LsaType::ROUTER, advertising: router(3), id: LinkStateId(0) };
    let prefixes = vec![entry("5f00:3::", 64, 0), entry("5f00:0:c001:400::3", 56, 1)];
    let text = "
        0000 2009 000000b1 c0010103 80000001 0000 0038
        0002 2001 00000000 c0010103
        40 00 0000 5f000003 00000000
        38 00 0001 5f000000 c0010400";
    let body = LsaBody::IntraAreaPrefix(IntraAreaPrefixLsa { referenced, prefixes });
    assert_is(LsaType::INTRA_AREA_PREFIX, 177, body, text);
}

#[test]
fn network_and_inter_area_lsas_are_as_in_rfc_5340_a_4_4_to_a_4_6() {
    let body = NetworkLsa { options: OPTIONS, attached: vec![router(3), router(5)] };
    let text = "
        0000 2002 00000002 c0010103 80000001 0000 0020
        00 000013 c0010103 c0010105";
    assert_is(LsaType::NETWORK, 2, LsaBody::Network(body), text);
    let prefix = Prefix::v6("5f00:0:c001:400::".parse().unwrap(), 56).unwrap();
    let body = InterAreaPrefixLsa { metric: 0x01_0203, prefix, options: PrefixOptions::P };
    let text = "
        0000 2003 00000002 c0010103 80000001 0000 0024
        00 010203 38 08 0000 5f000000 c0010400";
    assert_is(LsaType::INTER_AREA_PREFIX, 2, LsaBody::InterAreaPrefix(body), text);
    let body = InterAreaRouterLsa { options: OPTIONS, metric: lsa::INFINITY, destination: router(9) };
    let text = "
        0000 2004 00000002 c0010103 80000001 0000 0020
        00 000013 00 ffffff c0010109";
    assert_is(LsaType::INTER_AREA_ROUTER, 2, LsaBody::InterAreaRouter(body), text);
}

#[test]
fn as_external_lsas_have_their_optional_fields_in_the_order_of_rfc_5340_a_4_7() {
    let bare = AsExternalLsa {
        metric_type: MetricType::One,
        metric: 20,
        prefix: Prefix::DEFAULT,
        options: PrefixOptions::NONE,
        forwarding: None,
        tag: None,
        referenced: None,
    };
    let text = "
        0000 4005 00000002 c0010103 80000001 0000 001c
        00 000014 00 00 0000";
    assert_is(LsaType::AS_EXTERNAL, 2, LsaBody::AsExternal(bare), text);
    let full = AsExternalLsa {
        metric_type: MetricType::Two,
        prefix: Prefix::v6("2001:db8::".parse().unwrap(), 33).unwrap(),
        forwarding: Some("2001:db8::2".parse().unwrap()),
        tag: Some(0x0102_0304),
        referenced: Some((LsaType::ROUTER, LinkStateId(9))),
        ..bare
    };
    let text = "
        0000 4005 00000002 c0010103 80000001 0000 003c
        07 000014 21 00 2001 20010db8 00000000
        20010db8 00000000 00000000 00000002 01020304 00000009";
    assert_is(LsaType::AS_EXTERNAL, 2, LsaBody::AsExternal(full), text);
}

#[test]
fn types_say_how_far_they_are_flooded() {
    for (kind, scope) in [
        (LsaType::ROUTER, Some(Scope::Area)),
        (LsaType::LINK, Some(Scope::Link)),
        (LsaType::AS_EXTERNAL, Some(Scope::AutonomousSystem)),
        (LsaType(0x2007), Some(Scope::Link)),
        (LsaType(0xa00a), Some(Scope::Area)),
        (LsaType(0xc00a), Some(Scope::AutonomousSystem)),
        (LsaType(0x800a), Some(Scope::Link)),
        (LsaType(0x400a), Some(Scope::Link)),
        (LsaType(0xe00a), None),
        (LsaType(0x600a), None),
    ] {
        assert_eq!(kind.scope(), scope, "{kind:?}");
    }
}

#[test]
fn the_more_recent_instance_is_found_as_in_rfc_2328_13_1() {
    let header =
        |sequence, checksum, age| LsaHeader { age, sequence: LsaSequence(sequence), checksum, ..LsaHeader::default() };
    let old = header(5, 0x8000, 100);
    for (other, order, why) in [
        (header(6, 0, 3600), Ordering::Less, "a higher sequence number"),
        (header(i32::MIN + 1, 0xffff, 0), Ordering::Greater, "numbers are signed"),
        (header(5, 0x8001, 3600), Ordering::Less, "a higher checksum, as a number without sign"),
        (header(5, 0x7fff, 0), Ordering::Greater, "a lower checksum"),
        (header(5, 0x8000, 3600), Ordering::Less, "the age at which it is flushed"),
        (header(5, 0x8000, 0xffff), Ordering::Less, "beyond that age, and not to age"),
        (header(5, 0x8000, 1000), Ordering::Equal, "ages that differ by 900 seconds"),
        (header(5, 0x8000, 1001), Ordering::Greater, "the younger of ages that differ by more"),
        (header(5, 0x8000, 0x8000 + 1001), Ordering::Greater, "which does not depend on whether it is to age"),
        (old, Ordering::Equal, "itself"),
    ] {
        assert_eq!(old.compare_instance(&other), order, "{why}");
        assert_eq!(other.compare_instance(&old), order.reverse(), "{why}");
    }
    let flushed = header(5, 0x8000, 3600);
    assert_eq!(flushed.compare_instance(&header(5, 0x8000, 4000)), Ordering::Equal, "both are flushed");
}

#[test]
fn after_the_last_sequence_number_there_is_none() {
    assert_eq!(LsaSequence::INITIAL.0.cast_unsigned(), 0x8000_0001);
    assert_eq!(LsaSequence(-1).next(), Some(LsaSequence(0)));
    assert_eq!(LsaSequence(i32::MAX - 1).next(), Some(LsaSequence::MAX));
    assert_eq!(LsaSequence::MAX.next(), None);
}

/// The bytes of an advertisement with a correct checksum.
fn summed(text: &str) -> Vec<u8> {
    let mut bytes = hex(text);
    let checksum = fletcher::checksum(&bytes[2..], 14);
    bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[test]
fn what_is_reserved_or_unknown_is_forwarded_as_it_came() {
    // Unknown flags and options, a reserved octet that is not zero, and a bit beyond the end of a prefix.
    for text in [
        "0007 2001 00000000 c0010101 80000001 0000 0028 e8 f00013 01 ff 0001 00000001 00000001 c0010102",
        "0007 2009 00000000 c0010101 80000001 0000 0028 0001 2001 00000000 c0010101 07 00 0000 ffffffff",
        "0007 2002 00000000 c0010101 80000001 0000 0018 ff 000013",
        "0007 a00a 00000000 c0010101 80000001 0000 0017 010203",
    ] {
        let bytes = summed(text);
        let aged = Lsa::decode(&bytes).unwrap();
        let lsas = vec![aged];
        let update = packet(Body::LinkStateUpdate(LinkStateUpdate { lsas }), None);
        let mut sent = Vec::new();
        update.encode(SUMMED, STRICT, &mut sent).unwrap();
        assert_eq!(sent[20..], bytes, "{text}");
    }
}

#[test]
fn contents_that_contradict_their_type_are_refused() {
    let decode = |text: &str| Lsa::decode(&summed(text)).map(|_| ());
    let header = |kind: &str, length: usize| format!("0007 {kind} 00000000 c0010101 80000001 0000 {length:04x}");
    for (kind, body, error) in [
        ("2001", "", ParseError::BadLength),
        ("2001", "00 000013 01", ParseError::BadLength),
        ("2001", "00 000013 01 00 0001 00000001 00000001 c001", ParseError::BadLength),
        ("2002", "00 000013 0101", ParseError::BadLength),
        ("2003", "00 000013 81 00 0000 00000000", ParseError::BadValue),
        ("2003", "00 000013 20 00 0000", ParseError::BadLength),
        ("2003", "00 000013 00 00 0000 00000000", ParseError::BadLength),
        ("2004", "00 000013 00 000001", ParseError::BadLength),
        ("4005", "02 000001 00 00 0000 00000000", ParseError::BadLength),
        ("4005", "00 000001 00 00 2001", ParseError::BadLength),
        ("0008", "01 000013", ParseError::BadLength),
        ("0008", "01 000013 00000000 00000000 00000000 00000000 ffffffff 00 00 0000", ParseError::BadLength),
        ("0008", "01 000013 00000000 00000000 00000000 00000000 00000001 ff 00 0000", ParseError::BadValue),
        ("0008", "01 000013 00000000 00000000 00000000 00000000 00000000 00000000", ParseError::BadLength),
        ("2009", "ffff 2001 00000000 c0010101 00 00 0000", ParseError::BadLength),
        ("2009", "0000 2001 00000000 c0010101 00 00 0000", ParseError::BadLength),
    ] {
        let text = format!("{} {body}", header(kind, 20 + hex(body).len()));
        assert_eq!(decode(&text), Err(error), "{text}");
    }
    assert_eq!(decode(&header("2001", 24)), Err(ParseError::BadLength), "shorter than it says");
    assert_eq!(Lsa::decode(&hex("0007 2001")).map(|_| ()), Err(ParseError::Truncated));
}

#[test]
fn a_bad_advertisement_does_not_make_its_neighbours_bad() {
    let good = lone_router(3).bytes().to_vec();
    let damaged = {
        let mut bytes = lone_router(4).bytes().to_vec();
        bytes[23] ^= 1;
        bytes
    };
    let senseless = summed("0007 2009 00000000 c0010105 80000001 0000 0020 ffff 2001 00000000 c0010101");
    let unsummed = {
        let mut bytes = lone_router(6).bytes().to_vec();
        bytes[16..18].fill(0);
        bytes
    };
    let lsas = [damaged, good, senseless, unsummed].concat();
    let mut bytes = hex("03 04 0000 c0010103 00000001 0000 4100 00000004");
    bytes.extend(&lsas);
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    let decoded = Packet::decode(&bytes, Integrity::Authenticated, STRICT).unwrap();
    let dropped: Vec<_> = decoded.dropped_lsas.iter().map(|(header, error)| (header.key.advertising, *error)).collect();
    let expected = [
        (router(4), ParseError::BadChecksum),
        (router(5), ParseError::BadLength),
        (router(6), ParseError::BadChecksum),
    ];
    assert_eq!(dropped, expected);
    let lsas = vec![AgedLsa { age: 0, lsa: lone_router(3) }];
    assert_eq!(decoded.packet.body, Body::LinkStateUpdate(LinkStateUpdate { lsas }));
}

#[test]
fn an_advertisement_that_cannot_be_is_not_made() {
    let make = |kind, body| {
        let key = LsaKey { kind, advertising: router(1), id: LinkStateId(0) };
        Lsa::new(key, LsaSequence::INITIAL, body).map(|_| ())
    };
    let router_lsa = |links| LsaBody::Router(RouterLsa { links, ..RouterLsa::default() });
    assert_eq!(make(LsaType::NETWORK, router_lsa(vec![])), Err(EmitError::BadValue));
    assert_eq!(make(LsaType::ROUTER, LsaBody::Unknown(vec![].into())), Err(EmitError::BadValue));
    let misnamed = link(LinkKind::Other(1), 1, 1);
    assert_eq!(make(LsaType::ROUTER, router_lsa(vec![misnamed])), Err(EmitError::BadValue));
    let dear = InterAreaRouterLsa { options: OPTIONS, metric: 1 << 24, destination: router(1) };
    assert_eq!(make(LsaType::INTER_AREA_ROUTER, LsaBody::InterAreaRouter(dear)), Err(EmitError::BadValue));
    // 65 535 - 24 bytes leave room for 4 094 links.
    let links = |count| vec![link(LinkKind::PointToPoint, 1, 1); count];
    assert_eq!(make(LsaType::ROUTER, router_lsa(links(4_094))), Ok(()));
    assert_eq!(make(LsaType::ROUTER, router_lsa(links(4_095))), Err(EmitError::TooLong));
}

#[test]
fn keys_are_in_order_of_type_then_router_then_link_state_id() {
    let key =
        |kind, advertising, id| LsaKey { kind: LsaType(kind), advertising: RouterId(advertising), id: LinkStateId(id) };
    let ordered = [
        key(0x2001, 1, 0),
        key(0x2001, 1, u32::MAX),
        key(0x2001, 2, 0),
        key(0x2001, u32::MAX, 0),
        key(0x2002, 0, 0),
        key(0x4005, 0, 7),
    ];
    assert!(ordered.is_sorted_by(|a, b| a < b));
}
