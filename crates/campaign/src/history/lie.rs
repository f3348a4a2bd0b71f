//! How a packet of a peer that lies is changed on its way, and what is forged beside it.
//!
//! An attacker who forges blindly sees nothing of the connection, or only the token of a join. His segments must change nothing,
//! so a history with them is judged as one without.

use crate::luck::Luck;
use anabranch_wire::mptcp::{DataAck, DataSequence, Dss, Mapping, MptcpOption, dss_checksum};
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
/// Further than what the peer has sent on a subflow, and mostly within the window: no guess of these is exact.
const IN_WINDOW: [u32; 4] = [1, 2, 100, 1_000];
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
    /// What it carries is mapped over what is sent later, and is other octets.
    OverlayAhead,
    /// Its mapping is longer than its text and overlaps those of the next segments on the subflow; its text is other octets.
    Overlap,
    /// Its mapping is an infinite one, though nothing fell back.
    Infinite,
    /// An attacker guesses sequence number and acknowledgement: text without a mapping, within the window.
    Guess,
    /// An attacker who does not know the numbers forges one like it: other octets, and a sequence number out of the window.
    BlindNumber,
    /// The same, and only the acknowledgement and the timestamp are not guessed.
    BlindAck,
    /// The same with a reset flag, and a sequence number within the window that is not the next.
    BlindReset,
    /// The same with SYN alone, in the midst of a connection.
    BlindSyn,
    /// The same with options of MPTCP and no text, out of the window.
    BlindOptions,
    /// An attacker who saw the token of a join begins twenty more, and proves none.
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
    /// The peer said where it belongs, and lied; or an attacker guessed where it is accepted, which only checksums would notice.
    Anything,
}

impl Lie {
    /// All of them, with their names in files.
    pub const NAMES: [(&'static str, Self); 20] = [
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
        ("joins", Self::Joins),
    ];

    /// Whether it is not the peer's, and must change nothing.
    pub fn is_blind(self) -> bool {
        matches!(
            self,
            Self::BlindNumber | Self::BlindAck | Self::BlindReset | Self::BlindSyn | Self::BlindOptions | Self::Joins
        )
    }

    /// What it leaves of the stream.
    pub fn sent(self) -> Sent {
        match self {
            Self::Overlay => Sent::Overlaid,
            Self::Infinite | Self::OverlayAhead | Self::Overlap | Self::Guess => Sent::Anything,
            _ => Sent::AsWritten,
        }
    }

    /// What an attacker sends before this packet. On its subflow the peer has sent all up to `end`.
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
            Self::Joins if joins => return (0..FLOOD).map(|_| forge_join(luck, packet)).collect(),
            _ => return Vec::new(),
        }
        vec![forged]
    }

    /// Changes a packet; returns whether it still goes.
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

    /// Changes a segment without text that does not open.
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
            // An attacker's, who changes nothing of the peer's.
            _ => {}
        }
    }
}

fn make_infinite(options: &mut TcpOptions) {
    if let Some(mapping) = options.dss.as_mut().and_then(|dss| dss.mapping.as_mut()) {
        mapping.length = 0;
    }
}

/// Other octets, as many.
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

/// An acknowledgement that is not acceptable, and a timestamp that may be too new.
fn forge_ack(luck: &mut Luck, segment: &mut Segment) {
    // As far back as the largest window that the peer ever told, an old one is taken (RFC 5961, section 5.2).
    let far = luck.pick(&[OUT_OF_WINDOW, 1 << 30, 1 << 31, LARGEST_WINDOW.wrapping_neg()]);
    segment.ack = SeqNumber(segment.ack.0.wrapping_add(far));
    if let Some(timestamps) = &mut segment.options.timestamps {
        timestamps.value = timestamps.value.wrapping_add(luck.pick(&[0, 1, 2_000_000]));
    }
}

/// No text, and no option of MPTCP.
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

/// What would close, fall back, withdraw or acknowledge if its segment were acceptable.
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

/// Text that is acceptable to TCP, and may end the subflow.
fn forge_guess(luck: &mut Luck, segment: &mut Segment, end: SeqNumber) {
    let seq = if luck.one_in(3) { segment.seq } else { in_window(luck, end) };
    strip(luck, segment);
    segment.flags = luck.pick(&[Flags::ACK, Flags::ACK, Flags(Flags::ACK.0 | Flags::FIN.0)]);
    segment.seq = seq;
    segment.payload = Bytes::from(vec![FORGED; luck.between(1, 1_000) as usize]);
}

fn forge_join(luck: &mut Luck, packet: &Packet) -> Packet {
    let mut forged = packet.clone();
    forged.segment.source_port = luck.between(10_000, 60_000) as u16;
    forged.segment.seq = SeqNumber(luck.number() as u32);
    forged
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

/// Changes the number of a DATA_FIN without text.
fn shift_data_fin(options: &mut TcpOptions, far: u32) {
    if let Some(dss) = options.dss.as_mut().filter(|dss| dss.data_fin)
        && let Some(mapping) = dss.mapping.as_mut().filter(|mapping| mapping.subflow_seq == 0)
        && let DataSequence::Long(number) = mapping.data_seq
    {
        mapping.data_seq = DataSequence::Long(number.wrapping_add(u64::from(far)));
    }
}

/// Maps other octets to where the stream was a little before, or will be; with a checksum that is right, if its number is whole.
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

/// Makes a mapping longer than its text, so that it overlaps what the next segments map, and maps other octets.
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
