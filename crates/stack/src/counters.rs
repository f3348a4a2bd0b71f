//! Counters of a stack: drops and failures.

use anabranch_mptcp::stats::EndpointCounters;

/// Drops and failures of a stack; totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StackCounters {
    pub endpoint: EndpointCounters,
    /// Connections aborted because they were not accepted in time.
    pub backlog_overflows: u64,
    /// Packets to be sent from an address without a device.
    pub no_device: u64,
    /// Path changes that were not read in time.
    pub dropped_path_changes: u64,
}
