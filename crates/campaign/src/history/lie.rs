//! How packets of a lying peer are changed in transit, and which packets are forged in addition.
//!
//! A blind attacker sees nothing of the connection, or only the token of a join. Its segments must have no effect, so
//! such a history is judged like one without them.

use crate::luck::Luck;
use anabranch_wire::mptcp::{DataAck, DataSequence, Dss, Mapping, MptcpOption, dss_checksum};
use anabranch_wire::{Flags, Packet, Segment, SeqNumber, TcpOptions};
use bytes::Bytes;
use std::net::IpAddr;

/// Payload octet of segments that map other octets over those of the stream.
const OVERLAID: u8 = 0xee;
/// Payload octet of forged segments.
const FORGED: u8 = 0xff;
/// Beyond any window of the engine.
const OUT_OF_WINDOW: u32 = 1 << 26;
/// The largest possible window (RFC 7323, section 2.3).
const LARGEST_WINDOW: u32 = 1 << 30;
/// Offsets beyond what the peer has sent on a subflow, mostly within the window: none is exact.
const IN_WINDOW: [u32; 4] = [1, 2, 100, 1_000];
/// The last octet of an address that neither side has.
const NOBODY: u8 = 99;
/// Forged joins per join of the peer.
const FLOOD: u64 = 20;

/// How a packet is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// It acknowledges data that was not sent, on the subflow.
    Ack,
    /// It acknowledges data that was not sent, at data level.
    DataAck,
    /// Acknowledgements without text are withheld.
    Withhold,
    /// Its window is random.
    Window,
    /// The HMACs of joins and addresses are wrong.
    Proof,
    /// A DATA_FIN has another number than before.
    DataFin,
    /// Its sequence number is slightly or far out of the window.
    Number,
    /// It has RST and a sequence number within the window.
    Reset,
    /// It has SYN during a connection.
    Syn,
    /// Its payload is mapped over earlier data, with other octets.
    Overlay,
    /// Its payload is mapped over later data, with other octets.
    OverlayAhead,
    /// Its mapping is longer than its payload and overlaps those of the next segments on the subflow; its payload has
    /// other octets.
    Overlap,
    /// Its mapping is infinite, without a fallback.
    Infinite,
    /// An attacker guesses sequence number and acknowledgement: payload without a mapping, within the window.
    Guess,
    /// A blind attacker forges a copy with other octets, and a sequence number out of the window.
    BlindNumber,
    /// The same, but only the acknowledgement and the timestamp are not guessed.
    BlindAck,
    /// The same with RST, and a sequence number within the window that is not the next.
    BlindReset,
    /// The same with SYN alone, during a connection.
    BlindSyn,
    /// The same with MPTCP options and no payload, out of the window.
    BlindOptions,
    /// An attacker who sees the numbers announces an address, and cannot compute the HMAC.
    Announce,
    /// An attacker who saw the token of a join starts twenty more, without authentication.
    Joins,
}

/// How the data that an application reads is related to what the peer's application wrote.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sent {
    /// They are equal.
    AsWritten,
    /// The peer mapped other octets over it; or, if such a segment was lost and then retransmitted unchanged, octets of
    /// the stream at the offset of the changed mapping. The length is that of the stream.
    Overlaid,
    /// Unrelated: the peer lied about the offset, or an attacker guessed acceptable numbers, which only checksums could
    /// detect.
    Anything,
}

impl Lie {
    pub const NAMES: [(&'static str, Self); 21] = [
        ("ack", Self::Ack),
        ("data-ack", Self::DataAck),
        ("withhold", Self::Withhold),
        ("window", Self::Window),
        ("proof", Self::Proof),
        ("data-fin", Self::DataFin),
        ("number", Self::Number),
        ("reset", Self::Reset),
        ("syn", Self::Syn),
        ("overlay", Self::Overlay),
        ("overlay-ahead", Self::OverlayAhead),
        ("overlap", Self::Overlap),
        ("infinite", Self::Infinite),
        ("guess", Self::Guess),
        ("blind-number", Self::BlindNumber),
        ("blind-ack", Self::BlindAck),
        ("blind-reset", Self::BlindReset),
        ("blind-syn", Self::BlindSyn),
        ("blind-options", Self::BlindOptions),
        ("announce", Self::Announce),
        ("joins", Self::Joins),
    ];

    /// Whether the packet is an attacker's who knows too little: it must have no effect.
    pub fn is_blind(self) -> bool {
        matches!(
            self,
            Self::BlindNumber
                | Self::BlindAck
                | Self::BlindReset
                | Self::BlindSyn
                | Self::BlindOptions
                | Self::Announce
                | Self::Joins
        )
    }

    /// Its effect on the stream.
    pub fn sent(self) -> Sent {
        match self {
            Self::Overlay => Sent::Overlaid,
            Self::Infinite | Self::OverlayAhead | Self::Overlap | Self::Guess => Sent::Anything,
            _ => Sent::AsWritten,
        }
    }

    /// The attacker's packets before this packet. On its subflow the peer has sent all up to `end`.
    pub fn forge(self, luck: &mut Luck, packet: &Packet, end: SeqNumber) -> Vec<Packet> {
        let segment = &packet.segment;
        let joins = segment.options.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. }));
        // A guess at a join that the peer refuses would be taken for its third segment.
        let opens = segment.flags.intersects(Flags(Flags::SYN.0 | Flags::RST.0));
        let mut forged = packet.clone();
        match self {
            Self::BlindNumber if !segment.payload.is_empty() => {
                forge_text(&mut forged.segment);
                forged.segment.seq = out_of_window(luck, segment.seq);
            }
            Self::BlindAck if !segment.payload.is_empty() => {
                forge_text(&mut forged.segment);
                forge_ack(luck, &mut forged.segment);
            }
            Self::BlindReset if !opens => forge_reset(luck, &mut forged.segment, end),
            Self::BlindSyn if !opens => forge_syn(luck, &mut forged.segment, end),
            Self::BlindOptions if !opens => forge_options(luck, &mut forged.segment),
            Self::Guess if !opens => forge_guess(luck, &mut forged.segment, end),
            Self::Announce if !opens && segment.flags.contains(Flags::ACK) => {
                forge_announcement(luck, &mut forged.segment, packet.ip.source);
            }
            Self::Joins if joins => return (0..FLOOD).map(|_| forge_join(luck, packet)).collect(),
            _ => return Vec::new(),
        }
        vec![forged]
    }

    /// Changes a packet; returns whether it is still sent.
    pub fn tell(self, luck: &mut Luck, packet: &mut Packet) -> bool {
        let segment = &mut packet.segment;
        let far = luck.pick(&[1, 100, 5_000, 70_000, 1 << 30]);
        let opens = segment.flags.contains(Flags::SYN);
        match self {
            Self::Ack => segment.ack = SeqNumber(segment.ack.0.wrapping_add(far)),
            Self::DataAck => shift_data_ack(&mut segment.options, far),
            Self::Withhold => return !segment.payload.is_empty() || opens,
            Self::Window => segment.window = luck.below(65_536) as u16,
            Self::Proof => segment.options.mptcp.iter_mut().for_each(spoil),
            Self::DataFin => shift_data_fin(&mut segment.options, far),
            Self::Overlay => overlay(luck, segment, false),
            Self::OverlayAhead => overlay(luck, segment, true),
            Self::Overlap => overlap(luck, segment),
            Self::Infinite => make_infinite(&mut segment.options),
            _ if segment.payload.is_empty() && !opens => self.change_bare(segment, far),
            _ => {}
        }
        true
    }

    /// Changes a segment without payload and without SYN.
    fn change_bare(self, segment: &mut Segment, far: u32) {
        match self {
            Self::Number => segment.seq = SeqNumber(segment.seq.0.wrapping_add(far)),
            Self::Reset => {
                segment.flags |= Flags::RST;
                segment.seq = SeqNumber(segment.seq.0.wrapping_add(far));
            }
            Self::Syn if segment.options.mptcp.is_empty() => {
                segment.flags |= Flags::SYN;
                segment.options.dss = None;
            }
            // An attacker's lie leaves the peer's segments unchanged.
            _ => {}
        }
    }
}

fn make_infinite(options: &mut TcpOptions) {
    if let Some(mapping) = options.dss.as_mut().and_then(|dss| dss.mapping.as_mut()) {
        mapping.length = 0;
    }
}

/// Replaces the payload by other octets of the same length.
fn forge_text(segment: &mut Segment) {
    segment.payload = Bytes::from(vec![FORGED; segment.payload.len()]);
}

fn out_of_window(luck: &mut Luck, seq: SeqNumber) -> SeqNumber {
    let far = luck.pick(&[OUT_OF_WINDOW, 1 << 30, 1 << 31, OUT_OF_WINDOW.wrapping_neg()]);
    SeqNumber(seq.0.wrapping_add(far))
}

fn in_window(luck: &mut Luck, end: SeqNumber) -> SeqNumber {
    SeqNumber(end.0.wrapping_add(luck.pick(&IN_WINDOW)))
}

/// Sets an unacceptable acknowledgement, and perhaps a timestamp that is too new.
fn forge_ack(luck: &mut Luck, segment: &mut Segment) {
    // Old acknowledgements are acceptable up to the largest window that the peer ever announced (RFC 5961, section
    // 5.2).
    let far = luck.pick(&[OUT_OF_WINDOW, 1 << 30, 1 << 31, LARGEST_WINDOW.wrapping_neg()]);
    segment.ack = SeqNumber(segment.ack.0.wrapping_add(far));
    if let Some(timestamps) = &mut segment.options.timestamps {
        timestamps.value = timestamps.value.wrapping_add(luck.pick(&[0, 1, 2_000_000]));
    }
}

/// Removes payload and MPTCP options.
fn strip(luck: &mut Luck, segment: &mut Segment) {
    segment.payload = Bytes::new();
    segment.options.dss = None;
    segment.options.mptcp.clear();
    if luck.one_in(2) {
        segment.options.timestamps = None;
    }
}

/// Answered with a challenge ACK (RFC 5961, section 3.2).
fn forge_reset(luck: &mut Luck, segment: &mut Segment, end: SeqNumber) {
    strip(luck, segment);
    segment.flags = luck.pick(&[Flags::RST, Flags(Flags::RST.0 | Flags::ACK.0)]);
    segment.seq = in_window(luck, end);
}

/// Answered with a challenge ACK wherever its number is (RFC 5961, section 4.2).
fn forge_syn(luck: &mut Luck, segment: &mut Segment, end: SeqNumber) {
    strip(luck, segment);
    (segment.flags, segment.ack) = (Flags::SYN, SeqNumber(0));
    segment.seq = if luck.one_in(2) { in_window(luck, end) } else { out_of_window(luck, end) };
}

/// Options that would close, fall back, withdraw or acknowledge if their segment were acceptable.
fn forge_options(luck: &mut Luck, segment: &mut Segment) {
    strip(luck, segment);
    segment.flags = Flags::ACK;
    segment.seq = out_of_window(luck, segment.seq);
    let number = luck.number();
    let options = &mut segment.options;
    match luck.below(7) {
        0 => options.mptcp.push(MptcpOption::FastClose { key: number }),
        1 => options.mptcp.push(MptcpOption::RemoveAddress { address_ids: vec![0, 1, 2, 3] }),
        2 => options.mptcp.push(MptcpOption::Priority { backup: true }),
        3 => options.mptcp.push(MptcpOption::Fail { data_seq: number }),
        4 => {
            let reset = MptcpOption::TcpReset { transient: false, flags: 0, reason: 1 };
            options.mptcp.push(reset);
            segment.flags |= Flags::RST;
        }
        5 => options.dss = Some(Dss { data_ack: Some(DataAck::Long(number)), ..Dss::default() }),
        _ => {
            let data_seq = DataSequence::Long(number);
            let mapping = Mapping { data_seq, subflow_seq: 0, length: 1, checksum: None };
            options.dss = Some(Dss { data_ack: None, mapping: Some(mapping), data_fin: true });
        }
    }
}

/// Payload that is acceptable to TCP, and may end the subflow.
fn forge_guess(luck: &mut Luck, segment: &mut Segment, end: SeqNumber) {
    let seq = if luck.one_in(3) { segment.seq } else { in_window(luck, end) };
    strip(luck, segment);
    segment.flags = luck.pick(&[Flags::ACK, Flags::ACK, Flags(Flags::ACK.0 | Flags::FIN.0)]);
    segment.seq = seq;
    segment.payload = Bytes::from(vec![FORGED; luck.between(1, 1_000) as usize]);
}

/// ADD_ADDR of an address that nobody has, or of the peer's own, without knowledge of the keys.
fn forge_announcement(luck: &mut Luck, segment: &mut Segment, source: IpAddr) {
    let timestamps = segment.options.timestamps;
    strip(luck, segment);
    segment.options.timestamps = timestamps;
    segment.flags = Flags::ACK;
    let address = match source {
        IpAddr::V4(address) => {
            let [one, two, path, host] = address.octets();
            IpAddr::from([one, two, path, luck.pick(&[NOBODY, host])])
        }
        IpAddr::V6(address) => {
            let mut parts = address.segments();
            parts[7] = luck.pick(&[u16::from(NOBODY), parts[7]]);
            IpAddr::from(parts)
        }
    };
    let truncated_hmac = Some(luck.number());
    let address_id = luck.between(1, 9) as u8;
    segment.options.mptcp.push(MptcpOption::AddAddress { address_id, address, port: None, truncated_hmac });
}

fn forge_join(luck: &mut Luck, packet: &Packet) -> Packet {
    let mut forged = packet.clone();
    forged.segment.source_port = luck.between(10_000, 60_000) as u16;
    forged.segment.seq = SeqNumber(luck.number() as u32);
    forged
}

/// Acknowledges data at data level that was not sent.
fn shift_data_ack(options: &mut TcpOptions, far: u32) {
    if let Some(ack) = options.dss.as_mut().and_then(|dss| dss.data_ack.as_mut()) {
        *ack = match *ack {
            DataAck::Short(number) => DataAck::Short(number.wrapping_add(far)),
            DataAck::Long(number) => DataAck::Long(number.wrapping_add(u64::from(far))),
        };
    }
}

/// Changes the number of a DATA_FIN without text.
fn shift_data_fin(options: &mut TcpOptions, far: u32) {
    if let Some(dss) = options.dss.as_mut().filter(|dss| dss.data_fin)
        && let Some(mapping) = dss.mapping.as_mut().filter(|mapping| mapping.subflow_seq == 0)
        && let DataSequence::Long(number) = mapping.data_seq
    {
        mapping.data_seq = DataSequence::Long(number.wrapping_add(u64::from(far)));
    }
}

/// Maps other octets to slightly earlier or later data, with a correct checksum if its number is complete.
fn overlay(luck: &mut Luck, segment: &mut Segment, ahead: bool) {
    let length = segment.payload.len();
    let Some(dss) = segment.options.dss.as_mut() else { return };
    let Some(mapping) = dss.mapping.as_mut().filter(|mapping| usize::from(mapping.length) == length) else { return };
    let far: u64 = luck.pick(&[0, 1, length as u64 / 2, length as u64, 5_000]);
    let back = if ahead { far.wrapping_neg() } else { far };
    segment.payload = Bytes::from(vec![OVERLAID; length]);
    match &mut mapping.data_seq {
        DataSequence::Long(number) => {
            *number = number.wrapping_sub(back);
            if let Some(checksum) = &mut mapping.checksum {
                *checksum = dss_checksum(*number, mapping.subflow_seq, mapping.length, [&segment.payload[..]]);
            }
        }
        DataSequence::Short(number) => *number = number.wrapping_sub(back as u32),
    }
}

/// Makes a mapping longer than its payload, so that it overlaps the mappings of the next segments, and replaces the
/// octets.
fn overlap(luck: &mut Luck, segment: &mut Segment) {
    let Some(mapping) = segment.options.dss.as_mut().and_then(|dss| dss.mapping.as_mut()) else { return };
    if segment.payload.is_empty() || mapping.length == 0 {
        return;
    }
    mapping.length = mapping.length.saturating_add(luck.pick(&[1, 100, 1_460, 5_000]));
    let back = luck.pick(&[0, 1, 100]);
    mapping.data_seq = match mapping.data_seq {
        DataSequence::Long(number) => DataSequence::Long(number.wrapping_sub(back)),
        DataSequence::Short(number) => DataSequence::Short(number.wrapping_sub(back as u32)),
    };
    segment.payload = Bytes::from(vec![OVERLAID; segment.payload.len()]);
}

fn spoil(option: &mut MptcpOption) {
    match option {
        MptcpOption::JoinSynAck { truncated_hmac, .. } => *truncated_hmac ^= 1,
        MptcpOption::JoinAck { hmac } => hmac[19] ^= 1,
        MptcpOption::AddAddress { truncated_hmac: Some(proof), .. } => *proof ^= 1,
        MptcpOption::JoinSyn { token, .. } => *token ^= 1,
        _ => {}
    }
}
