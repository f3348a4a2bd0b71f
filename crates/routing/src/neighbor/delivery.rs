//! Cost of a link by the share of the neighbour's Hellos that arrive: the expected number of transmissions, ETX (De Couto
//! et al., "A High-Throughput Path Metric for Multi-Hop Wireless Routing", MobiCom 2003).
//!
//! A frame and its acknowledgement must arrive: ETX = 1 / (d_f d_r). Hellos tell d_r alone; d_f is taken to be the same, so
//! that the cost is that of the interface over d^2. Each router advertises its own direction.
//!
//! Decisions:
//! - d is the share of the last 64 Hellos, or if that of the last 16 differs from what the cost says by more than chance
//!   explains, of these; before 8 of them were due, the cost is that of d = 1/2.
//! - Each Hello is a measurement of [`SteadyCost`].
//! - A neighbour that was lost is accepted again (RFC 5614, 4.3) if 3/4 of its last Hellos arrived, or there is no path to it. A
//!   new one is accepted at its first Hello, so that the start does not wait.

use crate::steady_cost::{PAUSE, SteadyCost};

/// The last Hellos, which tell whether the link is what it was.
pub(crate) const WINDOW: u32 = 16;
/// Hellos that count as long as it is.
const MEMORY: u32 = 64;
/// Missing Hellos in a row that mean that the neighbour began anew.
pub(crate) const RESTARTED: u32 = 64;
/// Least share of a neighbour that is accepted again after it was lost.
const ACCEPTED: f64 = 0.75;
/// Standard deviations of the share of the last Hellos that chance explains.
const CHANCE: f64 = 2.5;
/// Least share that is told apart.
const LEAST: f64 = 0.25;

/// Which of the last Hellos of a neighbour arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Delivery {
    /// A bit for each, the last one lowest.
    arrived: u64,
    /// Hellos that were due, at most `MEMORY`.
    due: u32,
    /// None before the first Hello, and where transmissions do not count.
    cost: SteadyCost,
}

impl Delivery {
    /// A Hello arrived, by its sequence number after `missing` that did not.
    pub fn hear(&mut self, missing: Option<u16>) {
        let missing = u32::from(missing.unwrap_or(0));
        if missing > RESTARTED {
            return self.restart();
        }
        let missing = missing.min(MEMORY - 1);
        self.arrived = self.arrived.checked_shl(missing + 1).unwrap_or(0) | 1;
        self.due = (self.due + missing + 1).min(MEMORY);
        self.cost.wait(missing + 1);
    }

    /// The neighbour began anew: what was missing before says nothing.
    fn restart(&mut self) {
        self.cost.restart();
        *self = Self { cost: self.cost, ..Self::default() };
    }

    /// The cost of the link.
    pub fn cost(self) -> Option<u16> {
        self.cost.get()
    }

    /// The share of its Hellos that were lost, 0 to 1; none of a new neighbour.
    pub fn loss(self) -> Option<f64> {
        (self.due >= PAUSE).then(|| 1.0 - self.share(WINDOW))
    }

    /// The share of the last `hellos`, as many as were due.
    fn share(self, hellos: u32) -> f64 {
        if self.due < PAUSE {
            return 0.5;
        }
        let due = self.due.min(hellos);
        let counted = u64::MAX >> (MEMORY - due);
        f64::from((self.arrived & counted).count_ones()) / f64::from(due)
    }

    /// Whether so many Hellos are missing that the link would come and go. Not of a new neighbour.
    pub fn is_poor(self) -> bool {
        self.due >= PAUSE && self.share(WINDOW) < ACCEPTED
    }

    /// Updates the cost. True if it changed.
    pub fn update_cost(&mut self, of_interface: u16) -> bool {
        if self.has_changed(of_interface) {
            self.due = self.due.min(WINDOW);
        }
        let share = self.share(MEMORY).max(LEAST);
        self.cost.update(f64::from(of_interface) / (share * share))
    }

    /// Whether chance does not explain how many of the last Hellos arrived, if the share is what the cost says.
    fn has_changed(self, of_interface: u16) -> bool {
        let Some(cost) = self.cost.get() else { return false };
        let one = 1.0 / f64::from(WINDOW);
        let told = (f64::from(of_interface) / f64::from(cost)).sqrt().clamp(one, 1.0 - one);
        let deviation = (told * (1.0 - told) * one).sqrt();
        (self.share(WINDOW) - told).abs() > CHANCE * deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs, in order, after Hellos with so many missing before each; the interface costs 10.
    fn costs(missing: &[u16]) -> Vec<u16> {
        let (mut delivery, mut costs) = (Delivery::default(), Vec::new());
        for count in missing {
            delivery.hear(Some(*count));
            if delivery.update_cost(10) {
                costs.extend(delivery.cost());
            }
        }
        costs
    }

    #[test]
    fn a_new_link_costs_as_if_half_of_its_hellos_were_missing_and_then_what_arrives() {
        assert_eq!(costs(&[0; 7]), [40]);
        assert_eq!(costs(&[0; 20]), [40, 10]);
        assert_eq!(costs(&[1; 20]), [40]);
        // Two of three: 10 / (2/3)^2, of 9 and of 16 Hellos.
        assert_eq!(costs(&[0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]), [40, 23]);
    }

    #[test]
    fn a_link_that_wavers_keeps_its_cost_and_one_that_breaks_does_not() {
        let mut hellos = vec![0; 16];
        // One of sixteen is missing: 11, which is not worth an LSA.
        hellos.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(costs(&hellos), [40, 10]);
        hellos.extend([7]);
        // Nine of sixteen are left.
        assert_eq!(*costs(&hellos).last().unwrap(), 32);
    }

    #[test]
    fn chance_does_not_change_a_cost_and_a_new_share_is_known_after_sixteen_hellos() {
        // Half of the Hellos are missing: of sixteen at a time 7, 9, 6 and 10.
        let seven = [2, 0, 1, 3, 0, 1, 2];
        let nine = [1, 0, 0, 2, 1, 0, 1, 1, 1];
        let six = [1, 3, 0, 2, 1, 3];
        let ten = [0, 1, 0, 0, 1, 2, 0, 1, 1, 0];
        let mut hellos = [&seven[..], &nine, &six, &ten].concat();
        assert_eq!(costs(&hellos), [40]);
        // No more are missing: told as soon as 14 of sixteen arrived, and 10 is not worth another LSA.
        hellos.extend([0; 64]);
        assert_eq!(costs(&hellos), [40, 13]);
    }

    #[test]
    fn two_of_sixteen_that_are_missing_from_a_perfect_link_are_chance_and_four_are_not() {
        // The share that the cost says is taken as 15/16, of which the standard deviation is 0.0605 in 16 Hellos. 2.5 of it are
        // 0.151: more than 2/16 less 1/16, and less than 4/16 less 1/16.
        let changed = |missing: u32| {
            let arrived = u64::MAX << missing;
            Delivery { arrived, due: MEMORY, cost: SteadyCost::of(Some(10)) }.has_changed(10)
        };
        assert_eq!([0, 2, 4].map(changed), [false, false, true]);
    }

    #[test]
    fn no_share_and_no_cost_is_out_of_range() {
        let mut delivery = Delivery::default();
        delivery.hear(Some(RESTARTED as u16));
        assert_eq!(delivery.due, MEMORY);
        let cost = |of_interface: u16, current: Option<u16>| {
            let mut delivery = Delivery { cost: SteadyCost::of(current), ..delivery };
            delivery.update_cost(of_interface).then(|| delivery.cost()).flatten()
        };
        assert_eq!(cost(10, None), Some(160));
        assert_eq!(cost(u16::MAX, Some(10)), Some(u16::MAX - 1));
        assert_eq!(cost(1, None), Some(16));
    }

    #[test]
    fn a_link_is_poor_if_more_than_a_quarter_is_missing() {
        let after = |missing: &[u16]| {
            let mut delivery = Delivery::default();
            missing.iter().for_each(|count| delivery.hear(Some(*count)));
            delivery.is_poor()
        };
        assert!(!after(&[1, 1, 1]), "six Hellos tell too little");
        assert!(after(&[1, 1, 1, 1]));
        assert!(after(&[5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "11 of 16");
        assert!(!after(&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "12 of 16");
        assert!(after(&[0, 64]) && !after(&[0, 65]), "a long silence, and a restart");
    }

    #[test]
    fn a_neighbour_that_begins_anew_is_new() {
        let mut delivery = Delivery::default();
        (0..16).for_each(|_| delivery.hear(Some(0)));
        assert!(delivery.update_cost(10));
        delivery.hear(Some(RESTARTED as u16 + 1));
        assert_eq!(delivery.cost(), Some(10), "until something is known");
        delivery.hear(Some(0));
        assert!(delivery.update_cost(10));
        assert_eq!(delivery.cost(), Some(40));
    }
}
