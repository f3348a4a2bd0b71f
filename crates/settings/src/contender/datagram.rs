//! The datagram policy, which is not part of a combination since connections have none.

use super::family::{MemberInfo, infos};
use crate::diagnostic::did_you_mean;
use anabranch_policy::combination::Choice;
use anabranch_policy::datagram::{DatagramPolicy, TABLE};
use anabranch_policy::table::{SettingError, build};

/// Name of the family.
pub const DATAGRAM: &str = "datagram";

/// What the family decides.
pub const DATAGRAM_DECIDES: &str = "which paths carry a datagram";

pub fn datagram_members() -> Vec<MemberInfo> {
    infos(TABLE)
}

pub fn datagram_default() -> Choice {
    Choice::new(TABLE.first().map_or("", |member| member.name))
}

/// Whether a member has this name.
pub fn is_datagram_policy(name: &str) -> bool {
    TABLE.iter().any(|member| member.name == name)
}

/// # Errors
/// The member or a setting does not exist; the message has a suggestion.
pub fn build_datagram(choice: &Choice) -> Result<Box<dyn DatagramPolicy>, String> {
    build(TABLE, &choice.name, &choice.settings).map_err(|error| match error {
        SettingError::UnknownMember { name, known } => {
            let hint = did_you_mean(&name, TABLE.iter().map(|member| member.name));
            format!("'{name}' is not a datagram policy: known are {known}{hint}")
        }
        SettingError::UnknownParameter { name, known } => {
            let hint = did_you_mean(&name, known.split(", "));
            format!("datagram policy '{}' has no setting '{name}': known are {known}{hint}", choice.name)
        }
        SettingError::BadValue { .. } => format!("datagram policy '{}': {error}", choice.name),
    })
}

/// Applies `datagram=NAME` or `datagram.SETTING=VALUE` of `--policy`; none for another key.
pub(super) fn change(choice: &mut Option<Choice>, key: &str, value: &str) -> Option<()> {
    if key == DATAGRAM {
        *choice = Some(Choice::new(value));
        return Some(());
    }
    let setting = key.strip_prefix(DATAGRAM)?.strip_prefix('.')?;
    choice.get_or_insert_with(datagram_default).settings.set(setting, value);
    Some(())
}
