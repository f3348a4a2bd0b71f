//! Steering of a contender's connections by a daemon, as `anabranch steer` does with those of Linux.

use super::check::check;
use anabranch_policy::combination::{Choice, Combination, Family};

/// Keys of a scheme and of `--policy`.
pub const STEER: &str = "steer";
pub const STEERED_END: &str = "steered_end";

/// The end that runs the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SteeredEnd {
    /// The one that sends the data.
    #[default]
    Sender,
    /// The one that receives it.
    Receiver,
}

impl SteeredEnd {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    /// # Errors
    /// It is neither word.
    pub fn parse(text: &str) -> Result<Self, String> {
        [Self::Sender, Self::Receiver]
            .into_iter()
            .find(|end| end.name() == text)
            .ok_or_else(|| format!("{STEERED_END} is sender or receiver, not '{text}'"))
    }
}

/// A daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steered {
    /// Its path manager; that of the combination is the host's own.
    pub manager: Choice,
    pub end: SteeredEnd,
}

impl Steered {
    /// By this path manager at the sender.
    ///
    /// # Errors
    /// There is no such path manager or setting.
    pub fn by(manager: Choice) -> Result<Self, String> {
        let made = Self { manager, end: SteeredEnd::default() };
        made.checked()
    }

    fn checked(self) -> Result<Self, String> {
        let mut alone = Combination::default();
        *alone.choice_mut(Family::PathManager) = self.manager.clone();
        check(&alone).map(|()| self)
    }

    /// `, steered by lm3 at the sender`.
    pub fn describe(&self) -> String {
        format!(", steered by {} at the {}", self.manager, self.end.name())
    }
}

/// Applies `steer=NAME`, `steer.SETTING=VALUE` or `steered_end=END` of `--policy`; none for another key.
pub(super) fn change(steered: &mut Option<Steered>, key: &str, value: &str) -> Option<Result<(), String>> {
    if key == STEER {
        let end = steered.as_ref().map(|steered| steered.end).unwrap_or_default();
        return Some(Steered { manager: Choice::new(value), end }.checked().map(|made| *steered = Some(made)));
    }
    let setting = key.strip_prefix(STEER).and_then(|rest| rest.strip_prefix('.'));
    if setting.is_none() && key != STEERED_END {
        return None;
    }
    let Some(known) = steered else { return Some(Err(format!("{key} comes after {STEER}=NAME"))) };
    let Some(setting) = setting else {
        return Some(SteeredEnd::parse(value).map(|end| known.end = end));
    };
    known.manager.settings.set(setting, value);
    Some(known.clone().checked().map(|_| ()))
}
