//! Owns the state of the notices (MP_EXPERIMENTAL) of both ends.

use anabranch_policy::ids::{SubflowId, SubflowMap};
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use anabranch_wire::mptcp::notice::WorstPath;

#[derive(Debug)]
pub(in crate::connection) struct NoticeExchange {
    /// The peer understands notices.
    pub(super) peer_knows: bool,
    /// It knows that we do.
    pub(super) peer_heard: bool,
    /// It reinjects data that we report missing.
    pub(super) peer_repairs: bool,
    /// Up to where missing data was reported, by subflow.
    pub(super) reported_until: SubflowMap<SeqNumber>,
    pub(super) hellos: u32,
    /// When the next hello is due.
    pub(super) hello_at: Instant,
    /// Bytes abandoned by us, as in notices. Wraps around.
    pub(super) told_total: u32,
    /// Bytes abandoned by the peer, as in its last notice. Wraps around.
    pub(super) peer_total: u32,
    /// Bytes abandoned by the peer, in total.
    pub(super) peer_abandoned: u64,
    /// The slowest path by the peer's last notice.
    pub(super) peer_worst: Option<WorstPath>,
    /// Ranges of subflow sequence numbers that the peer reported missing since the scheduler was last asked.
    pub(super) missing: Vec<(SubflowId, SeqNumber, SeqNumber)>,
    /// Ranges of its stream that the peer has withdrawn.
    pub(super) peer_withdrawn: Vec<(u64, u64)>,
}

impl Default for NoticeExchange {
    fn default() -> Self {
        Self {
            peer_knows: false,
            peer_heard: false,
            peer_repairs: false,
            reported_until: SubflowMap::new(),
            hellos: 0,
            hello_at: Instant::ZERO,
            told_total: 0,
            peer_total: 0,
            peer_abandoned: 0,
            peer_worst: None,
            missing: Vec::new(),
            peer_withdrawn: Vec::new(),
        }
    }
}
