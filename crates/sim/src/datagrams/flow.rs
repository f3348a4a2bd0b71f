//! When a program sends its datagrams, and their lengths.

use crate::random::RandomStream;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// Least payload in bytes: it contains the number of the datagram.
pub const LEAST_PAYLOAD: u32 = 8;

/// Largest payload in bytes: that of UDP.
pub const LARGEST_PAYLOAD: u16 = u16::MAX;

/// What a program sends. Sizes are bytes of payload; the least is [`LEAST_PAYLOAD`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Datagrams of one size at a constant rate, as a voice call.
    Even {
        /// Of payload.
        rate: Rate,
        /// Bytes of each.
        size: u32,
    },
    /// Frames at a constant interval, each as a burst of datagrams, as video. The sizes of frames are uniform from half
    /// to one and a half times their mean.
    Frames {
        /// Mean rate of payload.
        rate: Rate,
        /// Time between frames.
        interval: Duration,
        /// Bytes of each datagram but the last of a frame.
        size: u32,
    },
    /// Requests of the client as a Poisson process, each answered by the server with one datagram, as DNS. Nothing is
    /// retransmitted.
    Requests {
        /// Mean time between requests.
        interval: Duration,
        /// Bytes of a request.
        request: u32,
        /// Bytes of an answer.
        answer: u32,
    },
}

/// A program with a client and a server end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatagramFlow {
    /// Its name, from which its random streams are derived.
    pub name: String,
    pub pattern: Pattern,
    /// Whether the client and the server send; requests are always sent by the client.
    pub sends: [bool; 2],
    pub start: Instant,
    pub stop: Instant,
    /// Greatest useful delay.
    pub deadline: Option<Duration>,
}

impl DatagramFlow {
    /// Whether an end (0: the client) sends without being asked.
    pub(super) fn begins(&self, side: usize) -> bool {
        match self.pattern {
            Pattern::Requests { .. } => side == 0,
            Pattern::Even { .. } | Pattern::Frames { .. } => self.sends[side],
        }
    }
}

/// The sender of one end: says when the next datagrams are due, and their lengths.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pattern: Pattern,
    stop: Instant,
    random: RandomStream,
    pub(super) due: Instant,
    /// For [`Pattern::Frames`]: number of frames so far.
    frames: u32,
}

impl Source {
    /// The sender of an end (0: the client) in the run with this seed.
    pub(super) fn new(flow: &DatagramFlow, side: usize, seed: u64) -> Self {
        let mut random = RandomStream::new(seed, &format!("datagrams/{}/{side}", flow.name));
        // A random phase, so that ends and flows with the same interval do not synchronize.
        let phase = match flow.pattern {
            Pattern::Even { rate, size } => rate.time_for(size.max(LEAST_PAYLOAD).into()),
            Pattern::Frames { interval, .. } | Pattern::Requests { interval, .. } => interval,
        };
        let due = flow.start + phase.mul_f64(random.uniform());
        let due = if flow.begins(side) { due } else { Instant::NEVER };
        let mut source = Self { pattern: flow.pattern, stop: flow.stop, random, due, frames: 0 };
        source.end();
        source
    }

    /// Puts the lengths of the datagrams due now into `lengths`; returns the number of their frame.
    pub(super) fn take(&mut self, lengths: &mut Vec<u32>) -> u32 {
        lengths.clear();
        let frame = self.frames;
        let pause = match self.pattern {
            Pattern::Even { rate, size } => {
                let size = size.max(LEAST_PAYLOAD);
                lengths.push(size);
                rate.time_for(size.into())
            }
            Pattern::Frames { rate, interval, size } => {
                let mean = rate.bits_per_second() as f64 / 8.0 * interval.as_secs_f64();
                let (size, mut left) = (size.max(LEAST_PAYLOAD), (mean * self.random.between(0.5, 1.5)) as u32);
                while left > size {
                    lengths.push(size);
                    left -= size;
                }
                lengths.push(left.max(LEAST_PAYLOAD));
                interval
            }
            Pattern::Requests { interval, request, .. } => {
                lengths.push(request.max(LEAST_PAYLOAD));
                Duration::from_secs_f64(self.random.exponential(interval.as_secs_f64()))
            }
        };
        self.frames = self.frames.wrapping_add(1);
        // With an unlimited rate, time would not advance.
        self.due += pause.max(Duration::from_micros(1));
        self.end();
        frame
    }

    fn end(&mut self) {
        if self.due >= self.stop {
            self.due = Instant::NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn flow(pattern: Pattern) -> DatagramFlow {
        let (start, stop) = (at(1_000), at(101_000));
        DatagramFlow { name: "f".to_owned(), pattern, sends: [true, false], start, stop, deadline: None }
    }

    /// All sends of a side: time, length, frame.
    fn all(flow: &DatagramFlow, side: usize, seed: u64) -> Vec<(Instant, u32, u32)> {
        let (mut source, mut lengths, mut sent) = (Source::new(flow, side, seed), Vec::new(), Vec::new());
        while source.due < Instant::NEVER {
            let now = source.due;
            let frame = source.take(&mut lengths);
            sent.extend(lengths.iter().map(|length| (now, *length, frame)));
        }
        sent
    }

    #[test]
    fn a_call_has_its_rate_evenly_from_start_to_stop_in_its_direction() {
        // 1,000 bytes every 4 ms for 100 s.
        let flow = flow(Pattern::Even { rate: Rate::from_bits_per_second(2_000_000), size: 1_000 });
        let sent = all(&flow, 0, 1);
        assert_eq!(sent.len(), 25_000);
        assert!(sent.windows(2).all(|pair| pair[1].0.since(pair[0].0) == Duration::from_millis(4)));
        assert!(sent[0].0 >= at(1_000) && sent[0].0 < at(1_004) && sent[0].0 != all(&flow, 0, 2)[0].0);
        assert_eq!(all(&flow, 1, 1), []);
    }

    #[test]
    fn frames_come_in_bursts_and_have_their_rate_in_the_mean() {
        let rate = Rate::from_bits_per_second(4_000_000);
        let flow = flow(Pattern::Frames { rate, interval: Duration::from_millis(40), size: 1_200 });
        let sent = all(&flow, 0, 1);
        // 4 Mbit/s for 100 s are 50 MB; the mean of 2,500 frames of 20,000 bytes has a standard deviation of 115.
        let bytes: u64 = sent.iter().map(|(_, length, _)| u64::from(*length)).sum();
        assert!(bytes.abs_diff(50_000_000) < 1_200_000, "{bytes}");
        assert_eq!(sent.last().map(|last| last.2), Some(2_499));
        // A frame of 10,000 to 30,000 bytes has 9 to 25 datagrams, all sent at once.
        for frame in 0..2_500 {
            let of_it: Vec<_> = sent.iter().filter(|(.., number)| *number == frame).collect();
            assert!((9..=25).contains(&of_it.len()) && of_it.iter().all(|one| one.0 == of_it[0].0));
        }
    }

    #[test]
    fn requests_come_at_random_times_and_from_the_client_alone() {
        let interval = Duration::from_millis(100);
        let flow =
            DatagramFlow { sends: [false, true], ..flow(Pattern::Requests { interval, request: 4, answer: 200 }) };
        let sent = all(&flow, 0, 1);
        // 1,000 with a standard deviation of 32.
        assert!((870..1_130).contains(&sent.len()), "{}", sent.len());
        assert!(sent.iter().all(|(_, length, _)| *length == LEAST_PAYLOAD));
        assert_eq!(all(&flow, 1, 1), []);
    }
}
