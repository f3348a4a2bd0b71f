//! The congestion control algorithms.

use super::api::CongestionControl;
use super::{anabranch, balia, bbr, bounded_cubic, cubic, lia, new_reno, olia, wvegas};
use crate::table::Member;

/// The congestion control algorithms.
pub const TABLE: &[Member<dyn CongestionControl>] = &[
    new_reno::MEMBER,
    cubic::MEMBER,
    bbr::MEMBER,
    lia::MEMBER,
    olia::MEMBER,
    balia::MEMBER,
    wvegas::MEMBER,
    anabranch::MEMBER,
    bounded_cubic::connection::MEMBER,
];
