//! Evaluates arrivals: which frames are lost, late, decodable on time, and where the picture freezes.
//!
//! The deadline is the one of [`anabranch_policy::reliability`]: its play-out clock is fed with first bytes in the
//! order of their arrival, and a frame is on time if it is complete by the clock's deadline at that time. The clock
//! (and the header of the frame's message) uses [`Frame::at`](crate::Frame::at), when the decoder takes the frame in,
//! not when it is shown: an I or P frame is needed by the B frames that are shown before it, and so every frame has the
//! same latency from the encoder. With a deadline per group of pictures it is that of the group's first frame
//! ([`Deadline`]).

use crate::dependency::Dependency;
use crate::frame::ByType;
use crate::trace::Trace;
use anabranch_policy::reliability::{Deadline, PlayOutClock};
use anabranch_policy::{Duration, Instant};
use thiserror::Error;

/// An invalid latency.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LatencyError {
    /// It is no number.
    #[error("'{0}' is no latency in milliseconds")]
    NoNumber(String),
    /// It is negative.
    #[error("a latency of {0} ms is negative: a frame cannot be shown before it is sent")]
    Negative(String),
    /// It is more than an hour.
    #[error("a latency of {0} ms is more than an hour")]
    TooLong(String),
}

/// Reads a latency (the deadline of play-out) in milliseconds.
///
/// # Errors
/// One sentence if it is no number, negative, or more than an hour.
pub fn latency_from_millis(text: &str) -> Result<Duration, LatencyError> {
    let shown: String = text.trim().chars().take(20).collect();
    let millis: f64 = text.trim().parse().map_err(|_| LatencyError::NoNumber(shown.clone()))?;
    if millis.is_nan() {
        Err(LatencyError::NoNumber(shown))
    } else if millis < 0.0 {
        Err(LatencyError::Negative(shown))
    } else if millis > 3_600_000.0 {
        Err(LatencyError::TooLong(shown))
    } else {
        Ok(Duration::from_nanos((millis * 1e6).round() as u64))
    }
}

/// Arrival of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its first byte.
    pub first: Instant,
    /// Its last missing byte; `None` if it was never complete.
    pub whole: Option<Instant>,
}

/// The fate of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Complete by its play-out time.
    OnTime,
    /// Complete, but too late.
    Late,
    /// Never complete.
    Lost,
}

/// Ranges of display order in which the picture freezes, because frames did not decode on time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stalls {
    pub count: u64,
    pub total: Duration,
    pub longest: Duration,
}

/// The evaluation of a whole stream.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// By index in coding order.
    pub fates: Vec<Fate>,
    /// By index in coding order: on time, with all frames that it is predicted from.
    pub decodable: Vec<bool>,
    /// All frames.
    pub sent: ByType<u64>,
    pub lost: ByType<u64>,
    pub late: ByType<u64>,
    /// Frames on time that cannot be decoded because a needed frame was not.
    pub broken: ByType<u64>,
    /// Freezes of the picture.
    pub stalls: Stalls,
    /// From the encoder to completeness, of all completed frames, ascending.
    delays: Vec<Duration>,
}

impl Delivery {
    /// Evaluates a stream whose first frame the encoder had at `start`. Arrivals are in coding order; frames beyond
    /// their end are lost.
    pub fn judge(trace: &Trace, arrivals: &[Option<Arrival>], deadline: impl Into<Deadline>, start: Instant) -> Self {
        let fates = fates(trace, arrivals, deadline.into());
        let on_time: Vec<bool> = fates.iter().map(|&fate| fate == Fate::OnTime).collect();
        let decodable = Dependency::new(trace).decodable(&on_time);
        let (mut lost, mut late, mut broken) = (ByType::default(), ByType::default(), ByType::default());
        for ((frame, fate), decodable) in trace.frames().iter().zip(&fates).zip(&decodable) {
            let count = match fate {
                Fate::Lost => &mut lost,
                Fate::Late => &mut late,
                Fate::OnTime if !decodable => &mut broken,
                Fate::OnTime => continue,
            };
            count[frame.frame_type] += 1;
        }
        let whole = |(frame, arrival): (&crate::Frame, &Option<Arrival>)| {
            let whole = arrival.as_ref()?.whole?;
            Some(whole.since(start + frame.at))
        };
        let mut delays: Vec<Duration> = trace.frames().iter().zip(arrivals).filter_map(whole).collect();
        delays.sort_unstable();
        let stalls = stalls(trace, &decodable);
        Self { fates, decodable, sent: trace.counts(), lost, late, broken, stalls, delays }
    }

    /// Share of frames lost or late: the paper's frame loss rate.
    pub fn loss_rate(&self) -> f64 {
        ratio(self.lost.total() + self.late.total(), self.sent.total())
    }

    /// Share of frames on time.
    pub fn on_time_ratio(&self) -> f64 {
        1.0 - self.loss_rate()
    }

    /// Share of frames that decode on time: the decodable frame rate Q.
    pub fn decodable_ratio(&self) -> f64 {
        1.0 - self.loss_rate() - ratio(self.broken.total(), self.sent.total())
    }

    /// The quantile `part` of the delays of completed frames (nearest rank): 0.5 is the median, 1 the longest.
    pub fn delay(&self, part: f64) -> Option<Duration> {
        let rank = (part.clamp(0.0, 1.0) * self.delays.len() as f64).ceil() as usize;
        self.delays.get(rank.saturating_sub(1)).copied()
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn fates(trace: &Trace, arrivals: &[Option<Arrival>], deadline: Deadline) -> Vec<Fate> {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    enum Event {
        First(usize),
        Whole(usize),
    }
    let frames = trace.frames();
    let mut events: Vec<(Instant, Event)> = Vec::with_capacity(2 * frames.len());
    for (index, arrival) in arrivals.iter().take(frames.len()).enumerate() {
        let Some(arrival) = arrival else { continue };
        events.push((arrival.first, Event::First(index)));
        events.extend(arrival.whole.map(|whole| (whole.max(arrival.first), Event::Whole(index))));
    }
    events.sort_unstable();
    let groups = trace.group_times();
    let play_out = |index: usize| deadline.play_out(frames[index].at, groups[index]);
    let mut clock = PlayOutClock::new(deadline.latency);
    let mut fates = vec![Fate::Lost; frames.len()];
    for (now, event) in events {
        match event {
            Event::First(index) => {
                clock.observe(now, play_out(index));
            }
            Event::Whole(index) => {
                let in_time = clock.at(play_out(index)).is_some_and(|due| now <= due);
                fates[index] = if in_time { Fate::OnTime } else { Fate::Late };
            }
        }
    }
    fates
}

fn stalls(trace: &Trace, decodable: &[bool]) -> Stalls {
    let order = trace.display_order();
    let times: Vec<Duration> = order.iter().map(|&index| trace.frames()[index].play_out).collect();
    let mut stalls = Stalls::default();
    let mut since = None;
    for (place, &index) in order.iter().enumerate() {
        match (decodable[index], since) {
            (false, None) => since = Some(times[place]),
            (true, Some(began)) => {
                end(&mut stalls, times[place] - began);
                since = None;
            }
            _ => {}
        }
    }
    if let Some(began) = since {
        end(&mut stalls, trace.length() - began);
    }
    stalls
}

fn end(stalls: &mut Stalls, lasted: Duration) {
    stalls.count += 1;
    stalls.total += lasted;
    stalls.longest = stalls.longest.max(lasted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameType;
    use crate::trace::FrameRate;
    use anabranch_policy::reliability::DeadlineOf;
    use proptest::prelude::*;

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn at(value: u64) -> Instant {
        Instant::ZERO + millis(value)
    }

    /// I0 P3 B1 B2 P6 B4 B5, the numbers being display indices, ten frames per second; encoded at 0, 100 ... ms, shown
    /// 100 ms after their display index.
    fn seven() -> Trace {
        use FrameType::{B, I, P};
        let coded = [I, P, B, B, P, B, B].map(|frame_type| (frame_type, 500));
        Trace::at_rate(&coded, FrameRate::new(10, 1).expect("a rate")).expect("a trace")
    }

    /// Each frame arrives 20 ms after it is encoded, its first byte 10 ms after.
    fn smooth() -> Vec<Option<Arrival>> {
        let arrival = |index: u64| Arrival { first: at(index * 100 + 10), whole: Some(at(index * 100 + 20)) };
        (0..7).map(|index| Some(arrival(index))).collect()
    }

    #[test]
    fn a_smooth_stream_is_on_time_and_does_not_stall() {
        let delivery = Delivery::judge(&seven(), &smooth(), millis(300), Instant::ZERO);
        assert_eq!(delivery.fates, [Fate::OnTime; 7]);
        assert!((delivery.decodable_ratio() - 1.0).abs() < 1e-12);
        assert_eq!(delivery.stalls, Stalls::default());
        assert_eq!((delivery.delay(0.5), delivery.delay(1.0)), (Some(millis(20)), Some(millis(20))));
    }

    #[test]
    fn a_p_frame_that_is_late_breaks_what_needs_it() {
        let mut arrivals = smooth();
        // The decoder takes it in at 100; the base is 10 ms (the first byte of the first frame), the latency 300: at 410.
        arrivals[1] = Some(Arrival { first: at(110), whole: Some(at(411)) });
        let delivery = Delivery::judge(&seven(), &arrivals, millis(300), Instant::ZERO);
        assert_eq!(delivery.fates[1], Fate::Late);
        assert_eq!(delivery.late, ByType { i: 0, p: 1, b: 0 });
        assert_eq!(delivery.broken, ByType { i: 0, p: 1, b: 4 }, "all but the I depend on it");
        assert!((delivery.on_time_ratio() - 6.0 / 7.0).abs() < 1e-12);
        assert!((delivery.decodable_ratio() - 1.0 / 7.0).abs() < 1e-12);
        // From index 1 on, shown at 200 ms, to the end at 800.
        assert_eq!(delivery.stalls, Stalls { count: 1, total: millis(600), longest: millis(600) });
        assert_eq!(delivery.delay(1.0), Some(millis(311)));
        assert_eq!(delivery.delay(0.5), Some(millis(20)));
    }

    #[test]
    fn at_the_very_deadline_is_on_time() {
        let mut arrivals = smooth();
        arrivals[1] = Some(Arrival { first: at(110), whole: Some(at(410)) });
        assert_eq!(Delivery::judge(&seven(), &arrivals, millis(300), Instant::ZERO).fates[1], Fate::OnTime);
    }

    #[test]
    fn with_a_deadline_per_group_a_frame_has_what_is_left_of_it_when_it_is_there() {
        let of_group = Deadline { latency: millis(500), of: DeadlineOf::Group };
        // The base is 10 ms, of the I frame: all are due at 510. The frame at 400 arrives at 500, that at 500 at 510;
        // the last, encoded at 600, cannot be on time.
        let arrivals: Vec<_> = [20, 120, 220, 320, 500, 510, 611].map(at).into_iter().zip(0..7).collect();
        let arrival =
            |(whole, index): (Instant, u64)| Some(Arrival { first: at(index * 100 + 10), whole: Some(whole) });
        let arrivals: Vec<_> = arrivals.into_iter().map(arrival).collect();
        let fates = |deadline: Deadline| Delivery::judge(&seven(), &arrivals, deadline, Instant::ZERO).fates;
        assert_eq!(fates(of_group)[..6], [Fate::OnTime; 6]);
        assert_eq!(fates(of_group)[6], Fate::Late);
        assert_eq!(fates(millis(500).into()), [Fate::OnTime; 7]);
        let tighter = Deadline { latency: millis(499), ..of_group };
        assert_eq!(fates(tighter)[5], Fate::Late);
    }

    #[test]
    fn lost_b_frames_are_stalls_of_one_place_each() {
        let mut arrivals = smooth();
        arrivals[2] = None;
        arrivals[6] = Some(Arrival { first: at(610), whole: None });
        let delivery = Delivery::judge(&seven(), &arrivals, millis(300), Instant::ZERO);
        assert_eq!(delivery.lost, ByType { i: 0, p: 0, b: 2 });
        assert_eq!(delivery.broken.total(), 0);
        assert_eq!(delivery.stalls, Stalls { count: 2, total: millis(200), longest: millis(100) });
    }

    #[test]
    fn nothing_at_all_is_one_long_stall() {
        let delivery = Delivery::judge(&seven(), &[], millis(300), Instant::ZERO);
        assert_eq!(delivery.lost.total(), 7);
        assert_eq!(delivery.stalls, Stalls { count: 1, total: millis(700), longest: millis(700) });
        assert_eq!(delivery.delay(0.5), None);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        // Delays of 10, 20 ... 70 ms.
        let arrival = |index: u64| Arrival { first: at(index * 100), whole: Some(at(index * 100 + 10 * (index + 1))) };
        let arrivals: Vec<_> = (0..7).map(|index| Some(arrival(index))).collect();
        let delivery = Delivery::judge(&seven(), &arrivals, millis(300), Instant::ZERO);
        // 0.2 of seven are 1.4: the second. 0.5 are 3.5: the fourth.
        let delays = [0.0, 0.1, 0.2, 0.5, 0.9, 1.0, 2.0].map(|part| delivery.delay(part));
        assert_eq!(delays, [10, 10, 20, 40, 70, 70, 70].map(|delay| Some(millis(delay))));
    }

    #[test]
    fn the_clock_of_the_receiver_may_differ_by_hours() {
        let hours = Duration::from_secs(5 * 3600);
        let mut arrivals = smooth();
        arrivals[1] = Some(Arrival { first: at(110), whole: Some(at(411)) });
        let here = Delivery::judge(&seven(), &arrivals, millis(300), Instant::ZERO);
        let later =
            |arrival: Arrival| Arrival { first: arrival.first + hours, whole: arrival.whole.map(|at| at + hours) };
        let there: Vec<_> = arrivals.into_iter().map(|arrival| arrival.map(later)).collect();
        assert_eq!(Delivery::judge(&seven(), &there, millis(300), Instant::ZERO + hours).fates, here.fates);
    }

    #[test]
    fn a_wrong_latency_is_one_clear_sentence() {
        assert_eq!(latency_from_millis(" 300 "), Ok(millis(300)));
        assert_eq!(latency_from_millis("0.5"), Ok(Duration::from_micros(500)));
        let message = |text| latency_from_millis(text).expect_err("it is refused").to_string();
        assert_eq!(message("-5"), "a latency of -5 ms is negative: a frame cannot be shown before it is sent");
        assert_eq!(message("soon"), "'soon' is no latency in milliseconds");
        assert_eq!(message("NaN"), "'NaN' is no latency in milliseconds");
        assert_eq!(message("inf"), "a latency of inf ms is more than an hour");
    }

    proptest! {
        #[test]
        fn every_frame_has_one_fate_and_more_latency_is_never_worse(
            times in prop::collection::vec(prop::option::of((0..2_000_u64, prop::option::of(0..2_000_u64))), 0..9),
            latency in 0..1_000_u64,
            more in 0..1_000_u64,
        ) {
            let arrival = |(first, lasts): (u64, Option<u64>)| {
                Arrival { first: at(first), whole: lasts.map(|lasts| at(first + lasts)) }
            };
            let arrivals: Vec<_> = times.into_iter().map(|time| time.map(arrival)).collect();
            let judge = |latency| Delivery::judge(&seven(), &arrivals, millis(latency), Instant::ZERO);
            let (less, greater) = (judge(latency), judge(latency + more));
            for delivery in [&less, &greater] {
                let shown = delivery.decodable.iter().filter(|decodable| **decodable).count() as u64;
                let fates = delivery.lost.total() + delivery.late.total() + delivery.broken.total();
                prop_assert_eq!(fates + shown, 7);
                prop_assert!(delivery.stalls.longest <= delivery.stalls.total && delivery.stalls.total <= millis(700));
                prop_assert_eq!(delivery.stalls.count == 0, shown == 7);
            }
            for (less, greater) in less.decodable.iter().zip(&greater.decodable) {
                prop_assert!(less <= greater);
            }
        }
    }
}
