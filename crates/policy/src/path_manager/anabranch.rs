//! Our own: all paths, none put aside, and those that say nothing are asked.
//!
//! Which path carries what is the scheduler's to decide, segment by segment; a path is not switched off. What a
//! scheduler cannot know is how a path is now that carries nothing. So, while data is outstanding:
//!
//! - a *stale* subflow (silent for too long with data outstanding) is probed each 250 ms, and each second once it has
//!   been silent for 10 s: its retransmission timer alone backs off to two minutes, and a path that comes back should
//!   carry its share within two seconds;
//! - an *idle* subflow, on which nothing was sent for a second, is probed: its round-trip time may have been taken while its queue was
//!   full, or it may have paused. Nothing is under way there, so that a probe costs 11 kbit/s, whatever its round-trip time was.
//!   A backup is left alone: it may cost for each byte, and nothing is to be decided while another works.
//!
//! A probe is one segment of data that is outstanding elsewhere ([`PathAction::Probe`]). Subflows are opened, and opened
//! again, as by [`super::full_mesh`].

use super::full_mesh::{FullMesh, MeshSettings};
use super::{Measurements, PathAction, PathEvent, PathManager};
use crate::table::{Reader, SettingError};
use crate::time::{Duration, Instant};
use crate::view::{SubflowState, SubflowView};

/// How often the subflows are looked at.
const LOOK: Duration = Duration::from_millis(125);
/// Between two probes of a stale subflow.
const STALE: Duration = Duration::from_millis(250);
/// The same after [`LONG`].
const LONG_STALE: Duration = Duration::from_secs(1);
/// After what silence a path is probed less often.
const LONG: Duration = Duration::from_secs(10);
/// How long an idle subflow is left alone.
const IDLE: Duration = Duration::from_secs(1);

/// The path manager `anabranch`.
#[derive(Debug)]
pub struct Anabranch {
    mesh: FullMesh,
}

impl Anabranch {
    /// Makes one.
    pub fn new(mesh: MeshSettings) -> Self {
        Self { mesh: FullMesh::new(mesh) }
    }

    /// Makes one.
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn PathManager>, SettingError> {
        Ok(Box::new(Self::new(MeshSettings::read_with_backup(reader)?)))
    }
}

/// Whether it is time to ask the subflow how it is.
fn is_due(now: Instant, view: &SubflowView) -> bool {
    if view.state != SubflowState::Established || view.suspended {
        return false;
    }
    let pause = now.since(view.last_sent);
    if view.stale {
        let silence = now.since(view.last_progress);
        return pause >= if silence > LONG { LONG_STALE } else { STALE };
    }
    view.in_flight + view.queued == 0 && !view.backup && pause >= IDLE
}

impl PathManager for Anabranch {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        self.mesh.handle(now, event, actions);
        if let PathEvent::Measured { connection, subflows } = *event
            && connection.data_una < connection.data_nxt
        {
            let due = subflows.iter().filter(|view| is_due(now, view));
            actions.extend(due.map(|view| PathAction::Probe { connection: connection.id, subflow: view.id }));
        }
    }

    fn measurements(&self) -> Measurements {
        Measurements::Every(LOOK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::subflow;

    #[test]
    fn an_idle_path_is_asked_after_a_second_and_a_silent_one_four_times_a_second() {
        let mut view = subflow(0, 50);
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        view.last_sent = at(1000);
        view.smoothed_rtt = Duration::from_millis(50);
        assert!(!is_due(at(1999), &view));
        assert!(is_due(at(2000), &view));
        view.smoothed_rtt = Duration::from_secs(3); // of a queue that is gone
        assert!(!is_due(at(1999), &view) && is_due(at(2000), &view));
        view.backup = true;
        assert!(!is_due(at(9000), &view));
        view.backup = false;
        view.in_flight = 1000;
        assert!(!is_due(at(9000), &view)); // it will answer by itself
        view.stale = true;
        view.last_progress = at(900);
        assert!(!is_due(at(1249), &view) && is_due(at(1250), &view));
        view.last_sent = at(12_000);
        assert!(!is_due(at(12_999), &view) && is_due(at(13_000), &view));
    }
}
