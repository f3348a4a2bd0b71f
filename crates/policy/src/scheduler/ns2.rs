//! Fills each subflow's window before it looks at the next, in the order in which they were attached: what the multipath TCP of
//! ns-2 does.
//!
//! Source: MptcpAgent::send_control() of the module "multipath-tcp" for ns-2.35 (Nishida, WIDE project), which the papers of LM3
//! and recPR name as what they ran. Facts, from its source:
//!
//! - At each packet that arrives, and when the application writes, the subflows are gone through in the order of their
//!   attachment. Each is given
//!
//!   ```text
//!   w - o,    o = maxseq - highest_ack - dupacks MSS
//!   ```
//!
//!   bytes, in whole segments (w congestion window, the threshold during fast recovery; o what is outstanding), before the next
//!   is looked at. Round-trip times do not enter.
//! - A subflow whose back-off is 4 or more is passed over. The back-off is a factor of the timeout, 1 at first, and doubles at
//!   each timeout until something new is acknowledged: 4 is two timeouts in a row (`failed_after`).
//! - The data level never reinjects: data stays on the subflow to which it was assigned
//!   ([`super::Reinjection::Never`]). The project's page names it as a limitation.
//! - There is no window at data level. What limits a subflow is `window_`, 20 packets unless set.
//!
//! Decisions:
//! - Outstanding data is what is in flight, since RACK and SACK know what duplicate acknowledgements can only suggest;
//!   during recovery from a timeout it is all that was sent and is not acknowledged cumulatively, as there.
//! - The module has no backups and no suspended subflows. Here a backup is used when no regular subflow may be (RFC
//!   8684, section 3.3.8), and the data of a suspended or closed subflow goes to the others in the same order.
//! - The peer's window is respected, which the module does not have.
//! - The module ignores data that was assigned to a subflow and not yet sent, so that it queues without limit on one
//!   whose congestion window is above `window_`. That is not done here: the window is the smaller of both.

use super::candidates::excluded;
use super::{Chunk, Decision, Needs, Reinjection, Scheduler};
use crate::table::{Number, Reader, SettingError};
use crate::view::{ConnectionView, Phase, SubflowView};

const FAILED_AFTER: Number = Number {
    name: "failed_after",
    unit: "timeouts in a row",
    default: 2.0,
    range: 1.0..=100.0,
    summary: "After how many retransmission timeouts in a row a subflow gets no new data",
};

/// The scheduler `ns2`.
#[derive(Debug)]
pub struct Ns2 {
    failed_after: u32,
}

impl Ns2 {
    /// A scheduler that assigns nothing to a subflow after this many timeouts in a row.
    pub const fn new(failed_after: u32) -> Self {
        Self { failed_after }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::new(reader.read(&FAILED_AFTER)? as u32)))
    }
}

/// Whether the window has space for the segment, or for a full one if that is shorter.
fn has_window(subflow: &SubflowView, length: u32) -> bool {
    let outstanding = match subflow.phase {
        Phase::TimeoutRecovery => subflow.counters.bytes_sent.saturating_sub(subflow.counters.bytes_acked),
        Phase::SlowStart | Phase::CongestionAvoidance | Phase::FastRecovery => subflow.in_flight,
    };
    let left = subflow.cwnd.saturating_sub(outstanding).min(subflow.window_left);
    left.saturating_sub(subflow.queued) >= u64::from(length.min(subflow.mss))
}

impl Scheduler for Ns2 {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let excluded = excluded(chunk);
        let alive =
            |s: &&SubflowView| s.usable() && s.counters.timeouts_in_row < self.failed_after && Some(s.id) != excluded;
        let backups = !subflows.iter().filter(alive).any(|subflow| !subflow.backup);
        let mut candidates = subflows.iter().filter(alive).filter(|subflow| subflow.backup == backups);
        Decision::on(candidates.find(|subflow| has_window(subflow, chunk.length)))
    }

    fn needs(&self) -> Needs {
        Needs { reinjection: Reinjection::Never, ..Needs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::TABLE;
    use crate::scheduler::tests::{connection, new_data, reinjection_from, send, subflow};
    use crate::table::Settings;
    use crate::table::build;

    fn ns2() -> Box<dyn Scheduler> {
        build(TABLE, "ns2", &Settings::new()).unwrap()
    }

    /// In order of attachment, each faster than the one before it.
    fn paths() -> [SubflowView; 3] {
        [subflow(0, 300), subflow(1, 20), subflow(2, 10)]
    }

    #[test]
    fn each_window_is_filled_before_the_next_is_looked_at_whatever_the_round_trips() {
        let mut scheduler = ns2();
        let mut paths = paths();
        let mut given = Vec::new();
        // Ten segments fit into each window.
        while let Decision::Send(id) = scheduler.schedule(&connection(0), &new_data(), &paths) {
            paths[id.0 as usize].in_flight += 1_000;
            given.push(id.0);
        }
        assert_eq!(given, [[0; 10], [1; 10], [2; 10]].concat());
        // As soon as there is room on the first it is filled again.
        paths[0].in_flight = 9_000;
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(0));
    }

    #[test]
    fn less_than_a_segment_of_window_is_none() {
        let mut paths = paths();
        (paths[0].in_flight, paths[0].queued) = (9_000, 1);
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths), send(1));
        paths[0].queued = 0;
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths), send(0));
        paths[0].window_left = 999;
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths), send(1));
    }

    #[test]
    fn after_a_timeout_all_that_is_not_acknowledged_is_outstanding() {
        let mut paths = paths();
        (paths[0].phase, paths[0].cwnd, paths[0].counters.timeouts_in_row) = (Phase::TimeoutRecovery, 1_000, 1);
        // Nothing counts as in flight: all eight are to be sent again.
        (paths[0].counters.bytes_sent, paths[0].counters.bytes_acked) = (50_000, 42_000);
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths), send(1));
        // Three have been, and the window has grown to four.
        (paths[0].counters.bytes_acked, paths[0].cwnd, paths[0].counters.timeouts_in_row) = (47_000, 4_000, 0);
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths), send(0));
    }

    #[test]
    fn a_subflow_gets_nothing_after_two_timeouts_in_a_row_until_it_makes_progress() {
        let mut paths = paths();
        paths[0].counters.timeouts_in_row = 1;
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths), send(0));
        paths[0].counters.timeouts_in_row = 2;
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths), send(1));
        let patient = build(TABLE, "ns2", &Settings::new().with("failed_after", "3"));
        assert_eq!(patient.unwrap().schedule(&connection(0), &new_data(), &paths), send(0));
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths[..1]), Decision::Wait(None));
    }

    #[test]
    fn what_a_subflow_hands_over_goes_to_the_others_in_order_and_nothing_else_is_sent_again() {
        assert_eq!(ns2().schedule(&connection(0), &reinjection_from(0), &paths()), send(1));
        assert_eq!(ns2().needs(), Needs { reinjection: Reinjection::Never, ..Needs::default() });
    }

    #[test]
    fn a_backup_waits_until_no_regular_subflow_may_be_used() {
        let mut paths = paths();
        paths[0].backup = true;
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths), send(1));
        (paths[1].counters.timeouts_in_row, paths[2].suspended) = (2, true);
        assert_eq!(ns2().schedule(&connection(0), &new_data(), &paths), send(0));
    }
}
