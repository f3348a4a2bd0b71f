//! How a packet of a peer that lies is changed on its way.

use crate::luck::Luck;
use anabranch_wire::mptcp::{DataAck, DataSequence, MptcpOption};
use anabranch_wire::{Flags, Packet, SeqNumber, TcpOptions};

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
}

impl Lie {
    /// All of them, with their names in files.
    pub const NAMES: [(&'static str, Self); 9] = [
        ("ack", Self::Ack),
        ("data-ack", Self::DataAck),
        ("withhold", Self::Withhold),
        ("window", Self::Window),
        ("proof", Self::Proof),
        ("data-fin", Self::DataFin),
        ("number", Self::Number),
        ("reset", Self::Reset),
        ("syn", Self::Syn),
    ];

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
            Self::Number | Self::Reset | Self::Syn => {}
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

fn spoil(option: &mut MptcpOption) {
    match option {
        MptcpOption::JoinSynAck { truncated_hmac, .. } => *truncated_hmac ^= 1,
        MptcpOption::JoinAck { hmac } => hmac[19] ^= 1,
        MptcpOption::AddAddress { truncated_hmac: Some(proof), .. } => *proof ^= 1,
        MptcpOption::JoinSyn { token, .. } => *token ^= 1,
        _ => {}
    }
}
