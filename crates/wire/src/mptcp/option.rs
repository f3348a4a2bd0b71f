//! The MPTCP options as types (RFC 8684, section 3).

use core::net::IpAddr;

/// TCP option kind of MPTCP.
pub const KIND: u8 = 30;

/// The supported MPTCP version.
pub const VERSION: u8 = 1;

/// The acknowledgement in a DSS option, in one of its two sizes (RFC 8684, section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataAck {
    /// The lower 32 bits.
    Short(u32),
    /// All 64 bits.
    Long(u64),
}

/// The data sequence number in a DSS option, in one of its two sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataSequence {
    /// The lower 32 bits.
    Short(u32),
    /// All 64 bits.
    Long(u64),
}

/// A data sequence mapping (RFC 8684, section 3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// First data sequence number.
    pub data_seq: DataSequence,
    /// First subflow sequence number, relative to the initial one; 0 for a DATA_FIN alone.
    pub subflow_seq: u32,
    /// Bytes mapped, including a DATA_FIN; 0 makes the mapping infinite (section 3.7).
    pub length: u16,
    /// Checksum, if negotiated.
    pub checksum: Option<u16>,
}

/// Data sequence signal (RFC 8684, section 3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dss {
    /// Acknowledgement at data level.
    pub data_ack: Option<DataAck>,
    /// Mapping of the payload.
    pub mapping: Option<Mapping>,
    /// The mapping ends with DATA_FIN; only with a mapping.
    pub data_fin: bool,
}

/// The flags A, B and C of MP_CAPABLE, and H (RFC 8684, section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CapableFlags {
    /// A: DSS checksums are required.
    pub checksum_required: bool,
    /// B: the extensibility flag; must be 0, or the option is ignored.
    pub extensibility: bool,
    /// C: the sender accepts no joins to this address and port.
    pub deny_join_initial: bool,
    /// H: HMAC-SHA256, the only defined algorithm.
    pub hmac_sha256: bool,
}

/// Contents of MP_CAPABLE, by segment (RFC 8684, section 3.1, figure 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapableKeys {
    /// SYN: no key.
    None,
    /// SYN/ACK: the listener's key.
    Receiver(u64),
    /// Third ACK: both keys.
    Both {
        /// Key of the sender of this option.
        sender: u64,
        /// Key of the other side.
        receiver: u64,
    },
    /// First data: both keys and the length of the data, with its checksum if negotiated.
    BothWithData {
        /// Key of the sender of this option.
        sender: u64,
        /// Key of the other side.
        receiver: u64,
        /// Data-level length.
        length: u16,
        /// Checksum.
        checksum: Option<u16>,
    },
}

/// An MPTCP option other than DSS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MptcpOption {
    /// MP_CAPABLE (subtype 0x0). On a SYN that offers another version, `keys` is [`CapableKeys::None`] regardless of
    /// the rest of the option.
    Capable {
        /// Version, 4 bits.
        version: u8,
        /// Flags.
        flags: CapableFlags,
        /// Keys.
        keys: CapableKeys,
    },
    /// MP_JOIN on a SYN (subtype 0x1, section 3.2, figure 5).
    JoinSyn {
        /// The new subflow is a backup.
        backup: bool,
        /// Identifier of the sender's address.
        address_id: u8,
        /// The receiver's token.
        token: u32,
        /// The sender's random number.
        nonce: u32,
    },
    /// MP_JOIN on a SYN/ACK (figure 6).
    JoinSynAck {
        /// The new subflow is a backup.
        backup: bool,
        /// Identifier of the sender's address.
        address_id: u8,
        /// The leftmost 64 bits of the sender's HMAC.
        truncated_hmac: u64,
        /// The sender's random number.
        nonce: u32,
    },
    /// MP_JOIN on the third ACK (figure 7).
    JoinAck {
        /// The leftmost 160 bits of the sender's HMAC.
        hmac: [u8; 20],
    },
    /// ADD_ADDR (subtype 0x3, section 3.4.1).
    AddAddress {
        /// Identifier.
        address_id: u8,
        /// Address.
        address: IpAddr,
        /// Port, if it differs from that of the initial subflow.
        port: Option<u16>,
        /// The rightmost 64 bits of the HMAC; `None` makes it an echo.
        truncated_hmac: Option<u64>,
    },
    /// REMOVE_ADDR (subtype 0x4, section 3.4.2).
    RemoveAddress {
        /// Identifiers, at least one.
        address_ids: Vec<u8>,
    },
    /// MP_PRIO (subtype 0x5, section 3.3.8).
    Priority {
        /// The subflow is a backup from now on.
        backup: bool,
    },
    /// MP_FAIL (subtype 0x6, section 3.7).
    Fail {
        /// Data sequence number at which the failure was detected.
        data_seq: u64,
    },
    /// MP_FASTCLOSE (subtype 0x7, section 3.5).
    FastClose {
        /// The receiver's key.
        key: u64,
    },
    /// MP_TCPRST (subtype 0x8, section 3.6).
    TcpReset {
        /// The condition is transient (T).
        transient: bool,
        /// U, V and W as the lower three bits.
        flags: u8,
        /// Reason.
        reason: u8,
    },
    /// MP_EXPERIMENTAL (subtype 0xf). RFC 8684 (section 7.2) reserves the subtype for private use and defines no
    /// format. This one is ours, with an identifier of the experiment.
    Experimental {
        /// The four bits after the subtype, defined by the experiment.
        flags: u8,
        /// Experiment identifier.
        experiment: u16,
        /// Its data.
        data: Vec<u8>,
    },
}
