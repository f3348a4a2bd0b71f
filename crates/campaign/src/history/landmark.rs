//! Segments that a history can pick out by what they are, to lose, delay or repeat the first of a side.

use anabranch_wire::mptcp::{CapableKeys, MptcpOption};
use anabranch_wire::{Flags, Segment};

/// What a segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Landmark {
    /// SYN or SYN/ACK of the first subflow.
    Syn,
    /// The third segment of its handshake, with the keys.
    Keys,
    /// Data with a mapping.
    Data,
    /// SYN or SYN/ACK of a join.
    JoinSyn,
    /// The third segment of its handshake.
    JoinAck,
    /// ADD_ADDR.
    Announce,
    /// The echo of ADD_ADDR.
    Echo,
    /// REMOVE_ADDR.
    Withdraw,
    /// MP_PRIO.
    Priority,
    /// An infinite mapping.
    Infinite,
    /// MP_FAIL.
    Fail,
    /// MP_FASTCLOSE.
    FastClose,
    /// DATA_FIN.
    DataFin,
    /// FIN.
    Fin,
    /// RST.
    Reset,
}

impl Landmark {
    pub const NAMES: [(&'static str, Self); 15] = [
        ("syn", Self::Syn),
        ("keys", Self::Keys),
        ("data", Self::Data),
        ("join-syn", Self::JoinSyn),
        ("join-ack", Self::JoinAck),
        ("announce", Self::Announce),
        ("echo", Self::Echo),
        ("withdraw", Self::Withdraw),
        ("priority", Self::Priority),
        ("infinite", Self::Infinite),
        ("fail", Self::Fail),
        ("fast-close", Self::FastClose),
        ("data-fin", Self::DataFin),
        ("fin", Self::Fin),
        ("reset", Self::Reset),
    ];

    /// Whether a segment is this.
    pub fn is(self, segment: &Segment) -> bool {
        let flag = |flag| segment.flags.contains(flag);
        let has = |wanted: fn(&MptcpOption) -> bool| segment.options.mptcp.iter().any(wanted);
        let dss = segment.options.dss.as_ref();
        let mapping = dss.and_then(|dss| dss.mapping.as_ref());
        match self {
            Self::Syn => flag(Flags::SYN) && !Self::JoinSyn.is(segment),
            Self::Keys => has(|option| {
                let both =
                    |keys: &CapableKeys| matches!(keys, CapableKeys::Both { .. } | CapableKeys::BothWithData { .. });
                matches!(option, MptcpOption::Capable { keys, .. } if both(keys))
            }),
            Self::Data => !segment.payload.is_empty() && mapping.is_some(),
            Self::JoinSyn => {
                has(|option| matches!(option, MptcpOption::JoinSyn { .. } | MptcpOption::JoinSynAck { .. }))
            }
            Self::JoinAck => has(|option| matches!(option, MptcpOption::JoinAck { .. })),
            Self::Announce => has(|option| matches!(option, MptcpOption::AddAddress { truncated_hmac: Some(_), .. })),
            Self::Echo => has(|option| matches!(option, MptcpOption::AddAddress { truncated_hmac: None, .. })),
            Self::Withdraw => has(|option| matches!(option, MptcpOption::RemoveAddress { .. })),
            Self::Priority => has(|option| matches!(option, MptcpOption::Priority { .. })),
            Self::Infinite => {
                mapping.is_some_and(|mapping| mapping.length == 0) && dss.is_some_and(|dss| !dss.data_fin)
            }
            Self::Fail => has(|option| matches!(option, MptcpOption::Fail { .. })),
            Self::FastClose => has(|option| matches!(option, MptcpOption::FastClose { .. })),
            Self::DataFin => dss.is_some_and(|dss| dss.data_fin),
            Self::Fin => flag(Flags::FIN),
            Self::Reset => flag(Flags::RST),
        }
    }
}
