//! Settings of `one_way_delay`.

use crate::path_manager::full_mesh::MeshSettings;
use crate::table::{Choice, Number, Reader, Seconds, SettingError, Settings};
use crate::time::Duration;

const AVERAGE: Choice<Average> = Choice {
    name: "average",
    default: Average::History,
    words: &[("history", Average::History), ("weighted", Average::Weighted)],
    summary: "Whether a delay is the mean of all samples, or each new one counts an eighth",
};
const RETURN: Choice<Return> = Choice {
    name: "return",
    default: Return::Mean,
    words: &[("mean", Return::Mean), ("printed", Return::Printed)],
    summary: "Whether a path returns with a delay of at most the mean, or of at least it, as the paper prints",
};
const CLOCK: Choice<Clock> = Choice {
    name: "clock",
    default: Clock::Auto,
    words: &[("auto", Clock::Auto), ("shared", Clock::Shared), ("per_subflow", Clock::PerSubflow)],
    summary: "Whether the peer stamps all subflows from one clock; auto sees it by the delays",
};
const MEASURED_BY: Choice<MeasuredBy> = Choice {
    name: "measured_by",
    default: MeasuredBy::Receiver,
    words: &[("receiver", MeasuredBy::Receiver), ("sender", MeasuredBy::Sender)],
    summary: "Which end measures and names: the receiver by MP_PRIO, or the sender for itself",
};
const HOLD: Seconds = Seconds(Number {
    name: "hold",
    unit: "seconds",
    default: 0.0,
    range: 0.0..=3600.0,
    summary: "Least time that a named path stays suspended, doubled when it is named again soon",
});
const RETURN_AFTER: Seconds = Seconds(Number {
    name: "return_after",
    unit: "seconds",
    default: 10.0,
    range: 0.0..=3600.0,
    summary: "After how long without any data a named path is resumed; 0: never",
});

/// How samples become a delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Average {
    /// Equation 5: the mean of all.
    History,
    /// Each new sample has weight 1/8.
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

/// The clocks of the peer's timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// One clock, unless the delays contradict it.
    Auto,
    /// One for all subflows.
    Shared,
    /// One for each subflow, with an offset of its own.
    PerSubflow,
}

/// The end that measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeasuredBy {
    /// The receiver of the data.
    Receiver,
    /// The sender of the data.
    Sender,
}

/// Settings of `one_way_delay`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OneWayDelaySettings {
    pub mesh: MeshSettings,
    pub average: Average,
    pub returns: Return,
    /// The clocks of the peer's timestamps.
    pub clock: Clock,
    /// The end that measures.
    pub measured_by: MeasuredBy,
    /// Minimum time that a path stays away.
    pub hold: Duration,
    /// Time without data after which it is taken back; zero: never.
    pub return_after: Duration,
}

impl Default for OneWayDelaySettings {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("every default is a value")
    }
}

impl OneWayDelaySettings {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            mesh: MeshSettings::read(reader)?,
            average: reader.read(&AVERAGE)?,
            returns: reader.read(&RETURN)?,
            clock: reader.read(&CLOCK)?,
            measured_by: reader.read(&MEASURED_BY)?,
            hold: reader.read(&HOLD)?,
            return_after: reader.read(&RETURN_AFTER)?,
        })
    }
}
