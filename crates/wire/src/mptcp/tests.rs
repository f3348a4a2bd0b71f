//! Every option compared with bytes by hand from the figures of RFC 8684, section 3.

use super::*;
use crate::EmitError;
use crate::checksum::Checksum;
use crate::tcp::Flags;
use core::net::IpAddr;

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);
const H: CapableFlags =
    CapableFlags { checksum_required: false, extensibility: false, deny_join_initial: false, hmac_sha256: true };

/// Asserts that the option is emitted as these bytes on a segment with these flags, and parsed from them.
fn assert_is(option: MptcpOption, flags: Flags, bytes: &[u8]) {
    assert_eq!(option.check(flags), Ok(()));
    let mut written = Vec::new();
    option.write(&mut written);
    assert_eq!(written, bytes);
    assert_eq!(option.option_len(), bytes.len());
    assert_eq!(bytes[..2], [30, bytes.len() as u8], "kind and length");
    assert_eq!(parsed(&bytes[2..], flags), Some(option));
}

fn assert_dss_is(dss: Dss, bytes: &[u8]) {
    let mut written = Vec::new();
    dss.write(&mut written);
    assert_eq!(written, bytes);
    assert_eq!(dss.option_len(), bytes.len());
    assert_eq!(bytes[..2], [30, bytes.len() as u8], "kind and length");
    assert_eq!(parsed_dss(&bytes[2..]), Some(dss));
}

fn parsed(body: &[u8], flags: Flags) -> Option<MptcpOption> {
    match parse(body, flags)? {
        Parsed::Other(option) => Some(option),
        Parsed::Dss(_) => panic!("a DSS"),
    }
}

fn parsed_dss(body: &[u8]) -> Option<Dss> {
    match parse(body, Flags::ACK)? {
        Parsed::Dss(dss) => Some(dss),
        Parsed::Other(option) => panic!("not a DSS: {option:?}"),
    }
}

fn capable(flags: CapableFlags, keys: CapableKeys) -> MptcpOption {
    MptcpOption::Capable { version: 1, flags, keys }
}

const A: u64 = 0x0102_0304_0506_0708;
const B: u64 = 0x1112_1314_1516_1718;

#[test]
fn figure_4_mp_capable_grows_from_the_syn_to_the_first_data() {
    assert_is(capable(H, CapableKeys::None), Flags::SYN, &[30, 4, 0x01, 0x01]);
    #[rustfmt::skip]
    assert_is(capable(H, CapableKeys::Receiver(B)), SYN_ACK,
        &[30, 12, 0x01, 0x01, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    #[rustfmt::skip]
    assert_is(capable(H, CapableKeys::Both { sender: A, receiver: B }), Flags::ACK,
        &[30, 20, 0x01, 0x01, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    let data = |checksum| CapableKeys::BothWithData { sender: A, receiver: B, length: 0x0578, checksum };
    #[rustfmt::skip]
    assert_is(capable(H, data(None)), Flags::ACK,
        &[30, 22, 0x01, 0x01, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x05, 0x78]);
    #[rustfmt::skip]
    assert_is(capable(CapableFlags { checksum_required: true, ..H }, data(Some(0xbeef))), Flags::ACK | Flags::PSH,
        &[30, 24, 0x01, 0x81, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x05, 0x78,
          0xbe, 0xef]);
}

#[test]
fn the_flags_of_mp_capable_lie_from_the_left_a_b_c_and_h_last() {
    let flags = |bits| match parsed(&[0x01, bits], Flags::SYN) {
        Some(MptcpOption::Capable { flags, .. }) => flags,
        other => panic!("{other:?}"),
    };
    let none = CapableFlags::default();
    assert_eq!(flags(0x80), CapableFlags { checksum_required: true, ..none });
    assert_eq!(flags(0x40), CapableFlags { extensibility: true, ..none });
    assert_eq!(flags(0x20), CapableFlags { deny_join_initial: true, ..none });
    assert_eq!(flags(0x01), CapableFlags { hmac_sha256: true, ..none });
    assert_eq!(flags(0x1e), none, "D to G are not assigned");
}

#[test]
fn mp_capable_in_a_form_of_another_segment_is_no_option() {
    assert_eq!(parsed(&[0x01, 0x01], SYN_ACK), None);
    assert_eq!(parsed(&[0x01, 0x01], Flags::ACK), None);
    let with_key = [0x01, 0x01, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(parsed(&with_key, Flags::SYN), None);
    assert_eq!(parsed(&with_key, Flags::ACK), None);
    assert_eq!(capable(H, CapableKeys::None).check(Flags::ACK), Err(EmitError::BadValue));
    assert_eq!(capable(H, CapableKeys::Receiver(B)).check(Flags::SYN), Err(EmitError::BadValue));
    assert_eq!(capable(H, CapableKeys::Both { sender: A, receiver: B }).check(SYN_ACK), Err(EmitError::BadValue));
}

#[test]
fn an_offer_of_another_version_is_seen_but_not_read() {
    // Version 0 had a key on the SYN (RFC 6824, section 3.1).
    let option = parsed(&[0x00, 0x81, 1, 2, 3, 4, 5, 6, 7, 8], Flags::SYN);
    let flags = CapableFlags { checksum_required: true, ..H };
    assert_eq!(option, Some(MptcpOption::Capable { version: 0, flags, keys: CapableKeys::None }));
    assert_eq!(parsed(&[0x00, 0x01, 1, 2, 3, 4, 5, 6, 7, 8], SYN_ACK), None, "we never offer it");
}

#[test]
fn figures_5_to_7_mp_join_has_a_form_for_each_step() {
    let (token, nonce) = (0xa1a2_a3a4, 0xb1b2_b3b4);
    #[rustfmt::skip]
    assert_is(MptcpOption::JoinSyn { backup: true, address_id: 5, token, nonce }, Flags::SYN,
        &[30, 12, 0x11, 5, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4]);
    #[rustfmt::skip]
    assert_is(MptcpOption::JoinSynAck { backup: false, address_id: 6, truncated_hmac: A, nonce }, SYN_ACK,
        &[30, 16, 0x10, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0xb1, 0xb2, 0xb3, 0xb4]);
    let hmac = core::array::from_fn(|i| 0x40 + i as u8);
    #[rustfmt::skip]
    assert_is(MptcpOption::JoinAck { hmac }, Flags::ACK,
        &[30, 24, 0x10, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e,
          0x4f, 0x50, 0x51, 0x52, 0x53]);
}

#[test]
fn reserved_bits_are_not_read() {
    let join = parsed(&[0x1e, 5, 0, 0, 0, 1, 0, 0, 0, 2], Flags::SYN);
    assert_eq!(join, Some(MptcpOption::JoinSyn { backup: false, address_id: 5, token: 1, nonce: 2 }));
    assert_eq!(parsed(&[0x5e], Flags::ACK), Some(MptcpOption::Priority { backup: false }));
    assert_eq!(parsed(&[0x4f, 9], Flags::ACK), Some(MptcpOption::RemoveAddress { address_ids: vec![9] }));
    let echo =
        MptcpOption::AddAddress { address_id: 9, address: [10, 0, 0, 1].into(), port: None, truncated_hmac: None };
    assert_eq!(parsed(&[0x3f, 9, 10, 0, 0, 1], Flags::ACK), Some(echo));
    let fail = [0x6f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7];
    assert_eq!(parsed(&fail, Flags::ACK), Some(MptcpOption::Fail { data_seq: 7 }));
    let close = [0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7];
    assert_eq!(parsed(&close, Flags::ACK), Some(MptcpOption::FastClose { key: 7 }));
    assert_eq!(parsed_dss(&[0x2f, 0xe1, 0, 0, 0, 7]).map(|dss| dss.data_ack), Some(Some(DataAck::Short(7))));
}

#[test]
fn figure_9_dss_has_fields_of_4_or_8_bytes_by_its_flags() {
    assert_dss_is(Dss::default(), &[30, 4, 0x20, 0x00]);
    let ack_only = |ack| Dss { data_ack: Some(ack), ..Dss::default() };
    assert_dss_is(ack_only(DataAck::Short(0x0506_0708)), &[30, 8, 0x20, 0x01, 5, 6, 7, 8]);
    assert_dss_is(ack_only(DataAck::Long(A)), &[30, 12, 0x20, 0x03, 1, 2, 3, 4, 5, 6, 7, 8]);

    let short = Mapping { data_seq: DataSequence::Short(0x1516_1718), subflow_seq: 9, length: 1400, checksum: None };
    let dss = Dss { mapping: Some(short), ..Dss::default() };
    assert_dss_is(dss, &[30, 14, 0x20, 0x04, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 9, 0x05, 0x78]);

    let long = Mapping { data_seq: DataSequence::Long(B), checksum: Some(0xbeef), ..short };
    let dss = Dss { data_ack: Some(DataAck::Long(A)), mapping: Some(long), data_fin: true };
    #[rustfmt::skip]
    assert_dss_is(dss,
        &[30, 28, 0x20, 0x1f, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 9,
          0x05, 0x78, 0xbe, 0xef]);

    let mixed =
        Dss { data_ack: Some(DataAck::Short(1)), mapping: Some(Mapping { checksum: None, ..long }), data_fin: false };
    #[rustfmt::skip]
    assert_dss_is(mixed,
        &[30, 22, 0x20, 0x0d, 0, 0, 0, 1, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 9, 0x05, 0x78]);
}

#[test]
fn an_infinite_mapping_is_one_of_length_0() {
    let infinite = Mapping { data_seq: DataSequence::Long(B), subflow_seq: 1, length: 0, checksum: None };
    let dss = Dss { mapping: Some(infinite), ..Dss::default() };
    #[rustfmt::skip]
    assert_dss_is(dss, &[30, 18, 0x20, 0x0c, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn a_data_fin_alone_maps_one_byte_at_subflow_sequence_0() {
    let fin = Mapping { data_seq: DataSequence::Short(90), subflow_seq: 0, length: 1, checksum: None };
    let dss = Dss { mapping: Some(fin), data_fin: true, ..Dss::default() };
    assert_dss_is(dss, &[30, 14, 0x20, 0x14, 0, 0, 0, 90, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn size_flags_and_data_fin_of_dss_mean_nothing_without_their_fields() {
    // Section 3.3: "a" and "m" have meaning only with "A" and "M".
    assert_eq!(parsed_dss(&[0x20, 0x0a]), Some(Dss::default()));
    assert_eq!(parsed_dss(&[0x20, 0x10]), Some(Dss::default()));
}

#[test]
fn a_dss_of_the_wrong_length_is_no_option() {
    assert_eq!(parsed_dss(&[0x20, 0x01, 0, 0, 0]), None);
    assert_eq!(parsed_dss(&[0x20, 0x01, 0, 0, 0, 0, 0, 0]), None, "a checksum needs a mapping");
    let mapping = [0x20, 0x04, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0xab, 0xcd];
    assert!(parsed_dss(&mapping).is_some());
    assert_eq!(parsed_dss(&mapping[..13]), None, "half a checksum");
    assert_eq!(parsed_dss(&[&mapping[..], &[0]].concat()), None);
}

#[test]
fn figure_12_add_addr_tells_family_and_port_by_its_length() {
    let hmac = Some(A);
    let v4: IpAddr = [192, 0, 2, 1].into();
    let option =
        |address, port, truncated_hmac| MptcpOption::AddAddress { address_id: 3, address, port, truncated_hmac };
    assert_is(option(v4, None, None), Flags::ACK, &[30, 8, 0x31, 3, 192, 0, 2, 1]);
    assert_is(option(v4, Some(443), None), Flags::ACK, &[30, 10, 0x31, 3, 192, 0, 2, 1, 1, 0xbb]);
    assert_is(option(v4, None, hmac), Flags::ACK, &[30, 16, 0x30, 3, 192, 0, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
    #[rustfmt::skip]
    assert_is(option(v4, Some(443), hmac), Flags::ACK,
        &[30, 18, 0x30, 3, 192, 0, 2, 1, 1, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8]);

    let v6: IpAddr = "2001:db8::7".parse().unwrap();
    let head =
        |length, flags| [30, length, flags, 3, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7].to_vec();
    assert_is(option(v6, None, None), Flags::ACK, &head(20, 0x31));
    assert_is(option(v6, Some(443), None), Flags::ACK, &[head(22, 0x31), vec![1, 0xbb]].concat());
    assert_is(option(v6, None, hmac), Flags::ACK, &[head(28, 0x30), vec![1, 2, 3, 4, 5, 6, 7, 8]].concat());
    let all = [head(30, 0x30), vec![1, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
    assert_is(option(v6, Some(443), hmac), Flags::ACK, &all);
}

#[test]
fn an_announcement_without_proof_and_an_echo_with_one_are_no_options() {
    assert_eq!(parsed(&[0x30, 3, 192, 0, 2, 1], Flags::ACK), None);
    assert_eq!(parsed(&[0x31, 3, 192, 0, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8], Flags::ACK), None);
}

#[test]
fn figure_13_remove_addr_lists_identifiers() {
    assert_is(MptcpOption::RemoveAddress { address_ids: vec![7] }, Flags::ACK, &[30, 4, 0x40, 7]);
    assert_is(MptcpOption::RemoveAddress { address_ids: vec![7, 9, 1] }, Flags::ACK, &[30, 6, 0x40, 7, 9, 1]);
    assert_eq!(parsed(&[0x40], Flags::ACK), None);
    assert_eq!(MptcpOption::RemoveAddress { address_ids: vec![] }.check(Flags::ACK), Err(EmitError::BadValue));
}

#[test]
fn figure_11_mp_prio_is_three_bytes() {
    assert_is(MptcpOption::Priority { backup: true }, Flags::ACK, &[30, 3, 0x51]);
    assert_is(MptcpOption::Priority { backup: false }, Flags::ACK, &[30, 3, 0x50]);
    assert_eq!(MptcpOption::Priority { backup: true }.encoded_len(), 4);
    assert_eq!(parsed(&[0x51, 4], Flags::ACK), None, "the address identifier went with version 0");
}

#[test]
fn figures_14_and_16_mp_fastclose_and_mp_fail_carry_64_bits() {
    assert_is(
        MptcpOption::FastClose { key: B },
        Flags::ACK,
        &[30, 12, 0x70, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
    );
    assert_is(MptcpOption::Fail { data_seq: A }, Flags::RST, &[30, 12, 0x60, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn figure_15_mp_tcprst_has_t_as_its_last_flag() {
    assert_is(MptcpOption::TcpReset { transient: true, flags: 0, reason: 2 }, Flags::RST, &[30, 4, 0x81, 2]);
    assert_is(MptcpOption::TcpReset { transient: false, flags: 0b100, reason: 6 }, Flags::RST, &[30, 4, 0x88, 6]);
    let beyond = MptcpOption::TcpReset { transient: false, flags: 8, reason: 0 };
    assert_eq!(beyond.check(Flags::RST), Err(EmitError::BadValue));
}

#[test]
fn mp_experimental_begins_with_the_experiments_identifier() {
    let option = MptcpOption::Experimental { flags: 0xc, experiment: 0x1234, data: vec![9, 8] };
    assert_is(option, Flags::ACK, &[30, 7, 0xfc, 0x12, 0x34, 9, 8]);
    assert_eq!(parsed(&[0xf0, 0x12], Flags::ACK), None);
}

#[test]
fn unassigned_subtypes_and_nothing_are_no_options() {
    for subtype in 0x9..=0xe {
        assert_eq!(parsed(&[subtype << 4, 0, 0, 0], Flags::ACK), None);
    }
    assert_eq!(parsed(&[], Flags::ACK), None);
}

#[test]
fn every_fixed_option_is_refused_one_byte_short_and_one_byte_long() {
    let later: [&[u8]; 6] = [
        &[0x10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
        &[0x31, 3, 192, 0, 2, 1],
        &[0x50],
        &[0x60, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x70, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x80, 0],
    ];
    for body in later {
        assert!(parsed(body, Flags::ACK).is_some());
        assert_eq!(parsed(&body[..body.len() - 1], Flags::ACK), None, "{body:?}");
        assert_eq!(parsed(&[body, &[0]].concat(), Flags::ACK), None, "{body:?}");
    }
}

#[test]
fn the_dss_checksum_is_that_of_figure_10_worked_by_hand() {
    // Pseudo-header 0102 0304 0506 0708 | 0000 0001 | 0004 | 0000 and payload "abcd" = 6162 6364:
    // 0102 + 0304 + 0506 + 0708 + 0001 + 0004 = 1019, + 6162 + 6364 = d4df, complement 2b20.
    assert_eq!(dss_checksum(A, 1, 4, [&b"abcd"[..]]), 0x2b20);
    assert_eq!(dss_checksum(A, 1, 4, [&b"a"[..], b"", b"bc", b"d"]), 0x2b20);
    // The padding of an odd payload: "abc" = 6162 6300, d47a with length 3 in place of 4, complement 2b85.
    assert_eq!(dss_checksum(A, 1, 3, [&b"ab"[..], b"c"]), 0x2b85);
    // A DATA_FIN alone covers only the pseudo-header: 0102 + 0304 + 0506 + 0708 + 0 + 1 = 1015.
    assert_eq!(dss_checksum(A, 0, 1, []), 0xefea);
}

#[test]
fn a_receiver_verifies_a_mapping_piece_by_piece() {
    let mut checksum = Checksum::new();
    checksum.add_bytes(b"abc");
    checksum.add_dss_pseudo_header(A, 1, 4);
    checksum.add_u16(0x2b20);
    assert!(!checksum.is_valid());
    checksum.add_bytes(b"d");
    assert!(checksum.is_valid());
}
