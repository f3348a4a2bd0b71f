//! BBR alone on a path: nearly full goodput with a short queue, through random loss and after an outage.

use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::reference::{Bottleneck, PACKET, SEGMENT, connection, direct, goodput};
use anabranch_sim::{Change, LinkId};

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Goodput of the seconds 5 to 25 as a share of the path's capacity.
fn share(path: Bottleneck) -> f64 {
    let (mut world, _) = direct(1, &[path], &connection("bbr", false));
    let most = path.rate().bits_per_second() as f64 * 1e-6 * (1.0 - path.loss) * f64::from(SEGMENT) / f64::from(PACKET);
    goodput(&mut world, 0, at(5), at(25)) / most
}

#[test]
fn bbr_fills_a_path_whatever_its_queue_and_round_trip() {
    // ProbeRTT takes 2 % and the margin of pacing 1 %; a queue of a tenth of the product is less than a probe needs.
    for (mbit, delay_ms, queue, least) in [(10, 25, 43, 0.95), (10, 25, 4, 0.88), (10, 5, 9, 0.95), (1, 25, 4, 0.93)] {
        let share = share(Bottleneck::new(mbit, delay_ms, queue));
        assert!((least..=1.01).contains(&share), "{mbit} Mbit/s, {delay_ms} ms, {queue}: {share}");
    }
}

#[test]
fn random_loss_below_its_threshold_costs_bbr_little_on_a_short_path() {
    let path = |loss| Bottleneck { loss, ..Bottleneck::new(10, 5, 9) };
    let (half, one) = (share(path(0.005)), share(path(0.01)));
    assert!(half > 0.93 && one > 0.9, "{half} {one}");
}

#[test]
fn bbr_is_back_two_seconds_after_an_outage_of_three() {
    let (mut world, _) = direct(1, &[Bottleneck::new(10, 25, 43)], &connection("bbr", false));
    for link in 0..world.results().links.len() as u32 {
        world.schedule(at(10), Change::LinkState(LinkId(link), false));
        world.schedule(at(13), Change::LinkState(LinkId(link), true));
    }
    let rate = goodput(&mut world, 0, at(15), at(20));
    assert!(rate > 0.9 * 9.6, "{rate}");
}
