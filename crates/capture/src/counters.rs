//! What a capture counts.

use anabranch_mptcp::stats::EndpointCounters;
use anabranch_proxy::ProxyCounters;
use std::sync::{Mutex, PoisonError};

/// Totals since the capture began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CaptureCounters {
    /// Connections: those that were carried, and how they ended.
    pub connections: ProxyCounters,
    /// SYNs that came again while their target was asked.
    pub repeated_syns: u64,
    /// SYNs dropped because too many waited for their target already, or there were too many connections.
    pub dropped_syns: u64,
    /// Connections that were answered with a reset, as by a target where nobody listens.
    pub refused: u64,
    /// Connections that were answered with an ICMP message, as by a router that does not reach the target.
    pub unreachable: u64,
}

/// What all tasks of a capture count together.
#[derive(Default)]
pub(crate) struct Shared(Mutex<CaptureCounters>);

impl Shared {
    pub(crate) fn count(&self, act: impl FnOnce(&mut CaptureCounters)) {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// All of it, with what the connections and the engine have counted.
    pub(crate) fn totals(&self, connections: ProxyCounters, engine: &EndpointCounters) -> CaptureCounters {
        let counted = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        CaptureCounters {
            connections,
            repeated_syns: engine.repeated_syns,
            dropped_syns: engine.refused_by_limit,
            ..counted
        }
    }
}
