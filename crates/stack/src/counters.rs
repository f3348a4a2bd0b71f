//! Counters of a stack: drops and failures.

use anabranch_mptcp::stats::EndpointCounters;

/// What a stack dropped or could not do; totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StackCounters {
    /// The engine's.
    pub endpoint: EndpointCounters,
    /// Connections aborted because nobody accepted them in time.
    pub backlog_overflows: u64,
    /// Packets to send from an address that no device has (any more).
    pub no_device: u64,
    /// Path changes that nobody fetched.
    pub dropped_path_changes: u64,
}
