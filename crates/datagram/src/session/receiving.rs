//! Counts and delay measurements of the datagrams received over a path.

use crate::format::PathCount;

/// The receive state of one path.
#[derive(Clone, Debug, Default)]
pub struct Receiving {
    count: PathCount,
    /// The variation, in 1/16 microseconds.
    variation: u64,
    /// Whether anything arrived since the last report.
    fresh: bool,
}

impl Receiving {
    /// Records an authentic datagram of `length` bytes; `delay` is our clock minus the sender's time stamp, in
    /// microseconds modulo 2^32.
    pub fn arrived(&mut self, counter: u64, highest: bool, length: usize, delay: u32) {
        let first = self.count.datagrams == 0;
        if highest || first {
            if !first {
                // RFC 3550, section 6.4.1, in units of 1/16.
                let change = u64::from((delay.wrapping_sub(self.count.delay) as i32).unsigned_abs());
                self.variation += change;
                self.variation -= (self.variation - change) / 16;
            }
            self.count.highest = counter;
            self.count.delay = delay;
        }
        let less = (delay.wrapping_sub(self.count.least_delay) as i32) < 0;
        if less || !self.fresh {
            self.count.least_delay = delay;
        }
        self.fresh = true;
        self.count.datagrams += 1;
        self.count.bytes += length as u64;
    }

    /// The report, if anything has arrived on this path. The lowest delay starts anew afterwards.
    pub fn tell(&mut self, path: u8) -> Option<PathCount> {
        self.fresh = false;
        let variation = u32::try_from(self.variation / 16).unwrap_or(u32::MAX);
        (self.count.datagrams > 0).then_some(PathCount { path, variation, ..self.count })
    }

    /// Datagrams and bytes received.
    pub fn totals(&self) -> (u64, u64) {
        (self.count.datagrams, self.count.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_delays_are_told_and_the_least_is_counted_anew() {
        let mut receiving = Receiving::default();
        assert_eq!(receiving.tell(2), None);
        receiving.arrived(0, true, 100, 5_000);
        receiving.arrived(2, true, 100, 4_000);
        receiving.arrived(1, false, 50, 9_000);
        let told = receiving.tell(2).expect("something came");
        let count = PathCount {
            path: 2,
            highest: 2,
            datagrams: 3,
            bytes: 250,
            delay: 4_000,
            least_delay: 4_000,
            // A change of 1,000: one sixteenth of it.
            variation: 62,
        };
        assert_eq!(told, count);
        receiving.arrived(3, true, 1, 6_000);
        let told = receiving.tell(2).expect("something came");
        // 1,000/16 = 62.5, plus a sixteenth of the difference to 2,000: 183.6.
        assert_eq!((told.least_delay, told.variation), (6_000, 183));
    }

    #[test]
    fn clocks_that_wrap_or_differ_do_not_matter() {
        let mut receiving = Receiving::default();
        receiving.arrived(0, true, 1, u32::MAX - 9);
        receiving.arrived(1, true, 1, 6);
        let told = receiving.tell(0).expect("something came");
        assert_eq!((told.least_delay, told.delay, told.variation), (u32::MAX - 9, 6, 1));
    }
}
