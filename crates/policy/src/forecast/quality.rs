//! The quality of an interface or link as a number from 0 to 10,000, and its division into the paper's three symbols.
//!
//! Zhang, Zhao, Cheng, "Multipath Routing and MPTCP-Based Data Delivery Over MANETs", IEEE Access 8, 2020: Table 2 has the
//! limits, procedure `update_if_quality` of its Appendix B the counter.

/// The best quality.
pub(super) const BEST: u32 = 10_000;

/// The observable quality of a link (Table 2): the symbols of the paper's hidden Markov model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// Quality 8001 to 10,000.
    Good = 0,
    /// Quality 5001 to 8000.
    Moderate = 1,
    /// Quality 0 to 5000.
    Bad = 2,
}

impl Symbol {
    /// All, in the order of the emission matrices' columns.
    pub const ALL: [Self; 3] = [Self::Good, Self::Moderate, Self::Bad];

    /// The symbol of a quality from 0 to 10,000.
    pub const fn of(quality: u32) -> Self {
        match quality {
            8001.. => Self::Good,
            5001..=8000 => Self::Moderate,
            _ => Self::Bad,
        }
    }
}

/// The paper's `if_quality`: a counter from 0 to 10,000 that starts at the top.
///
/// It falls by 100 at a loss and by 1000 at a timeout, if that much is left, and rises by 1 at an acknowledgement. So it
/// stands still at one loss in 101, five timeouts make a link bad, and 3000 acknowledgements good again. The paper has one
/// per interface of the sending host; as a forecaster's it is one per link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceQuality(u32);

impl Default for InterfaceQuality {
    fn default() -> Self {
        Self(BEST)
    }
}

impl InterfaceQuality {
    /// The counter, 0 to 10,000.
    pub const fn get(self) -> u32 {
        self.0
    }
    /// A loss detected by acknowledgements (line 5).
    pub(crate) const fn on_loss(&mut self) {
        if self.0 >= 100 {
            self.0 -= 100;
        }
    }
    /// A retransmission timeout (line 11).
    pub(crate) const fn on_timeout(&mut self) {
        if self.0 >= 1000 {
            self.0 -= 1000;
        }
    }
    /// An acknowledgement (line 15).
    pub(crate) const fn on_acknowledgement(&mut self) {
        if self.0 < BEST {
            self.0 += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_symbols_have_the_limits_of_table_2() {
        let symbols = [0, 5000, 5001, 8000, 8001, 10_000].map(Symbol::of);
        use Symbol::{Bad, Good, Moderate};
        assert_eq!(symbols, [Bad, Bad, Moderate, Moderate, Good, Good]);
    }

    #[test]
    fn five_timeouts_make_a_link_bad_and_3001_acknowledgements_good_again() {
        let mut quality = InterfaceQuality::default();
        (0..4).for_each(|_| quality.on_timeout());
        assert_eq!((quality.get(), Symbol::of(quality.get())), (6000, Symbol::Moderate));
        quality.on_timeout();
        assert_eq!((quality.get(), Symbol::of(quality.get())), (5000, Symbol::Bad));
        (0..3000).for_each(|_| quality.on_acknowledgement());
        assert_eq!(Symbol::of(quality.get()), Symbol::Moderate);
        quality.on_acknowledgement();
        assert_eq!(Symbol::of(quality.get()), Symbol::Good);
    }

    #[test]
    fn one_loss_in_101_leaves_the_counter_where_it_is_and_it_stays_within_its_bounds() {
        let mut quality = InterfaceQuality::default();
        quality.on_acknowledgement();
        assert_eq!(quality.get(), 10_000);
        quality.on_loss();
        (0..100).for_each(|_| quality.on_acknowledgement());
        assert_eq!(quality.get(), 10_000);
        (0..200).for_each(|_| quality.on_loss());
        assert_eq!(quality.get(), 0);
        (0..99).for_each(|_| quality.on_acknowledgement());
        quality.on_loss();
        quality.on_timeout();
        assert_eq!(quality.get(), 99); // less than a loss takes
    }
}
