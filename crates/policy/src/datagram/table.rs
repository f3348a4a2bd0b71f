//! The datagram policies.

use super::api::DatagramPolicy;
use super::duplicate;
use crate::table::Member;

/// The datagram policies.
pub const TABLE: &[Member<dyn DatagramPolicy>] = &[duplicate::MEMBER];
