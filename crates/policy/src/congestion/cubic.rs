//! CUBIC (RFC 9438): in congestion avoidance the window is a cubic function of the time since the last reduction.
//!
//! Windows are counted in segments here (as `f64`) and time in seconds, as in the RFC. With W_max the window before the
//! last reduction and t the time since congestion avoidance began at cwnd_epoch:
//!
//! - W_cubic(t) = C (t - K)^3 + W_max, K = cbrt((W_max - cwnd_epoch) / C) (equations 1 and 2);
//! - target = W_cubic(t + RTT), not below cwnd nor above 1.5 cwnd; each segment acknowledged adds (target - cwnd) / cwnd
//!   (sections 4.2, 4.4 and 4.5);
//! - W_est is Reno's window: each segment acknowledged adds alpha / cwnd, with
//!   alpha = 3 (1 - beta) / (1 + beta) until W_est reaches the window before the reduction, then 1 (section 4.3,
//!   equation 4). While W_cubic(t) < W_est, the window is W_est;
//! - a loss or mark keeps beta of the window; if that happens below the last W_max, W_max becomes
//!   (1 + beta) / 2 of the window instead of the window: fast convergence (section 4.7);
//! - after a timeout, and after a first slow start that HyStart++ ended, K = 0 and W_max is the window at which
//!   congestion avoidance begins (sections 4.8 and 4.10);
//! - a spurious congestion event restores the state (section 4.9).
//!
//! Differences from RFC 8312: W_est is added up per acknowledgement and has the second alpha, target has its two
//! bounds, K is computed from cwnd_epoch instead of beta W_max, HyStart++ replaces HyStart, and spurious events are
//! undone.
//!
//! Linux still has RFC 8312's W_est, with a constant alpha = 3 (1 - beta) / (1 + beta), and the original HyStart:
//! `reno_region` and `hystart` choose them.
//!
//! Choices: the window is what is reduced, not the flight size (section 4.6 allows it where the window
//! cannot grow unused; see `window`). An acknowledgement of several segments counts for each of them. Time in which the
//! window did not limit sending does not count in t (section 5.8). A penalty by the scheduler begins a new epoch
//! from the halved window towards the same W_max.

pub use super::slow_start::Detection;
use super::slow_start::{SEGMENT_LIMIT, SlowStart};
use super::uncoupled::{SinglePath, Uncoupled};
use super::window::{Decrease, Window, counted};
use super::{Ack, Congestion, CongestionControl, CongestionEvent, Start};
use crate::table::{Choice, Member, Number, Reader, SettingError, Settings, Switch};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "cubic",
    summary: "CUBIC on each subflow by itself: the window is a cubic function of the time since the last loss.",
    source: "RFC 9438, RFC 9406",
    build,
};

const BETA: Number = Number {
    name: "beta",
    unit: "factor",
    default: 0.7,
    range: 0.1..=0.95,
    summary: "Share of the window kept after a loss (beta_cubic).",
};
const C: Number = Number {
    name: "c",
    unit: "segments per cubic second",
    default: 0.4,
    range: 0.001..=100.0,
    summary: "Steepness of the cubic function (C).",
};
const FAST_CONVERGENCE: Switch = Switch {
    name: "fast_convergence",
    default: true,
    summary: "Release bandwidth when a loss comes at a smaller window than the one before (RFC 9438, section 4.7).",
};
const HYSTART: Choice<Detection> = Choice {
    name: "hystart",
    default: Detection::HyStartPlusPlus,
    words: &[("off", Detection::Off), ("on", Detection::HyStartPlusPlus), ("classic", Detection::Classic)],
    summary: "End the first slow start when the RTT rises: HyStart++ (RFC 9406), or the original HyStart.",
};
const RENO_REGION: Choice<bool> = Choice {
    name: "reno_region",
    default: false,
    words: &[("rfc9438", false), ("rfc8312", true)],
    summary: "Growth of Reno's estimate: faster once it exceeds the window before the loss, or constant.",
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    Ok(Box::new(Uncoupled::<Cubic>::new(CubicSettings::read(reader)?)))
}

/// Settings of CUBIC.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CubicSettings {
    /// Share of the window kept after a loss, above 0 and below 1 (beta_cubic).
    pub beta: f64,
    /// Segments per cubic second, above 0 (C).
    pub c: f64,
    /// Fast convergence (section 4.7).
    pub fast_convergence: bool,
    /// What ends the first slow start.
    pub hystart: Detection,
    /// Reno's estimate always grows by the same alpha (RFC 8312, section 4.2).
    pub constant_alpha: bool,
    /// Limits the segments counted per acknowledgement in slow start (RFC 3465).
    pub segment_limit: bool,
}

impl CubicSettings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            beta: reader.read(&BETA)?,
            c: reader.read(&C)?,
            fast_convergence: reader.read(&FAST_CONVERGENCE)?,
            hystart: reader.read(&HYSTART)?,
            constant_alpha: reader.read(&RENO_REGION)?,
            segment_limit: reader.read(&SEGMENT_LIMIT)?,
        })
    }
}

impl Default for CubicSettings {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("every default is a value")
    }
}

/// The cubic function and the Reno estimate; windows in segments, times in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Curve {
    /// Start of congestion avoidance, shifted by time that does not count; `None` outside it (t_epoch).
    epoch: Option<Instant>,
    /// The plateau; `None` before the first loss and after a timeout (W_max).
    w_max: Option<f64>,
    /// Time from the epoch to the plateau (K).
    k: f64,
    /// The window before the last reduction (cwnd_prior); 0 before the first, so that Reno's own increase applies.
    cwnd_prior: f64,
    /// Reno's window (W_est).
    w_est: f64,
}

impl Curve {
    /// Congestion avoidance begins at `cwnd`.
    fn begin(&mut self, now: Instant, cwnd: f64, c: f64) {
        self.epoch = Some(now);
        self.w_est = cwnd;
        self.k = match self.w_max {
            Some(w_max) if w_max > cwnd => libm::cbrt((w_max - cwnd) / c),
            _ => {
                self.w_max = Some(cwnd);
                0.0
            }
        };
    }
    /// W_cubic(t), equation 1.
    fn at(&self, t: f64, c: f64) -> f64 {
        let from_plateau = t - self.k;
        c * from_plateau * from_plateau * from_plateau + self.w_max.unwrap_or(0.0)
    }
}

/// CUBIC on one subflow.
#[derive(Clone, Debug)]
pub struct Cubic {
    settings: CubicSettings,
    /// The alpha of Reno that is fair with `beta`: 3 (1 - beta) / (1 + beta).
    alpha: f64,
    window: Window,
    slow_start: SlowStart,
    curve: Curve,
    /// The curve before the last congestion event; boxed, since many subflows never have one.
    before: Option<Box<Curve>>,
    /// When data was last acknowledged.
    last_ack: Instant,
    /// Share of a single connection's growth; 1 for an uncoupled connection.
    share: f64,
}

impl Cubic {
    /// The window in segments.
    fn segments(&self) -> f64 {
        self.window.cwnd() as f64 / self.window.mss() as f64
    }

    /// By how many segments the window grows when `segments` are acknowledged.
    fn increase(&mut self, now: Instant, rtt: Duration, segments: f64) -> f64 {
        let c = self.settings.c * self.share;
        let cwnd = self.segments();
        if self.curve.epoch.is_none() {
            self.curve.begin(now, cwnd, c);
        }
        let t = now.since(self.curve.epoch.unwrap_or(now)).as_secs_f64();
        let curve = &mut self.curve;
        let faster = curve.w_est >= curve.cwnd_prior && !self.settings.constant_alpha;
        let alpha = if faster { 1.0 } else { self.alpha };
        let share = segments / cwnd;
        curve.w_est += alpha * self.share * share;
        if curve.at(t, c) < curve.w_est {
            return (curve.w_est - cwnd).max(0.0);
        }
        let target = curve.at(t + rtt.as_secs_f64(), c).clamp(cwnd, 1.5 * cwnd);
        (target - cwnd) * share.min(1.0)
    }

    /// Sets the growth to this share of one CUBIC's: C and alpha times `share`, so that K is unchanged.
    pub(super) fn grow_as(&mut self, share: f64) {
        self.share = share;
    }

    /// Time of the last acknowledgement of data, or of the start.
    pub(super) fn last_ack(&self) -> Instant {
        self.last_ack
    }

    /// Whether the window is below its threshold.
    pub(super) fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    /// Whether it has been below its threshold since the start.
    pub(super) fn in_first_slow_start(&self) -> bool {
        self.window.in_first_slow_start()
    }

    /// Starts with a known threshold: the window is below it, or slow start is over.
    pub(super) fn with_threshold(mut self, ssthresh: u64) -> Self {
        self.window.set_threshold(ssthresh);
        if !self.window.in_first_slow_start() {
            self.slow_start = SlowStart::with(Detection::Off, self.settings.segment_limit);
        }
        self
    }

    /// Ends slow start without a reduction.
    pub(super) fn leave_slow_start(&mut self) {
        self.window.leave_slow_start();
    }

    /// Raises the window to at least `bytes`.
    pub(super) fn raise_to(&mut self, bytes: u64) {
        let more = bytes.saturating_sub(self.window.cwnd());
        if more > 0 {
            self.window.add(more as f64);
            self.curve.epoch = None;
            self.curve.w_max = None;
        }
    }

    fn decrease(&self) -> Decrease {
        Decrease { keep: self.settings.beta, keep_on_timeout: self.settings.beta, floor: 2 }
    }
}

impl SinglePath for Cubic {
    type Settings = CubicSettings;

    fn start(settings: &CubicSettings, start: Start) -> Self {
        Self {
            settings: *settings,
            alpha: 3.0 * (1.0 - settings.beta) / (1.0 + settings.beta),
            window: Window::new(start),
            slow_start: SlowStart::with(settings.hystart, settings.segment_limit),
            curve: Curve::default(),
            before: None,
            last_ack: start.now,
            share: 1.0,
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let since_last = ack.now.since(self.last_ack);
        self.last_ack = ack.now;
        if self.window.in_slow_start() {
            self.slow_start.on_ack(&mut self.window, ack);
            return;
        }
        let counted = counted(ack);
        if counted == 0 {
            if !ack.cwnd_limited
                && let Some(epoch) = &mut self.curve.epoch
            {
                *epoch += since_last;
            }
            return;
        }
        let mss = self.window.mss() as f64;
        let more = self.increase(ack.now, ack.smoothed_rtt, counted as f64 / mss);
        self.window.add(more * mss);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let cwnd = self.segments();
        let curve = self.curve;
        self.curve.epoch = None;
        match event.cause {
            Congestion::Loss | Congestion::Mark => {
                self.before = Some(Box::new(curve));
                self.curve.cwnd_prior = cwnd;
                let early = curve.w_max.is_some_and(|w_max| cwnd < w_max);
                self.curve.w_max = Some(if early && self.settings.fast_convergence {
                    cwnd * (1.0 + self.settings.beta) / 2.0
                } else {
                    cwnd
                });
            }
            Congestion::Timeout => {
                if !event.repeated {
                    self.before = Some(Box::new(curve));
                    self.curve.cwnd_prior = cwnd;
                }
                self.curve.w_max = None;
            }
            Congestion::Penalty => {}
        }
        self.window.on_congestion(event, self.decrease());
    }

    fn on_recovery_end(&mut self, _now: Instant) {
        self.window.on_recovery_end();
    }

    fn on_spurious(&mut self, _now: Instant) {
        if let (true, Some(curve)) = (self.window.on_spurious(), self.before.take().map(|curve| *curve)) {
            self.curve = curve;
        }
    }

    fn on_idle_restart(&mut self, window: u64) {
        self.window.on_idle_restart(window);
        self.curve.epoch = None;
    }

    fn on_mss(&mut self, mss: u32) {
        // The bytes stay, so values in segments are scaled, and K changes: a new epoch begins.
        let old = self.window.mss() as f64;
        self.window.on_mss(mss);
        let ratio = old / self.window.mss() as f64;
        self.curve.w_max = self.curve.w_max.map(|w_max| w_max * ratio);
        self.curve.cwnd_prior *= ratio;
        self.curve.w_est *= ratio;
        self.curve.epoch = None;
    }

    fn window(&self) -> u64 {
        self.window.cwnd()
    }
    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }
}

#[cfg(test)]
mod tests;
