//! Headers and option layouts compared with bytes by hand.

use super::*;
use crate::mptcp::{CapableFlags, CapableKeys, DataAck, DataSequence, Dss, Mapping, MptcpOption};
use crate::{Ecn, Packet};

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

fn packet(flags: Flags, options: TcpOptions, payload: &'static [u8]) -> Packet {
    let ip = IpHeader {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        ecn: Ecn::NotCapable,
        dscp: 0,
        hop_limit: 64,
    };
    let segment = Segment {
        source_port: 0x1234,
        destination_port: 80,
        seq: SeqNumber(0x0102_0304),
        ack: SeqNumber(0x0506_0708),
        flags,
        window: 0xfaf0,
        urgent: 0,
        options,
        payload: Bytes::from_static(payload),
    };
    Packet { ip, segment }
}

/// The option bytes of a segment with these flags; asserts the announced length, and that they are parsed to the same.
fn layout(flags: Flags, options: TcpOptions) -> Vec<u8> {
    let packet = packet(flags, options, b"");
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).unwrap();
    assert_eq!(bytes.len(), packet.wire_len());
    let options = bytes.split_off(40);
    assert_eq!(options.len(), packet.segment.options.encoded_len());
    assert_eq!(TcpOptions::parse(&options, flags), packet.segment.options);
    options
}

fn timestamps() -> Option<Timestamps> {
    Some(Timestamps { value: 0x0a0b_0c0d, echo: 0x1a1b_1c1d })
}

const CAPABLE: MptcpOption = MptcpOption::Capable {
    version: 1,
    flags: CapableFlags { checksum_required: false, extensibility: false, deny_join_initial: false, hmac_sha256: true },
    keys: CapableKeys::None,
};

#[test]
fn syn_and_fin_take_a_sequence_number_each() {
    let length = |flags, payload| packet(flags, TcpOptions::default(), payload).segment.sequence_length();
    assert_eq!((length(Flags::ACK, b""), length(Flags::ACK | Flags::PSH, b"payload")), (0, 7));
    assert_eq!((length(SYN_ACK, b""), length(Flags::SYN | Flags::FIN, b"payload")), (1, 9));
}

#[test]
fn flags_are_added_and_one_of_several_is_found() {
    let mut flags = Flags::FIN;
    flags |= Flags::ACK;
    flags |= Flags::ACK;
    assert_eq!(flags, Flags(0x11));
    assert!(flags.intersects(Flags::SYN | Flags::FIN) && !flags.intersects(Flags::SYN | Flags::RST));
    assert!(!flags.contains(Flags::SYN | Flags::FIN) && !flags.intersects(Flags::NONE));
}

#[test]
fn headers_for_offload_are_those_of_the_packet_but_for_the_checksum() {
    let options = TcpOptions { timestamps: timestamps(), ..TcpOptions::default() };
    let packet = packet(Flags::ACK, options, b"payload");
    let (mut whole, mut headers) = (Vec::new(), Vec::new());
    packet.emit(&mut whole).unwrap();
    packet.emit_for_offload(7, &mut headers).unwrap();
    assert_eq!(headers.len() + 7, whole.len());
    // The device's part: the complemented sum over the segment replaces the field.
    let mut finished = [headers, b"payload".to_vec()].concat();
    let mut checksum = Checksum::new();
    checksum.add_bytes(&finished[20..]);
    patch(&mut finished, 20 + 16, checksum.finish());
    assert_eq!(finished, whole);
}

#[test]
fn an_unverified_segment_is_read_whatever_its_checksum_says() {
    let packet = packet(Flags::ACK, TcpOptions::default(), b"hi");
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).unwrap();
    bytes[36] ^= 0xff;
    let bytes = Bytes::from(bytes);
    assert_eq!(Packet::parse(&bytes), Err(ParseError::BadChecksum));
    assert_eq!(Packet::parse_unverified(&bytes), Ok(packet));
}

#[test]
fn a_bare_segment_is_the_figure_of_rfc_9293() {
    let mut bytes = Vec::new();
    packet(Flags::ACK | Flags::PSH, TcpOptions::default(), b"hi").emit(&mut bytes).unwrap();
    // Checksum: addresses 0a00 + 0001 + 0a00 + 0002, protocol 6, length 16h: 141f. Header 1234 + 0050 + 0102 + 0304
    // + 0506 + 0708 + 5018 + faf0 = 16da0h -> 6da1. Payload 6869. Sum ea29, complement 15d6.
    #[rustfmt::skip]
    assert_eq!(bytes[20..], [
        0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0xfa, 0xf0, 0x15, 0xd6, 0, 0, b'h', b'i',
    ]);
}

#[test]
fn the_options_of_a_syn_lie_as_linux_sends_them() {
    let options = TcpOptions {
        maximum_segment_size: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: timestamps(),
        mptcp: vec![CAPABLE],
        ..TcpOptions::default()
    };
    #[rustfmt::skip]
    assert_eq!(layout(Flags::SYN, options.clone()), [
        2, 4, 0x05, 0xb4,
        4, 2, 8, 10, 0x0a, 0x0b, 0x0c, 0x0d, 0x1a, 0x1b, 0x1c, 0x1d,
        1, 3, 3, 7,
        30, 4, 0x01, 0x01,
    ]);
    #[rustfmt::skip]
    assert_eq!(layout(Flags::SYN, TcpOptions { sack_permitted: false, ..options.clone() }), [
        2, 4, 0x05, 0xb4,
        1, 1, 8, 10, 0x0a, 0x0b, 0x0c, 0x0d, 0x1a, 0x1b, 0x1c, 0x1d,
        1, 3, 3, 7,
        30, 4, 0x01, 0x01,
    ]);
    #[rustfmt::skip]
    assert_eq!(layout(Flags::SYN, TcpOptions { timestamps: None, ..options }), [
        2, 4, 0x05, 0xb4,
        1, 1, 4, 2,
        1, 3, 3, 7,
        30, 4, 0x01, 0x01,
    ]);
}

#[test]
fn an_mptcp_option_that_ends_within_a_word_is_padded_behind() {
    let mapping = Mapping { data_seq: DataSequence::Short(1), subflow_seq: 2, length: 3, checksum: None };
    let dss = Dss { data_ack: Some(DataAck::Short(4)), mapping: Some(mapping), data_fin: false };
    let prio = MptcpOption::Priority { backup: true };
    let options = TcpOptions { timestamps: timestamps(), dss: Some(dss), mptcp: vec![prio], ..TcpOptions::default() };
    #[rustfmt::skip]
    assert_eq!(layout(Flags::ACK, options), [
        1, 1, 8, 10, 0x0a, 0x0b, 0x0c, 0x0d, 0x1a, 0x1b, 0x1c, 0x1d,
        30, 18, 0x20, 0x05, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 1, 1,
        30, 3, 0x51, 1,
    ]);
}

#[test]
fn sack_blocks_follow_two_nops() {
    let mut sack = SackBlocks::new();
    assert!(sack.push(SackBlock { start: SeqNumber(1), end: SeqNumber(2) }));
    assert!(sack.push(SackBlock { start: SeqNumber(3), end: SeqNumber(4) }));
    let options = TcpOptions { sack, ..TcpOptions::default() };
    assert_eq!(layout(Flags::ACK, options), [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
}

#[test]
fn options_that_fit_only_without_padding_are_packed() {
    // 10 bytes of timestamps and 30 of ADD_ADDR are exactly 40; padded they would be 44.
    let address = "2001:db8::7".parse().unwrap();
    let announced = MptcpOption::AddAddress { address_id: 3, address, port: Some(443), truncated_hmac: Some(1) };
    let options = TcpOptions { timestamps: timestamps(), mptcp: vec![announced], ..TcpOptions::default() };
    let bytes = layout(Flags::ACK, options.clone());
    assert_eq!(bytes.len(), OPTION_SPACE);
    assert_eq!(bytes[..2], [8, 10]);
    assert_eq!(bytes[10..14], [30, 30, 0x30, 3]);
    let more = TcpOptions { dss: Some(Dss::default()), ..options };
    assert_eq!(more.encoded_len(), 44);
    assert_eq!(packet(Flags::ACK, more, b"").emit(&mut Vec::new()), Err(EmitError::OptionsTooLong));
}

#[test]
fn every_packed_syn_option_is_where_the_parser_finds_it() {
    // 4 + 2 + 10 + 3 and an experiment of 21 bytes: 40 without padding, 44 with it.
    let experiment = MptcpOption::Experimental { flags: 0, experiment: 1, data: vec![0xee; 16] };
    let options = TcpOptions {
        maximum_segment_size: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: timestamps(),
        mptcp: vec![experiment],
        ..TcpOptions::default()
    };
    let bytes = layout(Flags::SYN, options);
    assert_eq!(bytes[..6], [2, 4, 0x05, 0xb4, 4, 2]);
    assert_eq!(bytes[16..19], [3, 3, 7]);
}

#[test]
fn the_room_left_says_how_many_sack_blocks_fit() {
    let mut options = TcpOptions { timestamps: timestamps(), ..TcpOptions::default() };
    assert_eq!((options.room(), options.sack_room()), (28, 3));
    options.dss = Some(Dss { data_ack: Some(DataAck::Long(1)), ..Dss::default() });
    assert_eq!((options.room(), options.sack_room()), (16, 1));
    options.sack.push(SackBlock::default());
    assert_eq!((options.room(), options.sack_room()), (4, 0));
    assert_eq!(TcpOptions::default().sack_room(), 4);
}

#[test]
fn options_of_the_handshake_are_read_on_syns_only() {
    let bytes = [2, 4, 0x05, 0xb4, 4, 2, 1, 3, 3, 7, 0, 0];
    assert_eq!(TcpOptions::parse(&bytes, Flags::ACK), TcpOptions::default());
    let read = TcpOptions::parse(&bytes, SYN_ACK);
    assert_eq!((read.maximum_segment_size, read.window_scale, read.sack_permitted), (Some(1460), Some(7), true));
    assert_eq!((read.check(SYN_ACK), read.check(Flags::ACK)), (Ok(()), Err(EmitError::BadValue)));
}

#[test]
fn a_window_scale_above_14_is_read_as_14_and_never_sent() {
    assert_eq!(TcpOptions::parse(&[3, 3, 15], Flags::SYN).window_scale, Some(14));
    assert_eq!(TcpOptions::parse(&[3, 3, 14], Flags::SYN).window_scale, Some(14));
    let options = TcpOptions { window_scale: Some(15), ..TcpOptions::default() };
    assert_eq!(packet(Flags::SYN, options, b"").emit(&mut Vec::new()), Err(EmitError::BadValue));
}

#[test]
fn unknown_and_malformed_options_are_skipped_and_the_end_is_the_end() {
    let unknown = [254, 4, 1, 2];
    let wrong_lengths = [2, 3, 5, 3, 4, 1, 1, 4, 3, 0, 5, 2, 5, 9, 0, 0, 0, 0, 0, 0, 0, 8, 9, 0, 0, 0, 0, 0, 0, 0];
    let bytes = [&unknown[..], &wrong_lengths].concat();
    assert_eq!(TcpOptions::parse(&bytes, Flags::SYN), TcpOptions::default());
    assert_eq!(TcpOptions::parse(&[0, 2, 4, 0x05, 0xb4], Flags::SYN), TcpOptions::default());
    // Options after a malformed MPTCP option are still parsed.
    let behind = [30, 5, 0x20, 0x01, 0, 2, 4, 0x05, 0xb4];
    let expected = TcpOptions { maximum_segment_size: Some(1460), ..TcpOptions::default() };
    assert_eq!(TcpOptions::parse(&behind, Flags::SYN), expected);
}

// RFC 5482, section 3: kind 28, length 4, here five minutes.
#[test]
fn the_user_timeout_option_is_skipped() {
    let bytes = [28, 4, 0x80, 0x05, 2, 4, 0x05, 0xb4];
    let expected = TcpOptions { maximum_segment_size: Some(1460), ..TcpOptions::default() };
    assert_eq!(TcpOptions::parse(&bytes, Flags::SYN), expected);
    assert_eq!(TcpOptions::parse(&bytes[..4], Flags::ACK), TcpOptions::default());
}

#[test]
fn an_option_whose_length_cannot_be_ends_the_list_and_what_precedes_it_counts() {
    let expected = TcpOptions { maximum_segment_size: Some(1460), ..TcpOptions::default() };
    for bad in [&[8, 0][..], &[8, 1], &[8], &[8, 10, 0, 0], &[1, 30, 200], &[8, 0, 3, 3, 7], &[30, 1, 3, 3, 7]] {
        assert_eq!(TcpOptions::parse(bad, Flags::ACK), TcpOptions::default(), "{bad:?}");
        let bytes = [&[2, 4, 0x05, 0xb4], bad].concat();
        assert_eq!(TcpOptions::parse(&bytes, Flags::SYN), expected, "{bad:?}");
    }
}

#[test]
fn a_segment_with_such_an_option_is_taken() {
    let options = TcpOptions { timestamps: Some(Timestamps { value: 1, echo: 2 }), ..TcpOptions::default() };
    let sent = packet(Flags::ACK, options, b"hi");
    let mut bytes = Vec::new();
    sent.emit(&mut bytes).unwrap();
    // The length of the timestamps, behind two NOPs.
    bytes[20 + 20 + 3] = 0;
    let segment = crate::Segment::parse_unverified(&Bytes::copy_from_slice(&bytes), 20..bytes.len()).unwrap();
    assert_eq!((segment.options, segment.payload), (TcpOptions::default(), sent.segment.payload));
}

#[test]
fn a_data_offset_outside_the_segment_is_an_error() {
    let mut bytes = Vec::new();
    packet(Flags::ACK, TcpOptions::default(), b"hi").emit(&mut bytes).unwrap();
    for (offset, error) in [(0x00, ParseError::BadLength), (0x40, ParseError::BadLength), (0x60, ParseError::Truncated)]
    {
        bytes[32] = offset;
        assert_eq!(Packet::parse(&Bytes::copy_from_slice(&bytes)), Err(error));
    }
}

#[test]
fn the_payload_is_not_copied() {
    let mut bytes = Vec::new();
    packet(Flags::ACK, TcpOptions::default(), b"payload").emit(&mut bytes).unwrap();
    let bytes = Bytes::from(bytes);
    let parsed = Packet::parse(&bytes).unwrap();
    assert_eq!(parsed.segment.payload.as_ptr(), bytes[40..].as_ptr());
}

#[test]
fn blocks_that_were_cleared_are_as_new_ones() {
    let mut sack = SackBlocks::new();
    assert!(sack.push(SackBlock { start: SeqNumber(1), end: SeqNumber(2) }));
    sack.clear();
    assert_eq!(sack, SackBlocks::new());
}
