//! What to do when the connection-level window closes on a hole: opportunistic retransmission and penalisation.
//!
//! "How Hard Can It Be? Designing and Implementing a Deployable Multipath TCP", NSDI 2012:
//!
//! - mechanism 1, *opportunistic retransmission*: the hole's bytes are sent again on the fastest path with room other
//!   than the culprit, once per hole (data acknowledgements only grow, so its data sequence names it);
//! - mechanism 2, *penalising slow subflows*: the culprit's window is halved, at most once per its smoothed RTT.
//!
//! Decisions: the paper blames whoever holds the left edge, which after a random loss can be the fastest path; its
//! authors' code blames only a subflow that is slower than the path that helps out. `slower` is the code's rule, with
//! the fastest other usable subflow as the one to compare with; `always` is the paper's. With no other usable subflow
//! nobody is blamed: halving the only window helps nobody.

use super::candidates::{fastest, preferred};
use super::{Hole, Relief};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Choice, Reader, SettingError, Switch};
use crate::time::Instant;
use crate::view::{ConnectionView, SubflowState, SubflowView};

/// Mechanism 1, on unless said otherwise.
const OPPORTUNISTIC_RETRANSMISSION: Switch = Switch {
    name: "opportunistic_retransmission",
    default: true,
    summary: "Reinject the data that blocks the closed window on another path, once per hole",
};

/// Mechanism 2, against slower paths unless said otherwise.
const PENALISE: Choice<Penalise> = Choice {
    name: "penalise",
    default: Penalise::Slower,
    words: &[("never", Penalise::Never), ("slower", Penalise::Slower), ("always", Penalise::Always)],
    summary: "Which path's window is halved for blocking the closed window: none, a slower one, any",
};

/// Whose window is halved for holding the closed connection-level window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Penalise {
    /// Nobody's.
    Never,
    /// That of a subflow with a larger smoothed RTT than the fastest other usable one.
    Slower,
    /// That of the culprit, whoever it is.
    Always,
}

/// The two mechanisms of one connection, and what they did.
#[derive(Debug)]
pub struct BlockedWindow {
    opportunistic_retransmission: bool,
    penalise: Penalise,
    /// Data sequence of the last hole that was retransmitted.
    relieved: Option<u64>,
    /// When each subflow was last penalised.
    penalised: SubflowMap<Instant>,
}

impl BlockedWindow {
    pub fn new(opportunistic_retransmission: bool, penalise: Penalise) -> Self {
        Self { opportunistic_retransmission, penalise, relieved: None, penalised: SubflowMap::new() }
    }

    /// Reads the two settings, with these defaults.
    pub fn read(reader: &mut Reader<'_>, opportunistic: bool, penalise: Penalise) -> Result<Self, SettingError> {
        let opportunistic = reader.read(&Switch { default: opportunistic, ..OPPORTUNISTIC_RETRANSMISSION })?;
        Ok(Self::new(opportunistic, reader.read(&Choice { default: penalise, ..PENALISE })?))
    }

    /// What to do about a hole; called at each opportunity to send while it lasts.
    pub fn relieve(&mut self, connection: &ConnectionView, hole: &Hole, subflows: &[SubflowView]) -> Relief {
        let mut relief = Relief::default();
        let relieved = self.relieved.is_some_and(|last| hole.data_seq <= last);
        if self.opportunistic_retransmission && !relieved {
            relief.retransmit_on = fastest(subflows, Some(hole.culprit), hole.length).map(|subflow| subflow.id);
            if relief.retransmit_on.is_some() {
                self.relieved = Some(hole.data_seq);
            }
        }
        let culprit = subflows.iter().find(|subflow| subflow.id == hole.culprit);
        if let Some(culprit) = culprit.filter(|culprit| self.is_guilty(connection.now, culprit, subflows)) {
            self.penalised.insert(culprit.id, connection.now);
            relief.penalise = Some(culprit.id);
        }
        relief
    }

    pub fn on_subflow_removed(&mut self, id: SubflowId) {
        self.penalised.remove(id);
    }

    fn is_guilty(&self, now: Instant, culprit: &SubflowView, subflows: &[SubflowView]) -> bool {
        let Some(best_other) = preferred(subflows, Some(culprit.id)).map(|other| other.smoothed_rtt).min() else {
            return false;
        };
        let blamed = match self.penalise {
            Penalise::Never => false,
            Penalise::Slower => culprit.smoothed_rtt > best_other,
            Penalise::Always => true,
        };
        let served = self.penalised.get(culprit.id).is_none_or(|last| now.since(*last) >= culprit.smoothed_rtt);
        blamed && served && culprit.state == SubflowState::Established
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Settings;

    #[test]
    fn each_word_chooses_the_penalised_subflow_and_none_leaves_all_as_they_were() {
        let chosen = |word: &str| {
            let settings = Settings::new().with(PENALISE.name, word);
            settings.read(|reader| BlockedWindow::read(reader, true, Penalise::Never)).map(|built| built.penalise)
        };
        assert_eq!(chosen("never"), Ok(Penalise::Never));
        assert_eq!(chosen("slower"), Ok(Penalise::Slower));
        assert_eq!(chosen("always"), Ok(Penalise::Always));
        assert!(chosen("perhaps").is_err());
        let given = Settings::new().read(|reader| BlockedWindow::read(reader, false, Penalise::Slower));
        let given = given.expect("nothing is set");
        assert_eq!((given.opportunistic_retransmission, given.penalise), (false, Penalise::Slower));
    }
}
