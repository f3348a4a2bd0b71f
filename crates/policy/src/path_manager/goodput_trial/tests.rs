use super::*;
use crate::path_manager::tests::{Host, resume, suspend};
use crate::rate::Rate;
use crate::scheduler::tests::{at, connection};
use crate::view::ConnectionView;

const ID: ConnectionId = ConnectionId(1);

/// A host whose connection carries so many bytes per second with both paths, with the first alone, with the second
/// alone.
struct Steered {
    host: Host<GoodputTrial>,
    goodput: [f64; 3],
    acknowledged: f64,
    blocked: bool,
    waits: bool,
    window: u64,
}

impl Steered {
    fn new(goodput: [f64; 3]) -> Self {
        let mut host = Host::new(GoodputTrial::new(TrialSettings::default()), 2);
        for id in 0..2 {
            host.view(id).in_flight = 10_000;
        }
        host.view(1).smoothed_rtt = Duration::from_millis(100);
        host.view(1).min_rtt = Duration::from_millis(100);
        for id in 0..2 {
            let alone = goodput[id as usize + 1] as u64;
            host.view(id).rates.bandwidth = Rate::from_bytes_over(alone, Duration::from_secs(1));
        }
        Self { host, goodput, acknowledged: 0.0, blocked: true, waits: true, window: 1_000_000 }
    }

    /// Goes on for 100 ms.
    fn look(&mut self) -> Vec<PathAction> {
        self.host.now_ms += 100;
        let rate = match self.host.active()[..] {
            [0] => self.goodput[1],
            [1] => self.goodput[2],
            _ => self.goodput[0],
        };
        self.acknowledged += rate / 10.0;
        let active = self.host.active();
        for id in 0..self.host.views.len() as u32 {
            if active.contains(&id) {
                self.host.view(id).counters.bytes_acked += (rate / 10.0) as u64 / active.len() as u64;
                self.host.view(id).in_flight = 10_000;
            } else if !self.host.view(id).stale {
                self.host.view(id).in_flight = 0;
            }
            let now = at(self.host.now_ms);
            let view = self.host.view(id);
            if view.rto != Duration::ZERO && !view.stale {
                (view.last_progress, view.last_sent) = (now, now);
            }
        }
        let blocked = self.blocked && self.host.active().len() == 2;
        let view = ConnectionView {
            data_una: self.acknowledged as u64,
            data_nxt: self.acknowledged as u64 + if self.waits { 100_000 } else { 0 },
            unsent: if self.waits { 1_000_000 } else { 0 },
            backlogged: self.waits,
            window_left: if blocked { 0 } else { 1_000_000 },
            window: self.window,
            ..connection(self.host.now_ms)
        };
        let views = self.host.views.clone();
        self.host.tell(&PathEvent::Measured { connection: &view, subflows: &views })
    }

    fn go(&mut self, seconds: f64) -> Vec<(u64, PathAction)> {
        let mut all = Vec::new();
        for _ in 0..(seconds * 10.0) as u32 {
            let actions = self.look();
            all.extend(actions.into_iter().map(|action| (self.host.now_ms, action)));
        }
        all
    }
}

#[test]
fn a_path_without_which_more_is_carried_is_suspended_after_two_seconds_and_stays_so() {
    let mut steered = Steered::new([1.0e6, 2.0e6, 0.2e6]);
    let actions = steered.go(10.0);
    assert_eq!(actions.len(), 1, "{actions:?}");
    assert!(actions[0].0 <= 2_400 && actions[0].1 == suspend(1), "{actions:?}");
    // The first return, 16 s after the trial, ends within a second; the next comes 32 s later.
    let later = steered.go(40.0);
    assert_eq!(later.iter().map(|(_, action)| *action).collect::<Vec<_>>(), [resume(1), suspend(1)]);
    assert!(later[1].0 - later[0].0 <= 1_000, "{later:?}");
}

#[test]
fn what_is_not_blocked_is_not_tried() {
    let mut steered = Steered::new([2.0e6, 1.0e6, 1.0e6]);
    steered.blocked = false;
    assert_eq!(steered.go(60.0), []);
}

#[test]
fn where_both_paths_carry_more_each_trial_ends_early_and_trials_become_rare() {
    let mut steered = Steered::new([1.9e6, 1.0e6, 1.0e6]);
    let actions = steered.go(60.0);
    assert!(actions.len() >= 4, "{actions:?}");
    let time: u64 = actions.chunks(2).map(|pair| pair[1].0 - pair[0].0).sum();
    assert_eq!(actions.len() % 2, 0, "{actions:?}");
    assert!(time < 8_000, "{time} ms of 60 s with one path: {actions:?}");
    assert_eq!(steered.host.active(), [0, 1]);
}

#[test]
fn a_path_that_alone_carries_less_is_the_one_suspended_whatever_its_round_trip() {
    let mut steered = Steered::new([1.0e6, 0.3e6, 2.0e6]);
    let actions = steered.go(8.0);
    assert_eq!(actions.iter().map(|(_, action)| *action).collect::<Vec<_>>(), [suspend(0)]);
}

#[test]
fn a_path_returns_when_it_adds_something_again() {
    let mut steered = Steered::new([1.0e6, 2.0e6, 0.2e6]);
    steered.go(5.0);
    assert_eq!(steered.host.active(), [0]);
    (steered.goodput, steered.blocked) = ([2.2e6, 2.0e6, 0.2e6], false);
    steered.go(20.0);
    assert_eq!(steered.host.active(), [0, 1]);
    // At once, when the path left alone carries much less.
    let mut steered = Steered::new([1.0e6, 2.0e6, 0.2e6]);
    steered.go(5.0);
    (steered.goodput, steered.blocked) = ([1.0e6, 0.5e6, 0.2e6], false);
    steered.go(10.0);
    assert_eq!(steered.host.active(), [0, 1]);
}

#[test]
fn a_program_that_writes_little_is_left_alone() {
    let mut steered = Steered::new([1.0e6, 2.0e6, 0.2e6]);
    steered.waits = false;
    assert_eq!(steered.go(30.0), []);
}

#[test]
fn a_dead_path_is_closed_within_a_second_and_opened_again_every_two() {
    let mut steered = Steered::new([2.0e6, 1.0e6, 1.0e6]);
    steered.blocked = false;
    for id in 0..2 {
        steered.host.view(id).rto = Duration::from_millis(220);
    }
    steered.go(3.0);
    let died = steered.host.now_ms;
    steered.host.view(1).stale = true;
    let actions = steered.go(0.9);
    let closed = PathAction::CloseSubflow { connection: ID, subflow: SubflowId(1) };
    assert_eq!(actions.iter().map(|(_, action)| *action).collect::<Vec<_>>(), [suspend(1), closed]);
    assert!(actions[0].0 - died < 1_000);
    steered.host.closed(1);
    let again = steered.go(5.0);
    assert!(again.len() == 2 || again.len() == 3, "{again:?}");
    assert!(again.iter().all(|(_, action)| matches!(action, PathAction::CreateSubflow { .. })), "{again:?}");
}

#[test]
fn with_all_paths_dead_none_is_suspended() {
    let mut steered = Steered::new([0.0, 0.0, 0.0]);
    steered.blocked = false;
    for id in 0..2 {
        steered.host.view(id).stale = true;
    }
    assert_eq!(steered.go(5.0), []);
}

#[test]
fn a_trial_comes_early_where_the_goodput_is_below_seven_tenths_of_that_before_the_last_one_in_vain() {
    let comes = |goodput: f64| {
        let mut steered = Steered::new([goodput, 2.0e6, 2.0e6]);
        let memory = steered.host.manager.connections.get_mut(&ID).expect("a connection");
        (memory.tried, memory.next_trial) = (1.0e6, Instant::NEVER);
        !steered.go(3.0).is_empty()
    };
    assert_eq!([0.69e6, 0.7e6].map(comes), [true, false]);
    // It is that of two seconds: 15 tenths with 0.8 and five with 0.6 are 0.75.
    let mut steered = Steered::new([0.8e6, 2.0e6, 2.0e6]);
    let memory = steered.host.manager.connections.get_mut(&ID).expect("a connection");
    (memory.tried, memory.next_trial) = (1.0e6, Instant::NEVER);
    assert_eq!(steered.go(1.6), []);
    steered.goodput[0] = 0.6e6;
    assert_eq!(steered.go(0.5), []);
    assert!(!steered.go(1.0).is_empty());
}

#[test]
fn a_path_returns_early_where_the_goodput_is_below_seven_tenths_of_what_its_trial_found() {
    let returns = |goodput: f64| {
        // What it could add does not count then.
        let mut steered = Steered::new([2.0e6, goodput, 0.01e6]);
        steered.host.view(1).suspended = true;
        let memory = steered.host.manager.connections.get_mut(&ID).expect("a connection");
        memory.without.insert(SubflowId(1), 1.0e6);
        memory.next_return = Instant::NEVER;
        steered.go(3.0).iter().any(|(_, action)| *action == resume(1))
    };
    assert_eq!([0.69e6, 0.7e6].map(returns), [true, false]);
}

/// Whether a trial is hopeless after tenths of a second with these goodputs; before it there was one of 1,000,000.
fn is_hopeless(returns: bool, goodputs: &[u64]) -> bool {
    let mut memory = Memory::new(Role::Client, Duration::from_secs(1));
    let mut point = Point { at: Instant::ZERO, acknowledged: 0, received: 0, blocked: true };
    memory.points.push_back(point);
    for goodput in goodputs {
        (point.at, point.acknowledged) = (point.at + LOOK, point.acknowledged + goodput / 10);
        memory.points.push_back(point);
    }
    let trial = Trial {
        subflow: SubflowId(1),
        returns,
        before: 1.0e6,
        begun: Instant::ZERO,
        earliest: Instant::ZERO,
        from: Some(Instant::ZERO),
        length: MEASURED,
        extended: false,
    };
    trial.is_hopeless(&memory, point.at)
}

#[test]
fn a_trial_is_hopeless_below_85_hundredths_of_the_goodput_before_it() {
    for returns in [false, true] {
        assert_eq!([840_000, 850_000].map(|goodput| is_hopeless(returns, &[goodput; 10])), [true, false]);
    }
}

#[test]
fn a_trial_is_hopeless_by_the_last_half_second_of_what_it_measures_unless_the_goodput_grows() {
    assert!(!is_hopeless(false, &[0; 4]) && is_hopeless(false, &[0; 5]));
    // A return is measured from 200 ms on.
    assert!(!is_hopeless(true, &[0; 6]) && is_hopeless(true, &[0; 7]));
    let halves = |first: u64, second: u64| is_hopeless(false, &[[first; 5], [second; 5]].concat());
    assert!(halves(950_000, 800_000), "875,000 on average");
    assert!(!halves(950_000, 900_000));
    assert!(!halves(650_000, 800_000), "it grows by more than 15 %");
    assert!(halves(700_000, 800_000));
}

#[test]
fn while_the_goodput_grows_no_path_is_tried() {
    let first_trial = |later: f64| {
        let mut steered = Steered::new([1.0e6, 3.0e6, 0.2e6]);
        assert_eq!(steered.go(1.1), []);
        steered.goodput[0] = later;
        steered.go(2.0)[0].0
    };
    // Two seconds after the first measurement. After growth by 30 % the second of the two seconds has more than 1.15 of the
    // first one's goodput until six tenths of each have grown: 1.3 / (1 + 0.3 * 0.4) = 1.16, and 1.13 with five.
    assert_eq!([1.0e6, 1.3e6].map(first_trial), [2_100, 2_600]);
}

#[test]
fn a_trial_without_a_gain_is_measured_for_longer_if_the_goodput_grows() {
    let trial = |halves: [f64; 2]| {
        let mut steered = Steered::new([1.0e6, halves[0], 0.2e6]);
        assert_eq!(steered.go(2.1), [(2_100, suspend(1))]);
        // It measures for a second, from 200 ms on.
        assert_eq!(steered.go(0.7), []);
        steered.goodput[1] = halves[1];
        steered.go(2.0)
    };
    // 1.0e6 in all, no gain, and 22 % more in the second half; then 1.1e6, 10 % more than before.
    assert_eq!(trial([0.9e6, 1.1e6]), []);
    // Without growth 5 % more are not enough.
    assert_eq!(trial([1.05e6, 1.05e6]), [(3_300, resume(1))]);
    // It grows, and has gained already: 1.25e6.
    let mut steered = Steered::new([1.0e6, 1.1e6, 0.2e6]);
    steered.go(2.8);
    steered.goodput[1] = 1.4e6;
    steered.go(0.5);
    assert!(steered.host.manager.connections[&ID].trial.is_none());
}

#[test]
fn a_trial_measures_when_nothing_is_left_on_the_suspended_path_or_after_ten_seconds() {
    let measures_from = |emptied_after: f64| {
        let mut steered = Steered::new([1.0e6, 2.0e6, 0.2e6]);
        steered.go(2.0);
        steered.host.view(1).queued = 1;
        assert_eq!(steered.look(), [suspend(1)]);
        steered.go(emptied_after);
        steered.host.view(1).queued = 0;
        // What arrives does not count at an end that makes no trials for what it receives.
        steered.host.view(1).counters.bytes_received += 1;
        let before = steered.host.manager.connections[&ID].trial.and_then(|trial| trial.from);
        steered.look();
        (before, steered.host.manager.connections[&ID].trial.and_then(|trial| trial.from))
    };
    // From 200 ms after the suspension at 2.1 s on.
    assert_eq!(measures_from(0.1), (None, Some(at(2_300))));
    assert_eq!(measures_from(1.0), (None, Some(at(3_200))));
    assert_eq!(measures_from(3.1), (None, Some(at(5_300))));
    assert_eq!(measures_from(9.0), (None, Some(at(11_200))));
    // Not for ever.
    assert_eq!(measures_from(10.4), (Some(at(12_300)), Some(at(12_300))));
}

#[test]
fn a_trial_lasts_for_eight_round_trips_of_the_others_and_a_return_settles_for_two_of_its_own() {
    let trial = |returns, round_trips: [u64; 2]| {
        let mut steered = Steered::new([1.0e6, 1.0e6, 1.0e6]);
        steered.host.view(1).suspended = returns;
        for (id, millis) in (0..).zip(round_trips) {
            let view = steered.host.view(id);
            (view.smoothed_rtt, view.min_rtt) = (Duration::from_millis(millis), Duration::from_millis(20));
        }
        if returns {
            let memory = steered.host.manager.connections.get_mut(&ID).expect("a connection");
            memory.without.insert(SubflowId(1), 1.0e6);
        }
        loop {
            steered.look();
            if let Some(trial) = steered.host.manager.connections[&ID].trial {
                assert_eq!((trial.subflow, trial.returns), (SubflowId(1), returns));
                break (trial.length.as_millis(), (trial.earliest - trial.begun).as_millis());
            }
        }
    };
    // One second to three, and 200 ms of a suspension.
    let suspended = [[100, 900], [200, 900], [400, 900]].map(|round_trips| trial(false, round_trips));
    assert_eq!(suspended, [(1_000, 200), (1_600, 200), (3_000, 200)]);
    // 200 ms to three seconds.
    let returned = [[200, 50], [200, 300], [200, 1_600]].map(|round_trips| trial(true, round_trips));
    assert_eq!(returned, [(1_600, 200), (1_600, 600), (1_600, 3_000)]);
}

#[test]
fn when_all_paths_were_tried_in_vain_a_pause_follows_and_the_next_is_twice_as_long() {
    let mut steered = Steered::new([1.9e6, 1.0e6, 1.0e6]);
    let first = steered.host.manager.connections[&ID].pause;
    while steered.host.manager.connections[&ID].pause == first {
        steered.look();
    }
    let memory = &steered.host.manager.connections[&ID];
    assert_eq!((memory.pause, memory.next_trial), (first * 2, at(steered.host.now_ms) + first));
    assert!(memory.vain.is_empty());
}

#[test]
fn the_only_active_path_is_not_tried() {
    let mut steered = Steered::new([1.0e6, 1.0e6, 1.0e6]);
    steered.host.view(1).backup = true;
    let pause = steered.host.manager.connections[&ID].pause;
    assert_eq!(steered.go(3.0), []);
    let memory = &steered.host.manager.connections[&ID];
    assert!(memory.is_blocked());
    assert_eq!((memory.pause, memory.next_trial), (pause, Instant::ZERO), "no round of trials ended");
}

#[test]
fn a_path_returns_when_that_is_due_if_twice_its_rate_is_what_a_trial_must_gain() {
    let after_3_seconds = |alone: f64| {
        let mut steered = Steered::new([2.0e6, 1.0e6, alone]);
        steered.host.view(1).suspended = true;
        let memory = steered.host.manager.connections.get_mut(&ID).expect("a connection");
        memory.without.insert(SubflowId(1), 1.0e6);
        let returns = steered.go(3.0).iter().any(|(_, action)| *action == resume(1));
        (returns, steered.host.manager.connections[&ID].next_return)
    };
    // 7 % of 1,000,000. It is looked at after ten measurements, and again two pauses of 8 s later.
    assert_eq!(after_3_seconds(35_000.0), (true, Instant::ZERO));
    assert_eq!(after_3_seconds(34_999.0), (false, at(17_000)));
}

#[test]
fn no_path_is_tried_before_all_are_ten_round_trips_old_or_four_and_their_windows_have_not_grown_for_one_and_a_half() {
    let first_trial = |round_trip: u64, grows_for: u64| {
        let mut steered = Steered::new([1.0e6, 3.0e6, 0.2e6]);
        steered.host.view(1).min_rtt = Duration::from_millis(round_trip);
        loop {
            let actions = steered.go(0.1);
            if let Some((at, _)) = actions.first() {
                return *at;
            }
            if steered.host.now_ms < grows_for {
                let grown = steered.host.view(1).cwnd * 6 / 5;
                steered.host.view(1).cwnd = grown;
            }
        }
    };
    // All were seen first after 100 ms, and a trial needs measurements of two seconds.
    assert_eq!([100, 250].map(|round_trip| first_trial(round_trip, 10_000)), [2_100, 2_600]);
    assert_eq!([100, 1_000].map(|round_trip| first_trial(round_trip, 0)), [2_100, 4_100]);
    // It last grew after 2 s, and after 3.
    assert_eq!([2_000, 3_000].map(|grows_for| first_trial(1_000, grows_for)), [4_100, 4_500]);
}

#[test]
fn a_window_that_shrank_has_grown_when_it_grows_again() {
    let mut steered = Steered::new([1.0e6, 3.0e6, 0.2e6]);
    steered.host.view(1).min_rtt = Duration::from_secs(1);
    let window = steered.host.view(1).cwnd;
    steered.go(0.5);
    steered.host.view(1).cwnd = window / 2;
    steered.go(2.4);
    steered.host.view(1).cwnd = window;
    // It grew after 3 s.
    assert_eq!(steered.go(3.0)[0].0, 4_500);
}

#[test]
fn while_the_window_of_the_peer_grows_paths_are_tried_after_ten_round_trips() {
    let first_trial = |grows_for: u64| {
        let mut steered = Steered::new([1.0e6, 3.0e6, 0.2e6]);
        steered.host.view(1).min_rtt = Duration::from_secs(1);
        loop {
            let actions = steered.go(0.1);
            if let Some((at, _)) = actions.first() {
                return *at;
            }
            if steered.host.now_ms < grows_for {
                steered.window = steered.window * 6 / 5;
            }
        }
    };
    assert_eq!([0, 3_000, 9_000].map(first_trial), [4_100, 4_500, 10_100]);
}

#[test]
fn between_two_measurements_there_is_no_goodput_and_a_path_that_goes_makes_none() {
    let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
    let mut memory = Memory::new(Role::Client, Duration::from_secs(1));
    let point = |millis: u64| Point { at: at(millis), acknowledged: millis, received: millis, blocked: false };
    memory.points.extend([0, 1_000, 2_000].map(point));
    assert_eq!(memory.goodput(at(1_100), at(1_900)), None);
    assert_eq!(memory.goodput(at(0), at(2_000)), Some(1_000.0), "2,000 bytes in 2 s");
    memory.points.push_back(Point { acknowledged: 500, received: 400, ..point(3_000) });
    assert_eq!(memory.goodput(at(0), at(3_000)), Some(500.0 / 3.0));
    assert_eq!(memory.goodput(at(2_000), at(3_000)), Some(0.0));
}
