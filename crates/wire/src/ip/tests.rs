//! IP headers compared with bytes by hand, and invalid packets.

use super::*;

fn v4() -> IpHeader {
    IpHeader {
        source: [192, 0, 2, 1].into(),
        destination: [198, 51, 100, 2].into(),
        ecn: Ecn::Capable0,
        dscp: 46,
        hop_limit: 64,
    }
}

fn v6() -> IpHeader {
    IpHeader { source: "2001:db8::1".parse().unwrap(), destination: "2001:db8::2".parse().unwrap(), ..v4() }
}

fn emitted(header: IpHeader, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.emit(protocol, payload.len(), &mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

/// An IPv6 packet whose payload begins with extension headers, the first of kind `first`.
fn v6_with(first: u8, payload: &[u8]) -> Result<(u8, Range<usize>), ParseError> {
    parse(&emitted(v6(), first, payload)).map(|datagram| (datagram.protocol, datagram.payload))
}

fn set_v4_checksum(bytes: &mut [u8]) {
    let header_len = usize::from(bytes[0] & 0xf) * 4;
    bytes[10..12].fill(0);
    let mut checksum = Checksum::new();
    checksum.add_bytes(&bytes[..header_len]);
    bytes[10..12].copy_from_slice(&checksum.finish().to_be_bytes());
}

#[test]
fn an_ipv4_header_is_the_figure_of_rfc_791() {
    // 45ba + 0017 + 0000 + 4000 + 4011 + c000 + 0201 + c633 + 6402 = 2b218h -> b21a, complement 4de5.
    #[rustfmt::skip]
    assert_eq!(emitted(v4(), 17, b"abc"), [
        0x45, 0xba, 0, 23, 0, 0, 0x40, 0, 64, 17, 0x4d, 0xe5, 192, 0, 2, 1, 198, 51, 100, 2, b'a', b'b', b'c',
    ]);
}

#[test]
fn an_ipv6_header_is_the_figure_of_rfc_8200() {
    #[rustfmt::skip]
    assert_eq!(emitted(v6(), 17, b"abc"), [
        0x6b, 0xa0, 0, 0, 0, 3, 17, 64,
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
        b'a', b'b', b'c',
    ]);
}

#[test]
fn ipv4_options_are_skipped() {
    let mut bytes = emitted(v4(), 6, b"\x94\x04\x00\x00payload");
    bytes[0] = 0x46;
    set_v4_checksum(&mut bytes);
    assert_eq!(parse(&bytes), Ok(Datagram { header: v4(), protocol: 6, payload: 24..31 }));
    bytes[0] = 0x44;
    set_v4_checksum(&mut bytes);
    assert_eq!(parse(&bytes), Err(ParseError::BadLength));
}

#[test]
fn fragments_are_refused() {
    let mut bytes = emitted(v4(), 6, b"payload");
    for fragment in [[0x20, 0x00], [0x00, 0x01], [0x1f, 0xff]] {
        bytes[6..8].copy_from_slice(&fragment);
        set_v4_checksum(&mut bytes);
        assert_eq!(parse(&bytes), Err(ParseError::Unsupported), "{fragment:?}");
    }
    for fragment in [[0x00, 0x01], [0x00, 0x08]] {
        let header = [&[6, 0][..], &fragment, &[0; 4]].concat();
        assert_eq!(v6_with(44, &header), Err(ParseError::Unsupported), "{fragment:?}");
    }
    assert_eq!(v6_with(44, &[6, 0, 0, 0, 9, 9, 9, 9, 1]), Ok((6, 48..49)), "an atomic one is whole");
}

#[test]
fn a_total_length_outside_the_packet_is_an_error() {
    let mut bytes = emitted(v4(), 6, b"payload");
    bytes[3] = 28;
    set_v4_checksum(&mut bytes);
    assert_eq!(parse(&bytes), Err(ParseError::Truncated));
    bytes[3] = 19;
    set_v4_checksum(&mut bytes);
    assert_eq!(parse(&bytes), Err(ParseError::BadLength));
}

#[test]
fn extension_headers_are_skipped_by_their_length() {
    // Hop-by-hop of 16 bytes, destination options of 8, routing with no segment left of 8, then TCP.
    let mut payload = vec![60, 1];
    payload.resize(16, 0);
    payload.extend_from_slice(&[43, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend_from_slice(&[6, 0, 4, 0, 0, 0, 0, 0]);
    payload.extend_from_slice(b"tcp");
    assert_eq!(v6_with(0, &payload), Ok((6, 72..75)));
}

#[test]
fn extension_headers_that_run_out_of_the_packet_are_refused() {
    assert_eq!(v6_with(60, &[6, 0, 0, 0]), Err(ParseError::BadLength));
    assert_eq!(v6_with(60, &[6, 1, 0, 0, 0, 0, 0, 0]), Err(ParseError::BadLength));
    assert_eq!(v6_with(60, &[6, 255, 0, 0, 0, 0, 0, 0]), Err(ParseError::BadLength));
}

#[test]
fn extension_headers_that_must_not_be_skipped_are_refused() {
    let hop_by_hop_second = [0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(v6_with(60, &hop_by_hop_second), Err(ParseError::BadValue));
    let a_segment_left = [6, 0, 4, 1, 0, 0, 0, 0];
    assert_eq!(v6_with(43, &a_segment_left), Err(ParseError::Unsupported));
}

#[test]
fn what_no_header_can_say_is_not_emitted() {
    let mut out = Vec::new();
    let mixed = IpHeader { destination: v6().destination, ..v4() };
    assert_eq!(mixed.emit(6, 0, &mut out), Err(EmitError::MixedFamilies));
    assert_eq!(v4().emit(6, 65_516, &mut out), Err(EmitError::TooLong));
    assert_eq!(v4().emit(6, 65_515, &mut Vec::new()), Ok(()));
    assert_eq!(v6().emit(6, 65_536, &mut out), Err(EmitError::TooLong));
    assert_eq!(v6().emit(6, 65_535, &mut Vec::new()), Ok(()));
    assert_eq!(IpHeader { dscp: 63, ..v4() }.emit(6, 0, &mut Vec::new()), Ok(()));
    assert_eq!(IpHeader { dscp: 64, ..v4() }.emit(6, 0, &mut out), Err(EmitError::BadValue));
    assert!(out.is_empty());
}

#[test]
fn other_versions_and_nothing_are_refused() {
    assert_eq!(parse(&[]), Err(ParseError::Truncated));
    assert_eq!(parse(&[0x50; 64]), Err(ParseError::Unsupported));
}
