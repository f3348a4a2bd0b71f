//! Every subflow walks the unacknowledged stream itself; the first copy to arrive wins.
//!
//! ReMP ("ReMP TCP: Low Latency Multipath TCP", ICC 2016): latency is bought with bandwidth. The engine keeps one
//! cursor per subflow and fills each subflow's window with what that subflow has not carried yet
//! ([`Scheduler::redundant`]). What is decided here is only where the first copy of new data goes: to the fastest
//! usable subflow with room. Backups carry copies only when no regular subflow is left, as far as this decision goes.

use super::candidates::{excluded, fastest};
use super::{Chunk, Decision, Scheduler};
use crate::table::{Reader, SettingError};
use crate::view::{ConnectionView, SubflowView};

/// The scheduler `redundant`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

impl Redundant {
    /// Makes one.
    pub fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self))
    }
}

impl Scheduler for Redundant {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        Decision::on(fastest(subflows, excluded(chunk), chunk.length))
    }

    fn redundant(&self) -> bool {
        true
    }
}
