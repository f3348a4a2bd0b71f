//! A path that is forecast to be down is left before it is.
//!
//! Each established subflow has a forecaster of the family ([`crate::forecast`]), fed every `interval` from what the host sees
//! of the path anyhow:
//!
//! - acknowledgements made progress: the path was heard. Its strength, if data and not the application limits what is sent:
//!   10 log10(delivery rate / best delivery rate) dB above -70 dBm, so that a sixteenth of the best is the -82 dBm that a
//!   forecaster takes for the edge: a card that goes down from rate to rate as it leaves its access point is a signal that fades;
//! - data is outstanding, and nothing came for a retransmission timeout and `interval`: something was missed;
//! - nothing is outstanding: nothing was observed.
//!
//! With P the probability that the path is up `horizon` later:
//!
//! ```text
//! leave    P < leave, and P >= return on another path that is active
//! return   P >= return, at least `hold` after it was left, and a probe was answered since
//! ```
//!
//! `hold` is doubled, up to 60 s, each time a path is left within 30 s of its return. The rest is as in
//! [`super::suspension`]: the last active path is never left, one that is left is probed once per retransmission timeout,
//! and if all active ones have an unanswered timeout and one put aside has none, that one returns. Source: ours; that paths
//! which will be down are not used is the idea of Zhang, Zhao and Cheng, IEEE Access 8, 2020, there for next hops.

use super::full_mesh::{self, FullMesh, MeshSettings};
use super::suspension::{self, KeepsPaths, Suspensions};
use super::{Measurements, PathAction, PathEvent, PathManager};
use crate::forecast::{self, LinkForecaster, Observation};
use crate::ids::{ConnectionId, SubflowId, SubflowMap};
use crate::table::{self, Parameter, SettingError, Settings};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, SubflowState, SubflowView};
use std::collections::BTreeMap;

/// The settings of [`Predictive`].
pub const PARAMETERS: &[Parameter] = &[
    full_mesh::SUBFLOWS,
    full_mesh::ADD_ADDR_ACCEPTED,
    full_mesh::ANNOUNCE,
    full_mesh::REOPEN,
    Parameter {
        name: "forecaster",
        default: "trend",
        values: "trend | online | forward | viterbi | paper_literal | persistence",
        summary: "Who forecasts the paths, at its defaults",
    },
    Parameter {
        name: "interval",
        default: "0.25",
        values: "seconds, 0.05 to 10",
        summary: "Time between two observations of a path",
    },
    Parameter { name: "horizon", default: "2", values: "seconds, 0 to 60", summary: "How far ahead is forecast" },
    Parameter { name: "leave", default: "0.3", values: "0 to 1", summary: "A path less likely up than this is left" },
    Parameter {
        name: "return",
        default: "0.55",
        values: "0 to 1",
        summary: "A path at least as likely up as this is taken back, and is good enough to leave another for",
    },
    Parameter {
        name: "hold",
        default: "2",
        values: "seconds, 0 to 60",
        summary: "Least time that a path is left, doubled when it is left again soon",
    },
];

/// The forecasters that can be chosen, in the order of [`PARAMETERS`].
const FORECASTERS: [&str; 6] = ["trend", "online", "forward", "viterbi", "paper_literal", "persistence"];
/// The strength of a path that delivers as much as ever, in dBm.
const BEST_STRENGTH: f64 = -70.0;
/// A path that is left within so long of its return is held for longer.
const SOON: Duration = Duration::from_secs(30);
/// The longest hold.
const LONGEST_HOLD: Duration = Duration::from_secs(60);

/// What can be chosen about the forecasts.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Rule {
    forecaster: &'static str,
    interval: Duration,
    horizon: Duration,
    leave: f64,
    back: f64,
    hold: Duration,
}

impl Rule {
    fn read(settings: &Settings) -> Result<Self, SettingError> {
        let seconds =
            |name, default, least, most| settings.number(name, default, least..=most).map(Duration::from_secs_f64);
        Ok(Self {
            forecaster: FORECASTERS[settings.word("forecaster", &FORECASTERS, 0)?],
            interval: seconds("interval", 0.25, 0.05, 10.0)?,
            horizon: seconds("horizon", 2.0, 0.0, 60.0)?,
            leave: settings.number("leave", 0.3, 0.0..=1.0)?,
            back: settings.number("return", 0.55, 0.0..=1.0)?,
            hold: seconds("hold", 2.0, 0.0, 60.0)?,
        })
    }
}

/// One path and its forecast.
struct Outlook {
    forecaster: Box<dyn LinkForecaster>,
    /// The last progress that was taken in.
    seen: Instant,
    /// The best delivery rate seen, in bits per second.
    best: f64,
    /// Since when something would have been missed if nothing had come.
    waits_since: Instant,
    probability: f64,
    left: Instant,
    returned: Option<Instant>,
    hold: Duration,
}

impl Outlook {
    fn new(rule: &Rule, now: Instant, view: &SubflowView) -> Self {
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

    /// Strength of the path, from what it delivers.
    fn strength(&mut self, view: &SubflowView) -> Option<f32> {
        let rate = view.delivery_rate.bits_per_second() as f64;
        if rate <= 0.0 || view.suspended || (view.app_limited && rate < self.best) {
            return None;
        }
        self.best = self.best.max(rate);
        Some((BEST_STRENGTH + 10.0 * libm::log10(rate / self.best)) as f32)
    }

    fn take(&mut self, rule: &Rule, now: Instant, view: &SubflowView) {
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

    fn on_left(&mut self, rule: &Rule, now: Instant) {
        self.hold = match self.returned {
            Some(returned) if now.since(returned) < SOON => (self.hold * 2).min(LONGEST_HOLD),
            _ => rule.hold,
        };
        self.left = now;
    }
}

/// One connection.
#[derive(Default)]
struct Paths {
    outlooks: SubflowMap<Outlook>,
    suspensions: Suspensions,
}

impl KeepsPaths for Paths {
    fn suspensions(&mut self) -> &mut Suspensions {
        &mut self.suspensions
    }
    fn forget(&mut self, subflow: SubflowId) {
        self.outlooks.remove(subflow);
    }
}

impl Paths {
    fn on_measured(
        &mut self,
        rule: &Rule,
        connection: &ConnectionView,
        subflows: &[SubflowView],
        actions: &mut Vec<PathAction>,
    ) {
        let now = connection.now;
        let established = |id| subflows.iter().any(|s| s.id == id && s.state == SubflowState::Established);
        self.outlooks.retain(established);
        let paths: Vec<&SubflowView> = self.suspensions.paths(subflows).collect();
        for view in &paths {
            if self.outlooks.get(view.id).is_none() {
                self.outlooks.insert(view.id, Outlook::new(rule, now, view));
            }
            let Some(outlook) = self.outlooks.get_mut(view.id) else { continue };
            outlook.take(rule, now, view);
            self.suspensions.set_rank(view.id, outlook.probability);
        }
        for view in &paths {
            let Some(outlook) = self.outlooks.get_mut(view.id) else { continue };
            let fit = self.suspensions.is_fit(view) && now.since(outlook.left) >= outlook.hold;
            if fit && outlook.probability >= rule.back {
                outlook.returned = Some(now);
                self.suspensions.resume(connection.id, view.id, actions);
            }
        }
        for view in &paths {
            let probability = |id| self.outlooks.get(id).map_or(0.0, |outlook| outlook.probability);
            let better = |other: &&SubflowView| {
                other.id != view.id && !self.suspensions.is_aside(other.id) && probability(other.id) >= rule.back
            };
            let leaves = probability(view.id) < rule.leave && !self.suspensions.is_aside(view.id);
            if leaves && paths.iter().any(better) {
                self.suspensions.suspend(connection, view, subflows, actions);
                if let Some(outlook) = self.outlooks.get_mut(view.id) {
                    outlook.on_left(rule, now);
                }
            }
        }
    }
}

/// The path manager `predictive`.
pub struct Predictive {
    rule: Rule,
    mesh: FullMesh,
    connections: BTreeMap<ConnectionId, Paths>,
}

impl Predictive {
    /// Makes one from [`PARAMETERS`].
    pub fn read(settings: &Settings) -> Result<Self, SettingError> {
        let mesh = FullMesh::new(MeshSettings::read(settings)?);
        Ok(Self { rule: Rule::read(settings)?, mesh, connections: BTreeMap::new() })
    }

    /// The same as a member of the family.
    pub fn build(settings: &Settings) -> Result<Box<dyn PathManager>, SettingError> {
        Ok(Box::new(Self::read(settings)?))
    }
}

impl PathManager for Predictive {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        self.mesh.handle(now, event, actions);
        suspension::follow(&mut self.connections, event, actions);
        match *event {
            PathEvent::Measured { connection, subflows } => {
                let Some(paths) = self.connections.get_mut(&connection.id) else { return };
                paths.suspensions.observe(connection, subflows, actions);
                paths.on_measured(&self.rule, connection, subflows, actions);
                paths.suspensions.replace_dead(connection.id, actions);
                paths.suspensions.probe(now, connection.id, subflows, actions);
            }
            PathEvent::SubflowTimeout { connection, subflows, .. } => {
                let Some(paths) = self.connections.get_mut(&connection.id) else { return };
                paths.suspensions.observe(connection, subflows, actions);
                paths.suspensions.replace_dead(connection.id, actions);
            }
            PathEvent::ReceiveBufferBlocked { .. }
            | PathEvent::AddressUp { .. }
            | PathEvent::AddressDown { .. }
            | PathEvent::AddressAnnounced { .. }
            | PathEvent::AddressRemoved { .. }
            | PathEvent::SubflowPriority { .. }
            | PathEvent::ReceiverBlocked { .. }
            | PathEvent::ConnectionEstablished { .. }
            | PathEvent::ConnectionClosed { .. }
            | PathEvent::SubflowEstablished { .. }
            | PathEvent::SubflowClosed { .. }
            | PathEvent::Wake => {}
        }
    }

    fn measurements(&self) -> Measurements {
        Measurements::Every(self.rule.interval)
    }
}

#[cfg(test)]
mod tests;
