//! Settings of [`crate::steering::Steering`].

use anabranch_policy::time::Duration;

/// What the operating system lets the daemon do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Subflows are opened and closed by us: the path manager of user space.
    Subflows,
    /// The kernel's path manager opens subflows; only priorities are changed. Other actions of the path manager are
    /// dropped and counted.
    Priorities,
}

/// Settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    pub control: Control,
    /// Interval between samples that the driver aims at.
    pub interval: Duration,
    /// Most connections that are steered; further ones are counted and left to the kernel.
    pub most_connections: usize,
    /// Pause between the demotion of a subflow and the first probe of it, during which its demotion is lifted for an
    /// interval. Doubles up to [`Settings::longest_probe_pause`].
    pub probe_pause: Duration,
    pub longest_probe_pause: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            control: Control::Subflows,
            interval: Duration::from_millis(100),
            most_connections: 16_384,
            probe_pause: Duration::from_secs(2),
            longest_probe_pause: Duration::from_secs(32),
        }
    }
}
