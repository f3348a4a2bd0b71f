//! The datagram policies.

use super::api::DatagramPolicy;
use super::{by_flow, duplicate, lowest_delay, weighted};
use crate::table::Member;

/// The datagram policies; the first is the default.
pub const TABLE: &[Member<dyn DatagramPolicy>] =
    &[lowest_delay::MEMBER, duplicate::MEMBER, weighted::MEMBER, by_flow::MEMBER];
