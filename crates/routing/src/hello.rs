//! Hellos, full and differential (RFC 5614, 4).

pub(crate) mod reading;
pub(crate) mod schedule;
pub(crate) mod writing;

use anabranch_policy::Duration;

/// The cost in Hellos for a link that its sender suspects (MaxLinkMetric of RFC 6987).
pub(crate) const MAX_LINK_METRIC: u16 = u16::MAX;

/// Whole seconds, as in Hellos: rounded up, at least 1.
pub(crate) fn seconds(span: Duration) -> u16 {
    u16::try_from(span.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u16::MAX).max(1)
}
