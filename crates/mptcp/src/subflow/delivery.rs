//! Samples of the delivery rate (draft-ietf-ccwg-bbr, section 4.1, formerly
//! draft-cheng-iccrg-delivery-rate-estimation).
//!
//! A sample covers the flight of the newest segment that an acknowledgement delivers. Its rate is the amount delivered
//! meanwhile, divided by the longer of two intervals: from the last delivery before the segment was sent until now, and
//! from the transmission of the segment delivered then to that of this one. The second interval prevents a burst of
//! acknowledgements from looking like a fast network.
//!
//! A sample is application-limited if during that flight the window would have allowed another segment and there was
//! none: the application wrote nothing, the scheduler used other subflows, or the peer's window was closed. The draft
//! takes a closed window for a bottleneck of the network. We do so with one subflow only: with several, the shared
//! window says nothing about any path.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// State recorded when a segment is sent (P in the draft).
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure {
    /// Bytes delivered by then.
    pub delivered: u64,
    /// Bytes marked lost by then.
    pub lost: u64,
    /// Bytes in flight, this segment included.
    pub in_flight: u64,
    /// Time of the latest delivery.
    delivered_at: Instant,
    /// Transmission time of the newest segment delivered by then.
    first_sent_at: Instant,
    /// Congestion control was not the limit.
    pub application_limited: bool,
}

/// Sampling state of a subflow (C in the draft).
#[derive(Clone, Debug, Default)]
pub struct DeliverySampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    /// Samples are application-limited until more than this is delivered; 0: they are not.
    limited_until: u64,
}

/// A segment marked lost.
#[derive(Clone, Copy, Debug)]
pub struct LostSegment {
    /// Length in sequence space.
    pub length: u32,
    /// Bytes marked lost on the subflow so far, this segment included.
    pub total_lost: u64,
    /// State recorded when it was sent.
    pub departure: Departure,
}

/// Segments marked lost since the last [`Self::take`]; always empty if congestion control does not ask for them.
#[derive(Clone, Debug, Default)]
pub struct LossReport {
    /// On the heap, since few congestion controls need it.
    wanted: Option<Box<Segments>>,
}

#[derive(Clone, Debug, Default)]
struct Segments(Vec<LostSegment>);

impl LossReport {
    pub fn new(wanted: bool) -> Self {
        Self { wanted: wanted.then(Box::default) }
    }
    pub fn is_empty(&self) -> bool {
        self.wanted.as_ref().is_none_or(|segments| segments.0.is_empty())
    }
    /// Records a segment marked lost; `total_lost` includes it.
    pub fn note(&mut self, length: u32, departure: &Departure, total_lost: u64) {
        if let Some(segments) = &mut self.wanted {
            segments.0.push(LostSegment { length, total_lost, departure: *departure });
        }
    }
    /// Removes segments of this length: path MTU probes, which are longer than all others.
    pub fn forget(&mut self, length: u32) {
        self.wanted.iter_mut().for_each(|segments| segments.0.retain(|segment| segment.length != length));
    }
    /// Removes and returns all, oldest first.
    pub fn take(&mut self) -> Vec<LostSegment> {
        self.wanted.as_mut().map(|segments| core::mem::take(&mut segments.0)).unwrap_or_default()
    }
}

impl DeliverySampler {
    /// Bytes delivered on the subflow, acknowledged cumulatively or selectively.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Bytes marked lost on the subflow, each loss counted once.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Whether congestion control is not the limit now.
    pub fn is_application_limited(&self) -> bool {
        self.limited_until != 0
    }

    /// Time of the latest delivery, or of the first transmission after everything had been delivered.
    pub fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// A segment is about to be sent with nothing outstanding: the intervals of later samples begin now. (The draft
    /// says "nothing in flight". After a timeout that is different: here the interval includes the silence, as in
    /// Linux, and one sample is lower.)
    pub fn begin(&mut self, now: Instant) {
        self.first_sent_at = now;
        self.delivered_at = now;
    }

    /// A segment of `length` bytes is sent; `in_flight` does not include it.
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

    /// An acknowledgement delivered `bytes`; the newest segment among them was sent at `newest_sent_at`.
    pub fn deliver(&mut self, now: Instant, bytes: u64, newest_sent_at: Option<Instant>) {
        self.delivered += bytes;
        self.delivered_at = now;
        self.first_sent_at = newest_sent_at.unwrap_or(self.first_sent_at);
        if self.limited_until != 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
    }

    pub fn lose(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// The window allows another segment, and there is none: samples of the data in flight, and of what follows within
    /// a round trip, are application-limited.
    pub fn limit(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// Whether [`Self::limit`] would change nothing.
    pub fn is_limited_until(&self, in_flight: u64) -> bool {
        self.limited_until == (self.delivered + in_flight).max(1)
    }

    /// The rate over the flight of a segment that was sent at `sent_at` and is delivered now. None if that took less
    /// than the minimum round trip: then an earlier transmission was delivered.
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
        // 1000 bytes in 100 ms, with no earlier delivery: 80 kbit/s.
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
        // The segment sent at 280 ms is acknowledged at 380 ms. Since then ten segments were delivered within 100 ms of
        // acknowledgements (800 kbit/s), but it was sent 280 ms after the one that was delivered when it was sent:
        // 285.7 kbit/s.
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
        // The two segments that were in flight when the data ran out are delivered: the gap is still in the pipe.
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

    #[test]
    fn a_limit_is_new_if_more_is_in_flight_than_at_the_last() {
        let mut sampler = DeliverySampler::default();
        sampler.deliver(at(0), 1_000, None);
        assert!(!sampler.is_limited_until(500));
        sampler.limit(500);
        assert!(sampler.is_limited_until(500) && !sampler.is_limited_until(600));
    }
}
