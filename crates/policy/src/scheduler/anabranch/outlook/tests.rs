//! Caching between decisions does not change any of them.

use super::{Load, Outlook};
use crate::ids::SubflowId;
use crate::scheduler::anabranch::Anabranch;
use crate::scheduler::tests::{at, connection, subflow};
use crate::scheduler::{Chunk, ChunkKind, Scheduler};
use crate::time::Duration;
use crate::view::{ConnectionView, Phase, SubflowView};
use proptest::prelude::*;

/// An event before a decision.
#[derive(Clone, Debug)]
enum Step {
    /// In flight, queued, window, microseconds of the latest round trip of one of the subflows.
    Change(usize, u64, u64, u64, u64),
    /// One becomes stale, or is no longer.
    Stale(usize),
    Backup(usize),
    Suspend(usize),
    Remove(usize),
    Add,
    Nothing,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..8_usize, 0..40_000_u64, 0..5_000_u64, 1_000..50_000_u64, 5_000..90_000_u64)
            .prop_map(|(at, in_flight, queued, cwnd, rtt)| Step::Change(at, in_flight, queued, cwnd, rtt)),
        1 => (0..8_usize).prop_map(Step::Stale),
        1 => (0..8_usize).prop_map(Step::Backup),
        1 => (0..8_usize).prop_map(Step::Suspend),
        1 => (0..8_usize).prop_map(Step::Remove),
        1 => Just(Step::Add),
        2 => Just(Step::Nothing),
    ]
}

/// As the engine counts changes: a new number for each view that differs from the previous one.
fn take(step: &Step, views: &mut Vec<SubflowView>, changes: u64) {
    match step {
        Step::Remove(at) if !views.is_empty() => drop(views.remove(at % views.len())),
        Step::Add => {
            let id = views.last().map_or(0, |last| last.id.0 + 1);
            views.push(subflow(id, 10 + u64::from(id) * 7));
        }
        Step::Nothing | Step::Remove(_) => return,
        Step::Change(at, ..) | Step::Stale(at) | Step::Backup(at) | Step::Suspend(at) => {
            let at = at % views.len().max(1);
            if let Some(view) = views.get_mut(at) {
                view.counters.changes = changes;
                change(step, view);
            }
            return;
        }
    }
    views.iter_mut().for_each(|view| view.counters.changes = changes);
}

fn change(step: &Step, view: &mut SubflowView) {
    match step {
        Step::Change(_, in_flight, queued, cwnd, rtt) => {
            (view.in_flight, view.queued, view.cwnd) = (*in_flight, *queued, *cwnd);
            view.latest_rtt = Duration::from_micros(*rtt);
            view.smoothed_rtt = (view.smoothed_rtt * 7 + view.latest_rtt) / 8;
            view.phase = if rtt % 3 == 0 { Phase::SlowStart } else { Phase::CongestionAvoidance };
        }
        Step::Stale(_) => view.stale ^= true,
        Step::Backup(_) => view.backup ^= true,
        Step::Suspend(_) => view.suspended ^= true,
        Step::Remove(_) | Step::Add | Step::Nothing => {}
    }
}

proptest! {
    #[test]
    fn decisions_are_those_of_one_who_keeps_nothing(
        steps in prop::collection::vec((step(), 0..4_u64, any::<bool>(), 0..8_u32, 1..3_u32), 1..80),
    ) {
        let (mut keeping, mut forgetting) = (Anabranch::default(), Anabranch::default());
        let mut views: Vec<SubflowView> = (0..4).map(|id| subflow(id, 10 + u64::from(id) * 7)).collect();
        views.iter_mut().for_each(|view| view.counters.changes = 1);
        let mut now = 0;
        for (number, (step, later, backlogged, avoided, size)) in steps.into_iter().enumerate() {
            take(&step, &mut views, number as u64 + 2);
            now += later;
            let reinjected = avoided < 2;
            let chunk = Chunk {
                data_seq: 0,
                length: size * 500,
                kind: if reinjected { ChunkKind::Reinjection } else { ChunkKind::New },
                last_sent_on: reinjected.then_some(SubflowId(avoided)),
                time_left: None,
            };
            let connection = ConnectionView { backlogged, window: 60_000, now: at(now), ..connection(0) };
            let mut unknown = views.clone();
            unknown.iter_mut().for_each(|view| view.counters.changes = 0);
            prop_assert_eq!(
                keeping.schedule(&connection, &chunk, &views),
                forgetting.schedule(&connection, &chunk, &unknown)
            );
        }
    }
}

#[test]
fn a_subflow_in_the_place_of_another_is_another_choice() {
    let mut outlook = Outlook::default();
    let mut look = |second: u32| {
        let mut views = [subflow(0, 10), subflow(second, 20)];
        views[0].counters.changes = 7;
        outlook.look(&views, LOAD, None, None);
        (outlook.among(), outlook.eligible().map(|path| path.id.0).collect::<Vec<_>>())
    };
    let (first, second) = (look(1), look(2));
    assert_eq!((&first.1[..], &second.1[..]), (&[0, 1][..], &[0, 2][..]));
    assert_ne!(first.0, second.0);
}

const LOAD: Load = Load { length: 1_000, live: true };

#[test]
fn one_that_is_excluded_is_no_choice_and_is_again_when_another_is() {
    let mut outlook = Outlook::default();
    let mut views = [subflow(0, 10), subflow(1, 20)];
    views.iter_mut().for_each(|view| view.counters.changes = 7);
    let mut eligible = |excluded: Option<u32>| {
        outlook.look(&views, LOAD, excluded.map(SubflowId), None);
        outlook.eligible().map(|path| path.id.0).collect::<Vec<_>>()
    };
    assert_eq!([None, Some(0), Some(1), None].map(&mut eligible), [vec![0, 1], vec![1], vec![0], vec![0, 1]]);
}

#[test]
fn data_fits_as_long_as_one_that_may_be_chosen_has_room() {
    let mut outlook = Outlook::default();
    let mut fits = |in_flight: [u64; 2]| {
        let mut views = [subflow(0, 10), subflow(1, 20)];
        (views[0].in_flight, views[1].in_flight) = (in_flight[0], in_flight[1]);
        outlook.look(&views, LOAD, None, None)
    };
    // Of windows of 10,000 bytes.
    assert_eq!([[0, 0], [9_001, 0], [9_001, 9_001]].map(&mut fits), [true, true, false]);
    assert_eq!([[9_000, 9_001], [9_001, 9_000], [9_001, 9_001]].map(&mut fits), [true, true, false]);
}
