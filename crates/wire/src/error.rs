//! Errors of parsing and emitting.

/// Why bytes could not be parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// Fewer bytes than the header says or needs.
    #[error("truncated")]
    Truncated,
    /// A length field that contradicts itself or its surroundings.
    #[error("bad length")]
    BadLength,
    /// A version or protocol that this parser does not know.
    #[error("unknown version or protocol")]
    Unsupported,
    /// The checksum does not match.
    #[error("bad checksum")]
    BadChecksum,
    /// A field with a value that the specification forbids.
    #[error("forbidden value")]
    BadValue,
}

/// Why a value could not be emitted; nothing was written then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EmitError {
    /// The TCP options need more than the 40 bytes of [`crate::tcp::OPTION_SPACE`].
    #[error("the options exceed the option space")]
    OptionsTooLong,
    /// Source and destination are not of the same address family.
    #[error("source and destination of different address families")]
    MixedFamilies,
    /// More bytes than the IP or UDP length field can say.
    #[error("too long for the length field")]
    TooLong,
    /// A value that its field cannot hold, or an option on a segment where the specification has no place for it;
    /// the receiver would see something else.
    #[error("a value that the wire cannot carry")]
    BadValue,
}
