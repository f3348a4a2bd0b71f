//! Full reliability: nothing is ever given up, as TCP promises (RFC 9293, section 3.7; RFC 8684, section 3.3.2).

use super::{Missing, Reliability};
use crate::table::{Member, SettingError, Settings};
use crate::time::Instant;

/// The line of [`super::TABLE`].
pub const MEMBER: Member<dyn Reliability> =
    Member { name: "full", summary: "Nothing is ever given up.", source: "RFC 9293", parameters: &[], build };

fn build(_settings: &Settings) -> Result<Box<dyn Reliability>, SettingError> {
    Ok(Box::new(Full))
}

/// Waits for everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Full;

impl Reliability for Full {
    fn give_up(&mut self, _now: Instant, _missing: &Missing) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_given_up_however_long_it_is_missing() {
        let missing = Missing { data_seq: 0, length: u64::MAX, since: Instant::ZERO };
        for now in [Instant::ZERO, Instant::from_nanos(1), Instant::NEVER] {
            assert!(!Full.give_up(now, &missing));
        }
    }
}
