//! What can be chosen about `one_way_delay`.

use crate::path_manager::full_mesh::{self, MeshSettings};
use crate::table::{Parameter, SettingError, Settings};
use crate::time::Duration;

/// The settings of [`super::OneWayDelay`].
pub const PARAMETERS: &[Parameter] = &[
    full_mesh::SUBFLOWS,
    full_mesh::ADD_ADDR_ACCEPTED,
    full_mesh::ANNOUNCE,
    full_mesh::REOPEN,
    Parameter {
        name: "average",
        default: "history",
        values: "history | weighted",
        summary: "Whether a delay is the mean of all samples, or each new one counts an eighth",
    },
    Parameter {
        name: "return",
        default: "mean",
        values: "mean | printed",
        summary: "Whether a path returns with a delay of at most the mean, or of at least it, as the paper prints",
    },
    Parameter {
        name: "clock",
        default: "auto",
        values: "auto | shared | per_subflow",
        summary: "Whether the peer stamps all subflows from one clock; auto sees it by the delays",
    },
    Parameter {
        name: "measured_by",
        default: "receiver",
        values: "receiver | sender",
        summary: "Which end measures and names: the receiver by MP_PRIO, or the sender for itself",
    },
    Parameter {
        name: "hold",
        default: "0",
        values: "seconds, 0 to 3600",
        summary: "Least time that a named path stays away, doubled when it is named again soon",
    },
    Parameter {
        name: "return_after",
        default: "10",
        values: "seconds, 0 to 3600",
        summary: "After how long without any data a named path is taken back; 0: never",
    },
];

/// How samples become a delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Average {
    /// Equation 5: the mean of all.
    History,
    /// Each new one counts an eighth.
    Weighted,
}

/// When a named path returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Return {
    /// Its delay is at most the mean of the active paths.
    Mean,
    /// At least, as printed.
    Printed,
}

/// What the peer's timestamps are read off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// One clock, if the delays let it be.
    Auto,
    /// One for all subflows.
    Shared,
    /// One for each, with an offset of its own.
    PerSubflow,
}

/// Which end measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeasuredBy {
    /// The one that the data goes to.
    Receiver,
    /// The one that it comes from.
    Sender,
}

/// What can be chosen about `one_way_delay`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OneWayDelaySettings {
    /// Which subflows there are.
    pub mesh: MeshSettings,
    /// How samples become a delay.
    pub average: Average,
    /// When a named path returns.
    pub returns: Return,
    /// What the peer's timestamps are read off.
    pub clock: Clock,
    /// Which end measures.
    pub measured_by: MeasuredBy,
    /// Least time that a path stays away.
    pub hold: Duration,
    /// Time without data after which it is taken back; zero: never.
    pub return_after: Duration,
}

impl Default for OneWayDelaySettings {
    fn default() -> Self {
        Self {
            mesh: MeshSettings::default(),
            average: Average::History,
            returns: Return::Mean,
            clock: Clock::Auto,
            measured_by: MeasuredBy::Receiver,
            hold: Duration::ZERO,
            return_after: Duration::from_secs(10),
        }
    }
}

impl OneWayDelaySettings {
    /// Reads them.
    pub(super) fn read(settings: &Settings) -> Result<Self, SettingError> {
        let seconds = |name, default| settings.number(name, default, 0.0..=3600.0).map(Duration::from_secs_f64);
        Ok(Self {
            mesh: MeshSettings::read(settings)?,
            average: [Average::History, Average::Weighted][settings.word("average", &["history", "weighted"], 0)?],
            returns: [Return::Mean, Return::Printed][settings.word("return", &["mean", "printed"], 0)?],
            clock: [Clock::Auto, Clock::Shared, Clock::PerSubflow]
                [settings.word("clock", &["auto", "shared", "per_subflow"], 0)?],
            measured_by: [MeasuredBy::Receiver, MeasuredBy::Sender]
                [settings.word("measured_by", &["receiver", "sender"], 0)?],
            hold: seconds("hold", 0.0)?,
            return_after: seconds("return_after", 10.0)?,
        })
    }
}
