//! Generates packets for the property tests: packets that can be emitted, and arbitrary ones.

use anabranch_wire::ip::{Ecn, IpHeader};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, DataAck, DataSequence, Dss, Mapping, MptcpOption, VERSION};
use anabranch_wire::tcp::{Flags, OPTION_SPACE, SackBlock, SackBlocks, Segment, TcpOptions, Timestamps};
use anabranch_wire::{Packet, SeqNumber};
use core::net::IpAddr;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

pub fn ip_header() -> impl Strategy<Value = IpHeader> {
    let addresses = prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
        any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
    ];
    let ecn = prop_oneof![Just(Ecn::NotCapable), Just(Ecn::Capable0), Just(Ecn::Capable1), Just(Ecn::Congestion)];
    (addresses, ecn, 0..64u8, any::<u8>()).prop_map(|((source, destination), ecn, dscp, hop_limit)| IpHeader {
        source,
        destination,
        ecn,
        dscp,
        hop_limit,
    })
}

pub fn dss() -> impl Strategy<Value = Dss> {
    let data_ack = prop_oneof![any::<u32>().prop_map(DataAck::Short), any::<u64>().prop_map(DataAck::Long)];
    let data_seq = prop_oneof![any::<u32>().prop_map(DataSequence::Short), any::<u64>().prop_map(DataSequence::Long)];
    let mapping = (data_seq, any::<u32>(), any::<u16>(), any::<Option<u16>>())
        .prop_map(|(data_seq, subflow_seq, length, checksum)| Mapping { data_seq, subflow_seq, length, checksum });
    (of(data_ack), of(mapping), any::<bool>()).prop_map(|(data_ack, mapping, fin)| Dss {
        data_ack,
        mapping,
        data_fin: fin && mapping.is_some(),
    })
}

fn capable(keys: CapableKeys) -> impl Strategy<Value = MptcpOption> {
    any::<[bool; 4]>().prop_map(move |[checksum_required, extensibility, deny_join_initial, hmac_sha256]| {
        let flags = CapableFlags { checksum_required, extensibility, deny_join_initial, hmac_sha256 };
        MptcpOption::Capable { version: VERSION, flags, keys }
    })
}

/// Options of the handshake that a segment with these flags can carry.
fn handshake_option(flags: Flags) -> BoxedStrategy<MptcpOption> {
    match (flags.contains(Flags::SYN), flags.contains(Flags::ACK)) {
        (true, false) => prop_oneof![
            capable(CapableKeys::None),
            (0..16u8, any::<bool>()).prop_map(|(version, extensibility)| MptcpOption::Capable {
                version,
                flags: CapableFlags { extensibility, ..CapableFlags::default() },
                keys: CapableKeys::None,
            }),
            any::<(bool, u8, u32, u32)>().prop_map(|(backup, address_id, token, nonce)| MptcpOption::JoinSyn {
                backup,
                address_id,
                token,
                nonce
            }),
        ]
        .boxed(),
        (true, true) => prop_oneof![
            any::<u64>().prop_flat_map(|key| capable(CapableKeys::Receiver(key))),
            any::<(bool, u8, u64, u32)>().prop_map(|(backup, address_id, truncated_hmac, nonce)| {
                MptcpOption::JoinSynAck { backup, address_id, truncated_hmac, nonce }
            }),
        ]
        .boxed(),
        (false, _) => prop_oneof![
            any::<(u64, u64)>().prop_flat_map(|(sender, receiver)| capable(CapableKeys::Both { sender, receiver })),
            any::<(u64, u64, u16, Option<u16>)>().prop_flat_map(|(sender, receiver, length, checksum)| {
                capable(CapableKeys::BothWithData { sender, receiver, length, checksum })
            }),
            any::<[u8; 20]>().prop_map(|hmac| MptcpOption::JoinAck { hmac }),
        ]
        .boxed(),
    }
}

/// Options that any segment can carry.
fn free_option() -> impl Strategy<Value = MptcpOption> {
    prop_oneof![
        any::<(u8, IpAddr, Option<u16>, Option<u64>)>().prop_map(|(address_id, address, port, truncated_hmac)| {
            MptcpOption::AddAddress { address_id, address, port, truncated_hmac }
        }),
        vec(any::<u8>(), 1..12).prop_map(|address_ids| MptcpOption::RemoveAddress { address_ids }),
        any::<bool>().prop_map(|backup| MptcpOption::Priority { backup }),
        any::<u64>().prop_map(|data_seq| MptcpOption::Fail { data_seq }),
        any::<u64>().prop_map(|key| MptcpOption::FastClose { key }),
        (any::<bool>(), 0..8u8, any::<u8>()).prop_map(|(transient, flags, reason)| MptcpOption::TcpReset {
            transient,
            flags,
            reason
        }),
        (0..16u8, any::<u16>(), vec(any::<u8>(), 0..12))
            .prop_map(|(flags, experiment, data)| { MptcpOption::Experimental { flags, experiment, data } }),
    ]
}

fn sack() -> impl Strategy<Value = SackBlocks> {
    vec(any::<(u32, u32)>(), 0..=4).prop_map(|blocks| {
        let mut sack = SackBlocks::new();
        for (start, end) in blocks {
            sack.push(SackBlock { start: SeqNumber(start), end: SeqNumber(end) });
        }
        sack
    })
}

/// Any mix of options that fits into the option space of a segment with these flags.
fn options(flags: Flags) -> impl Strategy<Value = TcpOptions> {
    let syn = flags.contains(Flags::SYN);
    let plain = (any::<Option<u16>>(), of(0..=14u8), any::<bool>(), any::<Option<(u32, u32)>>(), sack());
    let mptcp = vec(prop_oneof![handshake_option(flags), free_option()], 0..4);
    (plain, of(dss()), mptcp, any::<bool>()).prop_map(move |(plain, dss, mptcp, mptcp_first)| {
        let (mss, window_scale, sack_permitted, timestamps, sack) = plain;
        let mut options = TcpOptions::default();
        if syn {
            (options.maximum_segment_size, options.window_scale) = (mss, window_scale);
            options.sack_permitted = sack_permitted;
        }
        // Later ones only as far as they fit; the order varies, so that each kind can fill the space.
        let mut add = |change: &dyn Fn(&mut TcpOptions)| {
            let mut longer = options.clone();
            change(&mut longer);
            if longer.encoded_len() <= OPTION_SPACE {
                options = longer;
            }
        };
        for round in [true, false] {
            if round == mptcp_first {
                add(&|options| options.dss = dss);
                mptcp.iter().for_each(|option| add(&|options| options.mptcp.push(option.clone())));
            } else {
                add(&|options| options.timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo }));
                add(&|options| options.sack = sack);
            }
        }
        options
    })
}

fn segment(options: impl Strategy<Value = TcpOptions>, flags: Flags) -> impl Strategy<Value = Segment> {
    let numbers = any::<(u16, u16, u32, u32, u16, u16)>();
    (numbers, options, vec(any::<u8>(), 0..100)).prop_map(move |(numbers, options, payload)| {
        let (source_port, destination_port, seq, ack, window, urgent) = numbers;
        let (seq, ack) = (SeqNumber(seq), SeqNumber(ack));
        let payload = payload.into();
        Segment { source_port, destination_port, seq, ack, flags, window, urgent, options, payload }
    })
}

/// Any packet that can be emitted.
pub fn packet() -> impl Strategy<Value = Packet> {
    let segment = any::<u8>().prop_flat_map(|bits| segment(options(Flags(bits)), Flags(bits)));
    (ip_header(), segment).prop_map(|(ip, segment)| Packet { ip, segment })
}

/// Any packet: misplaced options, too many of them, values out of range, mixed families.
pub fn careless_packet() -> impl Strategy<Value = Packet> {
    // The options are generated for the flags of another segment.
    let segment = any::<(u8, u8)>().prop_flat_map(|(bits, other)| segment(options(Flags(other)), Flags(bits)));
    let more = (of(0..20u8), vec(free_option(), 0..2), any::<bool>());
    let address = prop_oneof![9 => Just(None), 1 => any::<IpAddr>().prop_map(Some)];
    (ip_header(), segment, more, address, 0..70u8).prop_map(|(mut ip, mut segment, more, address, dscp)| {
        let (window_scale, mptcp, data_fin) = more;
        segment.options.window_scale = segment.options.window_scale.or(window_scale);
        segment.options.mptcp.extend(mptcp);
        if let Some(dss) = &mut segment.options.dss {
            dss.data_fin = data_fin;
        }
        ip.destination = address.unwrap_or(ip.destination);
        ip.dscp = dscp;
        Packet { ip, segment }
    })
}
