//! A radio channel: medium access, propagation and collisions.
//!
//! [`Medium`] is one channel with all its stations, each of which runs the distributed coordination function (DCF) of
//! IEEE 802.11. It is a sans-IO machine: [`Medium::enqueue`] and [`Medium::handle_timeout`] are its inputs,
//! [`Medium::poll_delivery`], [`Medium::poll_status`] and [`Medium::poll_timeout`] its outputs. A node with several
//! radios has a station in several media. It carries any type that can be cloned: indices in the lab, bytes in real
//! time.
//!
//! Carrier sense is in `carrier`, a station's queue and exchange in `station`, the rules of an exchange in `exchange`,
//! the reach of stations in `reach`. `docs/radio.md` has the model, its sources and the tables for comparison.

mod airtime;
mod carrier;
mod config;
mod energy;
mod exchange;
mod hearing;
mod overlap;
mod propagation;
mod reach;
mod station;
#[cfg(test)]
mod tests;
mod timers;

pub use airtime::Times;
pub use config::{AnswerRate, Interrupted, MediumConfig, Preamble};
pub use energy::{AirtimeUse, Power};
pub use hearing::{Hears, Position};
pub use overlap::Overlap;
pub use propagation::PathLoss;
pub use reach::{Link, Reach};
pub use station::StationCounters;

use crate::random::{Chance, RandomStream};
use anabranch_policy::time::Instant;
use carrier::{Backoff, Carrier, Onset, Surroundings};
use reach::{Neighbor, Neighborhood};
use station::{Frame, Kind, Station, Waiting};
use std::collections::VecDeque;
use timers::{Due, Timers};

/// Urgent packets that a station takes although its queue is full.
pub const URGENT_FRAMES: usize = 8;

/// A station of a channel, numbered from 0 in the order of addition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StationId(pub u32);

#[derive(Clone, PartialEq, Debug)]
pub struct Delivery<C> {
    /// The receiver.
    pub to: StationId,
    /// The sender.
    pub from: StationId,
    pub broadcast: bool,
    pub cargo: C,
    /// In dBm, if the model has signals.
    pub signal: Option<f32>,
}

/// A station is done with a packet.
#[derive(Clone, PartialEq, Debug)]
pub struct Status<C> {
    pub station: StationId,
    /// `None`: broadcast.
    pub destination: Option<StationId>,
    /// It was acknowledged, or, as a broadcast, sent. False for a packet that arrived while all its acknowledgments
    /// were lost.
    pub delivered: bool,
    pub cargo: C,
}

/// A station's frame on the air, and the stations it reaches.
#[derive(Clone, Debug, Default)]
struct Transmission {
    frame: Option<Frame>,
    reached: Vec<Neighbor>,
}

#[derive(Clone, Debug)]
pub struct Medium<C> {
    config: MediumConfig,
    surroundings: Surroundings,
    seed: u64,
    name: String,
    neighborhood: Neighborhood,
    carriers: Vec<Carrier>,
    stations: Vec<Station<C>>,
    transmissions: Vec<Transmission>,
    timers: Timers,
    errors: RandomStream,
    deliveries: VecDeque<Delivery<C>>,
    statuses: VecDeque<Status<C>>,
}

impl<C: Clone> Medium<C> {
    /// A channel without stations. Its random streams are derived from the run's seed and its name.
    pub fn new(config: MediumConfig, seed: u64, name: &str) -> Self {
        Self {
            surroundings: Surroundings::new(&config),
            seed,
            name: name.to_owned(),
            neighborhood: Neighborhood::new(config.reach, seed, name),
            config,
            carriers: Vec::new(),
            stations: Vec::new(),
            transmissions: Vec::new(),
            timers: Timers::default(),
            errors: RandomStream::new(seed, &format!("{name}/errors")),
            deliveries: VecDeque::new(),
            statuses: VecDeque::new(),
        }
    }
    /// # Panics
    /// If there are 2^24 already.
    pub fn add_station(&mut self, position: Position) -> StationId {
        let index = self.stations.len();
        assert!(index < Timers::STATIONS, "too many stations on a channel");
        let random = RandomStream::new(self.seed, &format!("{}/station {index}", self.name));
        self.stations.push(Station::new(self.config.contention_window_min, random));
        self.carriers.push(Carrier::new());
        self.transmissions.push(Transmission::default());
        self.neighborhood.add(position);
        StationId(index as u32)
    }
    pub fn station_count(&self) -> usize {
        self.stations.len()
    }
    pub fn config(&self) -> &MediumConfig {
        &self.config
    }
    pub fn times(&self) -> &Times {
        &self.surroundings.times
    }
    pub fn position(&self, station: StationId) -> Position {
        self.neighborhood.position(station.0)
    }
    /// Moves a station. Frames on the air still reach the stations they reached.
    pub fn set_position(&mut self, station: StationId, position: Position) {
        self.neighborhood.move_to(station.0, position);
    }
    /// Sets how `to` perceives `from`, regardless of positions; `None` restores the dependence on positions.
    pub fn set_link(&mut self, from: StationId, to: StationId, link: Option<Link>) {
        self.neighborhood.set_link(from.0, to.0, link);
    }
    /// Sets the probability with which a data frame on a link has an error.
    pub fn set_error_rate(&mut self, from: StationId, to: StationId, rate: f64) {
        self.neighborhood.set_error_rate(from.0, to.0, rate);
    }
    /// Whether frames of `from` can be received at `to`, and their signal in dBm, at present and without fading.
    pub fn hears(&mut self, from: StationId, to: StationId) -> Option<Option<f32>> {
        let reached = self.neighborhood.reached_by(from.0);
        let neighbor = reached.iter().find(|neighbor| neighbor.station == to.0 && neighbor.decodes())?;
        Some(signal(neighbor.signal))
    }
    /// The stations that can receive frames of `from` at present, in the order of their numbers.
    pub fn neighbors(&mut self, from: StationId) -> impl Iterator<Item = StationId> {
        let reached = self.neighborhood.reached_by(from.0).iter();
        reached.filter(|neighbor| neighbor.decodes()).map(|neighbor| StationId(neighbor.station))
    }
    /// The counters of a station as of the last input.
    pub fn counters(&self, station: StationId) -> &StationCounters {
        &self.stations[station.0 as usize].counters
    }
    /// Packets in a station's queue, the one in transmission included.
    pub fn waiting(&self, station: StationId) -> usize {
        self.stations[station.0 as usize].queue.len()
    }
    /// How long a station's interface has sent and received, up to the last frame that ended.
    pub fn airtime_use(&self, station: StationId) -> AirtimeUse {
        self.carriers[station.0 as usize].airtime
    }
    /// The energy in joules that a station's interface has used by `now`, if it has been on since time zero.
    pub fn energy(&self, station: StationId, now: Instant) -> f64 {
        self.airtime_use(station).joules(now.since(Instant::ZERO), &self.config.power)
    }

    /// Queues a packet of `bytes` bytes (IP header included) at a station, for one other station or, without
    /// destination, as a broadcast. Follow-up work is due at once: see [`Self::poll_timeout`].
    ///
    /// # Errors
    /// Returns the packet if the station's queue is full or the station is off.
    pub fn enqueue(
        &mut self,
        now: Instant,
        station: StationId,
        destination: Option<StationId>,
        cargo: C,
        bytes: u32,
    ) -> Result<(), C> {
        self.put(now, station, Waiting::new(destination.map(|to| to.0), cargo, bytes, false))
    }
    /// The same for a packet that goes before all that is not urgent, but for the packet that the station is trying to send.
    /// [`URGENT_FRAMES`] of them have room where the queue is full.
    ///
    /// # Errors
    /// As [`Self::enqueue`].
    pub fn enqueue_urgent(
        &mut self,
        now: Instant,
        station: StationId,
        destination: Option<StationId>,
        cargo: C,
        bytes: u32,
    ) -> Result<(), C> {
        self.put(now, station, Waiting::new(destination.map(|to| to.0), cargo, bytes, true))
    }
    /// Puts a packet into its place in a station's queue.
    fn put(&mut self, now: Instant, station: StationId, mut packet: Waiting<C>) -> Result<(), C> {
        // Frames that end now have ended; frames that begin now may still collide with this one.
        self.advance(now, Due::Timeout);
        let index = station.0 as usize;
        let (sender, carrier) = (&mut self.stations[index], &mut self.carriers[index]);
        sender.counters.offered += 1;
        let room = self.config.queue_frames + if packet.urgent { URGENT_FRAMES } else { 0 };
        if sender.queue.len() >= room || !carrier.on {
            sender.counters.refused += 1;
            return Err(packet.cargo);
        }
        packet.expires = self.config.lifetime.map_or(Instant::NEVER, |lifetime| now + lifetime);
        sender.queue_up(packet);
        if sender.queue.len() == 1 {
            self.contend(now, index);
        }
        Ok(())
    }
    /// Switches a station off or on. The queue of a station that is switched off is returned as not delivered; its
    /// frame on the air continues to its end.
    pub fn set_on(&mut self, now: Instant, station: StationId, on: bool) {
        self.advance(now, Due::Timeout);
        let index = station.0 as usize;
        if self.carriers[index].on == on {
            return;
        }
        self.carriers[index].switch(now, on);
        self.abandon(index);
    }
    /// Handles [`Self::poll_timeout`]; early and late calls do no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now, Due::Access);
    }
    /// When [`Self::handle_timeout`] is due, [`Instant::NEVER`] if the channel is idle.
    pub fn poll_timeout(&self) -> Instant {
        self.timers.next_time()
    }
    /// The next packet that has arrived.
    pub fn poll_delivery(&mut self) -> Option<Delivery<C>> {
        self.deliveries.pop_front()
    }
    /// The next packet that its station is done with.
    pub fn poll_status(&mut self) -> Option<Status<C>> {
        self.statuses.pop_front()
    }

    /// Processes what is due before `now`, and at `now` up to the kind `last`.
    fn advance(&mut self, now: Instant, last: Due) {
        while let Some((time, due, station)) = self.timers.take(now, last) {
            let index = station as usize;
            match due {
                Due::End => self.end(time, index),
                Due::Answer => self.answer(time, index),
                Due::Timeout => self.time_out(time, index),
                Due::Access => self.on_access_timer(time, index),
            }
        }
    }
    /// A station begins to send a frame.
    fn start(&mut self, now: Instant, index: usize, frame: Frame) {
        let times = &self.surroundings.times;
        let (airtime, rate) = match frame.kind {
            Kind::Request => (times.request, times.basic_rate),
            Kind::Clear => (times.clear, times.basic_rate),
            Kind::Acknowledgment => (times.acknowledgment, times.answer_rate),
            Kind::Data => {
                let bytes = self.stations[index].queue.front().map_or(0, |head| head.bytes);
                let rate = if frame.to.is_none() { times.basic_rate } else { times.data_rate };
                (times.data(bytes, frame.to.is_none()), rate)
            }
        };
        let onset = Onset::new(now, index as u32, rate, times);
        self.carriers[index].start_sending(now, times);
        let transmission = &mut self.transmissions[index];
        transmission.frame = Some(frame);
        transmission.reached.clear();
        transmission.reached.extend_from_slice(self.neighborhood.reached_by(index as u32));
        self.neighborhood.fade(&mut transmission.reached);
        for neighbor in &transmission.reached {
            let carrier = &mut self.carriers[neighbor.station as usize];
            carrier.on_start(&onset, neighbor, &self.surroundings);
        }
        self.timers.put(now + airtime, Due::End, index as u32);
    }
    /// A station's frame has ended.
    fn end(&mut self, now: Instant, index: usize) {
        let reached = std::mem::take(&mut self.transmissions[index].reached);
        let Some(frame) = self.transmissions[index].frame.take() else { return };
        self.carriers[index].stop_sending(now);
        for neighbor in &reached {
            let other = neighbor.station as usize;
            if let Some(reception) = self.carriers[other].on_end(now, index as u32, neighbor, &self.surroundings) {
                let spoiled = reception.spoiled || self.errors.happens(Chance::new(reception.broken()));
                let mistaken = !spoiled && frame.kind == Kind::Data && self.errors.happens(neighbor.error);
                let counters = &mut self.stations[other].counters;
                counters.collisions += u64::from(spoiled);
                counters.errors += u64::from(mistaken);
                if spoiled || mistaken {
                    self.carriers[other].on_error(now, &self.surroundings.times);
                    self.on_other_frame(now, other);
                } else {
                    self.carriers[other].on_frame();
                    self.receive(now, other, index, &frame, reception.signal);
                }
            }
            self.schedule(now, other);
        }
        self.transmissions[index].reached = reached;
        self.on_sent(now, index, &frame);
        self.schedule(now, index);
    }
    /// Sets the timer of a station that waits for the channel.
    fn schedule(&mut self, now: Instant, index: usize) {
        let carrier = &mut self.carriers[index];
        if !carrier.contends || !carrier.is_clear() {
            return;
        }
        if carrier.backoff == Backoff::Owed {
            carrier.backoff = Backoff::Slots(self.stations[index].draw());
        }
        let slots = if let Backoff::Slots(slots) = carrier.backoff { slots } else { 0 };
        carrier.access_at = carrier.free_at(slots, &self.surroundings.times).max(now);
        if carrier.access_at < carrier.timer_at {
            carrier.timer_at = carrier.access_at;
            self.timers.put(carrier.access_at, Due::Access, index as u32);
        }
    }
    fn on_access_timer(&mut self, now: Instant, index: usize) {
        let carrier = &mut self.carriers[index];
        if now != carrier.timer_at {
            return;
        }
        carrier.timer_at = Instant::NEVER;
        if carrier.access_at == now {
            self.access(now, index);
        } else if carrier.access_at != Instant::NEVER {
            carrier.timer_at = carrier.access_at;
            self.timers.put(carrier.access_at, Due::Access, index as u32);
        }
    }
}

/// A signal as reported to stations: `None` if the model has none.
fn signal(signal: f32) -> Option<f32> {
    (!signal.is_nan()).then_some(signal)
}
