use super::super::PathAction;
use super::*;
use crate::ids::ConnectionId;
use crate::path_manager::tests::{Host, probe, resume, suspend};
use crate::rate::Rate;

fn host(settings: &Settings) -> Host<Predictive> {
    let mut host = Host::new(Predictive::new(settings.read(Forecasting::read).expect("good settings")), 2);
    for id in 0..2 {
        host.view(id).rto = Duration::from_millis(300);
    }
    host
}

/// A quarter of a second in which both paths deliver at these rates in kbit/s, or nothing although data is outstanding.
fn quarter(host: &mut Host<Predictive>, kilobits: [Option<u64>; 2]) -> Vec<PathAction> {
    host.now_ms += 250;
    for (id, rate) in (0..).zip(kilobits) {
        host.view(id).in_flight = 1000;
        if let Some(rate) = rate {
            host.answered(id);
            let view = host.view(id);
            view.rates.delivery = Rate::from_bits_per_second(1000 * rate);
        }
    }
    host.measured()
}

fn probability(host: &Host<Predictive>, id: u32) -> f64 {
    host.manager.connections[&ConnectionId(1)].memory.outlooks.get(SubflowId(id)).expect("a path").probability
}

#[test]
fn a_path_that_fades_is_left_before_it_is_dead_and_taken_back_when_probes_are_answered() {
    let mut host = host(&Settings::new());
    for _ in 0..40 {
        assert_eq!(quarter(&mut host, [Some(8000), Some(10_000)]), []);
    }
    // From 10 Mbit/s down by 1 dB each quarter of a second: 4 dB per second, down to a hundredth.
    let mut rate = 10_000.0;
    let mut left = None;
    for step in 0..20 {
        rate /= 1.2589;
        let actions = quarter(&mut host, [Some(8000), Some(rate as u64)]);
        if actions.contains(&suspend(1)) {
            left = Some(step);
            break;
        }
    }
    // 12 dB below its best it is at the edge; it is left at most 8 dB, two seconds, later, with acknowledgements still
    // coming.
    assert!(left.is_some(), "{}", probability(&host, 1));
    assert_eq!(host.active(), [0]);
    let mut actions = Vec::new();
    for _ in 0..40 {
        actions.extend(quarter(&mut host, [Some(8000), None]));
    }
    assert!(actions.contains(&probe(1)) && !actions.contains(&resume(1)), "{actions:?}");
    actions.clear();
    for _ in 0..80 {
        actions.extend(quarter(&mut host, [Some(8000), Some(100)]));
    }
    assert!(actions.contains(&resume(1)), "{actions:?} {}", probability(&host, 1));
}

#[test]
fn a_path_that_falls_silent_is_left_and_the_last_one_never_is() {
    let mut host = host(&Settings::new());
    for _ in 0..40 {
        quarter(&mut host, [Some(8000), Some(8000)]);
    }
    let mut actions = Vec::new();
    for _ in 0..40 {
        actions.extend(quarter(&mut host, [Some(8000), None]));
    }
    assert!(actions.contains(&suspend(1)), "{}", probability(&host, 1));
    actions.clear();
    for _ in 0..80 {
        actions.extend(quarter(&mut host, [None, None]));
    }
    assert!(!actions.contains(&suspend(0)));
    assert_eq!(host.active(), [0]);
}

#[test]
fn a_path_without_anything_outstanding_is_not_observed() {
    let mut host = host(&Settings::new());
    for _ in 0..40 {
        quarter(&mut host, [Some(8000), Some(8000)]);
    }
    let before = probability(&host, 1);
    for _ in 0..40 {
        host.now_ms += 250;
        host.view(1).in_flight = 0;
        host.answered(0);
        assert!(!host.measured().contains(&suspend(1)));
    }
    assert!(probability(&host, 1) > 0.3 && probability(&host, 1) <= before + 1e-9);
}

#[test]
fn who_persists_leaves_at_the_first_thing_missed_and_holds_for_longer_each_time() {
    let mut host = host(&Settings::new().with("forecaster", "persistence"));
    quarter(&mut host, [Some(8000), Some(8000)]);
    // Missed after the timeout of 300 ms and an interval of 250 ms: at the third look without an answer.
    assert_eq!(quarter(&mut host, [Some(8000), None]), []);
    assert_eq!(quarter(&mut host, [Some(8000), None]), []);
    assert_eq!(quarter(&mut host, [Some(8000), None]), [suspend(1)]);
    let mut seconds = [0_u32; 2];
    for round in &mut seconds {
        let start = host.now_ms;
        while !quarter(&mut host, [Some(8000), Some(100)]).contains(&resume(1)) {
            assert!(host.now_ms < start + 60_000);
        }
        *round = ((host.now_ms - start) / 1000) as u32;
        while !quarter(&mut host, [Some(8000), None]).contains(&suspend(1)) {}
    }
    assert_eq!(seconds, [2, 4]);
}

#[test]
fn a_number_outside_its_range_is_refused() {
    for (name, value) in [("interval", "0"), ("leave", "2"), ("return", "-1"), ("hold", "61"), ("forecaster", "oracle")]
    {
        assert!(Settings::new().with(name, value).read(Forecasting::read).is_err(), "{name}");
    }
}

#[test]
fn the_strength_of_a_path_is_that_of_its_best_rate_less_what_its_rate_is_below_that() {
    let rule = Settings::new().read(Forecasting::read).expect("the defaults");
    let mut view = crate::scheduler::tests::subflow(0, 20);
    let mut outlook = Outlook::new(&rule, Instant::ZERO, &view);
    let mut strength = |kilobits: u64, app_limited: bool, suspended: bool| {
        view.rates.delivery = Rate::from_bits_per_second(1_000 * kilobits);
        (view.rates.app_limited, view.suspended) = (app_limited, suspended);
        outlook.strength(&view)
    };
    let best = BEST_STRENGTH as f32;
    assert_eq!(strength(0, false, false), None);
    assert_eq!(strength(1_000, false, false), Some(best));
    // A hundredth is 20 dB less; a rate that the application limits says something only if it is the best.
    assert_eq!(strength(10, false, false), Some(best - 20.0));
    assert_eq!(strength(10, true, false), None);
    assert_eq!(strength(1_000, true, false), Some(best));
    assert_eq!(strength(2_000, true, false), Some(best));
    assert_eq!(strength(2_000, false, true), None);
}

#[test]
fn of_a_path_that_is_forgotten_nothing_is_known() {
    let mut host = host(&Settings::new());
    quarter(&mut host, [Some(8000), Some(10_000)]);
    let memory = &mut host.manager.connections.get_mut(&ConnectionId(1)).expect("a connection").memory;
    memory.forget(SubflowId(0));
    assert_eq!([0, 1].map(|id| memory.outlooks.get(SubflowId(id)).is_some()), [false, true]);
}

#[test]
fn of_two_paths_that_fall_silent_together_none_is_left() {
    let mut host = host(&Settings::new().with("forecaster", "persistence"));
    quarter(&mut host, [Some(8000), Some(8000)]);
    for _ in 0..8 {
        assert_eq!(quarter(&mut host, [None, None]), []);
    }
    assert!([0, 1].map(|id| probability(&host, id)).iter().all(|up| *up < 0.3));
    assert_eq!(host.active(), [0, 1]);
}

#[test]
fn the_last_active_path_is_not_noted_as_left_while_another_answers_but_may_not_return_yet() {
    let mut host = host(&Settings::new().with("forecaster", "persistence"));
    quarter(&mut host, [Some(8000), Some(8000)]);
    for _ in 0..2 {
        quarter(&mut host, [Some(8000), None]);
    }
    assert_eq!(quarter(&mut host, [Some(8000), None]), [suspend(1)]);
    // Path 1 answers; two seconds have not passed when path 0 has missed something.
    for _ in 0..3 {
        assert!(!quarter(&mut host, [None, Some(100)]).contains(&suspend(0)));
    }
    assert!(probability(&host, 0) < 0.3 && probability(&host, 1) >= 0.55);
    assert_eq!(host.active(), [0]);
    let memory = &host.manager.connections[&ConnectionId(1)].memory;
    // Path 0 was first seen at the first measurement, path 1 was left at the fourth.
    let left = [0, 1].map(|id| memory.outlooks.get(SubflowId(id)).expect("a path").left);
    assert_eq!(left, [250, 1000].map(|ms| Instant::ZERO + Duration::from_millis(ms)));
}

#[test]
fn of_paths_that_are_not_established_nothing_is_known_and_of_the_others_it_stays() {
    let mut host = host(&Settings::new());
    (0..2).for_each(|_| drop(quarter(&mut host, [Some(8000), Some(10_000)])));
    host.view(1).state = SubflowState::Closing;
    host.measured();
    let outlooks = &host.manager.connections[&ConnectionId(1)].memory.outlooks;
    assert_eq!([0, 1].map(|id| outlooks.get(SubflowId(id)).map(|outlook| outlook.best)), [Some(8.0e6), None]);
}

#[test]
fn a_path_exactly_as_likely_up_as_the_bound_stays_and_one_exactly_as_likely_as_the_other_bound_is_worth_leaving_for() {
    let left = |setting: &str, value: u8| {
        let mut host = host(&Settings::new().with("forecaster", "persistence").with(setting, value));
        quarter(&mut host, [Some(8000), Some(8000)]);
        let left = (0..3).any(|_| quarter(&mut host, [Some(8000), None]).contains(&suspend(1)));
        // What persists is certain.
        assert_eq!([0, 1].map(|id| probability(&host, id)), [1.0, 0.0]);
        left
    };
    assert!(!left("leave", 0) && left("return", 1));
}
