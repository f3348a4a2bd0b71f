//! NewReno: standard TCP congestion control (RFC 5681, RFC 6582), with byte counting (RFC 3465).
//!
//! Units are bytes. Slow start adds the bytes acknowledged (see `slow_start`); congestion avoidance adds one segment
//! for every window of bytes acknowledged (RFC 3465, section 2.1); a loss or a mark halves the window, to two segments at
//! least; a timeout makes it one segment.
//!
//! Deviations: the window is halved, not the flight size (see `window` for why). The inflation of the window by
//! duplicate acknowledgements (RFC 6582, section 3.2) is not needed: the engine counts the bytes in flight.

use super::slow_start::{Detection, HYSTART_OFF, SEGMENT_LIMIT, SlowStart};
use super::uncoupled::{SinglePath, Uncoupled};
use super::window::{Decrease, Window, counted};
use super::{Ack, CongestionControl, CongestionEvent, Start};
use crate::table::{Member, Reader, SettingError, Settings};
use crate::time::Instant;

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "new_reno",
    summary: "Standard TCP on each subflow by itself: one segment more per round trip, half after a loss.",
    source: "RFC 5681, RFC 6582, RFC 3465",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    Ok(Box::new(Uncoupled::<NewReno>::new(NewRenoSettings::read(reader)?)))
}

/// Settings of NewReno.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewRenoSettings {
    /// End the first slow start by HyStart++ (RFC 9406).
    pub hystart: bool,
    /// Count two segments at most per acknowledgement in slow start, one after a timeout (RFC 3465).
    pub segment_limit: bool,
}

impl NewRenoSettings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self { hystart: reader.read(&HYSTART_OFF)?, segment_limit: reader.read(&SEGMENT_LIMIT)? })
    }
}

impl Default for NewRenoSettings {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("every default is a value")
    }
}

/// NewReno on one subflow.
#[derive(Clone, Debug)]
pub struct NewReno {
    window: Window,
    slow_start: SlowStart,
}

impl SinglePath for NewReno {
    type Settings = NewRenoSettings;

    fn start(settings: &NewRenoSettings, start: Start) -> Self {
        let detection = if settings.hystart { Detection::HyStartPlusPlus } else { Detection::Off };
        Self { window: Window::new(start), slow_start: SlowStart::with(detection, settings.segment_limit) }
    }
    fn on_ack(&mut self, ack: &Ack) {
        if self.window.in_slow_start() {
            self.slow_start.on_ack(&mut self.window, ack);
        } else {
            self.window.count(counted(ack));
        }
    }
    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.window.on_congestion(event, Decrease::STANDARD);
    }
    fn on_recovery_end(&mut self, _now: Instant) {
        self.window.on_recovery_end();
    }
    fn on_spurious(&mut self, _now: Instant) {
        self.window.on_spurious();
    }
    fn on_idle_restart(&mut self, window: u64) {
        self.window.on_idle_restart(window);
    }
    fn on_mss(&mut self, mss: u32) {
        self.window.on_mss(mss);
    }
    fn window(&self) -> u64 {
        self.window.cwnd()
    }
    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }
}
