use super::*;

const ONE: SubflowId = SubflowId(0);
const OTHER: SubflowId = SubflowId(1);

/// The result after this many seconds with two queues, each a function of the bin, in milliseconds.
fn after(seconds: u64, queues: [fn(u64) -> f64; 2]) -> bool {
    let mut detector = SharedBottleneck::default();
    detector.add(ONE);
    detector.add(OTHER);
    for sample in 0..seconds * 100 {
        let sent = Instant::ZERO + Duration::from_millis(10) * sample;
        for (id, queue) in [ONE, OTHER].into_iter().zip(queues) {
            // The paths' base delays differ; the time of sending determines the queue.
            let base = if id == ONE { 40.0 } else { 95.0 };
            let rtt = Duration::from_secs_f64((base + queue(sample / 10)) / 1e3);
            detector.on_rtt(id, sent + rtt, rtt);
        }
    }
    detector.beside(ONE).eq([OTHER])
}

/// A pseudo-random number from 0 to `most`.
fn drawn(bin: u64, salt: u64, most: f64) -> f64 {
    let mixed = (bin + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 40) as f64 / (1u64 << 24) as f64 * most
}

#[test]
fn delays_that_move_together_share() {
    assert!(after(10, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, 1, 20.0) + drawn(bin, 2, 5.0)]));
}

#[test]
fn delays_of_their_own_do_not() {
    assert!(!after(10, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, 2, 20.0)]));
    // At first nothing is known.
    assert!(after(1, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, 2, 20.0)]));
}

#[test]
fn two_queues_that_both_fill_are_two() {
    assert!(!after(10, [|bin| bin as f64 * 0.5 + drawn(bin, 1, 6.0), |bin| bin as f64 * 0.5 + drawn(bin, 2, 6.0)]));
}

#[test]
fn two_queues_that_fill_at_different_rates_are_two() {
    // 20 and 5 ms in a second, and 0.3 ms of noise; they empty after 8 and 11 s.
    let steep = |bin: u64| (bin % 80) as f64 * 2.0 + drawn(bin, 1, 0.3);
    let flat = |bin: u64| (bin % 110) as f64 * 0.5 + drawn(bin, 2, 0.3);
    for seconds in [10, 20, 30] {
        assert!(!after(seconds, [steep, flat]), "{seconds}");
    }
}

#[test]
fn a_long_queue_that_fills_slowly_is_one_whatever_the_hosts_add() {
    for seconds in [10, 20, 30] {
        assert!(after(
            seconds,
            [
                |bin| (bin % 80) as f64 * 2.0 + drawn(bin, 1, 2.0),
                |bin| { (bin % 80) as f64 * 2.0 + drawn(bin, 2, 2.0) }
            ]
        ));
    }
}

#[test]
fn a_delay_that_moves_beside_one_that_does_not_is_of_another_queue() {
    assert!(!after(10, [|bin| drawn(bin, 1, 40.0), |bin| drawn(bin, 2, 0.2)]));
    assert!(after(10, [|bin| drawn(bin, 1, 4.0), |bin| drawn(bin, 2, 0.2)]), "too little to say");
}

#[test]
fn where_no_queue_moves_nothing_is_decided() {
    assert!(after(10, [|bin| drawn(bin, 1, 0.2), |bin| drawn(bin, 2, 0.2)]));
}

#[test]
fn a_bottleneck_that_comes_to_be_shared_is_found_and_one_that_no_longer_is_too() {
    assert!(after(20, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, if bin < 100 { 2 } else { 1 }, 20.0),]));
    assert!(!after(20, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, if bin < 100 { 1 } else { 2 }, 20.0),]));
}

/// The detector's result after 20 s of a slow path, with its own queue of `own` seconds from the third second on,
/// and another path. `queue` (milliseconds, a function of the time in seconds) delays both.
fn beside_a_slow_path(own: f64, queue: fn(f64) -> f64) -> bool {
    let mut detector = SharedBottleneck::default();
    detector.add(ONE);
    detector.add(OTHER);
    for sample in 0..100_u64 {
        // Every 200 ms: almost never two bins in a row.
        let at = sample as f64 * 0.2;
        let standing = if at < 3.0 { 0.0 } else { own };
        for (id, rtt) in [(ONE, 0.1 + standing + queue(at) / 1e3), (OTHER, 0.05 + queue(at) / 1e3)] {
            let rtt = Duration::from_secs_f64(rtt);
            detector.on_rtt(id, Instant::ZERO + Duration::from_secs_f64(at) + rtt, rtt);
        }
    }
    detector.beside(ONE).eq([OTHER])
}

#[test]
fn a_queue_that_stands_beside_an_empty_one_is_another() {
    assert!(!beside_a_slow_path(3.0, |_| 1.0));
    // The other's queue is less than a tenth of it.
    assert!(!beside_a_slow_path(3.0, |at| drawn((at * 10.0) as u64, 1, 250.0)));
}

#[test]
fn a_queue_that_stands_on_both_may_be_one() {
    assert!(beside_a_slow_path(0.0, |at| if at < 3.0 { 0.0 } else { 300.0 }));
    // Nothing can be detected without a queue.
    assert!(beside_a_slow_path(0.0, |_| 1.0));
}

#[test]
fn a_subflow_that_ended_is_forgotten() {
    let mut detector = SharedBottleneck::default();
    detector.add(ONE);
    detector.add(OTHER);
    assert!(detector.beside(ONE).eq([OTHER]) && detector.beside(OTHER).eq([ONE]));
    detector.remove(OTHER);
    assert!(detector.beside(ONE).eq([]));
    assert!(detector.pairs.is_empty() && detector.series.len() == 1);
}

#[test]
fn who_shares_is_known_whatever_the_numbers_are() {
    let beside = |ids: [u32; 3]| {
        let mut detector = SharedBottleneck::default();
        ids.iter().for_each(|id| detector.add(SubflowId(*id)));
        detector.pairs[0].shared = false;
        detector.record_beside();
        ids.map(|id| detector.beside(SubflowId(id)).map(|other| other.0).collect::<Vec<_>>())
    };
    assert_eq!(beside([0, 1, 31]), [vec![31], vec![31], vec![0, 1]]);
    assert_eq!(beside([0, 1, 40]), [vec![40], vec![40], vec![0, 1]]);
}

#[test]
fn a_span_counts_when_the_next_begins_if_it_has_enough_samples() {
    let closes = |samples: u32| {
        let mut spans = Spans::NONE;
        for _ in 0..samples {
            assert_eq!(spans.take(0, 0.05), None);
        }
        spans.take(SPAN, 0.05)
    };
    assert_eq!(closes(SAMPLES), Some(0));
    assert_eq!(closes(SAMPLES - 1), None);
}

#[test]
fn of_two_successive_bins_the_first_is_kept_too() {
    let mut series = Series::NONE;
    let first = 2 * KEPT as u32 + 3;
    series.close((first - 5, 0.125));
    series.close((first, 0.25));
    assert_eq!(series.mean(first), None, "nothing to compare it with");
    series.close((first + 1, 0.5));
    assert_eq!([first - 5, first, first + 1].map(|bin| series.mean(bin)), [None, Some(0.25), Some(0.5)]);
}
