//! Notices (MP_EXPERIMENTAL): what the peer was told, and what it said.

use anabranch_policy::ids::{SubflowId, SubflowMap};
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use anabranch_wire::mptcp::notice::WorstPath;

/// The notices of both ends.
#[derive(Debug)]
pub(in crate::connection) struct NoticeExchange {
    /// The peer knows of notices.
    pub(super) peer_knows: bool,
    /// It knows that we do.
    pub(super) peer_heard: bool,
    /// It reinjects data that we report as missing.
    pub(super) peer_repairs: bool,
    /// Up to where missing data was reported to it, by subflow.
    pub(super) told_until: SubflowMap<SeqNumber>,
    /// Hellos sent.
    pub(super) hellos: u32,
    /// When the next one is due.
    pub(super) hello_at: Instant,
    /// Bytes that we abandoned, as notices say; wraps.
    pub(super) told_total: u32,
    /// Bytes that the peer abandoned, by its last notice; wraps.
    pub(super) peer_total: u32,
    /// Bytes that it abandoned in all.
    pub(super) peer_abandoned: u64,
    /// The path that it called the worst.
    pub(super) peer_worst: Option<WorstPath>,
    /// Ranges of our subflows' sequence numbers that it reported missing since the scheduler was asked last.
    pub(super) missing: Vec<(SubflowId, SeqNumber, SeqNumber)>,
    /// Ranges of its stream that it will not send (again).
    pub(super) peer_withdrawn: Vec<(u64, u64)>,
}

impl Default for NoticeExchange {
    fn default() -> Self {
        Self {
            peer_knows: false,
            peer_heard: false,
            peer_repairs: false,
            told_until: SubflowMap::new(),
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
