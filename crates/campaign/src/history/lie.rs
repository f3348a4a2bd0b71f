//! How a packet of a peer that lies is changed on its way, and what is forged beside it.
//!
//! Who forges sees nothing of the connection, or the token of a join: he must change nothing, so that a history with his
//! segments is judged as one without.

use crate::luck::Luck;
use anabranch_wire::mptcp::{DataAck, DataSequence, MptcpOption, dss_checksum};
use anabranch_wire::{Flags, Packet, Segment, SeqNumber, TcpOptions};
use bytes::Bytes;

/// What the text of a segment consists of that maps other octets over those of the stream.
const OVERLAID: u8 = 0xee;
/// What a forged segment consists of.
const FORGED: u8 = 0xff;
/// Further away than any window of the engine's.
const OUT_OF_WINDOW: u32 = 1 << 26;
/// No window is larger (RFC 7323, section 2.3).
const LARGEST_WINDOW: u32 = 1 << 30;
/// Joins that are begun beside one that the peer begins.
const FLOOD: u64 = 20;

/// What is changed in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// It acknowledges what was not sent, on the subflow.
    Ack,
    /// It acknowledges what was not sent, at data level.
    DataAck,
    /// Acknowledgements without text are withheld.
    Withhold,
    /// Its window is random.
    Window,
    /// Proofs of joins and addresses are wrong.
    Proof,
    /// A DATA_FIN has another number than before.
    DataFin,
    /// Its sequence number is a little, or far, out of the window.
    Number,
    /// It comes with a reset flag and a sequence number within the window.
    Reset,
    /// It comes with SYN in the midst of a connection.
    Syn,
    /// What it carries is mapped over what was sent before, and is other octets.
    Overlay,
    /// Its mapping is an infinite one, though nothing fell back.
    Infinite,
    /// Somebody who does not know the numbers forges one like it: other octets, and a sequence number out of the window.
    BlindNumber,
    /// The same, and only the acknowledgement and the timestamp are not guessed.
    BlindAck,
    /// Somebody who saw the token of a join begins twenty more, and proves none.
    Joins,
}

/// How far what an application reads can be told from what the peer's application wrote.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sent {
    /// It is that.
    AsWritten,
    /// The peer mapped other octets over it; or, where such a segment was lost and then sent as it should be, octets of the stream
    /// where its mapping had put the others. There are no more than were written.
    Overlaid,
    /// The peer said where it belongs, and lied.
    Anything,
}

impl Lie {
    /// All of them, with their names in files.
    pub const NAMES: [(&'static str, Self); 14] = [
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
        ("infinite", Self::Infinite),
        ("blind-number", Self::BlindNumber),
        ("blind-ack", Self::BlindAck),
        ("joins", Self::Joins),
    ];

    /// Whether it is not the peer's, and must change nothing.
    pub fn is_blind(self) -> bool {
        matches!(self, Self::BlindNumber | Self::BlindAck | Self::Joins)
    }

    /// What it leaves of the stream.
    pub fn sent(self) -> Sent {
        match self {
            Self::Overlay => Sent::Overlaid,
            Self::Infinite => Sent::Anything,
            _ => Sent::AsWritten,
        }
    }

    /// What somebody else sends before this packet.
    pub fn forge(self, luck: &mut Luck, packet: &Packet) -> Vec<Packet> {
        let segment = &packet.segment;
        let joins = segment.options.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. }));
        match self {
            Self::BlindNumber | Self::BlindAck if !segment.payload.is_empty() => {
                let mut forged = packet.clone();
                let segment = &mut forged.segment;
                segment.payload = Bytes::from(vec![FORGED; segment.payload.len()]);
                if self == Self::BlindNumber {
                    let far = luck.pick(&[OUT_OF_WINDOW, 1 << 30, 1 << 31, OUT_OF_WINDOW.wrapping_neg()]);
                    segment.seq = SeqNumber(segment.seq.0.wrapping_add(far));
                } else {
                    // As far back as the largest window that the peer ever told, an old one is taken (RFC 5961, section 5.2).
                    let far = luck.pick(&[OUT_OF_WINDOW, 1 << 30, 1 << 31, LARGEST_WINDOW.wrapping_neg()]);
                    segment.ack = SeqNumber(segment.ack.0.wrapping_add(far));
                    if let Some(timestamps) = &mut segment.options.timestamps {
                        timestamps.value = timestamps.value.wrapping_add(luck.pick(&[0, 1, 2_000_000]));
                    }
                }
                vec![forged]
            }
            Self::Joins if joins => {
                let join = |_| {
                    let mut forged = packet.clone();
                    forged.segment.source_port = luck.between(10_000, 60_000) as u16;
                    forged.segment.seq = SeqNumber(luck.number() as u32);
                    forged
                };
                (0..FLOOD).map(join).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Changes a packet; returns whether it still goes.
    pub fn tell(self, luck: &mut Luck, packet: &mut Packet) -> bool {
        let segment = &mut packet.segment;
        let far = luck.pick(&[1, 100, 5_000, 70_000, 1 << 30]);
        let opens = segment.flags.contains(Flags::SYN);
        let bare = segment.payload.is_empty() && !opens;
        match self {
            Self::Ack => segment.ack = SeqNumber(segment.ack.0.wrapping_add(far)),
            Self::DataAck => shift_data_ack(&mut segment.options, far),
            Self::Withhold => return !segment.payload.is_empty() || opens,
            Self::Window => segment.window = luck.below(65_536) as u16,
            Self::Proof => segment.options.mptcp.iter_mut().for_each(spoil),
            Self::DataFin => shift_data_fin(&mut segment.options, far),
            Self::Number if bare => segment.seq = SeqNumber(segment.seq.0.wrapping_add(far)),
            Self::Reset if bare => {
                segment.flags |= Flags::RST;
                segment.seq = SeqNumber(segment.seq.0.wrapping_add(far));
            }
            Self::Syn if bare && segment.options.mptcp.is_empty() => {
                segment.flags |= Flags::SYN;
                segment.options.dss = None;
            }
            Self::Overlay => overlay(luck, segment),
            Self::Infinite => {
                if let Some(mapping) = segment.options.dss.as_mut().and_then(|dss| dss.mapping.as_mut()) {
                    mapping.length = 0;
                }
            }
            Self::Number | Self::Reset | Self::Syn | Self::BlindNumber | Self::BlindAck | Self::Joins => {}
        }
        true
    }
}

/// Acknowledges at data level what was not sent.
fn shift_data_ack(options: &mut TcpOptions, far: u32) {
    if let Some(ack) = options.dss.as_mut().and_then(|dss| dss.data_ack.as_mut()) {
        *ack = match *ack {
            DataAck::Short(number) => DataAck::Short(number.wrapping_add(far)),
            DataAck::Long(number) => DataAck::Long(number.wrapping_add(u64::from(far))),
        };
    }
}

/// Gives a DATA_FIN without text another number.
fn shift_data_fin(options: &mut TcpOptions, far: u32) {
    if let Some(dss) = options.dss.as_mut().filter(|dss| dss.data_fin)
        && let Some(mapping) = dss.mapping.as_mut().filter(|mapping| mapping.subflow_seq == 0)
        && let DataSequence::Long(number) = mapping.data_seq
    {
        mapping.data_seq = DataSequence::Long(number.wrapping_add(u64::from(far)));
    }
}

/// Maps other octets to where the stream was a little before; with a checksum that is right, if its number is whole.
fn overlay(luck: &mut Luck, segment: &mut Segment) {
    let length = segment.payload.len();
    let Some(dss) = segment.options.dss.as_mut() else { return };
    let Some(mapping) = dss.mapping.as_mut().filter(|mapping| usize::from(mapping.length) == length) else { return };
    let back = luck.pick(&[0, 1, length as u64 / 2, length as u64, 5_000]);
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

fn spoil(option: &mut MptcpOption) {
    match option {
        MptcpOption::JoinSynAck { truncated_hmac, .. } => *truncated_hmac ^= 1,
        MptcpOption::JoinAck { hmac } => hmac[19] ^= 1,
        MptcpOption::AddAddress { truncated_hmac: Some(proof), .. } => *proof ^= 1,
        MptcpOption::JoinSyn { token, .. } => *token ^= 1,
        _ => {}
    }
}
