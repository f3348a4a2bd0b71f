use super::*;
use crate::forward_delay::ForwardDelay;
use crate::ids::ConnectionId;
use crate::path_manager::tests::{Host, probe, resume, set_backup, suspend};
use crate::scheduler::tests::at;

fn settings() -> OneWayDelaySettings {
    OneWayDelaySettings::default()
}

/// Paths with timestamps, nothing measured.
fn host(settings: OneWayDelaySettings, subflows: u32) -> Host<OneWayDelay> {
    let mut host = Host::new(OneWayDelay::new(settings), subflows);
    host.views.iter_mut().for_each(|view| view.forward_delay = Some(ForwardDelay::new()));
    host
}

/// Data arrives on a path now, with this difference of the clocks in milliseconds.
fn arrives(host: &mut Host<OneWayDelay>, id: u32, millis: i64) {
    let now = at(host.now_ms);
    let delay = host.view(id).forward_delay.as_mut().unwrap();
    delay.include(now, millis * 1_000);
}

/// One sample each, at the same time, so without drift.
fn measured(settings: OneWayDelaySettings, delays: &[i64]) -> Host<OneWayDelay> {
    let mut host = host(settings, delays.len() as u32);
    for (id, delay) in (0..).zip(delays) {
        arrives(&mut host, id, *delay);
    }
    host
}

fn delays(host: &Host<OneWayDelay>) -> Vec<Option<f64>> {
    host.manager.connections[&ConnectionId(1)].memory.paths.values().map(|path| path.delay.map(|us| us / 1e3)).collect()
}

/// Advances the time in steps of ten milliseconds, and returns the actions.
fn wait(host: &mut Host<OneWayDelay>, millis: u64) -> Vec<PathAction> {
    let mut all = Vec::new();
    for _ in 0..millis / 10 {
        host.now_ms += 10;
        all.extend(host.measured());
    }
    all
}

#[test]
fn the_path_of_the_largest_delay_is_named_and_then_the_next_but_not_the_last() {
    let mut host = measured(settings(), &[30, 120, 45]);
    assert_eq!(host.receiver_blocked(), [set_backup(1, true)]);
    assert_eq!(host.receiver_blocked(), [set_backup(2, true)]);
    assert_eq!(host.receiver_blocked(), []);
}

#[test]
fn the_clocks_may_be_hours_apart() {
    // Minus three hours, in milliseconds: 30, 120 and 45 ms by true clocks.
    let mut host = measured(settings(), &[30 - 10_800_000, 120 - 10_800_000, 45 - 10_800_000]);
    assert_eq!(host.receiver_blocked(), [set_backup(1, true)]);
}

#[test]
fn a_path_returns_with_a_delay_of_the_mean_of_the_active_ones_and_not_above() {
    for (probed, returns) in [(41, false), (40, true), (39, true)] {
        // Active: 30 and 50 ms, mean 40. The named one is weighed by its last value: eight times the weight of all before.
        let mut host = measured(OneWayDelaySettings { average: Average::Weighted, ..settings() }, &[30, 120, 50]);
        assert_eq!(host.receiver_blocked(), [set_backup(1, true)]);
        let mut delay = ForwardDelay::new();
        (0..2).for_each(|_| delay.include(at(0), probed * 1_000));
        host.view(1).forward_delay = Some(delay);
        let said = host.measured();
        assert_eq!(said.contains(&set_backup(1, false)), returns, "{probed} ms: {said:?}");
    }
}

#[test]
fn by_the_mean_of_all_history_a_path_is_slow_to_return_and_by_the_weighted_one_it_is_not() {
    // 120 ms, then ten times 30 ms. All history: (120 + 300) / 11 = 38.2 ms; weighted: 30 + 90 (7/8)^10 = 53.7 ms;
    // after 30 of them 33 - with (120 + 900) / 31 = 32.9 ms - and 31.6 ms.
    for (average, ten, thirty) in [(Average::History, 38.18, 32.90), (Average::Weighted, 53.67, 31.64)] {
        let mut host = measured(OneWayDelaySettings { average, ..settings() }, &[30, 120]);
        for (count, expected) in [(10, ten), (20, thirty)] {
            (0..count).for_each(|_| arrives(&mut host, 1, 30));
            host.measured();
            let delay = delays(&host)[1].unwrap();
            assert!((delay - expected).abs() < 0.01, "{average:?}: {delay}");
        }
    }
}

#[test]
fn as_printed_it_is_the_slow_path_that_returns() {
    let mut host = measured(OneWayDelaySettings { returns: Return::Printed, ..settings() }, &[30, 120]);
    assert_eq!(host.receiver_blocked(), [set_backup(1, true)]);
    arrives(&mut host, 1, 120);
    assert!(host.measured().contains(&set_backup(1, false)));
}

#[test]
fn a_path_does_not_return_on_what_was_measured_before_it_was_named() {
    // As printed 120 >= 30 holds from the first, but nothing new has come.
    let never = Duration::ZERO;
    let mut host =
        measured(OneWayDelaySettings { returns: Return::Printed, return_after: never, ..settings() }, &[30, 120]);
    host.receiver_blocked();
    assert!(!wait(&mut host, 60_000).contains(&set_backup(1, false)));
}

#[test]
fn a_name_is_said_three_times_and_again_while_data_keeps_coming() {
    let mut host = measured(settings(), &[30, 120]);
    assert_eq!(host.receiver_blocked(), [set_backup(1, true)]);
    assert_eq!(wait(&mut host, 50), [set_backup(1, true), set_backup(1, true)]);
    (0..8).for_each(|_| arrives(&mut host, 1, 120));
    assert_eq!(wait(&mut host, 50), []);
    (0..9).for_each(|_| arrives(&mut host, 1, 120));
    assert_eq!(wait(&mut host, 50), [set_backup(1, true)]);
}

#[test]
fn a_path_that_nothing_comes_on_is_taken_back_after_a_while() {
    let mut host = measured(settings(), &[30, 120]);
    host.receiver_blocked();
    let before = wait(&mut host, 9_990);
    assert!(!before.contains(&set_backup(1, false)));
    assert_eq!(wait(&mut host, 10), [set_backup(1, false)]);
    // Named again within ten seconds of its return, it stays away for twice as long.
    assert_eq!(wait(&mut host, 1_000), [set_backup(1, false), set_backup(1, false)]);
    assert_eq!(host.receiver_blocked(), [set_backup(1, true)]);
    assert!(!wait(&mut host, 19_990).contains(&set_backup(1, false)));
    assert_eq!(wait(&mut host, 10), [set_backup(1, false)]);
}

#[test]
fn with_hold_a_path_stays_away_however_good_it_looks() {
    let hold = Duration::from_secs(1);
    let mut host = measured(OneWayDelaySettings { hold, ..settings() }, &[30, 31]);
    host.receiver_blocked();
    (0..100).for_each(|_| arrives(&mut host, 1, 0));
    assert!(!wait(&mut host, 990).contains(&set_backup(1, false)));
    assert_eq!(wait(&mut host, 10), [set_backup(1, false)]);
}

#[test]
fn a_drift_of_the_clocks_does_not_tell_against_the_younger_path() {
    // 100 us a second. Path 0 measures 50 ms for 1000 s, path 1, of 30 ms, only for the last ten: by plain means 100 ms
    // and 129.5 ms; as the clocks stand at the end, 150 and 130 ms.
    let mut host = host(settings(), 2);
    for second in 0..=1_000 {
        host.now_ms = second * 1_000;
        let gained = second as i64 * 100;
        let now = at(host.now_ms);
        host.view(0).forward_delay.as_mut().unwrap().include(now, 50_000 + gained);
        if second >= 990 {
            host.view(1).forward_delay.as_mut().unwrap().include(now, 30_000 + gained);
        }
    }
    assert_eq!(host.receiver_blocked(), [set_backup(0, true)]);
    let delays = delays(&host);
    assert!((delays[0].unwrap() - 150.0).abs() < 0.01 && (delays[1].unwrap() - 130.0).abs() < 0.01, "{delays:?}");
}

#[test]
fn where_every_subflow_has_a_clock_of_its_own_half_the_rtt_and_the_queue_are_what_is_compared() {
    for clock in [Clock::Auto, Clock::PerSubflow] {
        let mut host = host(OneWayDelaySettings { clock, average: Average::Weighted, ..settings() }, 2);
        // Least RTTs 100 and 20 ms; offsets of five days and none; queues of 16 / 8 = 2 ms and 800 / 8 = 100 ms.
        host.view(0).min_rtt = Duration::from_millis(100);
        host.view(1).min_rtt = Duration::from_millis(20);
        for (id, offset, queue) in [(0, 432_000_000, 16), (1, 0, 800)] {
            arrives(&mut host, id, offset);
            arrives(&mut host, id, offset + queue);
        }
        assert_eq!(host.receiver_blocked(), [set_backup(1, true)]);
        // 100 / 2 + 2 and 20 / 2 + 100.
        assert_eq!(delays(&host), [Some(52.0), Some(110.0)]);
    }
    // Taken for one clock, it would have been the other path.
    let mut host = measured(OneWayDelaySettings { clock: Clock::Shared, ..settings() }, &[432_000_000, 100]);
    assert_eq!(host.receiver_blocked(), [set_backup(0, true)]);
}

#[test]
fn without_timestamps_half_the_round_trip_stands_for_the_delay() {
    let mut host = host(settings(), 2);
    host.view(0).smoothed_rtt = Duration::from_millis(90);
    host.view(0).forward_delay = None;
    arrives(&mut host, 1, 1_000);
    // 90 / 2; and half of the least RTT of 20 ms, with no queue.
    assert_eq!(host.receiver_blocked(), [set_backup(0, true)]);
    assert_eq!(delays(&host), [Some(45.0), Some(10.0)]);
}

#[test]
fn a_path_without_an_estimate_is_not_named_but_counts_as_another() {
    let mut host = host(settings(), 2);
    assert_eq!(host.receiver_blocked(), []);
    arrives(&mut host, 1, 5);
    assert_eq!(host.receiver_blocked(), [set_backup(1, true)]);
}

#[test]
fn a_backup_is_not_another_path() {
    let mut host = measured(settings(), &[30, 120, 45]);
    host.view(0).backup = true;
    host.view(2).backup = true;
    assert_eq!(host.receiver_blocked(), []);
}

#[test]
fn when_the_last_active_path_is_gone_the_best_of_those_away_returns() {
    let mut host = measured(OneWayDelaySettings { hold: Duration::from_secs(60), ..settings() }, &[30, 120, 45]);
    host.receiver_blocked();
    host.receiver_blocked();
    host.closed(0);
    let said = host.measured();
    assert!(said.contains(&set_backup(2, false)) && !said.contains(&set_backup(1, false)), "{said:?}");
}

#[test]
fn what_the_peer_names_is_suspended_and_probed_until_the_peer_takes_it_back() {
    let mut host = host(settings(), 2);
    assert_eq!(host.priority(1, true), []);
    assert_eq!(host.measured(), [suspend(1)]);
    // Its retransmission timeout is 200 ms.
    assert_eq!(wait(&mut host, 200), [probe(1)]);
    assert_eq!(host.priority(1, false), [resume(1)]);
    assert_eq!(host.active(), [0, 1]);
}

#[test]
fn the_last_path_is_not_suspended_whatever_the_peer_says() {
    let mut host = host(settings(), 2);
    host.priority(0, true);
    host.priority(1, true);
    host.measured();
    assert_eq!(host.active().len(), 2);
}

#[test]
fn measured_by_the_sender_the_path_is_suspended_at_its_own_event_and_nothing_is_asked_of_the_peer() {
    let mut host = measured(OneWayDelaySettings { measured_by: MeasuredBy::Sender, ..settings() }, &[30, 120, 45]);
    assert_eq!(host.manager.forward_delays(), ForwardDelays::OfAcknowledgements);
    assert_eq!(host.receiver_blocked(), []);
    assert_eq!(host.blocked(), [suspend(1)]);
    assert_eq!(wait(&mut host, 200), [probe(1)]);
    // Mean of the active 37.5 ms. All history: (120 + 9 x 28) / 10 = 37.2 ms.
    host.now_ms += 50;
    (0..9).for_each(|_| arrives(&mut host, 1, 28));
    host.answered(1);
    assert_eq!(host.measured(), [resume(1)]);
}
