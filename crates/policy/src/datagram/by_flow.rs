//! Each flow on one path, drawn by its hash in proportion to the paths' capacities: flows are never reordered, and several fill
//! several paths.
//!
//! Source: rendezvous hashing, D. G. Thaler and C. V. Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM
//! Transactions on Networking 6(1), 1998; the weights as C. Schindelhauer and G. Schomaker, "Weighted distributed hash tables",
//! SPAA 2005 (the logarithmic method). With u_i a number in (0, 1) drawn by flow and path, and weights w_i:
//!
//! ```text
//! path = argmax  -w_i / ln(u_i)
//! ```
//!
//! Decisions:
//! - The weight of a path is its capacity; of one whose capacity is not known, the mean of the others', or 1.
//! - A flow keeps its path while that is usable, whatever the weights become. Flows of a failed path move to the
//!   others; no other flows move.

use super::flows::Flows;
use super::{DatagramPolicy, Decision, Outgoing, PathView};
use crate::table::{Member, Reader, SettingError};
use crate::time::Instant;

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn DatagramPolicy> = Member {
    name: "by_flow",
    summary: "One path for each flow, drawn by its hash in proportion to capacities.",
    source: "Thaler, Ravishankar, ToN 1998; weights of Schindelhauer, Schomaker, SPAA 2005",
    build,
};

fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn DatagramPolicy>, SettingError> {
    Ok(Box::new(ByFlow { flows: Flows::new() }))
}

#[derive(Clone, Debug)]
struct ByFlow {
    /// Each flow with its path.
    flows: Flows<(u64, u8)>,
}

/// The weight of paths of unknown capacity.
pub(super) fn weight_of_unknown(paths: &[PathView]) -> f64 {
    let known = paths.iter().filter(|path| path.usable).filter_map(|path| path.capacity);
    let (sum, count) = known.fold((0.0, 0.0), |(sum, count), rate| (sum + rate.bits_per_second() as f64, count + 1.0));
    if count > 0.0 { sum / count } else { 1.0 }
}

/// The weight of a path.
pub(super) fn weight(path: &PathView, unknown: f64) -> f64 {
    path.capacity.map_or(unknown, |rate| rate.bits_per_second() as f64)
}

/// A number in (0, 1) for a flow and a path: the finaliser of MurmurHash3 spreads the bits.
fn draw(flow: u64, path: u8) -> f64 {
    let mut bits = flow ^ u64::from(path).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        bits = (bits ^ bits >> 33).wrapping_mul(factor);
    }
    bits ^= bits >> 33;
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

impl DatagramPolicy for ByFlow {
    fn choose(&mut self, _now: Instant, datagram: &Outgoing, paths: &[PathView]) -> Decision {
        let usable = || paths.iter().filter(|path| path.usable);
        let place = self.flows.of(datagram.flow);
        if let Some((flow, path)) = *place
            && flow == datagram.flow
            && usable().any(|view| view.path == path)
        {
            return Decision::one(path);
        }
        let unknown = weight_of_unknown(paths);
        let score = |path: &PathView| -weight(path, unknown) / libm::log(draw(datagram.flow, path.path));
        let best = usable().map(|path| (score(path), path.path)).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, path)) = best else { return Decision::default() };
        *place = Some((datagram.flow, path));
        Decision::one(path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, build, path};
    use super::*;
    use crate::rate::Rate;

    fn chosen(policy: &mut dyn DatagramPolicy, flow: u64, paths: &[PathView]) -> u8 {
        let decision = policy.choose(at(0), &Outgoing { length: 100, flow }, paths);
        decision.paths.iter().next().expect("one is usable")
    }

    fn with_capacity(number: u8, megabits: u64) -> PathView {
        PathView { capacity: Some(Rate::from_bits_per_second(megabits * 1_000_000)), ..path(number, 0) }
    }

    #[test]
    fn flows_are_spread_in_proportion_to_capacities() {
        for (paths, expected) in [
            (vec![path(0, 0), path(1, 30)], 5_000_i64),
            (vec![with_capacity(0, 300), with_capacity(1, 100)], 7_500),
            (vec![with_capacity(0, 300), with_capacity(1, 100), with_capacity(2, 100)], 6_000),
            // The others count as large as those of known capacity are on average.
            (vec![with_capacity(0, 300), path(1, 0)], 5_000),
            (vec![with_capacity(0, 300), with_capacity(1, 100), path(2, 0)], 5_000),
        ] {
            let first = (0..10_000).filter(|flow| chosen(&mut *build("by_flow"), *flow, &paths) == 0).count() as i64;
            // Four standard deviations of a binomial distribution are 200 or less.
            assert!((first - expected).abs() < 200, "{first} of {expected}");
        }
    }

    #[test]
    fn numbers_are_drawn_by_the_finaliser_of_murmur_hash_and_above_zero() {
        let path_0 = 0x9e37_79b9_7f4a_7c15;
        // It leaves 0 as it is: half a step of the 2^53. Of 1 it makes 0xb456_bcfc_34c2_cb2c.
        assert_eq!(draw(path_0, 0), 1.0 / (1_u64 << 54) as f64);
        assert_eq!(draw(path_0 ^ 1, 0), (0xb456_bcfc_34c2_cb2c_u64 >> 10 | 1) as f64 / (1_u64 << 54) as f64);
    }

    #[test]
    fn a_flow_keeps_its_path_when_weights_change_and_only_those_of_a_path_that_fails_move() {
        let mut policy = build("by_flow");
        let before: Vec<u8> =
            (0..100).map(|flow| chosen(&mut *policy, flow, &[path(0, 0), path(1, 0), path(2, 0)])).collect();
        let changed = [with_capacity(0, 1), with_capacity(1, 1), with_capacity(2, 900)];
        assert!(before.iter().zip(0..).all(|(path, flow)| chosen(&mut *policy, flow, &changed) == *path));
        let failed = [path(0, 0), PathView { usable: false, ..path(1, 0) }, path(2, 0)];
        for (old, flow) in before.iter().zip(0..) {
            let new = chosen(&mut *policy, flow, &failed);
            assert!(new != 1 && (*old == 1 || new == *old), "flow {flow}: {old} {new}");
        }
    }
}
