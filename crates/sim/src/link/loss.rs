//! Random loss on a link.

use crate::random::{Chance, RandomStream};
use anabranch_policy::time::{Duration, Instant};

/// A loss model; it decides once per transmitted packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossModel {
    /// Each packet with this probability, independently.
    Uniform(f64),
    /// Two states (Gilbert 1960, Elliott 1963). Transitions happen per packet, not in time, so a sender that has backed
    /// off can stay in one burst for minutes. Before each packet the state may change; then the packet is lost with the
    /// state's probability. The first state is drawn from the stationary distribution.
    GilbertElliott {
        /// Probability of a transition from good to bad.
        to_bad: f64,
        /// Probability of a transition from bad to good.
        to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// Two states that alternate in time, independently of packets: each lasts for an exponentially distributed time.
    /// Unlike per-packet transitions, the bad state does not last longer when a sender backs off. It starts good.
    Fading {
        /// Mean duration of the good state.
        mean_good: Duration,
        /// Mean duration of the bad state.
        mean_bad: Duration,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
}

impl LossModel {
    /// The Gilbert model (no loss in the good state, total loss in the bad one) with mean loss `mean` in bursts of
    /// `burst` packets (at least 1) on average.
    pub fn bursts(mean: f64, burst: f64) -> Self {
        let to_good = 1.0 / burst.max(1.0);
        let mean = mean.clamp(0.0, 0.999);
        Self::GilbertElliott { to_bad: to_good * mean / (1.0 - mean), to_good, loss_good: 0.0, loss_bad: 1.0 }
    }
    /// The long-term loss rate.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Uniform(loss) => loss,
            Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let bad = share_of_bad(to_bad, to_good);
                bad * loss_bad + (1.0 - bad) * loss_good
            }
            Self::Fading { mean_good, mean_bad, loss_good, loss_bad } => {
                let bad = mean_bad.as_secs_f64() / (mean_good + mean_bad).as_secs_f64();
                bad * loss_bad + (1.0 - bad) * loss_good
            }
        }
    }
}

fn share_of_bad(to_bad: f64, to_good: f64) -> f64 {
    if to_bad + to_good > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 }
}

/// State of a loss model.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    random: RandomStream,
    process: Process,
}

#[derive(Clone, Debug)]
enum Process {
    Uniform(Chance),
    /// Probabilities of leaving and of loss, of the good and of the bad state; whether the state is bad.
    TwoStates {
        leave: [Chance; 2],
        loss: [Chance; 2],
        bad: bool,
    },
    /// Mean duration and loss probability, of the good and of the bad state; whether the state is bad, and until when.
    Fading {
        mean: [Duration; 2],
        loss: [Chance; 2],
        bad: bool,
        until: Instant,
    },
}

impl Loss {
    pub(super) fn new(model: LossModel, mut random: RandomStream) -> Self {
        let process = match model {
            LossModel::Uniform(loss) => Process::Uniform(Chance::new(loss)),
            LossModel::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => Process::TwoStates {
                leave: [Chance::new(to_bad), Chance::new(to_good)],
                loss: [Chance::new(loss_good), Chance::new(loss_bad)],
                bad: random.happens(Chance::new(share_of_bad(to_bad, to_good))),
            },
            LossModel::Fading { mean_good, mean_bad, loss_good, loss_bad } => Process::Fading {
                mean: [mean_good, mean_bad],
                loss: [Chance::new(loss_good), Chance::new(loss_bad)],
                bad: false,
                until: Instant::ZERO + duration_of_state(&mut random, mean_good),
            },
        };
        Self { random, process }
    }
    /// Whether the next packet, whose last bit leaves at `time`, is lost; `time` does not decrease.
    pub(super) fn loses(&mut self, time: Instant) -> bool {
        match &mut self.process {
            Process::Uniform(chance) => self.random.happens(*chance),
            Process::TwoStates { leave, loss, bad } => {
                *bad ^= self.random.happens(leave[usize::from(*bad)]);
                self.random.happens(loss[usize::from(*bad)])
            }
            Process::Fading { mean, loss, bad, until } => {
                while *until <= time {
                    *bad = !*bad;
                    *until += duration_of_state(&mut self.random, mean[usize::from(*bad)]);
                }
                self.random.happens(loss[usize::from(*bad)])
            }
        }
    }
}

fn duration_of_state(random: &mut RandomStream, mean: Duration) -> Duration {
    Duration::from_secs_f64(random.exponential(mean.as_secs_f64())).max(Duration::from_nanos(1))
}
