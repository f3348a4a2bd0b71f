//! BALIA, "Balanced Linked Adaptation": a compromise between LIA's responsiveness and OLIA's friendliness, by a rule on
//! the rates.
//!
//! With x_k = w_k / s_k the rate of path k (bytes per second) and a = max x_k / x_r (at least 1), each
//! acknowledgement on path r in congestion avoidance adds
//!
//! x_r / (s_r (sum of x_k)^2) (1 + a) / 2 (4 + a) / 5 acked mss_r,
//!
//! and a loss reduces the window by w_r / 2 min(a, 1.5): half of the window on the fastest path, up to three quarters
//! on slower ones. Slow start is standard; the least threshold is one segment when there are several paths.
//!
//! Source: Peng, Walid, Hwang, Low: Multipath TCP: Analysis, Design, and Implementation (IEEE/ACM ToN 2016);
//! draft-walid-mptcp-congestion-control-04.
//!
//! Choices: w is the used window in the rates (see `coupled`), but no less than one segment in x_r; after a timeout
//! the threshold is half the flight size, as in standard TCP.

use super::CongestionControl;
use super::coupled::{Coupled, Coupling, Path};
use super::slow_start::HYSTART_OFF;
use crate::ids::SubflowMap;
use crate::table::{Member, Reader, SettingError};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "balia",
    summary: "Balanced linked adaptation: slower paths grow and shrink by more than LIA's, by how much slower they are.",
    source: "Peng et al., ToN 2016; draft-walid-mptcp-congestion-control-04",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    Ok(Box::new(Coupled::<Balia>::new(reader.read(&HYSTART_OFF)?)))
}

/// The rule.
#[derive(Debug)]
enum Balia {}

/// Rates in the rule, in bytes per second.
struct Rates {
    /// x_r, of the path itself.
    own: f64,
    /// The largest.
    largest: f64,
    /// The sum.
    total: f64,
}

impl Rates {
    fn of(paths: &SubflowMap<Path<()>>, path: &Path<()>) -> Self {
        let own = path.used_window().max(path.window.mss() as f64) * path.inverse_rtt;
        let (mut largest, mut total) = (own, 0.0);
        for other in paths.values() {
            let rate = other.rate();
            largest = largest.max(rate);
            total += rate;
        }
        Self { own, largest, total: total.max(own) }
    }
    /// a, at least 1; 1 when no rate is known.
    fn alpha(&self) -> f64 {
        if self.own > 0.0 { self.largest / self.own } else { 1.0 }
    }
}

impl Coupling for Balia {
    type Record = ();
    const FLOOR_OF_SEVERAL: u64 = 1;

    fn increase(paths: &SubflowMap<Path<()>>, path: &Path<()>) -> f64 {
        let rates = Rates::of(paths, path);
        if rates.total <= 0.0 {
            return 1.0 / path.window.cwnd() as f64;
        }
        let alpha = rates.alpha();
        let linked = rates.own * path.inverse_rtt / (rates.total * rates.total);
        linked * ((1.0 + alpha) / 2.0) * ((4.0 + alpha) / 5.0)
    }
    fn keep(paths: &SubflowMap<Path<()>>, path: &Path<()>) -> f64 {
        1.0 - 0.5 * Rates::of(paths, path).alpha().min(1.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::coupled::{in_avoidance, increase_on};
    use crate::congestion::harness::{close_to, id, loss, timeout};

    // Rates: 20/0.01 = 2000 and 10/0.02 = 500 segments per second, sum 2500; a = 1 and 4.

    #[test]
    fn the_increase_is_scaled_up_on_the_slower_path() {
        let balia = in_avoidance::<Balia>(&[(20, 10, ()), (10, 20, ())]);
        // 2000/(0.01 * 2500^2) * 1 * 1 = 0.032.
        close_to(increase_on(&balia, 0), 0.032, 1e-12);
        // 500/(0.02 * 2500^2) * 5/2 * 8/5 = 0.004 * 4 = 0.016.
        close_to(increase_on(&balia, 1), 0.016, 1e-12);
    }

    #[test]
    fn a_loss_takes_half_on_the_fastest_path_and_three_quarters_on_a_much_slower_one() {
        let mut balia = in_avoidance::<Balia>(&[(20, 10, ()), (10, 20, ())]);
        balia.on_congestion(id(1), &loss(10_000));
        assert_eq!(balia.window(id(1)), 2_500);
        balia.on_congestion(id(0), &loss(20_000));
        assert_eq!(balia.window(id(0)), 10_000);
    }

    #[test]
    fn a_loss_on_a_slightly_slower_path_takes_the_share_between() {
        // Rates 2000 and 1600: a = 1.25, so the window falls by 62.5 %, from 16 to 6 segments.
        let mut balia = in_avoidance::<Balia>(&[(20, 10, ()), (16, 10, ())]);
        balia.on_congestion(id(1), &loss(16_000));
        assert_eq!(balia.window(id(1)), 6_000);
    }

    #[test]
    fn alone_it_is_standard_tcp() {
        let mut balia = in_avoidance::<Balia>(&[(25, 40, ())]);
        close_to(increase_on(&balia, 0), 1.0 / 25.0, 1e-12);
        balia.on_congestion(id(0), &loss(25_000));
        assert_eq!(balia.window(id(0)), 12_500);
    }

    #[test]
    fn a_timeout_halves_the_flight_as_in_standard_tcp() {
        let mut balia = in_avoidance::<Balia>(&[(20, 10, ()), (10, 20, ())]);
        balia.on_congestion(id(1), &timeout(8_000));
        assert_eq!((balia.window(id(1)), balia.ssthresh(id(1))), (1_000, 4_000));
    }
}
