//! The reliability policies.

use super::api::Reliability;
use super::{both_ends, full, spe, too_late, withdrawal};
use crate::table::Member;

/// The reliability policies.
pub const TABLE: &[Member<dyn Reliability>] =
    &[full::MEMBER, spe::MEMBER, withdrawal::PR_MPTCP, withdrawal::MO_PR, both_ends::MEMBER, too_late::MEMBER];
