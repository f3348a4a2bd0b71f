//! Growth of a window below its threshold: standard slow start with byte counting, or HyStart++.
//!
//! Standard slow start adds the bytes acknowledged, at most L segments per acknowledgement: L = 2 (RFC 3465, section
//! 2.2), and L = 1 in the slow start that follows a timeout (section 2.3). With HyStart++ the first slow start counts
//! up to 8 segments (RFC 9406, section 4.2) and later ones are standard (section 4.3 requires no more). Linux has no L,
//! and the original HyStart (see `classic_hystart`); settings choose them.

use super::Ack;
use super::classic_hystart::ClassicHyStart;
use super::hystart::{HyStart, SEGMENTS_PER_ACK};
use super::window::{Window, counted};
use crate::table::Switch;

/// The setting that switches HyStart++ on where it is off by default.
pub(super) const HYSTART_OFF: Switch = Switch {
    name: "hystart",
    default: false,
    summary: "End the first slow start when the RTT rises (HyStart++, RFC 9406).",
};

/// The setting that removes L.
pub(super) const SEGMENT_LIMIT: Switch = Switch {
    name: "segment_limit",
    default: true,
    summary: "Limit the segments counted per acknowledgement in slow start (RFC 3465); Linux counts all.",
};

/// The detector that ends the first slow start before the queue overflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detection {
    /// Nothing.
    #[default]
    Off,
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus,
    /// The original HyStart, as in Linux.
    Classic,
}

#[derive(Clone, Debug)]
enum Detector {
    PlusPlus(HyStart),
    Classic(ClassicHyStart),
}

/// State of a non-standard slow start.
#[derive(Clone, Debug)]
struct Special {
    /// Only for the first one.
    detector: Option<Detector>,
    /// RFC 3465's L applies.
    limited: bool,
}

/// Growth of one subflow below its threshold.
#[derive(Clone, Debug)]
pub(super) struct SlowStart {
    /// Boxed, since it is rare.
    special: Option<Box<Special>>,
}

impl SlowStart {
    /// At the start of a subflow.
    pub(super) fn new(hystart: bool) -> Self {
        Self::with(if hystart { Detection::HyStartPlusPlus } else { Detection::Off }, true)
    }

    /// At the start of a subflow; `limited` if RFC 3465's L applies.
    pub(super) fn with(detection: Detection, limited: bool) -> Self {
        let detector = match detection {
            Detection::Off => None,
            Detection::HyStartPlusPlus => Some(Detector::PlusPlus(HyStart::new())),
            Detection::Classic => Some(Detector::Classic(ClassicHyStart::new())),
        };
        let standard = detector.is_none() && limited;
        Self { special: (!standard).then(|| Box::new(Special { detector, limited })) }
    }

    /// Grows a window that is below its threshold.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let counted = counted(ack);
        let limited = self.special.as_ref().is_none_or(|special| special.limited);
        let most = |segments: u64| if limited { segments * window.mss() } else { u64::MAX };
        let detector = self.special.as_mut().and_then(|special| special.detector.as_mut());
        let over = match detector.filter(|_| window.in_first_slow_start()) {
            Some(Detector::PlusPlus(hystart)) => {
                let most = most(SEGMENTS_PER_ACK);
                window.add_in_slow_start(counted.min(most) / hystart.growth_divisor());
                hystart.on_ack(ack)
            }
            Some(Detector::Classic(hystart)) => {
                let most = most(SEGMENTS_PER_ACK);
                let over = hystart.on_ack(ack, window.cwnd() / window.mss());
                window.add_in_slow_start(if over { 0 } else { counted.min(most) });
                over
            }
            None => {
                let most = most(if window.is_after_timeout() { 1 } else { 2 });
                window.add_in_slow_start(counted.min(most));
                false
            }
        };
        if over {
            window.leave_slow_start();
            self.special = self.special.take().filter(|special| !special.limited);
            self.special.iter_mut().for_each(|special| special.detector = None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Start;
    use crate::congestion::harness::{START, ack, loss, timeout};
    use crate::congestion::window::Decrease;

    /// By how much an acknowledgement lets the window grow.
    fn growth(slow_start: &mut SlowStart, window: &mut Window, ack: &Ack) -> u64 {
        let before = window.cwnd();
        slow_start.on_ack(window, ack);
        window.cwnd() - before
    }

    #[test]
    fn an_acknowledgement_counts_eight_segments_with_hystart_two_without_and_one_after_a_timeout() {
        let much = ack(20_000, 40);
        let mut window = Window::new(START);
        assert_eq!(growth(&mut SlowStart::new(true), &mut window, &much), 8_000);
        assert_eq!(growth(&mut SlowStart::new(false), &mut window, &much), 2_000);
        assert_eq!(growth(&mut SlowStart::with(Detection::HyStartPlusPlus, false), &mut window, &much), 20_000);
        window.on_congestion(&timeout(30_000), Decrease::STANDARD);
        assert_eq!(growth(&mut SlowStart::new(false), &mut window, &much), 1_000);
    }

    #[test]
    fn conservative_slow_start_grows_by_a_quarter_of_what_is_acknowledged() {
        let (mut slow_start, mut window) = (SlowStart::new(true), Window::new(START));
        let mut sample = |number: u64, rtt: u64| {
            let one = Ack { total_acked: number * 1_000, total_sent: number * 1_000 + 12_000, ..ack(1_000, rtt) };
            growth(&mut slow_start, &mut window, &one)
        };
        // The first round ends with the thirteenth segment; the eighth sample of the second is judged after its growth.
        assert!((1..=13).all(|number| sample(number, 40) == 1_000));
        assert!((14..=21).all(|number| sample(number, 60) == 1_000));
        assert_eq!(sample(22, 60), 250);
    }

    #[test]
    fn a_later_slow_start_is_standard() {
        let (mut slow_start, mut window) =
            (SlowStart::new(true), Window::new(Start { initial_window: 100_000, ..START }));
        window.on_congestion(&loss(100_000), Decrease::STANDARD);
        window.on_recovery_end();
        window.on_idle_restart(10_000);
        assert!(window.in_slow_start());
        assert_eq!(growth(&mut slow_start, &mut window, &ack(20_000, 40)), 2_000);
    }
}
