//! Settings of `GoodputTrial`.

use crate::path_manager::full_mesh::MeshSettings;
use crate::table::{Number, Reader, SettingError, Settings};
use crate::time::Duration;

const GAIN: Number = Number {
    name: "gain",
    unit: "",
    default: 0.07,
    range: 0.0..=1.0,
    summary: "Relative gain of goodput for which a path is suspended, or returns",
};
const PAUSE: Number = Number {
    name: "pause",
    unit: "s",
    default: 8.0,
    range: 0.5..=3600.0,
    summary: "Pause after the first trial that failed; doubled by each that follows",
};
const LONGEST_PAUSE: Number = Number {
    name: "longest_pause",
    unit: "s",
    default: 120.0,
    range: 0.5..=86_400.0,
    summary: "Longest pause between trials",
};
const DEAD_AFTER: Number = Number {
    name: "dead_after",
    unit: "s",
    default: 0.6,
    range: 0.1..=60.0,
    summary: "Time without progress after which a path with data in flight is dead, if another makes progress",
};

const LATE: Number = Number {
    name: "late",
    unit: "s",
    default: 0.0,
    range: 0.0..=10.0,
    summary: "Time of the goodput that waits for a hole, from which the end that receives makes trials; 0: it makes none",
};

/// Settings of `GoodputTrial`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrialSettings {
    pub mesh: MeshSettings,
    /// Relative gain of goodput for which a path is suspended, or returns.
    pub gain: f64,
    /// Pause after the first trial that failed.
    pub pause: Duration,
    pub longest_pause: Duration,
    /// Time without progress after which a path is dead.
    pub dead_after: Duration,
    /// Time of the goodput that waits for a hole, from which the end that receives makes trials; zero: it makes none.
    pub late: Duration,
}

impl TrialSettings {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            mesh: MeshSettings::read(reader)?,
            gain: reader.read(&GAIN)?,
            pause: Duration::from_secs_f64(reader.read(&PAUSE)?),
            longest_pause: Duration::from_secs_f64(reader.read(&LONGEST_PAUSE)?),
            dead_after: Duration::from_secs_f64(reader.read(&DEAD_AFTER)?),
            late: Duration::from_secs_f64(reader.read(&LATE)?),
        })
    }
}

impl Default for TrialSettings {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("every default is a value")
    }
}
