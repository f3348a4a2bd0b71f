//! Division of data by weights that change while the connection runs.

use super::candidates::preferred;
use super::{Chunk, Decision};
use crate::ids::{SubflowId, SubflowMap};
use crate::view::SubflowView;

/// Least weight that data is counted with: an excluded subflow that is used nevertheless does not have to wait for ever
/// afterwards.
const LEAST: f64 = 1e-3;

/// What each subflow has carried, in bytes over weight: the one with the least is next.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    sent: SubflowMap<f64>,
}

impl Shares {
    /// The subflow of a chunk, among the preferred ones with room and a weight (0 to 1) above zero. Weight 0 excludes a
    /// subflow as long as another one is preferred: backups and stale subflows take part only when nothing better is left,
    /// as with the other schedulers. A subflow that did not take part for a while does not catch up.
    pub fn schedule(
        &mut self,
        chunk: &Chunk,
        subflows: &[SubflowView],
        weight: impl Fn(&SubflowView) -> f64,
    ) -> Decision {
        let candidates = preferred(subflows, chunk.last_sent_on);
        let excluded = candidates.clone().all(|subflow| weight(subflow) <= 0.0);
        let wanted = candidates.filter(|subflow| excluded || weight(subflow) > 0.0);
        let passed = |id: SubflowId| self.sent.get(id).copied().unwrap_or(0.0);
        let next = wanted
            .filter(|subflow| subflow.has_room())
            .min_by(|one, other| passed(one.id).total_cmp(&passed(other.id)).then(one.id.cmp(&other.id)));
        let Some(next) = next else { return Decision::Wait(None) };
        let more = f64::from(chunk.length.min(next.mss)) / weight(next).max(LEAST);
        let least = self.sent.values().copied().fold(f64::INFINITY, f64::min);
        let base = if least.is_finite() { passed(next.id).max(least) } else { 0.0 };
        self.sent.insert(next.id, base + more);
        Decision::Send(next.id)
    }

    /// A subflow was removed.
    pub fn remove(&mut self, id: SubflowId) {
        self.sent.remove(id);
    }
}
