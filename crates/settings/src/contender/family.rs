//! Families of policies for help texts.

use anabranch_policy::combination::Family;
use anabranch_policy::table::{Member, Parameter};
use anabranch_policy::{congestion, forecast, path_manager, reliability, scheduler};

/// A member of any family.
#[derive(Clone, Debug)]
pub struct MemberInfo {
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Reference of its algorithm.
    pub source: &'static str,
    pub parameters: Vec<Parameter>,
}

pub(super) fn infos<P: ?Sized>(table: &'static [Member<P>]) -> Vec<MemberInfo> {
    let info = |member: &Member<P>| MemberInfo {
        name: member.name,
        summary: member.summary,
        source: member.source,
        parameters: member.parameters(),
    };
    table.iter().map(info).collect()
}

pub fn members(family: Family) -> Vec<MemberInfo> {
    match family {
        Family::Congestion => infos(congestion::TABLE),
        Family::Scheduler => infos(scheduler::TABLE),
        Family::PathManager => infos(path_manager::TABLE),
        Family::Reliability => infos(reliability::TABLE),
        Family::Forecaster => infos(forecast::TABLE),
    }
}

/// What a family decides.
pub const fn decides(family: Family) -> &'static str {
    match family {
        Family::Congestion => "how much may be in flight on each subflow",
        Family::Scheduler => "which subflow carries the next chunk of data",
        Family::PathManager => "which subflows exist and which are active",
        Family::Reliability => "which data may be abandoned, and when",
        Family::Forecaster => "how likely a link is up at a horizon",
    }
}
