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
    /// The destination has it already and will recognise duplicates.
    pub received: bool,
    /// It goes before packets that are not urgent.
    pub urgent: bool,
}

impl<C> Waiting<C> {
    pub fn new(destination: Option<u32>, cargo: C, bytes: u32, urgent: bool) -> Self {
        Self { destination, cargo, bytes, expires: Instant::NEVER, received: false, urgent }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// RTS.
    Request,
    /// CTS.
    Clear,
    /// The packet at the head of the sender's queue.
    Data,
    /// ACK.
    Acknowledgment,
}

#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub kind: Kind,
    /// `None`: broadcast.
    pub to: Option<u32>,
    /// The Duration field: for how long the exchange continues after it.
    pub reservation: Duration,
}

/// Stage of the exchange that a station began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// No exchange, or waiting for access.
    Waiting,
    /// Sending, or about to.
    Sending,
    /// Waiting for CTS until this time, or longer if a frame begins before.
    AwaitClear(Instant),
    /// Waiting for ACK until this time, or longer if a frame begins before.
    AwaitAcknowledgment(Instant),
}

/// Counters of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StationCounters {
    pub offered: u64,
    /// Packets refused because its queue was full, or it was switched off.
    pub refused: u64,
    /// Unicast data frames sent, retries included.
    pub data_sent: u64,
    /// Broadcast data frames sent.
    pub broadcasts_sent: u64,
    /// RTS frames sent.
    pub requests_sent: u64,
    /// CTS frames sent.
    pub clears_sent: u64,
    /// ACK frames sent.
    pub acknowledgments_sent: u64,
    /// Bytes sent in data frames, with MAC header, retries included.
    pub bytes_sent: u64,
    /// RTS frames without an answer.
    pub requests_failed: u64,
    /// Data frames without an acknowledgment.
    pub data_failed: u64,
    /// Packets acknowledged.
    pub acknowledged: u64,
    /// Packets dropped after the last attempt.
    pub given_up: u64,
    /// Packets dropped because they had been queued for too long.
    pub expired: u64,
    /// Packets received without duplicates.
    pub received: u64,
    /// Duplicate data frames received.
    pub repetitions: u64,
    /// Receptions destroyed by other frames.
    pub collisions: u64,
    /// Receptions of data frames that failed by the link's error rate.
    pub errors: u64,
}

#[derive(Clone, Debug)]
pub struct Station<C> {
    pub queue: VecDeque<Waiting<C>>,
    pub stage: Stage,
    /// The frame that it sends after SIFS.
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
    /// Puts a packet at the end of the queue, or an urgent one before what is not urgent; the first one may be on the air.
    pub fn queue_up(&mut self, packet: Waiting<C>) {
        let end = self.queue.len();
        let place = if packet.urgent {
            (self.queue.iter().skip(1).take_while(|waiting| waiting.urgent).count() + 1).min(end)
        } else {
            end
        };
        self.queue.insert(place, packet);
    }
    /// Draws a back-off in slots.
    pub fn draw(&mut self) -> u32 {
        self.random.below(u64::from(self.window) + 1) as u32
    }
    /// Resets the attempts after a packet is done with.
    pub fn reset(&mut self, window: u32) {
        self.window = window;
        self.short_retries = 0;
        self.long_retries = 0;
    }
}
