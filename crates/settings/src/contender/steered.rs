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

    /// At this end.
    ///
    /// # Errors
    /// The path manager sees nothing of what is received.
    pub fn at(self, end: SteeredEnd) -> Result<Self, String> {
        Self { end, ..self }.checked()
    }

    fn checked(self) -> Result<Self, String> {
        let looks = self.manager.name == "goodput_trial" && self.manager.settings.get("late").is_some();
        if self.end == SteeredEnd::Receiver && !looks {
            return Err(format!(
                "{STEERED_END} = receiver needs goodput_trial with its setting 'late': {} sees only what is sent",
                self.manager
            ));
        }
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
        let made = SteeredEnd::parse(value).and_then(|end| known.clone().at(end));
        return Some(made.map(|made| *known = made));
    };
    known.manager.settings.set(setting, value);
    Some(known.clone().checked().map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(keys: &[(&str, &str)]) -> Result<Option<Steered>, String> {
        let mut steered = None;
        for (key, value) in keys {
            change(&mut steered, key, value).expect("a key of a daemon")?;
        }
        Ok(steered)
    }

    #[test]
    fn a_daemon_at_the_receiver_has_to_see_what_is_received() {
        let late = changed(&[(STEER, "goodput_trial"), ("steer.late", "0.03"), (STEERED_END, "receiver")]);
        assert_eq!(late.map(|steered| steered.map(|steered| steered.end)), Ok(Some(SteeredEnd::Receiver)));
        for name in ["goodput_trial", "lm3"] {
            let refused = changed(&[(STEER, name), (STEERED_END, "receiver")]);
            assert!(refused.is_err_and(|error| error.contains("needs goodput_trial") && error.contains(name)));
            assert!(changed(&[(STEER, name), (STEERED_END, "sender")]).is_ok());
        }
    }
}
