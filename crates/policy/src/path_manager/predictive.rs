//! A path that is forecast to go down is suspended before it does.
//!
//! Each established subflow has a forecaster of the family ([`crate::forecast`]). Every `interval` it observes what the
//! host sees of the path anyway:
//!
//! - acknowledgements made progress: the path was heard. If the application does not limit what is sent, it also has a
//!   signal strength: 10 log10(delivery rate / best delivery rate) dB above -70 dBm, so that a sixteenth of the best
//!   rate is the -82 dBm that a forecaster takes for the edge. A radio that reduces its rate step by step as it moves
//!   away from its access point thus looks like a fading signal;
//! - data is outstanding, and nothing arrived for a retransmission timeout and `interval`: something was missed;
//! - nothing is outstanding: nothing was observed.
//!
//! With P the probability that the path is up `horizon` later:
//!
//! ```text
//! leave    P < leave, and P >= return on another path that is active
//! return   P >= return, at least `hold` after it was left, and a probe was answered since
//! ```
//!
//! `hold` is doubled, up to 60 s, each time a path is suspended within 30 s of its return. The rest is as in
//! [`super::suspension`]: the last active path is never suspended, a suspended one is probed once per retransmission
//! timeout, and if all active ones have an unanswered timeout and a suspended one has none, that one is resumed.
//! Source: ours; not to use paths that will be down is the idea of Zhang, Zhao and Cheng, IEEE Access 8, 2020, there
//! for next hops.

use super::full_mesh::MeshSettings;
use super::suspending::{Memory, Occasion, Rule, Situation, Suspending};
use super::{Measurements, PathManager};
use crate::forecast::{self, LinkForecaster, Observation};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{self, Choice, Number, Reader, Seconds, SettingError, Settings};
use crate::time::{Duration, Instant};
use crate::view::{SubflowState, SubflowView};

const FORECASTER: Choice<&str> = Choice {
    name: "forecaster",
    default: "trend",
    words: &[
        ("trend", "trend"),
        ("online", "online"),
        ("forward", "forward"),
        ("viterbi", "viterbi"),
        ("paper_literal", "paper_literal"),
        ("persistence", "persistence"),
    ],
    summary: "Who forecasts the paths, at its defaults",
};
const INTERVAL: Seconds = Seconds(Number {
    name: "interval",
    unit: "seconds",
    default: 0.25,
    range: 0.05..=10.0,
    summary: "Time between two observations of a path",
});
const HORIZON: Seconds = Seconds(Number {
    name: "horizon",
    unit: "seconds",
    default: 2.0,
    range: 0.0..=60.0,
    summary: "How far ahead is forecast",
});
const LEAVE: Number = Number {
    name: "leave",
    unit: "",
    default: 0.3,
    range: 0.0..=1.0,
    summary: "A path less likely up than this is left",
};
const RETURN: Number = Number {
    name: "return",
    unit: "",
    default: 0.55,
    range: 0.0..=1.0,
    summary: "A path at least as likely up as this is taken back, and is good enough to leave another for",
};
const HOLD: Seconds = Seconds(Number {
    name: "hold",
    unit: "seconds",
    default: 2.0,
    range: 0.0..=60.0,
    summary: "Least time that a path is left, doubled when it is left again soon",
});

/// The strength of a path that delivers at its best rate, in dBm.
const BEST_STRENGTH: f64 = -70.0;
/// A path that is suspended within this time of its return has a longer hold.
const SOON: Duration = Duration::from_secs(30);
const LONGEST_HOLD: Duration = Duration::from_secs(60);

/// Settings of the forecasts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Forecasting {
    mesh: MeshSettings,
    forecaster: &'static str,
    interval: Duration,
    horizon: Duration,
    leave: f64,
    back: f64,
    hold: Duration,
}

impl Forecasting {
    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            mesh: MeshSettings::read(reader)?,
            forecaster: reader.read(&FORECASTER)?,
            interval: reader.read(&INTERVAL)?,
            horizon: reader.read(&HORIZON)?,
            leave: reader.read(&LEAVE)?,
            back: reader.read(&RETURN)?,
            hold: reader.read(&HOLD)?,
        })
    }
}

/// A path and its forecast.
struct Outlook {
    forecaster: Box<dyn LinkForecaster>,
    /// The last progress observed.
    seen: Instant,
    /// The best delivery rate in bits per second.
    best: f64,
    /// From when on a missing acknowledgement counts as missed.
    waits_since: Instant,
    probability: f64,
    left: Instant,
    returned: Option<Instant>,
    hold: Duration,
}

impl Outlook {
    fn new(rule: &Forecasting, now: Instant, view: &SubflowView) -> Self {
        let forecaster = table::build(forecast::TABLE, rule.forecaster, &Settings::new())
            .expect("the name is one of the table's and nothing is set");
        Self {
            forecaster,
            seen: view.last_progress,
            best: 0.0,
            waits_since: now,
            probability: 1.0,
            left: now,
            returned: None,
            hold: rule.hold,
        }
    }

    /// Signal strength of the path, derived from its delivery rate.
    fn strength(&mut self, view: &SubflowView) -> Option<f32> {
        let rate = view.rates.delivery.bits_per_second() as f64;
        if rate <= 0.0 || view.suspended || (view.rates.app_limited && rate < self.best) {
            return None;
        }
        self.best = self.best.max(rate);
        Some((BEST_STRENGTH + 10.0 * libm::log10(rate / self.best)) as f32)
    }

    fn take(&mut self, rule: &Forecasting, now: Instant, view: &SubflowView) {
        if view.last_progress > self.seen {
            self.seen = view.last_progress;
            self.waits_since = now;
            let signal = self.strength(view);
            self.forecaster.observe(now, Observation::Heard { signal });
        } else if view.in_flight == 0 && !view.stale {
            self.waits_since = now;
        } else if now.since(self.waits_since) >= view.rto + rule.interval {
            self.waits_since = now - view.rto; // the next one is missed an interval later
            self.forecaster.observe(now, Observation::MISSED);
        }
        self.probability = self.forecaster.probability_up(now, rule.horizon);
    }

    fn on_left(&mut self, rule: &Forecasting, now: Instant) {
        self.hold = match self.returned {
            Some(returned) if now.since(returned) < SOON => (self.hold * 2).min(LONGEST_HOLD),
            _ => rule.hold,
        };
        self.left = now;
    }
}

/// State of a connection.
#[derive(Default)]
pub struct Paths {
    outlooks: SubflowMap<Outlook>,
}

impl Memory for Paths {
    fn forget(&mut self, subflow: SubflowId) {
        self.outlooks.remove(subflow);
    }
}

impl Paths {
    fn on_measured(&mut self, rule: &Forecasting, situation: &mut Situation<'_>) {
        let (now, subflows) = (situation.connection.now, situation.subflows);
        let established = |id| subflows.iter().any(|s| s.id == id && s.state == SubflowState::Established);
        self.outlooks.retain(established);
        let paths: Vec<&SubflowView> = situation.suspensions.paths(subflows).collect();
        for view in &paths {
            if self.outlooks.get(view.id).is_none() {
                self.outlooks.insert(view.id, Outlook::new(rule, now, view));
            }
            let Some(outlook) = self.outlooks.get_mut(view.id) else { continue };
            outlook.take(rule, now, view);
            situation.suspensions.set_rank(view.id, outlook.probability);
        }
        for view in &paths {
            let Some(outlook) = self.outlooks.get_mut(view.id) else { continue };
            let fit = situation.suspensions.is_fit(view) && now.since(outlook.left) >= outlook.hold;
            if fit && outlook.probability >= rule.back {
                outlook.returned = Some(now);
                situation.resume(view.id);
            }
        }
        for view in &paths {
            let probability = |id| self.outlooks.get(id).map_or(0.0, |outlook| outlook.probability);
            let better = |other: &&SubflowView| {
                other.id != view.id && !situation.suspensions.is_aside(other.id) && probability(other.id) >= rule.back
            };
            let leaves = probability(view.id) < rule.leave && !situation.suspensions.is_aside(view.id);
            if leaves && paths.iter().any(better) {
                situation.suspend(view);
                if let Some(outlook) = self.outlooks.get_mut(view.id) {
                    outlook.on_left(rule, now);
                }
            }
        }
    }
}

/// The path manager `predictive`.
type Predictive = Suspending<Forecasting>;

pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn PathManager>, SettingError> {
    Ok(Box::new(Predictive::new(Forecasting::read(reader)?)))
}

impl Rule for Forecasting {
    type Memory = Paths;

    fn decide(&self, occasion: Occasion, paths: &mut Paths, situation: &mut Situation<'_>) {
        if occasion == Occasion::Measured {
            paths.on_measured(self, situation);
        }
    }

    fn mesh(&self) -> MeshSettings {
        self.mesh
    }

    fn measurements(&self) -> Measurements {
        Measurements::Every(self.interval)
    }
}

#[cfg(test)]
mod tests;
