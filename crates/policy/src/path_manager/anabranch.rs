//! Our own: uses all paths, suspends none, and probes those without news.
//!
//! The scheduler decides for each segment which path carries it; a path is never switched off. A scheduler cannot know
//! the present state of a path that carries nothing. So, while data is outstanding:
//!
//! - a *stale* subflow (silent for too long with data outstanding) is probed each 250 ms, and each second once it has
//!   been silent for 10 s: its retransmission timer alone backs off to two minutes, but a path that answers again
//!   should carry its share within two seconds;
//! - an *idle* subflow, on which nothing was sent for a second, is probed: its round-trip time may have been measured
//!   with a full queue, or during a pause. Nothing is in flight there, so a probe costs 11 kbit/s, whatever the
//!   round-trip time is. A backup is not probed: it may cost money per byte, and it is not needed while another path
//!   works.
//!
//! Subflows are opened, and addresses announced, once a connection is 10 ms old (setting `join_age`): one that is over
//! by then, as on a LAN or between programs of one host, had nothing of further subflows but their handshakes. The age
//! counts from the SYN, so that over longer round trips nothing waits.
//!
//! A probe is one segment of data that is outstanding elsewhere ([`PathAction::Probe`]). Subflows are opened, and
//! opened again, by [`super::full_mesh`].

use super::full_mesh::{FullMesh, MeshSettings};
use super::{Measurements, PathAction, PathEvent, PathManager};
use crate::table::{Milliseconds, Number, Reader, SettingError};
use crate::time::{Duration, Instant};
use crate::view::{SubflowState, SubflowView};

/// Interval at which subflows are checked.
const LOOK: Duration = Duration::from_millis(125);
/// Interval between probes of a stale subflow.
const STALE: Duration = Duration::from_millis(250);
/// The same after [`LONG`].
const LONG_STALE: Duration = Duration::from_secs(1);
/// Silence after which a path is probed less often.
const LONG: Duration = Duration::from_secs(10);
/// Time after which an idle subflow is probed.
const IDLE: Duration = Duration::from_secs(1);

const JOIN_AGE: Milliseconds = Milliseconds(Number {
    name: "join_age",
    unit: "ms",
    default: 10.0,
    range: 0.0..=10_000.0,
    summary: "Age of a connection, from its SYN, at which further subflows are opened and addresses announced",
});

/// The path manager `anabranch`.
#[derive(Debug)]
pub struct Anabranch {
    mesh: FullMesh,
}

impl Anabranch {
    pub fn new(mesh: MeshSettings) -> Self {
        Self { mesh: FullMesh::new(mesh) }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn PathManager>, SettingError> {
        let mesh = MeshSettings::read_with_backup(reader)?;
        Ok(Box::new(Self::new(MeshSettings { join_age: reader.read(&JOIN_AGE)?, ..mesh })))
    }
}

/// Whether a probe of the subflow is due.
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
    use crate::ids::{AddressId, ConnectionId};
    use crate::path_manager::Role;
    use crate::path_manager::tests::{local, remote};
    use crate::scheduler::tests::{at, subflow};
    use crate::table::Settings;

    #[test]
    fn an_idle_path_is_asked_after_a_second_and_a_silent_one_four_times_a_second() {
        let mut view = subflow(0, 50);
        view.last_sent = at(1000);
        view.smoothed_rtt = Duration::from_millis(50);
        assert!(!is_due(at(1999), &view));
        assert!(is_due(at(2000), &view));
        view.smoothed_rtt = Duration::from_secs(3); // measured with a queue that is gone
        assert!(!is_due(at(1999), &view) && is_due(at(2000), &view));
        view.backup = true;
        assert!(!is_due(at(9000), &view));
        view.backup = false;
        view.in_flight = 1000;
        assert!(!is_due(at(9000), &view)); // it has data of its own in flight
        view.stale = true;
        view.last_progress = at(900);
        assert!(!is_due(at(1249), &view) && is_due(at(1250), &view));
        view.last_sent = at(12_000);
        assert!(!is_due(at(12_999), &view) && is_due(at(13_000), &view));
    }

    #[test]
    fn further_subflows_wait_for_the_age_that_is_set() {
        let waits = |settings: Settings| {
            let (mut manager, mut actions) = (settings.read(Anabranch::build).unwrap(), Vec::new());
            let addresses = [1, 2].map(|id| PathEvent::AddressUp { id: AddressId(id), address: local(id) });
            let established = PathEvent::ConnectionEstablished {
                connection: ConnectionId(1),
                role: Role::Client,
                local: AddressId(1),
                remote: remote(1),
                remote_denies_joins: false,
                handshake_rtt: Duration::ZERO,
            };
            for event in addresses.iter().chain([&established]) {
                manager.handle(Instant::ZERO, event, &mut actions);
            }
            actions
        };
        let wake = |millis| [PathAction::WakeAt(at(millis))];
        assert_eq!(waits(Settings::new()), wake(10));
        assert_eq!(waits(Settings::new().with("join_age", 25)), wake(25));
    }
}
