use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

const FAST: BfdSettings = BfdSettings { interval: Duration::from_millis(100), multiplier: 3 };

/// Two ends, with a link that takes a millisecond.
struct Pair {
    now: u64,
    ends: [Session; 2],
    /// Whether packets of this end arrive.
    carries: [bool; 2],
    /// Changes by time in milliseconds and end.
    changes: Vec<(u64, usize, Change)>,
    sent: [Vec<(u64, ControlPacket)>; 2],
}

impl Pair {
    fn new(settings: [BfdSettings; 2]) -> Self {
        let [one, other] = settings;
        let ends = [Session::new(at(0), one, 11), Session::new(at(0), other, 22)];
        Self { now: 0, ends, carries: [true; 2], changes: Vec::new(), sent: Default::default() }
    }

    /// Runs to this time, a millisecond at a time.
    fn run(&mut self, until: u64) {
        while self.now < until {
            self.now += 1;
            let now = at(self.now);
            let mut arriving: [Vec<ControlPacket>; 2] = Default::default();
            for (place, end) in self.ends.iter_mut().enumerate() {
                if end.poll_timeout() > now {
                    continue;
                }
                self.changes.extend(end.handle_timeout(now).map(|change| (self.now, place, change)));
                while let Some(packet) = end.poll_transmit(now) {
                    self.sent[place].push((self.now, packet));
                    if self.carries[place] {
                        arriving[1 - place].push(packet);
                    }
                }
            }
            for (place, packets) in arriving.iter().enumerate() {
                for packet in packets {
                    let change = self.ends[place].handle_packet(now, packet);
                    self.changes.extend(change.map(|change| (self.now, place, change)));
                }
            }
        }
    }

    fn states(&self) -> [State; 2] {
        [self.ends[0].state(), self.ends[1].state()]
    }

    /// Intervals between the packets of an end from a time on, in milliseconds.
    fn intervals(&self, end: usize, from: u64) -> Vec<u64> {
        let times: Vec<u64> = self.sent[end].iter().map(|(time, _)| *time).filter(|time| *time >= from).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

#[test]
fn two_ends_come_up_by_the_three_way_handshake_and_speed_up() {
    let mut pair = Pair::new([FAST; 2]);
    pair.run(20);
    assert_eq!(pair.states(), [State::Up; 2]);
    assert!(matches!(pair.changes[..], [(_, _, Change::Up), (_, _, Change::Up)]), "{:?}", pair.changes);
    pair.run(5_000);
    for end in 0..2 {
        let intervals = pair.intervals(end, 1_000);
        // Reduced by 0 to 25 %; a millisecond is the step of the test.
        assert!(intervals.iter().all(|interval| (75..=101).contains(interval)), "{intervals:?}");
        assert!(intervals.iter().any(|interval| *interval < 85) && intervals.iter().any(|interval| *interval > 92));
        let last = pair.sent[end].last().unwrap().1;
        assert!(!last.poll && last.desired_min_tx == 100_000 && last.your_discriminator == [22, 11][end]);
    }
    assert_eq!(pair.changes.len(), 2);
}

#[test]
fn a_poll_sequence_announces_the_interval_and_is_answered_at_once() {
    let mut pair = Pair::new([FAST; 2]);
    pair.run(200);
    let polls = pair.sent[0].iter().filter(|(_, packet)| packet.poll).count();
    let answers = pair.sent[1].iter().filter(|(_, packet)| packet.is_final).count();
    assert!(polls >= 1 && answers == polls, "{polls} {answers}");
    assert!(pair.sent[1].iter().all(|(_, packet)| !(packet.poll && packet.is_final)));
}

#[test]
fn alone_it_sends_once_a_second() {
    let mut session = Session::new(at(0), FAST, 5);
    let mut sent = Vec::new();
    for now in 0..10_000 {
        assert_eq!(session.handle_timeout(at(now)), None);
        sent.extend(session.poll_transmit(at(now)).map(|packet| (now, packet)));
    }
    assert!((10..=14).contains(&sent.len()), "{}", sent.len());
    assert!(sent.iter().all(|(_, packet)| packet.state == State::Down && packet.desired_min_tx == 1_000_000));
}

#[test]
fn a_silent_peer_is_down_after_the_detection_time_and_back_when_it_speaks() {
    let mut pair = Pair::new([FAST; 2]);
    pair.run(1_000);
    pair.carries = [false; 2];
    pair.run(2_000);
    let downs: Vec<u64> = pair.changes[2..].iter().map(|(time, ..)| *time).collect();
    assert!(downs.iter().all(|time| (1_200..=1_301).contains(time)) && downs.len() == 2, "{:?}", pair.changes);
    assert!(pair.changes[2..].iter().all(|(.., change)| *change == Change::Down(Diagnostic::EXPIRED)));
    // Slow again.
    assert!(pair.intervals(0, 1_350).iter().all(|interval| *interval >= 750));
    pair.carries = [true; 2];
    pair.run(3_200);
    assert_eq!(pair.states(), [State::Up; 2]);
}

#[test]
fn who_is_no_longer_heard_learns_it_from_the_other() {
    let mut pair = Pair::new([FAST; 2]);
    pair.run(1_000);
    // Of the first end nothing arrives; it hears the other say that it is down.
    pair.carries[0] = false;
    pair.run(1_400);
    let [(first, 1, Change::Down(Diagnostic::EXPIRED)), (second, 0, why)] = pair.changes[2..] else {
        panic!("{:?}", pair.changes)
    };
    assert!(second <= first + 1 && why == Change::Down(Diagnostic::NEIGHBOR_DOWN));
    // The first one hears "down" and is in Init; the other never hears it.
    pair.run(5_000);
    assert_eq!(pair.states(), [State::Init, State::Down]);
}

#[test]
fn the_slower_of_two_wishes_holds() {
    let slow = BfdSettings { interval: Duration::from_millis(300), multiplier: 5 };
    let mut pair = Pair::new([FAST, slow]);
    pair.run(10_000);
    for end in 0..2 {
        let intervals = pair.intervals(end, 3_000);
        assert!(intervals.iter().all(|interval| (225..=301).contains(interval)), "{intervals:?}");
    }
    assert_eq!(pair.ends[0].detection_time(), Duration::from_millis(1_500));
    assert_eq!(pair.ends[1].detection_time(), Duration::from_millis(900));
}

#[test]
fn a_longer_interval_holds_from_the_packet_on_that_tells_it_unless_the_next_packet_is_due_before() {
    for (due, sent) in [(5_000, 1_300), (1_100, 1_100)] {
        let mut session = Session::new(at(0), FAST, 5);
        (session.state, session.send_at) = (State::Up, at(due));
        let slow = ControlPacket { required_min_rx: 300_000, my_discriminator: 6, ..session.packet() };
        assert_eq!(session.handle_packet(at(1_000), &slow), None);
        assert_eq!(session.send_at, at(sent));
    }
}

#[test]
fn a_peer_that_wants_no_packets_gets_none_and_one_that_leaves_is_down() {
    let mut pair = Pair::new([FAST; 2]);
    pair.run(1_000);
    let [one, other] = &mut pair.ends;
    let mute = ControlPacket { required_min_rx: 0, ..other.packet() };
    assert_eq!(one.handle_packet(at(1_001), &mute), None);
    assert_eq!((one.poll_transmit(at(1_299)), one.send_at), (None, Instant::NEVER));
    let change = one.handle_packet(at(1_300), &other.farewell());
    assert_eq!(change, Some(Change::Down(Diagnostic::NEIGHBOR_DOWN)));
    assert_eq!(one.diagnostic(), Diagnostic::NEIGHBOR_DOWN);
}

#[test]
fn a_restarted_peer_with_another_number_is_taken() {
    let mut pair = Pair::new([FAST; 2]);
    pair.run(1_000);
    pair.ends[1] = Session::new(at(1_000), FAST, 33);
    pair.run(3_000);
    assert_eq!(pair.states(), [State::Up; 2]);
    assert_eq!(pair.sent[0].last().unwrap().1.your_discriminator, 33);
    assert!(pair.changes.iter().any(|(_, end, change)| *end == 0 && matches!(change, Change::Down(_))));
}

#[test]
fn a_session_has_its_number_and_wakes_for_its_packets_an_answer_and_the_detection_time() {
    let mut session = Session::new(at(0), FAST, 5);
    assert_eq!((session.discriminator(), session.poll_timeout()), (5, at(0)));
    let first = session.poll_transmit(at(0)).unwrap();
    assert_eq!(first.my_discriminator, 5);
    // A second, less a quarter at most.
    assert!((at(750)..=at(1_000)).contains(&session.poll_timeout()));
    let from_peer = ControlPacket { my_discriminator: 22, state: State::AdminDown, poll: true, ..first };
    session.handle_packet(at(10), &ControlPacket { desired_min_tx: 100_000, ..from_peer });
    assert_eq!(session.poll_timeout(), Instant::ZERO, "an answer is due");
    assert!(session.poll_transmit(at(10)).unwrap().is_final);
    // Three times 100 ms after the packet.
    assert_eq!(session.poll_timeout(), at(310));
}

#[test]
fn a_poll_sequence_ends_with_the_answer_and_with_no_other_packet() {
    let mut session = Session::new(at(0), FAST, 5);
    let from_peer = ControlPacket { my_discriminator: 22, state: State::Init, ..session.poll_transmit(at(0)).unwrap() };
    assert_eq!(session.handle_packet(at(10), &from_peer), Some(Change::Up));
    assert!(session.poll_transmit(at(10)).unwrap().poll);
    let up = ControlPacket { state: State::Up, ..from_peer };
    let mut polls = |now: u64, is_final| {
        session.handle_packet(at(now), &ControlPacket { is_final, ..up });
        session.poll_transmit(at(now)).unwrap().poll
    };
    assert_eq!([polls(1_100, false), polls(2_200, true), polls(3_300, false)], [true, false, false]);
}

#[test]
fn a_session_is_down_exactly_when_the_detection_time_is_over() {
    let mut session = Session::new(at(0), FAST, 5);
    let from_peer = ControlPacket { state: State::Init, desired_min_tx: 100_000, ..session.packet() };
    assert_eq!(session.handle_packet(at(10), &from_peer), Some(Change::Up));
    // Three times 100 ms.
    assert_eq!(session.handle_timeout(at(309)), None);
    assert_eq!(session.handle_timeout(at(310)), Some(Change::Down(Diagnostic::EXPIRED)));
}

#[test]
fn a_session_that_its_administrator_ends_says_so_and_asks_nothing() {
    let mut session = Session::new(at(0), FAST, 5);
    let from_peer = ControlPacket { state: State::Init, ..session.packet() };
    session.handle_packet(at(10), &from_peer);
    assert!(session.packet().poll);
    let farewell = session.farewell();
    // RFC 5880, section 4.1: 7 is "administratively down".
    assert_eq!((farewell.state, farewell.diagnostic, farewell.poll), (State::AdminDown, Diagnostic(7), false));
}

#[test]
fn where_one_missing_packet_is_enough_intervals_are_a_tenth_to_a_quarter_shorter() {
    let mut session = Session::new(at(0), BfdSettings { multiplier: 1, ..FAST }, 5);
    let intervals: Vec<u64> = (0..1_000).map(|_| session.jittered(Duration::from_millis(1_000)).as_millis()).collect();
    assert!(intervals.iter().all(|interval| (749..=900).contains(interval)), "{intervals:?}");
    assert!(intervals.iter().any(|interval| *interval < 760) && intervals.iter().any(|interval| *interval > 890));
}

#[test]
fn a_peer_that_wanted_no_packets_and_fell_silent_gets_them_again_when_it_wants_some() {
    let mut session = Session::new(at(0), FAST, 5);
    let from_peer =
        ControlPacket { state: State::AdminDown, my_discriminator: 22, ..session.poll_transmit(at(0)).unwrap() };
    session.handle_packet(at(10), &ControlPacket { required_min_rx: 0, ..from_peer });
    assert_eq!(session.send_at, Instant::NEVER);
    // Three times a second after its packet.
    assert_eq!((session.handle_timeout(at(3_010)), session.send_at), (None, Instant::NEVER));
    session.handle_packet(at(5_000), &from_peer);
    assert_eq!(session.send_at, at(6_000));
}
