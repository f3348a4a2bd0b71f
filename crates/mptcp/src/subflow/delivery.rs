//! How fast the network delivers: samples of the delivery rate (draft-ietf-ccwg-bbr, section 4.1, formerly
//! draft-cheng-iccrg-delivery-rate-estimation).
//!
//! A sample spans the flight of the newest segment that an acknowledgement delivers. Its rate is what was delivered
//! meanwhile over the longer of two spans: from the delivery before the segment left to now, and from the sending of
//! the segment delivered then to the sending of this one. The second keeps acknowledgements that arrive in a burst from
//! looking like a fast network.
//!
//! A sample is application-limited if at some moment of that flight the window would have let a segment go and there
//! was none: the application wrote nothing, the scheduler sent elsewhere, or the peer's window was shut. The draft takes a
//! shut window of the peer for a bottleneck of the network; so it is here with one subflow, but with several under one
//! window it says nothing of any of them.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// What a segment remembers of the moment when it was sent (P in the draft).
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure {
    /// Bytes delivered until then.
    pub delivered: u64,
    /// Bytes marked lost until then.
    pub lost: u64,
    /// In flight just after it.
    pub in_flight: u64,
    /// When the last bytes had been delivered.
    delivered_at: Instant,
    /// When the newest segment delivered until then had been sent.
    first_sent_at: Instant,
    /// The sending was not limited by congestion control.
    pub application_limited: bool,
}

/// The state of the sampling on one subflow (C in the draft).
#[derive(Clone, Debug, Default)]
pub struct DeliverySampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    /// Until more than this is delivered, samples are application-limited; none: 0.
    limited_until: u64,
}

/// A segment that was marked lost.
#[derive(Clone, Copy, Debug)]
pub struct LostSegment {
    /// Bytes of sequence space.
    pub length: u32,
    /// Bytes marked lost since the subflow began, this segment included.
    pub total_lost: u64,
    /// What was known when it was sent.
    pub departure: Departure,
}

/// The segments that were marked lost since they were last taken; always empty unless somebody wants to know.
#[derive(Clone, Debug, Default)]
pub struct LossReport {
    /// On the heap, so that who does not want to know does not carry it along.
    wanted: Option<Box<Segments>>,
}

#[derive(Clone, Debug, Default)]
struct Segments(Vec<LostSegment>);

impl LossReport {
    /// An empty one, which notes losses if they are `wanted`.
    pub fn new(wanted: bool) -> Self {
        Self { wanted: wanted.then(Box::default) }
    }
    /// Whether there is none to report.
    pub fn is_empty(&self) -> bool {
        self.wanted.as_ref().is_none_or(|segments| segments.0.is_empty())
    }
    /// A segment was marked lost; `total_lost` includes it.
    pub fn note(&mut self, length: u32, departure: &Departure, total_lost: u64) {
        if let Some(segments) = &mut self.wanted {
            segments.0.push(LostSegment { length, total_lost, departure: *departure });
        }
    }
    /// Those of this length are not to be reported: a probe that was longer than all others.
    pub fn forget(&mut self, length: u32) {
        self.wanted.iter_mut().for_each(|segments| segments.0.retain(|segment| segment.length != length));
    }
    /// Takes them, oldest first.
    pub fn take(&mut self) -> Vec<LostSegment> {
        self.wanted.as_mut().map(|segments| core::mem::take(&mut segments.0)).unwrap_or_default()
    }
}

impl DeliverySampler {
    /// Bytes delivered since the subflow began, cumulatively or selectively.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Bytes marked lost since the subflow began, each loss once.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Whether what is sent now is not limited by congestion control.
    pub fn is_application_limited(&self) -> bool {
        self.limited_until != 0
    }

    /// When the last bytes were delivered, or the first segment left after all had been.
    pub fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// A segment is about to leave while nothing is outstanding: whatever is delivered later is delivered in the span that
    /// begins here. (The draft says so of nothing in flight, which after a timeout is not the same: there the span
    /// includes the silence, as in Linux, and one sample is lower.)
    pub fn begin(&mut self, now: Instant) {
        self.first_sent_at = now;
        self.delivered_at = now;
    }

    /// A segment of `length` bytes leaves; `in_flight` is what was in flight before.
    pub fn depart(&self, in_flight: u64, length: u32) -> Departure {
        Departure {
            delivered: self.delivered,
            lost: self.lost,
            in_flight: in_flight + u64::from(length),
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            application_limited: self.limited_until != 0,
        }
    }

    /// `bytes` were delivered by one acknowledgement; the newest of the segments concerned left at `newest_sent_at`.
    pub fn deliver(&mut self, now: Instant, bytes: u64, newest_sent_at: Option<Instant>) {
        self.delivered += bytes;
        self.delivered_at = now;
        self.first_sent_at = newest_sent_at.unwrap_or(self.first_sent_at);
        if self.limited_until != 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
    }

    /// `bytes` were marked lost.
    pub fn lose(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Congestion control would let a segment go, and there is none: what is in flight and what follows it within a
    /// round trip yields application-limited samples.
    pub fn limit(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// Whether [`Self::limit`] would change nothing.
    pub fn is_limited_until(&self, in_flight: u64) -> bool {
        self.limited_until == (self.delivered + in_flight).max(1)
    }

    /// The rate over the flight of a segment that left at `sent_at` and is delivered now. None if it took less than the
    /// least round trip: then the acknowledgement was for an earlier transmission.
    pub fn rate(&self, now: Instant, sent_at: Instant, departure: &Departure, min_rtt: Duration) -> Option<Rate> {
        let span = now.since(departure.delivered_at).max(sent_at.since(departure.first_sent_at));
        if span.is_zero() || span < min_rtt {
            return None;
        }
        Some(Rate::from_bytes_over(self.delivered - departure.delivered, span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn bits(rate: Option<Rate>) -> Option<u64> {
        rate.map(Rate::bits_per_second)
    }

    #[test]
    fn a_lost_probe_is_not_reported_and_who_does_not_want_to_know_hears_nothing() {
        let departure = DeliverySampler::default().depart(0, 1_000);
        for (wanted, lengths) in [(true, vec![1_000, 800]), (false, vec![])] {
            let mut losses = LossReport::new(wanted);
            for (length, total) in [(1_000, 1_000), (1_400, 2_400), (800, 3_200)] {
                losses.note(length, &departure, total);
            }
            losses.forget(1_400);
            assert_eq!(losses.is_empty(), !wanted);
            assert_eq!(losses.take().iter().map(|lost| lost.length).collect::<Vec<_>>(), lengths);
            assert!(losses.is_empty());
        }
    }

    #[test]
    fn samples_are_limited_by_the_application_until_what_was_in_flight_then_has_arrived() {
        let mut sampler = DeliverySampler::default();
        assert!(!sampler.is_application_limited());
        sampler.limit(2_000);
        for (arrived, limited) in [(1_000, true), (1_000, true), (1, false)] {
            assert!(sampler.is_application_limited());
            sampler.deliver(at(1), arrived, None);
            assert_eq!(sampler.is_application_limited(), limited);
        }
    }

    #[test]
    fn the_first_sample_begins_when_the_first_segment_leaves() {
        let mut sampler = DeliverySampler::default();
        sampler.begin(at(1_000));
        let departure = sampler.depart(0, 1_000);
        sampler.deliver(at(1_100), 1_000, Some(at(1_000)));
        // 1000 bytes in 100 ms, although nothing was ever delivered before: 80 kbit/s.
        assert_eq!(bits(sampler.rate(at(1_100), at(1_000), &departure, MIN_RTT)), Some(80_000));
    }

    #[test]
    fn acknowledgements_in_a_burst_are_held_against_the_time_that_sending_took() {
        let mut sampler = DeliverySampler::default();
        sampler.begin(at(0));
        let first = sampler.depart(0, 1_000);
        assert_eq!(first.in_flight, 1_000);
        // Nine more, one every 20 ms; all ten are acknowledged one after the other from 280 ms on, 1 ms apart.
        let later: Vec<_> = (1..10).map(|n| (at(20 * n), sampler.depart(1_000 * n, 1_000))).collect();
        sampler.deliver(at(280), 1_000, Some(at(0)));
        let again = sampler.depart(9_000, 1_000);
        for (n, (sent_at, _)) in later.iter().enumerate() {
            sampler.deliver(at(281 + n as u64), 1_000, Some(*sent_at));
        }
        // The segment sent at 280 ms: acknowledged at 380 ms. Delivered since: nine and itself, in 100 ms by
        // acknowledgements (800 kbit/s), but it left 280 ms after the one that had been delivered when it left: 285.7 kbit/s.
        sampler.deliver(at(380), 1_000, Some(at(280)));
        assert_eq!(bits(sampler.rate(at(380), at(280), &again, MIN_RTT)), Some(285_714));
    }

    #[test]
    fn a_sample_shorter_than_the_least_round_trip_is_none() {
        let mut sampler = DeliverySampler::default();
        sampler.begin(at(300));
        let again = sampler.depart(0, 1_000);
        sampler.deliver(at(310), 1_000, Some(at(300)));
        assert_eq!(sampler.rate(at(310), at(300), &again, MIN_RTT), None);
    }

    #[test]
    fn samples_are_limited_until_what_followed_the_gap_is_delivered() {
        let mut sampler = DeliverySampler::default();
        assert!(!sampler.depart(0, 1_000).application_limited);
        assert!(!sampler.depart(1_000, 1_000).application_limited);
        sampler.limit(2_000);
        assert!(sampler.depart(2_000, 1_000).application_limited);
        // The two that were out when the sender ran dry are delivered: the gap is still in the pipe.
        sampler.deliver(at(100), 2_000, Some(at(0)));
        assert!(sampler.depart(1_000, 1_000).application_limited);
        sampler.deliver(at(150), 1_000, Some(at(50)));
        assert!(!sampler.depart(1_000, 1_000).application_limited);
    }

    #[test]
    fn a_departure_knows_what_had_been_lost() {
        let mut sampler = DeliverySampler::default();
        sampler.lose(3_000);
        assert_eq!(sampler.depart(500, 1_000).lost, 3_000);
        assert_eq!(sampler.lost(), 3_000);
    }
}
