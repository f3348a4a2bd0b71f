//! Errors of movement files and models.

/// Why there is no movement.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum MobilityError {
    /// A number that a model cannot take.
    #[error("{name} is {value}, which is not {expected}")]
    BadValue {
        /// What is wrong.
        name: &'static str,
        /// What was passed.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A line of a file that means nothing.
    #[error("line {line}: {reason}")]
    BadLine {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More nodes than a movement may have.
    #[error("more than {MAX_NODES} nodes")]
    TooManyNodes,
}

/// The most nodes of a movement.
pub(crate) const MAX_NODES: usize = 100_000;
