//! Work for tests of schedulers: unsent, outstanding and missing data.

use super::{Chunk, ChunkKind, Outstanding, Relief, Unsent, Work};
use crate::ids::SubflowId;
use crate::time::{Duration, Instant};
use std::collections::VecDeque;

/// All that a scheduler may look at.
#[derive(Default)]
pub(crate) struct Pile {
    pub again: VecDeque<Chunk>,
    pub unsent: Option<Chunk>,
    pub outstanding: Vec<Outstanding>,
    pub recent: VecDeque<(Outstanding, Duration)>,
    pub behind: Vec<SubflowId>,
    pub missing: bool,
    pub repaired: bool,
}

impl Work for Pile {
    fn again(&mut self) -> Option<Chunk> {
        self.again.pop_front()
    }
    fn has_unsent(&self) -> bool {
        self.unsent.is_some()
    }
    fn unsent(&mut self) -> Unsent {
        self.unsent.map_or(Unsent::Nothing, Unsent::Chunk)
    }
    fn is_shut(&self) -> bool {
        self.unsent.is_none()
    }
    fn outstanding(&mut self, after: Option<u64>) -> Option<Outstanding> {
        self.outstanding.iter().find(|held| after.is_none_or(|after| held.data_seq > after)).copied()
    }
    fn recent(&mut self) -> Option<(Outstanding, Duration)> {
        self.recent.pop_front()
    }
    fn missing(&self) -> bool {
        self.missing
    }
    fn repair_missing(&mut self) {
        self.repaired = true;
    }
    fn is_behind(&mut self, subflow: SubflowId) -> bool {
        self.behind.contains(&subflow)
    }
    fn relieve(&mut self, _: Relief) {}
    fn wait(&mut self, _: Option<Instant>) {}
}

/// A thousand bytes of new data at an offset.
pub(crate) fn new_at(data_seq: u64) -> Chunk {
    Chunk { data_seq, length: 1_000, kind: ChunkKind::New, last_sent_on: None, time_left: None }
}
