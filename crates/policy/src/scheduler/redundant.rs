//! Every subflow carries the whole unacknowledged stream; the first copy to arrive is used.
//!
//! ReMP ("ReMP TCP: Low Latency Multipath TCP", ICC 2016) trades bandwidth for latency. The engine keeps one cursor per
//! subflow and fills each subflow's window with what that subflow has not carried yet ([`Work::is_behind`]). This
//! scheduler only decides where the first copy of new data goes: to the fastest usable subflow with room. Backups carry
//! copies only when no regular subflow is left.

use super::candidates::{excluded, fastest};
use super::{Answer, Chunk, Decision, Needs, Scheduler, Work, again, unsent};
use crate::table::{Reader, SettingError};
use crate::view::{ConnectionView, SubflowView};

/// The scheduler `redundant`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

impl Redundant {
    pub fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self))
    }
}

impl Scheduler for Redundant {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        Decision::on(fastest(subflows, excluded(chunk), chunk.length))
    }

    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        if let Some(answer) = again(self, connection, work, subflows) {
            return answer;
        }
        let with_room = subflows.iter().filter(|subflow| subflow.usable() && subflow.has_room());
        if let Some(behind) = with_room.map(|subflow| subflow.id).find(|id| work.is_behind(*id)) {
            return Answer::CatchUp(behind);
        }
        unsent(self, connection, work, subflows).unwrap_or(Answer::Wait)
    }

    fn needs(&self) -> Needs {
        Needs { whole_stream: true, ..Needs::default() }
    }
}
