//! The cost of a link by measurements that waver, with hysteresis: it changes if it would do so by a factor of 1.5 or
//! more, and after [`PAUSE`] measurements at the earliest, or at once if it has doubled or halved. So a link whose quality wavers
//! does not flood an LSA for each measurement.

/// Measurements between two costs.
pub(crate) const PAUSE: u32 = 8;
/// Change that is worth an LSA.
const WORTH: f64 = 1.5;
/// Change that does not wait.
const URGENT: f64 = 2.0;

/// A cost, and how long it has been that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SteadyCost {
    /// Measurements since the cost last changed.
    since: u32,
    /// None before the first measurement.
    cost: Option<u16>,
}

impl SteadyCost {
    pub fn get(self) -> Option<u16> {
        self.cost
    }

    /// So many measurements were made.
    pub fn wait(&mut self, measurements: u32) {
        self.since = self.since.saturating_add(measurements);
    }

    /// The pause begins anew.
    pub fn restart(&mut self) {
        self.since = 0;
    }

    /// What is measured now. True if the cost changed.
    pub fn update(&mut self, measured: f64) -> bool {
        let cost = measured.round().clamp(1.0, f64::from(u16::MAX - 1));
        let change = self.cost.map_or(f64::INFINITY, |current| {
            let ratio = cost / f64::from(current);
            ratio.max(1.0 / ratio)
        });
        if change < WORTH || (self.since < PAUSE && change < URGENT) {
            return false;
        }
        *self = Self { since: 0, cost: Some(cost as u16) };
        true
    }

    #[cfg(test)]
    pub fn of(cost: Option<u16>) -> Self {
        Self { since: 0, cost }
    }
}
