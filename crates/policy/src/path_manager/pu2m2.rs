//! (PU)2M2, a reading: a path whose delay rises too much, or that times out, is suspended until its delay is normal
//! again.
//!
//! The paper (Cao, Song, Luo, Yi, Wang, You, Hao, "(PU)2M2: A Potentially Underperforming-aware Path Usage Management
//! Mechanism for Secure MPTCP-based Multipathing Services", 2018) was not at hand. **This is the simplest honest
//! reading of how its authors' later papers describe it**: it monitors the delay changes of each path, declares a path
//! potentially underperforming or failed by them, removes it, and reconnects it by its delay. Its constants are ours.
//!
//! Per subflow, in seconds, once per round trip if something was acknowledged since, with x the latest RTT sample,
//! c the centre and v the variation of the samples before (RFC 6298, section 2: the gains; both start at what the
//! subflow itself has):
//!
//! ```text
//! inside  <=>  x <= c + max(width v, floor c)
//! then  v <- 3/4 v + 1/4 |x - c|,  c <- 7/8 c + 1/8 x
//! ```
//!
//! A path outside is suspended, the one furthest outside (x / c) first; so is one whose retransmission timer runs out.
//! It returns once a sample taken since it was probed lies inside. Decisions:
//! - Only the upper edge counts: a delay that gets better is no reason to leave.
//! - The subflow's own smoothed RTT cannot be the centre: it includes the sample, and so does its variation, which
//!   grows by a quarter of every jump; with a width of 3.5 or more no jump, however large, would ever be outside.
//! - The band follows the samples outside it too. So a lasting rise of delay is accepted after a few samples, and a
//!   path is not lost for good when the traffic of another one ends.
//! - `floor` prevents that a path with constant delay is suspended for a microsecond.
//! - Never all: the last active established path stays active; if all active ones have an unanswered timeout and a
//!   suspended one has none, that one is resumed. See [`super::suspension`], also for the probes.

use super::PathManager;
use super::full_mesh::MeshSettings;
use super::suspending::{Memory, Occasion, Rule, Situation, Suspending};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Number, Reader, SettingError, Settings};
use crate::time::Instant;
use crate::view::{SubflowState, SubflowView};

const WIDTH: Number = Number {
    name: "width",
    unit: "variations",
    default: 2.0,
    range: 0.0..=100.0,
    summary: "How far above its centre a delay may be, in units of the delay's variation",
};
const FLOOR: Number = Number {
    name: "floor",
    unit: "share of the centre",
    default: 0.25,
    range: 0.0..=100.0,
    summary: "How far above its centre a delay may be however little it varies",
};

/// Settings of (PU)2M2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pu2m2Settings {
    pub mesh: MeshSettings,
    /// Half the band, in variations.
    pub width: f64,
    /// Minimum of half the band, as a share of the centre.
    pub floor: f64,
}

impl Pu2m2Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self { mesh: MeshSettings::read(reader)?, width: reader.read(&WIDTH)?, floor: reader.read(&FLOOR)? })
    }
}

impl Default for Pu2m2Settings {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("every default is a value")
    }
}

/// The band around a subflow's delay, in seconds.
#[derive(Clone, Copy, Debug)]
struct Band {
    centre: f64,
    variation: f64,
    /// Arrival of the last sample handled.
    seen: Instant,
    /// The last sample divided by the centre before it.
    excess: f64,
    /// The last sample was inside, and no timeout has happened since.
    inside: bool,
}

impl Band {
    fn new(view: &SubflowView) -> Self {
        Self {
            centre: view.smoothed_rtt.as_secs_f64(),
            variation: view.rtt_variation.as_secs_f64(),
            seen: view.last_progress,
            excess: 1.0,
            inside: true,
        }
    }

    fn take(&mut self, settings: &Pu2m2Settings, view: &SubflowView) {
        if view.last_progress <= self.seen {
            return;
        }
        self.seen = view.last_progress;
        let sample = view.latest_rtt.as_secs_f64();
        let half = (settings.width * self.variation).max(settings.floor * self.centre);
        self.inside = sample <= self.centre + half;
        self.excess = if self.centre > 0.0 { sample / self.centre } else { 1.0 };
        self.variation = 0.75 * self.variation + 0.25 * (sample - self.centre).abs();
        self.centre = 0.875 * self.centre + 0.125 * sample;
    }
}

/// State of a connection.
#[derive(Debug, Default)]
pub struct Paths {
    bands: SubflowMap<Band>,
}

impl Memory for Paths {
    fn forget(&mut self, subflow: SubflowId) {
        self.bands.remove(subflow);
    }
}

impl Paths {
    fn on_round_trip(&mut self, settings: &Pu2m2Settings, situation: &mut Situation<'_>) {
        let subflows = situation.subflows;
        let established = |id| subflows.iter().any(|s| s.id == id && s.state == SubflowState::Established);
        self.bands.retain(established);
        let measured: Vec<&SubflowView> = situation.suspensions.paths(subflows).collect();
        for view in &measured {
            let mut band = self.bands.get(view.id).copied().unwrap_or_else(|| Band::new(view));
            band.take(settings, view);
            self.bands.insert(view.id, band);
            situation.suspensions.set_rank(view.id, -view.smoothed_rtt.as_secs_f64());
        }
        for view in &measured {
            if situation.suspensions.is_fit(view) && self.bands.get(view.id).is_some_and(|band| band.inside) {
                situation.resume(view.id);
            }
        }
        let outside = |view: &&SubflowView| self.bands.get(view.id).is_some_and(|band| !band.inside);
        let mut outside: Vec<&SubflowView> = measured.iter().copied().filter(outside).collect();
        let excess = |view: &SubflowView| self.bands.get(view.id).map_or(0.0, |band| band.excess);
        outside.sort_by(|a, b| b.stale.cmp(&a.stale).then(excess(b).total_cmp(&excess(a))));
        for view in outside {
            situation.suspend(view);
        }
    }

    fn on_timeout(&mut self, subflow: SubflowId, situation: &mut Situation<'_>) {
        let subflows = situation.subflows;
        let Some(view) = situation.suspensions.paths(subflows).find(|view| view.id == subflow) else { return };
        let mut band = self.bands.get(subflow).copied().unwrap_or_else(|| Band::new(view));
        band.inside = false;
        self.bands.insert(subflow, band);
        situation.suspend(view);
    }
}

/// The path manager `pu2m2`.
type Pu2m2 = Suspending<Pu2m2Settings>;

pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn PathManager>, SettingError> {
    Ok(Box::new(Pu2m2::new(Pu2m2Settings::read(reader)?)))
}

impl Rule for Pu2m2Settings {
    type Memory = Paths;

    fn decide(&self, occasion: Occasion, paths: &mut Paths, situation: &mut Situation<'_>) {
        match occasion {
            Occasion::Measured => paths.on_round_trip(self, situation),
            Occasion::Timeout(subflow) => paths.on_timeout(subflow, situation),
            Occasion::SenderBlocked | Occasion::ReceiverBlocked => {}
        }
    }

    fn mesh(&self) -> MeshSettings {
        self.mesh
    }
}

#[cfg(test)]
mod tests;
