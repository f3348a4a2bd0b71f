//! Lowest round-trip time first; outstanding data is duplicated on another path while the player is about to run dry.
//!
//! Source: Zheng et al., "XLINK: QoE-Driven Multi-Path QUIC Transport in Large-scale Video Services", SIGCOMM 2021: packets by
//! lowest RTT; re-injection, steered by the play-out time left (double thresholding) and in front of less urgent data.
//!
//! With t the play-out time left, as the application says ([`ConnectionView::play_out_left`]):
//!
//! ```text
//! D         = max (s_p + v_p)   over the subflows p that have data outstanding: smoothed RTT and its variation
//! t > T2                        nothing is duplicated
//! t < T1                        what is outstanding is duplicated
//! T1 <= t <= T2                 what is outstanding is duplicated if D > t
//! ```
//!
//! While it is on, outstanding data goes first: the oldest data of the stream that was sent and not acknowledged is
//! duplicated on the fastest other subflow with room, each range once, and only then new data is sent.
//!
//! Decisions:
//! - XLINK gives T1 and T2 as percentiles of the play-out times its clients report. Here they are times, `t1` (500 ms)
//!   and `t2` (2 s).
//! - XLINK puts a duplicate in front of what belongs to later streams or to later video frames, but behind what is unsent of
//!   its own. A connection here is one stream, played in order: what is outstanding is always needed before what is unsent, and
//!   goes in front of all of it.
//! - Where duplicates go: to the subflow with the lowest smoothed RTT with room other than the sender, backups only when
//!   nothing better is left. XLINK duplicates on any other path with room, and so do we, though a duplicate on a slower
//!   path helps only if the first one is lost or stalls.
//! - D is as published. It does not grow while a path is silent, so that between the thresholds a stall is noticed only by
//!   its effect on t; below T1 nothing need be noticed.
//! - XLINK's choice of the first path by radio and its acknowledgements on the fastest path are no scheduler's matter.
//! - What is duplicated is not sent again elsewhere by the engine after a timeout; the subflow that had it repeats it.
//! - Without a play-out time (plain TCP's programs give none) it is [`super::lowest_rtt`], with the same two settings.

use super::blocked_window::{BlockedWindow, Penalise};
use super::candidates::{excluded, fastest};
use super::{Answer, Chunk, Decision, Hole, Needs, Relief, Scheduler, Work, again, unsent};
use crate::ids::SubflowId;
use crate::table::{Number, Reader, SettingError};
use crate::time::Duration;
use crate::view::{ConnectionView, SubflowView};

const T1: Number = Number {
    name: "t1",
    unit: "ms",
    default: 500.0,
    range: 0.0..=LONGEST,
    summary: "With less play-out time left what is outstanding is always duplicated",
};
const T2: Number = Number {
    name: "t2",
    unit: "ms, not below t1",
    default: 2_000.0,
    range: 0.0..=LONGEST,
    summary: "With more play-out time left nothing is; in between if the data would come too late",
};

/// The longest threshold, milliseconds.
const LONGEST: f64 = 600_000.0;

/// The scheduler `deadline_reinjection`.
#[derive(Debug)]
pub struct DeadlineReinjection {
    t1: Duration,
    t2: Duration,
    blocked_window: BlockedWindow,
}

impl DeadlineReinjection {
    /// The thresholds are of the play-out time left, the first not above the second.
    pub fn new(t1: Duration, t2: Duration, blocked_window: BlockedWindow) -> Self {
        Self { t1, t2, blocked_window }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        let t1 = reader.read(&T1)?;
        let t2 = reader.read(&Number { default: f64::max(t1, T2.default), range: t1..=LONGEST, ..T2 })?;
        let span = |millis: f64| Duration::from_secs_f64(millis / 1e3);
        let blocked_window = BlockedWindow::read(reader, true, Penalise::Slower)?;
        Ok(Box::new(Self::new(span(t1), span(t2), blocked_window)))
    }

    /// Whether what is outstanding is to be duplicated now.
    fn is_urgent(&self, connection: &ConnectionView, subflows: &[SubflowView]) -> bool {
        let Some(left) = connection.play_out_left else { return false };
        left < self.t1 || (left <= self.t2 && delivery_time(subflows) > left)
    }
}

/// When the data that is outstanding will have arrived, at the worst: D.
fn delivery_time(subflows: &[SubflowView]) -> Duration {
    let busy = subflows.iter().filter(|subflow| subflow.in_flight > 0);
    busy.map(|subflow| subflow.smoothed_rtt + subflow.rtt_variation).max().unwrap_or_default()
}

/// A copy of the first outstanding data that another subflow has room for, on the fastest of those.
fn copy(work: &mut dyn Work, subflows: &[SubflowView]) -> Option<Answer> {
    let mut after = None;
    while let Some(outstanding) = work.outstanding(after) {
        if let Some(other) = fastest(subflows, Some(outstanding.sender), outstanding.length) {
            return Some(Answer::Copy(outstanding, other.id));
        }
        after = Some(outstanding.data_seq);
    }
    None
}

impl Scheduler for DeadlineReinjection {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        Decision::on(fastest(subflows, excluded(chunk), chunk.length))
    }

    fn on_window_blocked(&mut self, connection: &ConnectionView, hole: &Hole, subflows: &[SubflowView]) -> Relief {
        self.blocked_window.relieve(connection, hole, subflows)
    }

    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        if let Some(answer) = again(self, connection, work, subflows) {
            return answer;
        }
        let urgent = self.is_urgent(connection, subflows);
        if urgent
            && work.has_unsent()
            && let Some(copy) = copy(work, subflows)
        {
            return copy;
        }
        if let Some(answer) = unsent(self, connection, work, subflows) {
            return answer;
        }
        let copies = urgent && work.is_shut();
        copies.then(|| copy(work, subflows)).flatten().unwrap_or(Answer::Wait)
    }

    fn needs(&self) -> Needs {
        Needs { outstanding: true, ..Needs::default() }
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.blocked_window.on_subflow_removed(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::pile::{Pile, new_at};
    use crate::scheduler::tests::{at, connection, new_data, reinjection_from, send, subflow};
    use crate::scheduler::{Outstanding, TABLE};
    use crate::table::Settings;
    use crate::table::build;

    const MS: Duration = Duration::from_millis(1);

    fn scheduler() -> Box<dyn Scheduler> {
        build(TABLE, "deadline_reinjection", &Settings::new()).expect("the defaults")
    }

    /// The subflow that duplicates data that subflow 0 has outstanding, with nothing new to send.
    fn duplicate(scheduler: &mut dyn Scheduler, connection: &ConnectionView, subflows: &[SubflowView]) -> Option<u32> {
        match scheduler.next(connection, &mut Pile { outstanding: vec![HELD], ..Pile::default() }, subflows) {
            Answer::Copy(HELD, id) => Some(id.0),
            _ => None,
        }
    }

    /// The same before new data.
    fn duplicates_first(scheduler: &mut dyn Scheduler, connection: &ConnectionView, subflows: &[SubflowView]) -> bool {
        let mut work = Pile { outstanding: vec![HELD], unsent: Some(new_at(1_000)), ..Pile::default() };
        matches!(scheduler.next(connection, &mut work, subflows), Answer::Copy(..))
    }

    /// A connection whose player has this many milliseconds left.
    fn left(ms: u64) -> ConnectionView {
        ConnectionView { play_out_left: Some(MS * ms), ..connection(0) }
    }

    /// Data that subflow 0 has outstanding.
    const HELD: Outstanding =
        Outstanding { data_seq: 0, length: 1000, sender: SubflowId(0), sent_at: at(0), lost: false, unrepaired: false };

    /// Path 0: 800 ms and a quarter of it in variation, so that D is 1 s while it has data outstanding. Path 1: 20 ms.
    fn paths() -> [SubflowView; 2] {
        let mut paths = [subflow(0, 800), subflow(1, 20)];
        paths[0].in_flight = 5_000;
        paths
    }

    #[test]
    fn above_the_upper_threshold_nothing_is_duplicated_and_below_the_lower_always() {
        let mut scheduler = scheduler();
        for (ms, expected) in [(2_001, None), (499, Some(1)), (0, Some(1))] {
            assert_eq!(duplicate(&mut *scheduler, &left(ms), &paths()), expected, "{ms} ms left");
            assert_eq!(duplicates_first(&mut *scheduler, &left(ms), &paths()), expected.is_some(), "{ms} ms left");
        }
        // Below the lower one even if what is outstanding would come in time: D = 20 + 5 ms.
        let mut quick = [subflow(0, 20), subflow(1, 30)];
        quick[0].in_flight = 1_000;
        assert_eq!(duplicate(&mut *scheduler, &left(499), &quick), Some(1));
        assert_eq!(duplicate(&mut *scheduler, &left(500), &quick), None);
    }

    #[test]
    fn between_the_thresholds_it_is_the_expected_delivery_that_decides() {
        let mut scheduler = scheduler();
        // D = 800 + 200 ms.
        for (ms, expected) in [(999, Some(1)), (1_000, None), (2_000, None), (500, Some(1))] {
            assert_eq!(duplicate(&mut *scheduler, &left(ms), &paths()), expected, "{ms} ms left");
        }
        // The slow path has nothing outstanding, the fast one has: D = 25 ms.
        let mut paths = paths();
        (paths[0].in_flight, paths[1].in_flight) = (0, 1_000);
        assert_eq!(duplicate(&mut *scheduler, &left(999), &paths), None);
    }

    #[test]
    fn a_duplicate_goes_to_the_fastest_other_subflow_with_room() {
        let mut scheduler = scheduler();
        let mut paths = [subflow(0, 10), subflow(1, 40), subflow(2, 20)];
        assert_eq!(duplicate(&mut *scheduler, &left(0), &paths), Some(2));
        paths[2].in_flight = 10_000;
        assert_eq!(duplicate(&mut *scheduler, &left(0), &paths), Some(1));
        paths[1].suspended = true;
        assert_eq!(duplicate(&mut *scheduler, &left(0), &paths), None);
    }

    #[test]
    fn without_a_play_out_time_it_is_lowest_rtt() {
        let mut scheduler = scheduler();
        let mut plain = build(TABLE, "lowest_rtt", &Settings::new()).expect("the defaults");
        let mut paths = paths();
        let hole = Hole { data_seq: 0, length: 1000, culprit: SubflowId(0) };
        for _ in 0..3 {
            assert!(!duplicates_first(&mut *scheduler, &connection(0), &paths));
            assert_eq!(duplicate(&mut *scheduler, &connection(0), &paths), None);
            for chunk in [new_data(), reinjection_from(1)] {
                let both = [&mut scheduler, &mut plain].map(|one| one.schedule(&connection(0), &chunk, &paths));
                assert_eq!(both[0], both[1]);
            }
            let both = [&mut scheduler, &mut plain].map(|one| one.on_window_blocked(&connection(0), &hole, &paths));
            assert_eq!(both[0], both[1]);
            paths[1].in_flight += 5_000;
        }
        assert_eq!(scheduler.schedule(&left(0), &new_data(), &paths), send(0));
    }

    #[test]
    fn the_thresholds_must_be_in_order() {
        let settings = |t1: u64, t2: u64| Settings::new().with("t1", t1).with("t2", t2);
        assert!(build(TABLE, "deadline_reinjection", &settings(300, 300)).is_ok());
        assert!(build(TABLE, "deadline_reinjection", &settings(301, 300)).is_err());
        assert!(build(TABLE, "deadline_reinjection", &Settings::new().with("t1", 3_000)).is_ok());
    }

    #[test]
    fn a_lower_threshold_above_the_upper_ones_default_is_the_upper_one_too() {
        let mut scheduler = build(TABLE, "deadline_reinjection", &Settings::new().with("t1", 3_000)).unwrap();
        // D = 4000 + 1000 ms.
        let mut paths = [subflow(0, 4_000), subflow(1, 20)];
        paths[0].in_flight = 5_000;
        let duplicates = [2_999, 3_000, 3_001].map(|ms| duplicate(&mut *scheduler, &left(ms), &paths));
        assert_eq!(duplicates, [Some(1), Some(1), None]);
    }

    #[test]
    fn it_looks_at_what_is_outstanding() {
        assert_eq!(scheduler().needs(), Needs { outstanding: true, ..Needs::default() });
    }
}
