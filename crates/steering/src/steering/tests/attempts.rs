//! Attempts to join that are refused at once, or not answered.

use super::*;

fn joins(steering: &mut Steering) -> Vec<Command> {
    core::iter::from_fn(|| steering.poll_command()).collect()
}

/// A connection of full mesh that opens a join, which the kernel has begun.
fn opening() -> Steering {
    let mut steering = full_mesh(Control::Subflows);
    let [join @ Command::CreateSubflow { .. }] = joins(&mut steering)[..] else { panic!("it joins") };
    steering.handle_outcome(at(1), join, Outcome::Done);
    steering
}

fn closed(local: Endpoints, error: u32) -> Event {
    Event::SubflowClosed { token: TOKEN, endpoints: local, error }
}

/// A reset comes in less than a millisecond: before any sample.
#[test]
fn a_join_that_is_refused_at_once_is_shown_and_tried_again_with_growing_pauses() {
    for unspecified in [false, true] {
        let mut steering = opening();
        let mut refused = endpoints(2, 40_001);
        if unspecified {
            refused.local.set_ip(IpAddr::from([0, 0, 0, 0]));
        }
        let mut now = 2;
        for pause in [1_000, 2_000, 4_000] {
            steering.handle_event(at(now), &closed(refused, 111));
            let known = steering.connections().next().expect("it is known");
            let shown: Vec<_> = known.closed.iter().map(|closed| closed.endpoints).collect();
            assert_eq!(shown.last(), Some(&endpoints(2, 40_001)));
            steering.handle_timeout(at(now + pause - 100));
            assert_eq!(joins(&mut steering), []);
            now += pause;
            steering.handle_timeout(at(now));
            let [join @ Command::CreateSubflow { .. }] = joins(&mut steering)[..] else { panic!("after {pause} ms") };
            steering.handle_outcome(at(now), join, Outcome::Done);
        }
        assert_eq!(steering.counters().unmatched_events, 0);
        // What is said again is not a further attempt.
        steering.handle_event(at(now), &closed(refused, 111));
        steering.handle_event(at(now), &closed(refused, 111));
        assert_eq!(steering.counters().unmatched_events, 1);
    }
}

fn attempt(port: u16, rto: u64) -> SubflowSample {
    SubflowSample { state: TcpState::Opening, rto: Duration::from_secs(rto), ..subflow(2, port) }
}

/// The path manager waits for two minutes, in which the pauses between SYNs grow to half a minute.
#[test]
fn a_path_that_is_dead_from_the_first_attempt_is_tried_at_least_every_few_seconds() {
    let mut steering = opening();
    let mut look = |millis, attempt: SubflowSample| {
        steering.handle_sample(&sample(at(millis), vec![subflow(1, 40_000), attempt]));
        let commands = joins(&mut steering);
        if let Some(join) = commands.get(1) {
            steering.handle_outcome(at(millis), *join, Outcome::Done);
            steering.handle_event(at(millis + 1), &closed(endpoints(2, 40_001), 0));
        }
        (commands, steering.counters().unmatched_events)
    };
    assert_eq!(look(1_000, attempt(40_001, 2)).0, []);
    let (commands, unmatched) = look(3_000, attempt(40_001, 4));
    let given_up = Command::DestroySubflow { token: TOKEN, endpoints: endpoints(2, 40_001) };
    assert_eq!(commands[0], given_up, "{commands:?}");
    assert!(matches!(commands[1..], [Command::CreateSubflow { backup: false, .. }]), "{commands:?}");
    assert_eq!(unmatched, 0);
    // The next waits for its turn, and in the end longer.
    assert_eq!(look(4_000, attempt(40_002, 1)).0, []);
    assert_eq!(look(60_000, attempt(40_002, 4)).0, []);
    assert_eq!(look(60_000, attempt(40_002, 8)).0.len(), 2);
}

/// One that works is not replaced, and neither is that of another.
#[test]
fn only_attempts_of_ours_are_replaced() {
    let mut steering = opening();
    let established = SubflowSample { rto: Duration::from_secs(30), ..subflow(2, 40_001) };
    for (millis, last) in [(100, subflow(2, 40_001)), (200, established), (300, attempt(40_001, 30))] {
        steering.handle_sample(&sample(at(millis), vec![subflow(1, 40_000), last]));
        assert_eq!(joins(&mut steering), []);
    }
    let mut adopted = without_connections(Control::Subflows);
    for millis in [0, 100] {
        adopted.handle_sample(&sample(at(millis), vec![subflow(1, 40_000), attempt(40_001, 30)]));
        assert_eq!(joins(&mut adopted), []);
    }
}
