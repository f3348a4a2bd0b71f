//! How fast a window grows below its threshold: standard slow start with byte counting, or HyStart++.
//!
//! Standard slow start adds the bytes acknowledged, at most L segments per acknowledgement: L = 2 (RFC 3465,
//! section 2.2), and L = 1 in the slow start that follows a timeout (section 2.3). With HyStart++ the first slow start
//! counts up to 8 segments (RFC 9406, section 4.2) and later ones are standard (section 4.3 asks for no more).

use super::Ack;
use super::hystart::{HyStart, SEGMENTS_PER_ACK};
use super::window::{Window, counted};
use crate::table::{Parameter, SettingError, Settings};

/// The setting that switches HyStart++ on where it is off by default.
pub(super) const HYSTART_OFF: Parameter =
    Parameter { name: "hystart", default: "off", values: "on | off", summary: HYSTART_SUMMARY };
/// The setting that switches HyStart++ off where it is on by default.
pub(super) const HYSTART_ON: Parameter =
    Parameter { name: "hystart", default: "on", values: "on | off", summary: HYSTART_SUMMARY };
const HYSTART_SUMMARY: &str = "End the first slow start when the RTT rises (HyStart++, RFC 9406).";

/// Reads a switch: `on` or `off`.
pub(super) fn switch(settings: &Settings, name: &str, default: bool) -> Result<bool, SettingError> {
    Ok(settings.word(name, &["off", "on"], usize::from(default))? == 1)
}

/// Growth of one subflow below its threshold.
#[derive(Clone, Debug)]
pub(super) struct SlowStart {
    /// Only for the first slow start, and only if asked for: on the heap, so that others do not carry it along.
    hystart: Option<Box<HyStart>>,
}

impl SlowStart {
    /// At the start of a subflow.
    pub(super) fn new(hystart: bool) -> Self {
        Self { hystart: hystart.then(|| Box::new(HyStart::new())) }
    }

    /// Grows a window that is below its threshold.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let counted = counted(ack);
        match &mut self.hystart {
            Some(hystart) if window.in_first_slow_start() => {
                let most = SEGMENTS_PER_ACK * window.mss();
                window.add_in_slow_start(counted.min(most) / hystart.growth_divisor());
                if hystart.on_ack(ack) {
                    window.leave_slow_start();
                    self.hystart = None;
                }
            }
            _ => {
                let segments = if window.is_after_timeout() { 1 } else { 2 };
                window.add_in_slow_start(counted.min(segments * window.mss()));
            }
        }
    }
}
