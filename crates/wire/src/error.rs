//! Errors of parsing and emitting.

/// Why bytes could not be parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// There are fewer bytes than the header states or needs.
    #[error("truncated")]
    Truncated,
    /// A length field is inconsistent.
    #[error("bad length")]
    BadLength,
    /// The version or protocol is not supported.
    #[error("unknown version or protocol")]
    Unsupported,
    /// The checksum does not match.
    #[error("bad checksum")]
    BadChecksum,
    /// A field has a value that the specification forbids.
    #[error("forbidden value")]
    BadValue,
}

/// Why a value could not be emitted; nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EmitError {
    /// The TCP options exceed the 40 bytes of [`crate::tcp::OPTION_SPACE`].
    #[error("the options exceed the option space")]
    OptionsTooLong,
    /// Source and destination are not of the same address family.
    #[error("source and destination of different address families")]
    MixedFamilies,
    /// The length does not fit into the IP or UDP length field.
    #[error("too long for the length field")]
    TooLong,
    /// A value does not fit its field, or an option is not allowed on this segment; the receiver would read something
    /// else.
    #[error("a value that the wire cannot carry")]
    BadValue,
}
