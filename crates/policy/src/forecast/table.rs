//! The forecasters.

use super::api::LinkForecaster;
use super::{forward, online, paper_literal, persistence, trend, viterbi};
use crate::table::Member;

/// The forecasters.
pub const TABLE: &[Member<dyn LinkForecaster>] =
    &[forward::MEMBER, online::MEMBER, paper_literal::MEMBER, persistence::MEMBER, trend::MEMBER, viterbi::MEMBER];
