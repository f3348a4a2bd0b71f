//! Errors of movement files and models.

/// Why a movement cannot be made.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum MobilityError {
    /// A parameter outside of its range.
    #[error("{name} is {value}, which is not {expected}")]
    BadValue {
        /// What is wrong.
        name: &'static str,
        value: f64,
        /// The valid range.
        expected: &'static str,
    },
    /// A line of a file that cannot be read.
    #[error("line {line}: {reason}")]
    BadLine {
        /// Counted from 1.
        line: usize,
        reason: &'static str,
    },
    /// More nodes than a movement may have.
    #[error("more than {MAX_NODES} nodes")]
    TooManyNodes,
}

pub(crate) const MAX_NODES: usize = 100_000;
