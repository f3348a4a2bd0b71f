//! Which subflows a scheduler may choose from: usable, not the last sender of a reinjection, backups last.

use super::{Chunk, ChunkKind};
use crate::ids::SubflowId;
use crate::view::SubflowView;

/// The preferred subflows, in order of id.
///
/// Of the usable ones, without `excluded`, the first class that has a member:
///
/// 1. regular and not stale,
/// 2. backup and not stale (RFC 8684, section 3.3.8: "only if there are no regular subflows available"; a stale
///    subflow does not count as available, as in Linux),
/// 3. regular and stale, 4. backup and stale: nothing better is left.
///
/// Room does not matter: a class whose members are all full is waited for.
pub(super) fn preferred(
    subflows: &[SubflowView],
    excluded: Option<SubflowId>,
) -> impl Iterator<Item = &SubflowView> + Clone {
    let eligible = move |subflow: &&SubflowView| subflow.usable() && Some(subflow.id) != excluded;
    let best = subflows.iter().filter(eligible).map(class).min();
    subflows.iter().filter(eligible).filter(move |subflow| Some(class(subflow)) == best)
}

/// The lower the better.
pub(super) fn class(subflow: &SubflowView) -> u8 {
    u8::from(subflow.stale) << 1 | u8::from(subflow.backup)
}

/// The subflow that must not carry `chunk`: the last sender of a reinjection.
pub(super) fn excluded(chunk: &Chunk) -> Option<SubflowId> {
    match chunk.kind {
        ChunkKind::New => None,
        ChunkKind::Reinjection => chunk.last_sent_on,
    }
}

/// Whether `length` bytes, or a full segment if that is shorter, may be sent at once.
pub(super) fn fits(subflow: &SubflowView, length: u32) -> bool {
    subflow.room() >= u64::from(length.min(subflow.mss))
}

/// The preferred subflow with the lowest smoothed round-trip time that `length` bytes fit into; the lower id on a tie.
pub(super) fn fastest(subflows: &[SubflowView], excluded: Option<SubflowId>, length: u32) -> Option<&SubflowView> {
    preferred(subflows, excluded).filter(|subflow| fits(subflow, length)).min_by_key(|subflow| subflow.smoothed_rtt)
}

/// The preferred subflow with the lowest smoothed round-trip time, a full one included if it [`will_have_room`]; the
/// lower id on a tie.
pub(super) fn fastest_to_wait_for(
    subflows: &[SubflowView],
    excluded: Option<SubflowId>,
    length: u32,
) -> Option<&SubflowView> {
    preferred(subflows, excluded)
        .filter(|subflow| will_have_room(subflow, length))
        .min_by_key(|subflow| subflow.smoothed_rtt)
}

/// Whether there is room for `length` bytes, or data in flight whose acknowledgement can make room. Otherwise nothing
/// would end a wait for the subflow.
pub(super) fn will_have_room(subflow: &SubflowView, length: u32) -> bool {
    subflow.in_flight + subflow.queued > 0 || fits(subflow, length)
}
