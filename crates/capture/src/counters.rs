//! What a capture counts.

use anabranch_proxy::ProxyCounters;

/// Totals since the capture began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CaptureCounters {
    /// Connections: those that were carried, and how they ended.
    pub connections: ProxyCounters,
}
