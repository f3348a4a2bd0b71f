//! Why bytes are not what they claim to be.

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
