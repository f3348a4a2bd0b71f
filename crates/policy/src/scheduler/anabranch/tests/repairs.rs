//! What is duplicated, and what is reinjected before new data.

use super::*;

/// The subflow that duplicates a segment that the path of 50 ms has had for `waited` milliseconds, with this many
/// outstanding.
fn duplicated(waited: u64, outstanding: u64, paths: &[SubflowView]) -> Option<u32> {
    let mut view = connection(1_000);
    (view.data_nxt, view.unsent) = (outstanding * 1_000, 0);
    let held = Outstanding {
        data_seq: 0,
        length: 1_000,
        sender: SubflowId(0),
        sent_at: at(1_000 - waited),
        lost: false,
        unrepaired: false,
    };
    Anabranch::default().duplicate(&view, &held, Before::Nothing, paths).map(|id| id.0)
}

#[test]
fn data_that_arrives_earlier_on_another_subflow_or_is_overdue_is_duplicated() {
    let paths = [subflow(0, 50), subflow(1, 20)];
    // The other answers after 22 ms, the sender is expected to after 50, and a copy has to be 10 ms earlier.
    assert_eq!(duplicated(17, 100, &paths), Some(1));
    assert_eq!(duplicated(19, 100, &paths), None);
    // It is overdue four variations, 50 ms, after that.
    assert_eq!(duplicated(100, 100, &paths), None);
    assert_eq!(duplicated(101, 100, &paths), Some(1));
    // Not on a path that is stale or has no room.
    let mut other = paths.clone();
    other[1].stale = true;
    assert_eq!(duplicated(101, 100, &other), None);
    let mut other = paths;
    other[1].in_flight = 10_000;
    assert_eq!(duplicated(101, 100, &other), None);
}

#[test]
fn what_was_lost_or_shuts_the_window_is_duplicated_where_it_arrives_earlier_at_all() {
    let paths = [subflow(0, 50), subflow(1, 40)];
    let copied = |lost: bool, unsent: u64| {
        let view = ConnectionView { data_nxt: 100_000, unsent, ..connection(1_000) };
        let held = Outstanding {
            data_seq: 0,
            length: 1_000,
            sender: SubflowId(0),
            sent_at: at(1_000),
            lost,
            unrepaired: false,
        };
        Anabranch::default().duplicate(&view, &held, Before::Nothing, &paths).is_some()
    };
    assert_eq!([copied(true, 0), copied(false, 1_000), copied(false, 0)], [true, true, false]);
}

#[test]
fn the_tail_is_duplicated_where_its_path_loses() {
    let mut paths = [subflow(0, 50), subflow(1, 100)];
    assert_eq!(duplicated(0, TAIL, &paths), None);
    paths[0].loss_rate = LOSSY * 1.01;
    // 110 ms are less than 3 x 50.
    assert_eq!(duplicated(0, TAIL, &paths), Some(1));
    assert_eq!(duplicated(0, TAIL + 1, &paths), None);
    paths[1] = subflow(1, 150); // 165 ms
    assert_eq!(duplicated(0, TAIL, &paths), None);
}

#[test]
fn what_is_overdue_comes_before_new_data_after_a_round_trip_of_the_quickest_and_a_late_acknowledgement() {
    let mut paths = [subflow(0, 50), subflow(1, 20)];
    (paths[0].rtt_variation, paths[1].rtt_variation) = (Duration::from_millis(10), Duration::from_millis(5));
    // Nothing has been acknowledged for long, and nothing new was sent: that is what the connection waits for.
    let view = connection(1_000);
    // 20 and 50 ms.
    for (progress, in_flight, first) in [(930, 2_000, false), (929, 2_000, true), (929, 1_000, false)] {
        (paths[0].last_progress, paths[0].in_flight) = (at(progress), in_flight);
        assert_eq!(fresh(&view).duplicates_first(&view, &paths), first, "{progress} {in_flight}");
    }
    // Its round trips vary by more than that.
    (paths[0].in_flight, paths[0].rtt_variation) = (2_000, Duration::from_millis(18));
    assert!(!fresh(&view).duplicates_first(&view, &paths));
    // Data of a stale path was already reinjected.
    (paths[0].last_progress, paths[0].stale) = (at(1), true);
    assert!(!fresh(&view).duplicates_first(&view, &paths));
}

#[test]
fn a_byte_that_all_waits_for_is_repaired_where_that_takes_half_of_the_time_even_if_the_application_is_ahead() {
    let mut paths = [subflow(0, 3_000), subflow(1, 60)];
    (paths[0].in_flight, paths[0].last_progress) = (300_000, at(9_999));
    let view = ConnectionView { data_nxt: 6_000_000, unsent: 50_000, backlogged: true, ..connection(10_000) };
    let held = |millis: u64, data_seq, lost| Outstanding {
        data_seq,
        length: 1_000,
        sender: SubflowId(0),
        sent_at: at(10_000 - millis),
        lost,
        unrepaired: false,
    };
    let stuck_for = |millis: u64| Anabranch { head: (0, at(10_000 - millis)), ..Anabranch::default() };
    assert!(!stuck_for(50).duplicates_first(&view, &paths) && stuck_for(51).duplicates_first(&view, &paths));
    let copies = |held| stuck_for(51).duplicate(&view, &held, Before::NewData, &paths).is_some();
    // The other answers after 60 and 6 ms: twice that before the three seconds are over.
    assert_eq!([2_867, 2_869].map(|millis| copies(held(millis, 0, false))), [true, false]);
    // So is all lost data, but nothing else.
    assert!(copies(held(9, 5_000, true)) && !copies(held(9, 5_000, false)));
    assert_eq!(stuck_for(50).duplicate(&view, &held(9, 0, true), Before::NewData, &paths), None);
    // What waits for the sender's window has its whole round trip before it.
    let waits = Outstanding { unrepaired: true, ..held(2_990, 5_000, true) };
    assert!(copies(waits) && !copies(Outstanding { unrepaired: false, ..waits }));
    // Behind a queue of two seconds: not in half the time, but a second earlier.
    paths[1] = subflow(1, 2_000);
    for (millis, copied) in [(540, Some(SubflowId(1))), (560, None)] {
        let held = held(millis, 0, true);
        assert_eq!(stuck_for(51).duplicate(&view, &held, Before::NewData, &paths), copied, "{millis} ms");
    }
    // Like paths repair their own losses.
    paths = [subflow(0, 100), subflow(1, 60)];
    assert_eq!(stuck_for(51).duplicate(&view, &held(0, 0, true), Before::NewData, &paths), None);
}

#[test]
fn what_a_slower_path_lost_goes_before_new_data_unless_the_application_is_ahead() {
    let mut paths = [subflow(0, 200), subflow(1, 50)];
    let mut view = ConnectionView { backlogged: false, ..connection(1_000) };
    let mut scheduler = fresh(&view);
    assert!(!scheduler.duplicates_first(&view, &paths));
    paths[0].phase = Phase::FastRecovery;
    assert!(scheduler.duplicates_first(&view, &paths));
    // Just retransmitted, it would be answered there after 200 ms, here after 55.
    (view.data_nxt, view.unsent) = (100_000, 50_000);
    let held = Outstanding {
        data_seq: 0,
        length: 1_000,
        sender: SubflowId(0),
        sent_at: at(1_000),
        lost: true,
        unrepaired: false,
    };
    let mut copied = |held: &Outstanding| scheduler.duplicate(&view, held, Before::NewData, &paths);
    assert_eq!(copied(&held), Some(SubflowId(1)));
    // Data that is not lost waits until nothing new can be sent, and the faster path repairs its own losses.
    let only_sent = Outstanding { lost: false, ..held };
    assert_eq!(copied(&only_sent), None);
    assert_eq!(copied(&Outstanding { sender: SubflowId(1), ..held }), None);
    view.backlogged = true;
    assert!(!scheduler.duplicates_first(&view, &paths));
}

#[test]
fn reported_losses_are_reinjected_at_once_unless_the_application_is_ahead_of_the_buffer() {
    let mut scheduler = Anabranch::default();
    let [live, ahead] = [false, true].map(|backlogged| ConnectionView { backlogged, ..connection(0) });
    assert!(scheduler.repairs_elsewhere(&live) && !scheduler.repairs_elsewhere(&ahead));
    assert!(!Anabranch { duplicate: false, ..Anabranch::default() }.repairs_elsewhere(&live));
}

#[test]
fn what_could_be_sent_again_in_time_goes_where_it_arrives_first_and_not_where_it_is_answered_first() {
    // The answers of 22 and 110 ms are 11 and 55 on their way back: equal at k / 500 000 = 44 ms, k = 22 000. Without
    // the deadline it is 44 000.
    for (left_ms, unsent, sent) in
        [(110, 21_900, false), (110, 22_100, true), (109, 43_900, false), (109, 44_100, true)]
    {
        let mut view = connection(0);
        (view.unsent, view.backlogged) = (unsent, false);
        let chunk = Chunk { time_left: Some(Duration::from_millis(left_ms)), ..new_data() };
        let decision = if sent { Decision::Send(SubflowId(1)) } else { Decision::Wait(None) };
        let paths = fast_and_slow(10_000, 0);
        assert_eq!(Anabranch::default().schedule(&view, &chunk, &paths), decision, "{left_ms} {unsent}");
    }
}

/// A segment that the second path has just sent.
fn just_sent() -> Outstanding {
    Outstanding { data_seq: 0, length: 1_000, sender: SubflowId(1), sent_at: at(1_000), lost: false, unrepaired: false }
}

/// Whether a lossy path of 200 ms duplicates a segment that it has just sent and that has this much time left.
fn is_duplicated_with(
    time_left: u64,
    paths: &[SubflowView],
    change: impl Fn(&mut ConnectionView, &mut Outstanding),
) -> bool {
    let mut view = ConnectionView { backlogged: false, ..connection(1_000) };
    let mut held = just_sent();
    change(&mut view, &mut held);
    Anabranch::default().duplicates_recent(&view, &held, Duration::from_millis(time_left), paths)
}

#[test]
fn what_could_not_be_repaired_in_time_is_duplicated() {
    let as_it_is = |_: &mut ConnectionView, _: &mut Outstanding| ();
    let mut paths = [subflow(0, 50), subflow(1, 200)];
    paths[1].loss_rate = LOSSY * 1.01;
    // The loss is known after 250 ms, and the quick path brings it in the time that the deadline has in it.
    assert_eq!([249, 250].map(|left| is_duplicated_with(left, &paths, as_it_is)), [true, false]);
    // If that is stale the slow one takes 75 ms more.
    paths[0].stale = true;
    assert_eq!([324, 325].map(|left| is_duplicated_with(left, &paths, as_it_is)), [true, false]);
    // It was sent a while ago, is already retransmitted, or the application is ahead of the buffer.
    assert!(is_duplicated_with(9, &paths, |_, held| held.sent_at = at(901)));
    assert!(!is_duplicated_with(9, &paths, |_, held| held.sent_at = at(900)));
    assert!(!is_duplicated_with(9, &paths, |_, held| held.lost = true));
    assert!(!is_duplicated_with(9, &paths, |view, _| view.backlogged = true));
    // Half of the window stays free.
    for (in_flight, duplicates_recent) in [(4_000, true), (4_001, false)] {
        paths[1].in_flight = in_flight;
        assert_eq!(is_duplicated_with(9, &paths, as_it_is), duplicates_recent, "{in_flight}");
    }
    paths[1].in_flight = 0;
    let but = |change: fn(&mut SubflowView)| {
        let mut paths = paths.clone();
        change(&mut paths[1]);
        is_duplicated_with(9, &paths, as_it_is)
    };
    assert!(
        !but(|path| path.loss_rate = LOSSY) && !but(|path| path.stale = true) && !but(|path| path.suspended = true)
    );
    let mut off = Anabranch { duplicate: false, ..Anabranch::default() };
    let held = just_sent();
    let view = ConnectionView { backlogged: false, ..connection(1_000) };
    assert!(!off.duplicates_recent(&view, &held, Duration::from_millis(9), &paths));
}
