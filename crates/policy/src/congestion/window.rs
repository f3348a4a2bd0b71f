//! Congestion window and threshold of a subflow: their bounds, the effect of each kind of congestion, and its reversal.
//!
//! Growth is up to the algorithms; the rest is common to all of them:
//!
//! - A window is never below one segment nor above [`LARGEST_WINDOW`]; a threshold never below the floor of its source.
//! - A loss or a mark multiplies the window by the algorithm's factor; threshold and window become the result. The
//!   window is taken, not the flight size of RFC 5681, equation 4: selective acknowledgements take bytes out of the
//!   flight before the loss is known, and a window that grows only when it limits sending is not stale (the measure
//!   that RFC 9438, section 4.6, asks for in this case).
//! - A congestion mark counts as a loss (RFC 3168, section 6.1.2). The gentler factor of RFC 8511 is an experiment
//!   and not used.
//! - A timeout sets the threshold from the flight size (RFC 5681, equation 4) unless it repeats an earlier one, and the
//!   window to one segment.
//! - A penalty halves the window, and the threshold too unless the subflow is in slow start, where the threshold
//!   is above the window anyway and remains the best estimate for the path.

use super::{Ack, Congestion, CongestionEvent, Start};

/// Largest window: 1 TiB, far above what RFC 7323 can announce, and exact as `f64`.
pub(super) const LARGEST_WINDOW: u64 = 1 << 40;

/// The threshold before the first congestion: arbitrarily high (RFC 5681, section 3.1).
pub(super) const NO_THRESHOLD: u64 = u64::MAX;

/// Bytes by which an acknowledgement may be counted towards growth.
///
/// An acknowledgement that does not advance does not count (RFC 5681, section 3.2). One that does counts the bytes
/// newly delivered, so that bytes acknowledged selectively before are not counted in one burst when the hole before
/// them is filled (RFC 3465, section 2.3, names that danger). Nothing is counted during recovery, or if the window did
/// not limit sending (RFC 7661, section 4).
pub(super) fn counted(ack: &Ack) -> u64 {
    if ack.in_recovery || !ack.cwnd_limited || ack.acked == 0 { 0 } else { ack.delivered.min(LARGEST_WINDOW) }
}

/// Response of an algorithm to congestion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decrease {
    /// Share of the window that is kept after a loss or mark, 0 to 1.
    pub(super) keep: f64,
    /// Share of the flight size that becomes the threshold after a timeout, 0 to 1.
    pub(super) keep_on_timeout: f64,
    /// Minimum threshold, in segments.
    pub(super) floor: u64,
}

impl Decrease {
    /// Standard TCP: half, at least two segments (RFC 5681, equation 4).
    pub(super) const STANDARD: Self = Self { keep: 0.5, keep_on_timeout: 0.5, floor: 2 };
}

/// Window and threshold of one subflow, in bytes of payload.
#[derive(Clone, Debug)]
pub(super) struct Window {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Fraction of a byte left by growth, or bytes counted towards the next segment.
    credit: f64,
    /// Window and threshold before the last congestion event.
    before: Option<(u64, u64)>,
    /// A recovery is in progress; at its end the window becomes the threshold.
    repairing: bool,
    /// Slow start follows a timeout.
    after_timeout: bool,
}

impl Window {
    /// The initial window, with the maximum threshold.
    pub(super) fn new(start: Start) -> Self {
        let mss = u64::from(start.mss).max(1);
        Self {
            mss,
            cwnd: start.initial_window.clamp(mss, LARGEST_WINDOW),
            ssthresh: NO_THRESHOLD,
            credit: 0.0,
            before: None,
            repairing: false,
            after_timeout: false,
        }
    }
    /// Maximum payload of a segment, at least 1.
    pub(super) fn mss(&self) -> u64 {
        self.mss
    }
    pub(super) fn cwnd(&self) -> u64 {
        self.cwnd
    }
    pub(super) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
    /// Sets the threshold, bytes; [`NO_THRESHOLD`] for none.
    pub(super) fn set_threshold(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh.max(self.mss);
    }
    /// Whether the window is below the threshold.
    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
    /// Whether no threshold has been set yet.
    pub(super) fn in_first_slow_start(&self) -> bool {
        self.ssthresh == NO_THRESHOLD
    }
    /// Whether slow start follows a timeout.
    pub(super) fn is_after_timeout(&self) -> bool {
        self.after_timeout
    }

    /// Grows by `bytes` (negative: shrinks), and carries fractions of a byte over to the next call. So no growth is
    /// rounded away, which RFC 6356, section 3, prevents with a minimum growth of one byte.
    pub(super) fn add(&mut self, bytes: f64) {
        self.credit += bytes;
        // The cast saturates and takes not-a-number for zero; the sign is kept.
        let whole = self.credit as i64;
        self.credit -= whole as f64;
        self.cwnd = self.cwnd.saturating_add_signed(whole).clamp(self.mss, LARGEST_WINDOW);
    }

    /// Grows in slow start by `bytes`, not beyond the threshold.
    pub(super) fn add_in_slow_start(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(self.ssthresh.min(LARGEST_WINDOW)).max(self.mss);
        if self.cwnd >= self.ssthresh {
            self.enter_avoidance();
        }
    }

    /// Ends slow start here: the threshold becomes the window.
    pub(super) fn leave_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
        self.enter_avoidance();
    }

    /// Sets the window to `bytes`, at least two segments, and ends slow start.
    pub(super) fn settle(&mut self, bytes: u64) {
        self.cwnd = bytes.clamp(2 * self.mss, LARGEST_WINDOW).min(self.cwnd.max(self.mss));
        self.ssthresh = self.cwnd;
        self.enter_avoidance();
    }

    /// Sets the window to `bytes`, at least two segments; slow start brings it back to three quarters of the old one.
    pub(super) fn drain(&mut self, bytes: u64) {
        self.ssthresh = self.ssthresh.max(self.cwnd - self.cwnd / 4);
        self.cwnd = bytes.max(2 * self.mss).min(self.cwnd);
        self.credit = 0.0;
    }

    fn enter_avoidance(&mut self) {
        self.after_timeout = false;
        self.credit = 0.0;
    }

    /// Counts `bytes` as acknowledged; each full window of them adds one segment (RFC 3465, section 2.1).
    pub(super) fn count(&mut self, bytes: u64) {
        self.credit += bytes as f64;
        let cwnd = self.cwnd as f64;
        if self.credit >= cwnd {
            // The rest is limited to a window, so that a giant acknowledgement is not credited for several round trips.
            self.credit = (self.credit - cwnd).min(cwnd);
            self.cwnd = self.cwnd.saturating_add(self.mss).min(LARGEST_WINDOW);
        }
    }

    /// Responds to congestion.
    pub(super) fn on_congestion(&mut self, event: &CongestionEvent, decrease: Decrease) {
        let floor = decrease.floor.max(1).saturating_mul(self.mss);
        self.credit = 0.0;
        match event.cause {
            Congestion::Loss | Congestion::Mark => {
                self.before = Some((self.cwnd, self.ssthresh));
                self.ssthresh = scaled(self.cwnd, decrease.keep).max(floor);
                // A window below the floor stays there until the end of the recovery.
                self.cwnd = self.cwnd.min(self.ssthresh);
                self.repairing |= event.cause == Congestion::Loss;
                self.after_timeout = false;
            }
            Congestion::Timeout => {
                if !event.repeated {
                    self.before = Some((self.cwnd, self.ssthresh));
                    self.ssthresh = scaled(event.in_flight.min(LARGEST_WINDOW), decrease.keep_on_timeout).max(floor);
                }
                self.cwnd = self.mss;
                self.repairing = false;
                self.after_timeout = true;
            }
            Congestion::Penalty => {
                if !self.in_slow_start() {
                    self.ssthresh = (self.ssthresh / 2).max(floor);
                }
                self.cwnd = (self.cwnd / 2).max(self.mss);
                // The penalty remains if an earlier event is reversed.
                self.before = self.before.map(|(cwnd, ssthresh)| ((cwnd / 2).max(self.mss), ssthresh));
            }
        }
    }

    /// A recovery has ended: the window becomes the threshold (RFC 6582, section 3.2, step 3, option 2). After a
    /// timeout the window is still growing towards it and stays as it is.
    pub(super) fn on_recovery_end(&mut self) {
        if self.repairing {
            self.cwnd = self.ssthresh.min(LARGEST_WINDOW);
            self.repairing = false;
        }
    }

    /// The last congestion event was spurious: restores threshold and window, unless the window has grown further
    /// since. Returns whether there was anything to restore.
    pub(super) fn on_spurious(&mut self) -> bool {
        let Some((cwnd, ssthresh)) = self.before.take() else { return false };
        self.cwnd = self.cwnd.max(cwnd);
        // The segment size may have changed since.
        self.ssthresh = ssthresh.max(self.mss);
        self.repairing = false;
        self.after_timeout = false;
        self.credit = 0.0;
        true
    }

    /// Restarts after idleness with at most `window` bytes (RFC 5681, section 4.1). The threshold, if there is one, rises
    /// to three quarters of the old window, so that what was learned of the path is not lost (RFC 2861, section 3).
    pub(super) fn on_idle_restart(&mut self, window: u64) {
        if !self.in_first_slow_start() {
            self.ssthresh = self.ssthresh.max(self.cwnd - self.cwnd / 4);
        }
        self.cwnd = self.cwnd.min(window).max(self.mss);
        self.credit = 0.0;
    }

    /// The segment size changed. The window stays the same number of bytes, at least one segment.
    pub(super) fn on_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss).max(1);
        self.cwnd = self.cwnd.max(self.mss);
        self.ssthresh = self.ssthresh.max(self.mss);
    }
}

/// `bytes` times `share`, rounded down.
fn scaled(bytes: u64, share: f64) -> u64 {
    (bytes as f64 * share) as u64
}
