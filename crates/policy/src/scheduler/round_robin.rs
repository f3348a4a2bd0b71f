//! In turn: each segment goes to the next subflow, in order of id, whose window has room.
//!
//! The turn passes on after every segment, new or reinjected, and skips subflows without room, so that under load the
//! shares follow the windows ("Experimental Evaluation of Multipath TCP Schedulers", CSWS 2014, with one segment
//! per turn). Backups and stale subflows take turns only when nothing better is left.

use super::candidates::{excluded, fits, preferred};
use super::{Chunk, Decision, Scheduler};
use crate::ids::SubflowId;
use crate::table::{Reader, SettingError};
use crate::view::{ConnectionView, SubflowView};

/// The scheduler `round_robin`.
#[derive(Debug, Default)]
pub struct RoundRobin {
    /// Whose turn was last; kept when that subflow ends, because only the order counts.
    last: Option<SubflowId>,
}

impl RoundRobin {
    pub fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::default()))
    }
}

impl Scheduler for RoundRobin {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let mut with_room = preferred(subflows, excluded(chunk)).filter(|subflow| fits(subflow, chunk.length));
        let first = with_room.clone().next();
        let after_last = with_room.find(|subflow| self.last.is_none_or(|last| subflow.id > last));
        match after_last.or(first) {
            Some(subflow) => {
                self.last = Some(subflow.id);
                Decision::Send(subflow.id)
            }
            None => Decision::Wait(None),
        }
    }
}
