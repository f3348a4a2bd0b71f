use super::super::PathEvent;
use super::*;
use crate::ids::{AddressId, ConnectionId};
use crate::path_manager::tests::{Host, probe, resume, suspend};
use crate::time::Duration;

fn host(subflows: u32) -> Host<Pu2m2> {
    let mut host = Host::new(Pu2m2::new(Pu2m2Settings::default()), subflows);
    for id in 0..subflows {
        // Centre 20 ms, variation 5 ms: the edge is at 20 + max(2 * 5, 0.25 * 20) = 30 ms.
        host.view(id).rtt_variation = Duration::from_millis(5);
    }
    assert_eq!(host.measured(), []);
    host
}

fn sample(host: &mut Host<Pu2m2>, id: u32, rtt_us: u64) {
    host.answered(id);
    host.view(id).latest_rtt = Duration::from_micros(rtt_us);
}

fn edge_us(host: &Host<Pu2m2>, id: u32) -> f64 {
    let band = host.manager.connections[&ConnectionId(1)].memory.bands.get(SubflowId(id)).unwrap();
    (band.centre + (2.0 * band.variation).max(0.25 * band.centre)) * 1e6
}

#[test]
fn a_sample_on_the_edge_stays_and_one_above_it_goes() {
    for (rtt_us, expected) in [(30_000, vec![]), (30_100, vec![suspend(1)]), (1_000, vec![])] {
        let mut host = host(2);
        host.now_ms = 20;
        sample(&mut host, 1, rtt_us);
        assert_eq!(host.measured(), expected, "{rtt_us} us");
    }
}

#[test]
fn the_band_moves_by_an_eighth_and_a_quarter() {
    let mut host = host(2);
    host.now_ms = 20;
    sample(&mut host, 1, 28_000);
    host.measured();
    // Centre 20 + 8/8 = 21, variation 5 * 3/4 + 8/4 = 5.75: 21 + 11.5 = 32.5 ms.
    assert!((edge_us(&host, 1) - 32_500.0).abs() < 0.01);
    // No acknowledgement since: the sample is not taken twice.
    host.now_ms = 40;
    host.measured();
    assert!((edge_us(&host, 1) - 32_500.0).abs() < 0.01);
}

#[test]
fn with_constant_delay_the_floor_is_what_keeps_a_path() {
    let mut host = Host::new(Pu2m2::new(Pu2m2Settings::default()), 2);
    (0..2).for_each(|id| host.view(id).rtt_variation = Duration::ZERO);
    host.measured();
    host.now_ms = 20;
    sample(&mut host, 1, 25_000);
    assert_eq!(host.measured(), []);
}

#[test]
fn of_two_paths_that_turn_bad_at_once_the_worse_goes_and_the_other_stays() {
    let mut host = host(2);
    host.now_ms = 20;
    sample(&mut host, 0, 40_000);
    sample(&mut host, 1, 35_000);
    assert_eq!(host.measured(), [suspend(0)]);
}

#[test]
fn a_timeout_removes_a_path_unless_it_is_the_last() {
    let mut host = host(2);
    assert_eq!(host.timeout(0), [suspend(0)]);
    assert_eq!(host.timeout(1), []);
    assert_eq!(host.active(), [1]);
}

#[test]
fn what_was_sent_before_the_removal_does_not_bring_a_path_back() {
    let mut host = host(2);
    assert_eq!(host.timeout(1), [suspend(1)]);
    host.now_ms = 100;
    sample(&mut host, 1, 20_000);
    assert_eq!(host.measured(), []);
    host.now_ms = 200;
    assert_eq!(host.measured(), [probe(1)]);
    host.now_ms = 220;
    sample(&mut host, 1, 20_000);
    assert_eq!(host.measured(), [resume(1)]);
}

#[test]
fn a_removed_path_that_answers_takes_over_from_a_dead_one_even_outside_its_band() {
    let mut host = host(2);
    host.timeout(0);
    host.timeout(1);
    host.now_ms = 300;
    sample(&mut host, 0, 500_000);
    assert_eq!(host.measured(), [resume(0)]);
    // With another active, the dead one can go.
    assert_eq!(host.measured(), [suspend(1)]);
}

#[test]
fn a_receive_buffer_that_blocks_is_no_reason_to_look_at_paths() {
    let mut host = host(2);
    host.timeout(0);
    host.timeout(1);
    host.now_ms = 300;
    sample(&mut host, 0, 500_000);
    assert_eq!((host.blocked(), host.receiver_blocked()), (vec![], vec![]));
    assert_eq!(host.measured(), [resume(0)]);
}

#[test]
fn a_priority_that_the_peer_changes_brings_no_path_back() {
    let mut host = host(2);
    assert_eq!(host.timeout(1), [suspend(1)]);
    assert_eq!((host.priority(1, true), host.priority(1, false)), (vec![], vec![]));
}

#[test]
fn a_subflow_that_was_just_opened_is_active() {
    let mut host = host(2);
    assert_eq!(host.timeout(1), [suspend(1)]);
    host.views.push(crate::scheduler::tests::subflow(2, 20));
    let (connection, subflow, local, remote) = (ConnectionId(1), SubflowId(2), AddressId(3), AddressId(0));
    host.tell(&PathEvent::SubflowEstablished { connection, subflow, local, remote, backup: false });
    assert_eq!(host.closed(0), []);
}

#[test]
fn a_story_delay_jumps_and_the_path_flaps_until_the_band_has_followed() {
    let mut host = host(2);
    host.now_ms = 20;
    sample(&mut host, 1, 60_000);
    assert_eq!(host.measured(), [suspend(1)]);
    // Centre 25, variation 13.75: the edge is at 52.5 ms. Data sent before the removal does not count.
    assert!((edge_us(&host, 1) - 52_500.0).abs() < 0.01);
    // The first probe, one timeout after the removal, finds the same 60 ms: still outside.
    host.now_ms = 220;
    assert_eq!(host.measured(), [probe(1)]);
    host.now_ms = 280;
    sample(&mut host, 1, 60_000);
    assert_eq!(host.measured(), []);
    // Centre 29.375, variation 13.75 * 3/4 + 35/4 = 19.0625: the edge is at 67.5 ms, and the third finds itself inside.
    assert!((edge_us(&host, 1) - 67_500.0).abs() < 0.01);
    host.now_ms = 420;
    assert_eq!(host.measured(), [probe(1)]);
    host.now_ms = 480;
    sample(&mut host, 1, 60_000);
    assert_eq!(host.measured(), [resume(1)]);
    // Then it times out, its address is gone, and the connection ends.
    host.now_ms = 900;
    assert_eq!(host.timeout(1), [suspend(1)]);
    assert_eq!(host.closed(0), [resume(1)]);
    assert_eq!(host.closed(1), []);
    host.tell(&PathEvent::ConnectionClosed { connection: ConnectionId(1) });
    assert!(host.manager.connections.is_empty());
}

#[test]
fn how_far_a_sample_is_out_is_told_by_the_centre_if_there_is_one() {
    let settings = Pu2m2Settings::default();
    let excess = |centre_ms: u64| {
        let mut view = crate::scheduler::tests::subflow(0, centre_ms);
        let mut band = Band::new(&view);
        (view.latest_rtt, view.last_progress) = (Duration::from_millis(30), crate::scheduler::tests::at(1));
        band.take(&settings, &view);
        band.excess
    };
    assert_eq!((excess(20), excess(60), excess(0)), (1.5, 0.5, 1.0));
}

#[test]
fn when_the_last_path_ends_the_removed_one_with_the_shortest_round_trip_comes_back() {
    let mut host = host(3);
    for (id, millis) in [(0, 20), (1, 60), (2, 40)] {
        host.view(id).smoothed_rtt = Duration::from_millis(millis);
    }
    host.measured();
    assert_eq!([host.timeout(1), host.timeout(2)], [[suspend(1)], [suspend(2)]]);
    assert_eq!(host.closed(0), [resume(2)]);
}

#[test]
fn of_paths_that_are_not_established_nothing_is_known_and_of_the_others_it_stays() {
    let mut host = host(2);
    host.now_ms = 20;
    sample(&mut host, 0, 28_000);
    host.view(1).state = SubflowState::Closing;
    host.measured();
    // Two measurements more: the centre of path 0 is not the 20 ms of one that is seen for the first time.
    host.measured();
    let bands = &host.manager.connections[&ConnectionId(1)].memory.bands;
    assert!(bands.get(SubflowId(1)).is_none());
    assert!((edge_us(&host, 0) - 32_500.0).abs() < 0.01);
}
