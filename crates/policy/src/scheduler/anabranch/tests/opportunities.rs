//! What `anabranch` answers at an opportunity to send, and what it remembers.

use super::*;
use crate::scheduler::pile::Pile;

#[test]
fn a_plan_holds_for_an_eighth_of_the_shortest_stay_or_until_there_are_other_paths() {
    let mut scheduler = Anabranch::default();
    let mut until = |now_ms: u64, paths: &[SubflowView]| {
        scheduler.schedule(&connection(now_ms), &new_data(), paths);
        scheduler.plan.until.as_nanos()
    };
    let two = fast_and_slow(0, 0);
    // A segment stays for 22 ms on the fast path.
    assert_eq!(until(0, &two), 2_750_000);
    assert_eq!(until(2, &two), 2_750_000);
    assert_eq!(until(3, &two), 5_750_000);
    let [fast, slow] = two;
    assert_eq!(until(4, &[fast, slow, subflow(2, 100)]), 6_750_000);
}

#[test]
fn what_is_sent_again_is_not_what_the_next_segment_follows() {
    let mut scheduler = Anabranch::default();
    let mut last = |chunk: &Chunk, paths: &[SubflowView]| {
        scheduler.schedule(&connection(0), chunk, paths);
        scheduler.last
    };
    let paths = fast_and_slow(0, 0);
    assert_eq!(last(&new_data(), &paths), Some(SubflowId(0)));
    let again = Chunk { kind: ChunkKind::Reinjection, last_sent_on: Some(SubflowId(0)), ..new_data() };
    assert_eq!(last(&again, &paths), Some(SubflowId(0)));
}

#[test]
fn the_head_of_the_stream_is_timed_from_when_it_became_that() {
    let mut scheduler = Anabranch::default();
    let mut head = |now_ms: u64, data_una: u64| {
        let view = ConnectionView { data_una, ..connection(now_ms) };
        scheduler.next(&view, &mut Pile::default(), &fast_and_slow(0, 0));
        scheduler.head
    };
    assert_eq!(head(100, 5_000), (5_000, at(100)));
    assert_eq!(head(200, 5_000), (5_000, at(100)));
    assert_eq!(head(300, 6_000), (6_000, at(300)));
}

#[test]
fn only_what_the_peer_reports_missing_is_repaired_and_not_where_the_application_is_ahead() {
    let repaired = |missing: bool, backlogged: bool| {
        let mut pile = Pile { missing, ..Pile::default() };
        let view = ConnectionView { backlogged, ..connection(0) };
        Anabranch::default().next(&view, &mut pile, &fast_and_slow(0, 0));
        pile.repaired
    };
    assert_eq!([repaired(true, false), repaired(true, true), repaired(false, false)], [true, false, false]);
}

/// Overdue data of the slow path.
fn overdue() -> Outstanding {
    Outstanding {
        data_seq: 0,
        length: 1_000,
        sender: SubflowId(1),
        sent_at: Instant::ZERO,
        lost: false,
        unrepaired: false,
    }
}

// RFC 8684, section 3.3.8: "only if there are no regular subflows available".
#[test]
fn a_backup_duplicates_overdue_data_only_of_a_stale_subflow_or_of_another_backup() {
    let answer = |change: &dyn Fn(&mut [SubflowView; 2])| {
        let mut pile = Pile { outstanding: vec![overdue()], ..Pile::default() };
        let view = ConnectionView { data_nxt: 100_000, ..connection(1_000) };
        let mut paths = fast_and_slow(0, 0);
        paths.iter_mut().for_each(|path| path.last_progress = at(1_000));
        paths[0].backup = true;
        change(&mut paths);
        fresh(&view).next(&view, &mut pile, &paths)
    };
    assert_eq!(answer(&|_| {}), Answer::Wait);
    for change in
        [|paths: &mut [SubflowView; 2]| paths[1].stale = true, |paths: &mut [SubflowView; 2]| paths[1].backup = true]
    {
        assert_eq!(answer(&change), Answer::Copy(overdue(), SubflowId(0)));
    }
}

#[test]
fn overdue_data_is_duplicated_where_nothing_new_can_be_sent_and_it_may_be() {
    let answer = |duplicate: bool, unsent: Option<Chunk>, fast: u64| {
        let mut pile = Pile { unsent, outstanding: vec![overdue()], ..Pile::default() };
        let view = ConnectionView { data_nxt: 100_000, ..connection(1_000) };
        let mut scheduler = Anabranch { duplicate, ..fresh(&view) };
        let mut paths = fast_and_slow(fast, 0);
        paths.iter_mut().for_each(|path| path.last_progress = at(1_000));
        scheduler.next(&view, &mut pile, &paths)
    };
    assert_eq!(answer(true, None, 0), Answer::Copy(overdue(), SubflowId(0)));
    assert_eq!(answer(false, None, 0), Answer::Wait);
    // New data goes first, since no path is silent and the stream does not stand still.
    assert_eq!(answer(true, Some(new_data()), 0), Answer::New(SubflowId(0)));
}

#[test]
fn a_stream_that_stands_still_is_repaired_by_another_subflow_if_there_is_one_and_it_may() {
    let view = connection(1_000);
    let stuck = |duplicate: bool| Anabranch { duplicate, head: (view.data_una, at(0)), ..Anabranch::default() };
    let paths = fast_and_slow(0, 0);
    assert!(stuck(true).duplicates_first(&view, &paths));
    assert!(!stuck(true).duplicates_first(&view, &paths[..1]));
    assert!(!stuck(false).duplicates_first(&view, &paths));
}

#[test]
fn what_was_planned_is_forgotten_when_nothing_is_left_to_send() {
    let mut scheduler = Anabranch::default();
    let mut has_outlook = |unsent: Option<Chunk>| {
        scheduler.next(&connection(0), &mut Pile { unsent, ..Pile::default() }, &fast_and_slow(0, 0));
        scheduler.outlook.is_some()
    };
    assert!(has_outlook(Some(new_data())));
    assert!(!has_outlook(None));
    // Also where it may not be sent.
    let mut full = Anabranch::default();
    let paths = fast_and_slow(10_000, 40_000);
    full.next(&connection(0), &mut Pile { unsent: Some(new_data()), ..Pile::default() }, &paths);
    assert!(full.outlook.is_some());
}
