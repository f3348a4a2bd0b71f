//! Tests of acknowledgements in states that they set up.

use super::*;
use crate::event::SendKind;
use crate::stamp_clock::StampClock;
use crate::subflow::delivery::{Departure, LossReport};
use crate::subflow::negotiated::Notification;
use crate::subflow::tests::{Fixed, subflow};
use anabranch_wire::MptcpOption;
use anabranch_wire::mptcp::Dss;
use anabranch_wire::tcp::Timestamps;
use bytes::Bytes;

#[test]
fn each_segment_that_is_delivered_takes_a_hundredth_off_the_loss_rate() {
    let left = |delivered: u64| {
        let mut subflow = subflow();
        subflow.rates.loss_rate = 0.5;
        let (config, acked) = (TcpConfig::default(), Acknowledged { delivered, ..Acknowledged::default() });
        let mut cx = Context {
            now: Instant::ZERO,
            config: &config,
            congestion: &mut Fixed::default(),
            clock: StampClock::default(),
        };
        subflow.grow(&mut cx, &acked, Flight { before: 0, newly_lost: 0, rtt: None, holds: false });
        subflow.rates.loss_rate
    };
    // Segments of 1,000 bytes; a hundred and more leave nothing of it.
    assert!((left(2_000) - 0.49).abs() < 1e-9, "{}", left(2_000));
    assert!((left(2_500) - 0.487_5).abs() < 1e-9, "{}", left(2_500));
    assert!(left(300_000).abs() < 1e-9);
}

#[test]
fn an_acknowledgement_that_delivers_nothing_is_none_for_congestion_control() {
    let (mut subflow, config, mut congestion) = (subflow(), TcpConfig::default(), Fixed::default());
    let mut cx =
        Context { now: Instant::ZERO, config: &config, congestion: &mut congestion, clock: StampClock::default() };
    subflow.handle_news(&mut cx, &Segment { ack: subflow.send.una, ..Segment::default() });
    assert_eq!(congestion.acks, 0);
}

#[test]
fn congestion_control_hears_of_each_segment_that_was_marked_lost_once() {
    let (mut subflow, config, mut congestion) = (subflow(), TcpConfig::default(), Fixed::default());
    subflow.scoreboard.losses = LossReport::new(true);
    for total in [1_000, 2_000] {
        subflow.scoreboard.losses.note(1_000, &Departure::default(), total);
    }
    let mut cx =
        Context { now: Instant::ZERO, config: &config, congestion: &mut congestion, clock: StampClock::default() };
    subflow.report_losses(&mut cx);
    subflow.report_losses(&mut cx);
    assert_eq!(congestion.lost, 2_000);
}

/// Without SACK: duplicate acknowledgements counted, and bytes delivered, after an acknowledgement of so many bytes
/// or, of none, a duplicate.
fn counted(phase: Phase, before: u16, cumulative: u64) -> (u16, u64) {
    let mut subflow = subflow();
    for number in 0..4 {
        subflow.push(number * 1_000, Bytes::from(vec![0; 1_000]), SendKind::New);
        assert!(subflow.scoreboard.send_next(Instant::ZERO).is_some());
    }
    (subflow.recovery.phase, subflow.recovery.duplicate_acks) = (phase, before);
    let mut acked = Acknowledged { cumulative, delivered: cumulative, ..Acknowledged::default() };
    subflow.count_duplicate(&Segment::default(), cumulative > 0, &mut acked);
    (subflow.recovery.duplicate_acks, acked.delivered)
}

fn fast() -> Phase {
    Phase::Fast { end: SeqNumber(10_000), partial_acks: 0, prr: Box::new(Prr::new(10_000, 5_000, 1_000)) }
}

#[test]
fn each_duplicate_acknowledgement_says_that_a_segment_was_delivered_and_no_more_of_them_than_are_behind_the_hole() {
    assert_eq!(counted(Phase::Open, 0, 0), (1, 1_000));
    assert_eq!(counted(fast(), 2, 0), (3, 1_000));
    assert_eq!(counted(fast(), 3, 0), (3, 0), "four segments: three are behind the hole");
    assert_eq!(counted(Phase::Timeout { end: SeqNumber(10_000) }, 1, 0), (1, 0), "RFC 6582, section 4");
}

#[test]
fn an_acknowledgement_takes_back_what_duplicates_have_counted_and_outside_of_a_recovery_all_of_them() {
    // RFC 5681, section 3.2: the segment of the hole itself was announced by no duplicate.
    assert_eq!(counted(fast(), 3, 3_000), (1, 1_000));
    assert_eq!(counted(fast(), 1, 3_000), (0, 2_000));
    assert_eq!(counted(fast(), 3, 500), (3, 500), "less than a segment is the hole's");
    assert_eq!(counted(Phase::Timeout { end: SeqNumber(10_000) }, 3, 2_000), (2, 1_000));
    assert_eq!(counted(Phase::Open, 2, 1_000), (0, 1_000));
    assert_eq!(counted(Phase::Open, 2, 2_000), (0, 1_000));
}

#[test]
fn a_duplicate_has_nothing_in_it_and_the_same_window_unless_that_belongs_to_the_connection() {
    let is_duplicate = |change: fn(&mut Segment), outstanding: bool| {
        let mut subflow = subflow();
        if outstanding {
            subflow.push(0, Bytes::from_static(b"data"), SendKind::New);
            assert!(subflow.scoreboard.send_next(Instant::ZERO).is_some());
        }
        subflow.window.last = 500;
        let mut segment = Segment { window: 500, flags: Flags::ACK, ..Segment::default() };
        change(&mut segment);
        subflow.is_duplicate(&segment)
    };
    assert!(is_duplicate(|_| {}, true));
    assert!(!is_duplicate(|_| {}, false), "of nothing");
    assert!(!is_duplicate(|segment| segment.payload = Bytes::from_static(b"data"), true));
    assert!(!is_duplicate(|segment| segment.flags = Flags::ACK | Flags::FIN, true));
    assert!(!is_duplicate(|segment| segment.window = 501, true), "a window update");
    let connection = |segment: &mut Segment| (segment.window, segment.options.dss) = (501, Some(Dss::default()));
    assert!(is_duplicate(connection, true), "RFC 8684, section 3.3.5");
    let option = |segment: &mut Segment| segment.options.mptcp.push(MptcpOption::Priority { backup: true });
    assert!(!is_duplicate(option, true), "RFC 8684, section 3.4.1");
}

#[test]
fn after_a_second_timeout_an_echo_from_before_the_first_measures_no_round_trip() {
    let may_echo = |timeouts_in_row: u32, echo: u32| {
        let mut subflow = subflow();
        subflow.liveness.timeouts_in_row = timeouts_in_row;
        subflow.recovery.undo = Some(Box::new(Undo { first_stamp: Some(100), ..Undo::new(SeqNumber(0)) }));
        let mut segment = Segment::default();
        segment.options.timestamps = Some(Timestamps { value: 7, echo });
        subflow.may_echo_an_outage(&segment)
    };
    assert!(may_echo(2, 99));
    assert!(!may_echo(2, 100), "it is of the retransmission");
    assert!(!may_echo(1, 99));
}

#[test]
fn a_round_trip_is_that_of_a_segment_sent_once_or_else_since_the_stamp_that_is_echoed() {
    let sample = |own: Option<Duration>, echo: Option<u32>, counts: bool, agreed: bool| {
        let (mut subflow, config) = (subflow(), TcpConfig::default());
        subflow.negotiated.timestamps = agreed;
        let mut segment = Segment::default();
        segment.options.timestamps = echo.map(|echo| Timestamps { value: 7, echo });
        let acked = Acknowledged { rtt: own, ..Acknowledged::default() };
        let cx = Context {
            now: Instant::ZERO,
            config: &config,
            congestion: &mut Fixed::default(),
            clock: StampClock { offset: 100, drift: 0 },
        };
        let rtt = subflow.sample_rtt(&cx, &segment, &acked, counts);
        assert_eq!(subflow.rtt.smoothed(), rtt.unwrap_or_default());
        rtt.map(|rtt| rtt.as_millis())
    };
    assert_eq!(sample(Some(Duration::from_millis(9)), Some(60), true, true), Some(9));
    assert_eq!(sample(None, Some(60), true, true), Some(40));
    assert_eq!(sample(None, Some(100), true, true), Some(1), "of less than the clock's step");
    assert_eq!(sample(None, Some(0), true, true), None, "it echoes nothing");
    assert_eq!(sample(None, Some(101), true, true), None, "it is from the future");
    assert_eq!(sample(None, Some(100_u32.wrapping_sub(1 << 31)), true, true), None, "from neither side of now");
    assert_eq!(sample(None, None, true, true), None);
    assert_eq!(sample(None, Some(60), false, true), None);
    assert_eq!(sample(None, Some(60), true, false), None);
}

#[test]
fn the_window_is_held_by_a_recovery_and_by_the_echo_of_a_mark_where_marks_were_agreed_on() {
    // RFC 3168, section 6.1.2.
    let holds = |ecn: Notification, flags: Flags, recovering: bool| {
        let (mut subflow, config, mut congestion) = (subflow(), TcpConfig::default(), Fixed::default());
        subflow.negotiated.ecn = ecn;
        for number in 0..4 {
            subflow.push(number * 1_000, Bytes::from(vec![0; 1_000]), SendKind::New);
            assert!(subflow.scoreboard.send_next(Instant::ZERO).is_some());
        }
        if recovering {
            subflow.recovery.phase = fast();
        }
        let ack = subflow.scoreboard.sent().next().unwrap().end();
        let mut cx =
            Context { now: Instant::ZERO, config: &config, congestion: &mut congestion, clock: StampClock::default() };
        subflow.handle_news(&mut cx, &Segment { ack, flags, ..Segment::default() });
        congestion.held
    };
    let echo = Flags::ACK | Flags::ECE;
    assert!(!holds(Notification::On, Flags::ACK, false));
    assert!(holds(Notification::On, echo, false));
    assert!(!holds(Notification::Off, echo, false) && !holds(Notification::EchoOnly, echo, false));
    assert!(holds(Notification::Off, Flags::ACK, true));
}

#[test]
fn each_segment_that_is_lost_adds_a_hundredth_of_what_is_left_to_the_loss_rate() {
    let rate = |lost: u64| {
        let mut subflow = subflow();
        subflow.rates.loss_rate = 0.5;
        assert_eq!(subflow.count_loss(|_| lost), lost);
        subflow.rates.loss_rate
    };
    // Segments of 1,000 bytes.
    assert!((rate(2_000) - 0.51).abs() < 1e-9 && (rate(0) - 0.5).abs() < 1e-9);
    assert!((rate(500_000) - 1.0).abs() < 1e-9);
    let counted = |lost: u64| {
        let mut subflow = subflow();
        subflow.count_lost_segments(lost);
        subflow.counters.segments_lost
    };
    assert_eq!((counted(0), counted(1), counted(1_000), counted(1_001)), (0, 1, 1, 2));
}

#[test]
fn an_acknowledgement_is_no_news_where_nothing_is_outstanding_repaired_searched_or_marked() {
    use crate::subflow::path_mtu_search::PathMtu;
    use anabranch_wire::tcp::SackBlock;
    let is_no_news = |change: fn(&mut Subflow, &mut Segment)| {
        let mut subflow = subflow();
        let mut segment = Segment { ack: subflow.send.una, flags: Flags::ACK, ..Segment::default() };
        change(&mut subflow, &mut segment);
        subflow.is_no_news(&segment)
    };
    assert!(is_no_news(|_, _| {}));
    assert!(!is_no_news(|_, segment| segment.ack += 1));
    assert!(!is_no_news(|subflow, _| subflow.push(0, Bytes::from_static(b"data"), SendKind::New)));
    let sack = |_: &mut Subflow, segment: &mut Segment| {
        segment.options.sack.push(SackBlock { start: SeqNumber(5), end: SeqNumber(9) });
    };
    assert!(!is_no_news(sack));
    assert!(!is_no_news(|subflow, _| subflow.recovery.duplicate_acks = 1));
    assert!(!is_no_news(|subflow, _| subflow.negotiated.ecn = Notification::On));
    assert!(is_no_news(|subflow, _| subflow.negotiated.ecn = Notification::EchoOnly));
    let (largest, low, rest_until) = (1_400, 1_000, Instant::ZERO);
    let path = PathMtu { largest, overhead: 40, low, high: 1_401, failures: 0, probe: None, rest_until };
    let mut narrow = subflow();
    narrow.path_mtu = Some(Box::new(path));
    assert!(!narrow.is_no_news(&Segment { ack: narrow.send.una, ..Segment::default() }));
}
