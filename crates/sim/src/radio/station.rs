//! A station: its queue, its exchange, its retries and its random numbers.

use crate::random::RandomStream;
use anabranch_policy::time::{Duration, Instant};
use std::collections::VecDeque;

/// A packet in a station's queue.
#[derive(Clone, Debug)]
pub struct Waiting<C> {
    pub destination: Option<u32>,
    pub cargo: C,
    pub bytes: u32,
    /// When it is dropped.
    pub expires: Instant,
    /// The destination has it already and will know repetitions as such.
    pub received: bool,
}

/// The kinds of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Ready to send.
    Request,
    /// Clear to send.
    Clear,
    /// The packet at the head of the sender's queue.
    Data,
    /// Of data.
    Acknowledgment,
}

/// A frame on the air.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub kind: Kind,
    /// To whom, or to all.
    pub to: Option<u32>,
    /// For how long behind it the exchange will go on: its Duration field.
    pub reservation: Duration,
}

/// Where a station is in the exchange that it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It has not begun one, or waits for its turn.
    Waiting,
    /// It sends, or is about to.
    Sending,
    /// It waits for CTS until then, longer if something begins before.
    AwaitClear(Instant),
    /// It waits for ACK until then, longer if something begins before.
    AwaitAcknowledgment(Instant),
}

/// What a station has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StationCounters {
    /// Packets offered to it.
    pub offered: u64,
    /// Packets refused because its queue was full, or it was switched off.
    pub refused: u64,
    /// Data frames sent to one station, repetitions included.
    pub data_sent: u64,
    /// Data frames sent to all.
    pub broadcasts_sent: u64,
    /// RTS frames sent.
    pub requests_sent: u64,
    /// CTS frames sent.
    pub clears_sent: u64,
    /// ACK frames sent.
    pub acknowledgments_sent: u64,
    /// Bytes sent in data frames, with MAC header, repetitions included.
    pub bytes_sent: u64,
    /// RTS that nobody answered.
    pub requests_failed: u64,
    /// Data frames that nobody acknowledged.
    pub data_failed: u64,
    /// Packets acknowledged.
    pub acknowledged: u64,
    /// Packets dropped after the last attempt.
    pub given_up: u64,
    /// Packets dropped because they had waited for too long.
    pub expired: u64,
    /// Packets delivered to it as receiver, without repetitions.
    pub received: u64,
    /// Data frames received a second time.
    pub repetitions: u64,
    /// Frames whose reception was spoiled by others.
    pub collisions: u64,
    /// Data frames whose reception failed by the link's error rate.
    pub errors: u64,
}

/// A station.
#[derive(Clone, Debug)]
pub struct Station<C> {
    pub queue: VecDeque<Waiting<C>>,
    pub stage: Stage,
    /// What it sends in SIFS.
    pub answer: Option<Frame>,
    /// The contention window.
    pub window: u32,
    pub short_retries: u32,
    pub long_retries: u32,
    random: RandomStream,
    pub counters: StationCounters,
}

impl<C> Station<C> {
    pub fn new(window: u32, random: RandomStream) -> Self {
        Self {
            queue: VecDeque::new(),
            stage: Stage::Waiting,
            answer: None,
            window,
            short_retries: 0,
            long_retries: 0,
            random,
            counters: StationCounters::default(),
        }
    }
    /// Draws a back-off, in slots.
    pub fn draw(&mut self) -> u32 {
        self.random.below(u64::from(self.window) + 1) as u32
    }
    /// Forgets the attempts of a packet that is done with.
    pub fn reset(&mut self, window: u32) {
        self.window = window;
        self.short_retries = 0;
        self.long_retries = 0;
    }
}
