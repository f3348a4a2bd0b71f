//! The choice of a datagram policy, which is no part of a combination: connections have none.

use super::family::{MemberInfo, infos};
use crate::diagnostic::did_you_mean;
use anabranch_policy::combination::Choice;
use anabranch_policy::datagram::{DatagramPolicy, TABLE};
use anabranch_policy::table::{SettingError, build};

/// The family's name.
pub const DATAGRAM: &str = "datagram";

/// What the family decides.
pub const DATAGRAM_DECIDES: &str = "which paths carry a datagram";

/// The members of the family.
pub fn datagram_members() -> Vec<MemberInfo> {
    infos(TABLE)
}

/// The default member.
pub fn datagram_default() -> Choice {
    Choice::new(TABLE.first().map_or("", |member| member.name))
}

/// Whether there is a member of this name.
pub fn is_datagram_policy(name: &str) -> bool {
    TABLE.iter().any(|member| member.name == name)
}

/// Makes a policy.
///
/// # Errors
/// If there is no such member, or it does not take the settings; the message suggests what was meant.
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

/// Changes a choice by a word of `--policy`, `datagram=NAME` or `datagram.SETTING=VALUE`; nothing if it is not about datagrams.
pub(super) fn change(choice: &mut Option<Choice>, key: &str, value: &str) -> Option<()> {
    if key == DATAGRAM {
        *choice = Some(Choice::new(value));
        return Some(());
    }
    let setting = key.strip_prefix(DATAGRAM)?.strip_prefix('.')?;
    choice.get_or_insert_with(datagram_default).settings.set(setting, value);
    Some(())
}
