//! OLIA, "Opportunistic Linked Increases": moves window from the paths with the largest windows to those that lose
//! least.
//!
//! In congestion avoidance each acknowledgement on path r adds, windows w in bytes and round-trip times s in seconds,
//!
//! ((w_r / s_r^2) / (sum of w_p / s_p)^2 + alpha_r / w_r) acked mss_r.
//!
//! Let l_p be the bytes delivered between the last two losses on p, or since the last one if that is more; B the paths
//! with the largest l_p^2 / s_p; M those with the largest window; n the number of paths. Then alpha_r is
//! 1 / (n |B \ M|) on the paths in B but not in M, -1 / (n |M|) on those in M if there are such, and 0 elsewhere:
//! alphas add up to zero. Losses halve; slow start is standard, but the least threshold is one segment when
//! there are several paths, so that a congested path is not loaded needlessly.
//!
//! Source: Khalili, Gast, Popovic, Le Boudec: MPTCP is not Pareto-optimal (CoNEXT 2012); draft-khalili-mptcp-
//! congestion-control-05. The code once widely used in Linux ranks paths by l / s^2, in which TCP's rate is
//! sqrt(2 l) / s; taken here is l^2 / s, the rule as written in the draft.
//!
//! Choices: n, B and M are taken over the paths on which something was acknowledged, with `failed_after` without those
//! with that many consecutive timeouts; w in the first term is the used window (see `coupled`), in M and in alpha_r /
//! w_r the window itself. Windows less than one segment apart count as equal in M, as they do where windows are counted
//! in whole segments: compared to the byte, two paths alike would take turns in being the larger one, and while the
//! acknowledgements of one come in a burst it would be held back to the other's window instead of growing.

use super::CongestionControl;
use super::coupled::{Coupled, Coupling, FAILED_AFTER, Path};
use super::slow_start::HYSTART_OFF;
use crate::ids::SubflowMap;
use crate::table::{Member, Reader, SettingError};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "olia",
    summary: "Opportunistic linked increases: as LIA, but window moves to the paths that lose least.",
    source: "Khalili et al., CoNEXT 2012; draft-khalili-mptcp-congestion-control-05",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    let olia = Coupled::<Olia>::new(reader.read(&HYSTART_OFF)?);
    Ok(Box::new(olia.without_failed(reader.read(&FAILED_AFTER)?)))
}

/// The rule.
#[derive(Debug)]
enum Olia {}

/// Bytes delivered between losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Delivered {
    /// Between the last two losses (l_1r).
    between_losses: u64,
    /// Since the last loss (l_2r).
    since_loss: u64,
}

impl Path<Delivered> {
    /// Whether it takes part: something was acknowledged here, and it has not failed.
    fn takes_part(&self) -> bool {
        self.inverse_rtt > 0.0 && !self.failed
    }
    /// l^2 / s: the presumed quality of the path.
    fn merit(&self) -> f64 {
        let bytes = self.record.between_losses.max(self.record.since_loss) as f64;
        bytes * bytes * self.inverse_rtt
    }
}

/// The sizes of the sets, the sum of rates, and the criteria of membership.
struct Sets {
    /// Number of paths.
    paths: f64,
    /// Largest window.
    largest: u64,
    /// Largest merit.
    best: f64,
    /// Number of paths with the largest window: |M|.
    with_largest: f64,
    /// Number of best paths without it: |B \ M|.
    collected: f64,
    /// Sum of w / s.
    rate: f64,
}

impl Sets {
    fn of(paths: &SubflowMap<Path<Delivered>>) -> Self {
        let mut sets = Self { paths: 0.0, largest: 0, best: 0.0, with_largest: 0.0, collected: 0.0, rate: 0.0 };
        for path in paths.values().filter(|path| path.takes_part()) {
            sets.paths += 1.0;
            sets.rate += path.rate();
            sets.largest = sets.largest.max(path.window.cwnd());
            sets.best = sets.best.max(path.merit());
        }
        for path in paths.values().filter(|path| path.takes_part()) {
            if sets.is_largest(path) {
                sets.with_largest += 1.0;
            } else if sets.is_best(path) {
                sets.collected += 1.0;
            }
        }
        sets
    }
    fn is_largest(&self, path: &Path<Delivered>) -> bool {
        path.window.cwnd().saturating_add(path.window.mss()) > self.largest
    }
    fn is_best(&self, path: &Path<Delivered>) -> bool {
        path.merit() == self.best
    }
    fn alpha(&self, path: &Path<Delivered>) -> f64 {
        if self.collected == 0.0 {
            0.0
        } else if self.is_largest(path) {
            -1.0 / (self.paths * self.with_largest)
        } else if self.is_best(path) {
            1.0 / (self.paths * self.collected)
        } else {
            0.0
        }
    }
}

impl Coupling for Olia {
    type Record = Delivered;
    const FLOOR_OF_SEVERAL: u64 = 1;

    fn increase(paths: &SubflowMap<Path<Delivered>>, path: &Path<Delivered>) -> f64 {
        let sets = Sets::of(paths);
        let alone = 1.0 / path.window.cwnd() as f64;
        let linked = if sets.rate > 0.0 { path.rate() * path.inverse_rtt / (sets.rate * sets.rate) } else { alone };
        linked + sets.alpha(path) * alone
    }
    fn on_delivered(record: &mut Delivered, bytes: u64) {
        record.since_loss = record.since_loss.saturating_add(bytes);
    }
    fn on_loss(record: &mut Delivered) {
        *record = Delivered { between_losses: record.since_loss, since_loss: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::coupled::{in_avoidance, increase_on};
    use crate::congestion::harness::{NOW, ack, close_to, id, loss, timeout};

    fn delivered(between_losses: u64, since_loss: u64) -> Delivered {
        Delivered { between_losses, since_loss }
    }

    #[test]
    fn window_moves_from_the_largest_path_to_the_best_one() {
        // Merit: 100^2/0.01 = 1.0e6 and 200^2/0.02 = 2.0e6 (segments): the second is best, the first has the largest
        // window. Linked terms: (20/0.01^2)/2500^2 = 0.032 and (10/0.02^2)/2500^2 = 0.004. alpha: -1/2 and +1/2, so
        // 0.032 - 0.5/20 = 0.007 and 0.004 + 0.5/10 = 0.054.
        let olia = in_avoidance::<Olia>(&[(20, 10, delivered(100_000, 0)), (10, 20, delivered(50_000, 200_000))]);
        close_to(increase_on(&olia, 0), 0.007, 1e-12);
        close_to(increase_on(&olia, 1), 0.054, 1e-12);
    }

    #[test]
    fn nothing_moves_when_the_best_path_has_the_largest_window() {
        let olia = in_avoidance::<Olia>(&[(20, 10, delivered(300_000, 0)), (10, 20, delivered(50_000, 200_000))]);
        close_to(increase_on(&olia, 0), 0.032, 1e-12);
        close_to(increase_on(&olia, 1), 0.004, 1e-12);
    }

    #[test]
    fn with_three_paths_the_one_in_neither_set_keeps_the_linked_increase() {
        // All at 10 ms: linked terms w/(sum w)^2 = 20/1600, 12/1600, 8/1600. M = {0}, B = {2}, n = 3.
        let paths = [(20, 10, delivered(1_000, 0)), (12, 10, delivered(2_000, 0)), (8, 10, delivered(9_000, 0))];
        let olia = in_avoidance::<Olia>(&paths);
        close_to(increase_on(&olia, 0), 20.0 / 1600.0 - 1.0 / 3.0 / 20.0, 1e-12);
        close_to(increase_on(&olia, 1), 12.0 / 1600.0, 1e-12);
        close_to(increase_on(&olia, 2), 8.0 / 1600.0 + 1.0 / 3.0 / 8.0, 1e-12);
    }

    #[test]
    fn equal_windows_share_the_sacrifice() {
        // M = {0, 1}, B = {2}: -1/(3*2) on each of the two, +1/3 on the third.
        let paths = [(20, 10, delivered(1_000, 0)), (20, 10, delivered(2_000, 0)), (10, 10, delivered(9_000, 0))];
        let olia = in_avoidance::<Olia>(&paths);
        for index in [0, 1] {
            close_to(increase_on(&olia, index), 20.0 / 2500.0 - 1.0 / 6.0 / 20.0, 1e-12);
        }
        close_to(increase_on(&olia, 2), 10.0 / 2500.0 + 1.0 / 3.0 / 10.0, 1e-12);
    }

    #[test]
    fn windows_less_than_a_segment_apart_count_as_equal() {
        let mut olia = in_avoidance::<Olia>(&[(20, 10, delivered(1_000, 0)), (20, 10, delivered(9_000, 0))]);
        olia.paths.get_mut(id(1)).expect("added").window.add(-999.0);
        assert_eq!(Sets::of(&olia.paths).collected, 0.0);
        olia.paths.get_mut(id(1)).expect("added").window.add(-1.0);
        assert_eq!(Sets::of(&olia.paths).collected, 1.0);
    }

    #[test]
    fn a_shrinking_window_stops_at_one_segment() {
        // Equal except for the losses: the larger one shrinks, since linked 2/9 minus 0.5/2 per segment is negative.
        let mut olia = in_avoidance::<Olia>(&[(2, 10, delivered(0, 0)), (1, 10, delivered(900_000, 0))]);
        assert!(increase_on(&olia, 0) < 0.0);
        for _ in 0..10_000 {
            olia.on_ack(id(0), &ack(1_000, 10));
            assert!(olia.window(id(0)) >= 1_000);
        }
    }

    #[test]
    fn a_path_that_has_failed_is_in_none_of_the_sets() {
        // If it counted it would be the best, and would get window from the other.
        let paths = [(20, 10, delivered(50_000, 0)), (10, 10, delivered(900_000, 0))];
        let mut olia = in_avoidance::<Olia>(&paths).without_failed(Some(1));
        assert!(increase_on(&olia, 0) < 1.0 / 30.0);
        olia.on_congestion(id(1), &timeout(10_000));
        close_to(increase_on(&olia, 0), 1.0 / 20.0, 1e-12);
    }

    #[test]
    fn losses_shift_the_counts_and_an_error_shifts_them_back() {
        let mut olia = in_avoidance::<Olia>(&[(20, 10, delivered(7, 5_000)), (10, 20, delivered(1, 1))]);
        olia.on_congestion(id(0), &loss(20_000));
        assert_eq!(olia.paths.get(id(0)).expect("added").record, delivered(5_000, 0));
        olia.on_spurious(id(0), NOW);
        assert_eq!(olia.paths.get(id(0)).expect("added").record, delivered(7, 5_000));
        assert_eq!(olia.window(id(0)), 20_000);
    }

    #[test]
    fn the_least_threshold_is_one_segment_among_several_paths_and_two_alone() {
        let mut several = in_avoidance::<Olia>(&[(2, 10, delivered(0, 0)), (1, 10, delivered(0, 0))]);
        several.on_congestion(id(0), &loss(2_000));
        assert_eq!(several.ssthresh(id(0)), 1_000);
        let mut alone = in_avoidance::<Olia>(&[(2, 10, delivered(0, 0))]);
        alone.on_congestion(id(0), &loss(2_000));
        assert_eq!(alone.ssthresh(id(0)), 2_000);
    }

    #[test]
    fn before_a_round_trip_is_known_a_path_grows_like_standard_tcp() {
        let mut olia = in_avoidance::<Olia>(&[(10, 10, delivered(0, 0))]);
        olia.paths.get_mut(id(0)).expect("added").inverse_rtt = 0.0;
        close_to(increase_on(&olia, 0), 0.1, 1e-12);
    }
}
