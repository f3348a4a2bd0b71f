//! Full reliability: nothing is ever abandoned, as TCP guarantees (RFC 9293, section 3.7; RFC 8684, section 3.3.2).

use super::Reliability;
use crate::table::{Member, Reader, SettingError};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn Reliability> =
    Member { name: "full", summary: "Nothing is abandoned.", source: "RFC 9293", build };

fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn Reliability>, SettingError> {
    Ok(Box::new(Full))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Full;

impl Reliability for Full {}

#[cfg(test)]
mod tests {
    use super::super::{BufferState, Decision, Missing, Outstanding, Verdict};
    use super::*;
    use crate::time::{Duration, Instant};

    #[test]
    fn nothing_is_abandoned_however_long_it_is_missing_and_however_full_the_buffer() {
        let missing = Missing {
            data_seq: 0,
            length: u64::MAX,
            since: Instant::ZERO,
            importance: Some(255),
            play_out: Some(Instant::ZERO),
            later_play_out: Some(Instant::ZERO),
            buffer: BufferState::default(),
            round_trip: Duration::ZERO,
        };
        let message = Outstanding {
            importance: 255,
            length: 1,
            assigned: 1,
            lost: 1,
            written: Instant::ZERO,
            expires: Some(Instant::ZERO),
            round_trip: Duration::ZERO,
        };
        for now in [Instant::ZERO, Instant::from_nanos(1), Instant::NEVER] {
            assert_eq!(Full.abandon(now, &missing), Decision::Wait { until: Instant::NEVER });
            assert_eq!(Full.withdraw(now, &message), Verdict::Keep { until: Instant::NEVER });
            assert!(Full.begin(now, &[message], &[]) && Full.last_moment(now, Some(now)).is_none());
        }
    }
}
