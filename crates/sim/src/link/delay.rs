//! Propagation delay of a link.

use crate::random::RandomStream;
use anabranch_policy::time::{Duration, Instant};

/// The propagation delay of a link. All variants but the first draw from the link's random stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayModel {
    Fixed(Duration),
    /// Independent for each packet, uniformly distributed.
    Uniform {
        min: Duration,
        max: Duration,
    },
    /// A new uniformly distributed value at each multiple of `interval`, with linear interpolation between them.
    Varying {
        min: Duration,
        max: Duration,
        /// Time between values.
        interval: Duration,
    },
}

impl Default for DelayModel {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

/// Whether a shorter delay lets a packet overtake earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ordering {
    /// No: a packet does not arrive before the one sent before it.
    #[default]
    Kept,
    /// Yes.
    Free,
}

/// State of a delay.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    model: DelayModel,
    /// `None` if the delay is fixed: a random stream is larger than the rest of a link.
    luck: Option<Box<Luck>>,
}

/// State of a random delay.
#[derive(Clone, Debug)]
struct Luck {
    random: RandomStream,
    /// For [`DelayModel::Varying`]: the interval, and the values at its two ends.
    interval: u64,
    from: u64,
    to: u64,
}

impl Delay {
    /// `random` is called only for a delay that draws from it.
    pub(super) fn new(model: DelayModel, random: impl FnOnce() -> RandomStream) -> Self {
        let luck = (!matches!(model, DelayModel::Fixed(_))).then(|| {
            let mut random = random();
            let (from, to) = match model {
                DelayModel::Varying { min, max, .. } => (draw(&mut random, min, max), draw(&mut random, min, max)),
                DelayModel::Fixed(_) | DelayModel::Uniform { .. } => (0, 0),
            };
            Box::new(Luck { random, interval: 0, from, to })
        });
        Self { model, luck }
    }
    /// The fixed delay, or the least.
    #[inline]
    pub(super) fn least(&self) -> Duration {
        match self.model {
            DelayModel::Fixed(delay) => delay,
            DelayModel::Uniform { min, .. } | DelayModel::Varying { min, .. } => min,
        }
    }
    /// The delay of a packet whose last bit leaves at `time`; `time` does not decrease.
    #[inline]
    pub(super) fn of_packet(&mut self, time: Instant) -> Duration {
        match (self.model, &mut self.luck) {
            (DelayModel::Fixed(delay), _) => delay,
            (model, Some(luck)) => luck.of_packet(model, time),
            (DelayModel::Uniform { min, .. } | DelayModel::Varying { min, .. }, None) => min,
        }
    }
}

impl Luck {
    fn of_packet(&mut self, model: DelayModel, time: Instant) -> Duration {
        match model {
            DelayModel::Fixed(delay) => delay,
            DelayModel::Uniform { min, max } => Duration::from_nanos(draw(&mut self.random, min, max)),
            DelayModel::Varying { min, max, interval } => {
                let length = interval.as_nanos().max(1);
                while self.interval < time.as_nanos() / length {
                    self.interval += 1;
                    (self.from, self.to) = (self.to, draw(&mut self.random, min, max));
                }
                let passed = i128::from(time.as_nanos() % length);
                let step = (i128::from(self.to) - i128::from(self.from)) * passed / i128::from(length);
                Duration::from_nanos(self.from.saturating_add_signed(step as i64))
            }
        }
    }
}

fn draw(random: &mut RandomStream, min: Duration, max: Duration) -> u64 {
    min.as_nanos() + random.below((max - min).as_nanos().saturating_add(1))
}
