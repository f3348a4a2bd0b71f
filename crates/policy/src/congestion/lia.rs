//! LIA, "Linked Increases" (RFC 6356): together the subflows get the throughput of one TCP on their best path.
//!
//! In congestion avoidance each acknowledgement on subflow i adds
//!
//! min(alpha acked mss_i / w_total, acked mss_i / w_i) (equation 1),
//! alpha = w_total max(w_j / s_j^2) / (sum of w_j / s_j)^2 (equation 2);
//!
//! w_total cancels out. Windows are bytes, round-trip times seconds. Losses halve as in standard TCP, to two segments
//! at least.
//!
//! With `failed_after` the sums and the largest leave out subflows after this many consecutive timeouts, as the module
//! "multipath-tcp" for ns-2 does after two (MptcpAgent::calculate_alpha(), Nishida, WIDE project; its back-off of 4 or
//! more).
//!
//! Deviations: none known; w is the used window throughout, and alpha is computed at every acknowledgement (see
//! `coupled`).

use super::CongestionControl;
use super::coupled::{Coupled, Coupling, FAILED_AFTER, Path};
use super::slow_start::HYSTART_OFF;
use crate::ids::SubflowMap;
use crate::table::{Member, Reader, SettingError};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "lia",
    summary: "Linked increases: together the subflows take what one TCP would on the best path.",
    source: "RFC 6356",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    let lia = Coupled::<Lia>::new(reader.read(&HYSTART_OFF)?);
    Ok(Box::new(lia.without_failed(reader.read(&FAILED_AFTER)?)))
}

/// The rule.
#[derive(Debug)]
enum Lia {}

impl Coupling for Lia {
    type Record = ();
    const FLOOR_OF_SEVERAL: u64 = 2;

    fn increase(paths: &SubflowMap<Path<()>>, path: &Path<()>) -> f64 {
        let (mut best, mut total) = (0.0f64, 0.0f64);
        for other in paths.values().filter(|other| !other.failed) {
            let rate = other.rate();
            total += rate;
            best = best.max(rate * other.inverse_rtt);
        }
        let alone = 1.0 / path.window.cwnd() as f64;
        if total > 0.0 { (best / (total * total)).min(alone) } else { alone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Sent;
    use crate::congestion::coupled::{in_avoidance, increase_on};
    use crate::congestion::harness::{NOW, ack, add_path, close_to, id, loss, timeout};
    use crate::table::Settings;

    #[test]
    fn two_paths_share_an_alpha_of_0_96() {
        // w/s^2: 20/0.01^2 = 200000 and 10/0.02^2 = 25000; sum of w/s: 2000 + 500 = 2500.
        // alpha = 30 * 200000 / 2500^2 = 0.96, so each segment acknowledged adds 0.96/30 = 0.032, on either path.
        let lia = in_avoidance::<Lia>(&[(20, 10, ()), (10, 20, ())]);
        close_to(increase_on(&lia, 0), 0.032, 1e-12);
        close_to(increase_on(&lia, 1), 0.032, 1e-12);
    }

    #[test]
    fn no_path_grows_faster_than_tcp_would_there() {
        // w/s^2: 100/0.1^2 = 10000 and 10/0.01^2 = 100000; sum of w/s: 1000 + 1000 = 2000; coupled: 100000/2000^2 = 0.025.
        // TCP: 1/100 on the first path, 1/10 on the second.
        let lia = in_avoidance::<Lia>(&[(100, 100, ()), (10, 10, ())]);
        close_to(increase_on(&lia, 0), 0.01, 1e-12);
        close_to(increase_on(&lia, 1), 0.025, 1e-12);
    }

    #[test]
    fn alone_it_is_standard_tcp() {
        let lia = in_avoidance::<Lia>(&[(25, 40, ())]);
        close_to(increase_on(&lia, 0), 1.0 / 25.0, 1e-12);
    }

    #[test]
    fn a_path_that_carries_nothing_does_not_slow_the_others() {
        let mut lia = in_avoidance::<Lia>(&[(20, 10, ()), (10, 20, ())]);
        lia.paths.get_mut(id(1)).expect("added").in_flight = 0;
        close_to(increase_on(&lia, 0), 1.0 / 20.0, 1e-12);
    }

    #[test]
    fn what_is_in_flight_is_known_when_something_is_sent() {
        let mut lia = in_avoidance::<Lia>(&[(20, 10, ()), (10, 20, ())]);
        // One segment is in flight there: w/s = 1/0.02 = 50 beside 2000, and w/s^2 = 200000 on the first.
        let sent = Sent { now: NOW, bytes: 1_000, in_flight: 1_000, app_limited: true, total_delivered: 0 };
        lia.on_sent(id(1), &sent);
        close_to(increase_on(&lia, 0), 200_000.0 / (2_050.0 * 2_050.0), 1e-12);
    }

    #[test]
    fn a_path_that_has_failed_takes_no_part_until_something_is_acknowledged_there() {
        let mut lia = in_avoidance::<Lia>(&[(20, 10, ()), (10, 20, ())]).without_failed(Some(2));
        // One segment is in flight there: w/s = 1/0.02 = 50 beside 2000, and w/s^2 = 200000 on the first.
        lia.on_congestion(id(1), &timeout(1_000));
        lia.paths.get_mut(id(1)).expect("added").in_flight = 1_000;
        close_to(increase_on(&lia, 0), 200_000.0 / (2_050.0 * 2_050.0), 1e-12);
        lia.on_congestion(id(1), &timeout(1_000));
        close_to(increase_on(&lia, 0), 1.0 / 20.0, 1e-12);
        lia.on_ack(id(1), &ack(1_000, 20));
        lia.paths.get_mut(id(1)).expect("added").in_flight = 1_000;
        assert!(increase_on(&lia, 0) < 1.0 / 20.0);
    }

    #[test]
    fn how_many_timeouts_are_a_failure_is_a_number_or_never() {
        let built = |text: &str| Settings::new().with("failed_after", text).read(build);
        assert!(built("never").is_ok() && built("2").is_ok());
        assert!(built("0").is_err() && built("always").is_err());
    }

    #[test]
    fn acknowledgements_add_up_to_the_increase_of_equation_1() {
        let mut lia = in_avoidance::<Lia>(&[(20, 10, ()), (10, 20, ())]);
        lia.on_ack(id(0), &ack(2_000, 10));
        // Two segments at 0.032 segments each: 64 bytes.
        assert_eq!(lia.window(id(0)), 20_064);
        assert_eq!(lia.window(id(1)), 10_000);
    }

    #[test]
    fn slow_start_is_not_coupled_and_a_loss_halves_one_window_only() {
        let mut lia = Coupled::<Lia>::new(false);
        add_path(&mut lia, 0);
        add_path(&mut lia, 1);
        lia.on_ack(id(0), &ack(2_000, 10));
        assert_eq!(lia.window(id(0)), 12_000);
        lia.on_congestion(id(0), &loss(12_000));
        assert_eq!((lia.window(id(0)), lia.ssthresh(id(0))), (6_000, 6_000));
        assert_eq!((lia.window(id(1)), lia.ssthresh(id(1))), (10_000, u64::MAX));
        for _ in 0..5 {
            lia.on_congestion(id(0), &loss(1_000));
        }
        assert_eq!(lia.window(id(0)), 2_000);
    }
}
