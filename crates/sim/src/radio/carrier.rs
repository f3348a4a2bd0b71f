//! What a station senses: physical and virtual carrier sense, the frame being received, and the back-off that both
//! suspend.

use super::airtime::Times;
use super::config::{Interrupted, MediumConfig};
use super::energy::AirtimeUse;
use super::overlap::{Despreading, Modulation, Overlap};
use super::reach::Neighbor;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// State of a station's back-off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backoff {
    /// None, or completed: an idle channel may be used at once.
    None,
    /// One must be drawn.
    Owed,
    /// Slots left when the channel last became busy or idle.
    Slots(u32),
}

/// Properties of the channel common to all stations.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub times: Times,
    overlap: Overlap,
    despreading: Option<Box<Despreading>>,
}

impl Surroundings {
    pub fn new(config: &MediumConfig) -> Self {
        let despreading = (config.overlap == Overlap::Despreads).then(|| Box::new(Despreading::new()));
        Self { times: Times::new(config), overlap: config.overlap, despreading }
    }
    /// A signal's power as interference; zero unless the overlap model needs it.
    fn power(&self, signal: f32) -> f64 {
        match self.overlap {
            Overlap::Despreads if signal.is_nan() => 1.0,
            Overlap::Despreads => libm::pow(10.0, f64::from(signal) / 10.0),
            Overlap::Spoils | Overlap::Capture(_) => 0.0,
        }
    }
    /// Whether a receiver detects a frame that begins with this signal, given the strongest interferer and their sum. 4
    /// dB are ns-3's threshold for preambles.
    fn is_noticed(&self, signal: f32, loudest: f32, noise: f64) -> bool {
        match self.overlap {
            Overlap::Spoils => false,
            Overlap::Capture(margin) => signal >= loudest + margin,
            Overlap::Despreads => self.power(signal) >= noise * 2.512,
        }
    }
}

/// Time to recognise a preamble; until then another frame of similar strength hides it.
const DETECTION: Duration = Duration::from_micros(4);

/// The start of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Onset {
    at: Instant,
    from: u32,
    modulation: Modulation,
    header_until: Instant,
}

impl Onset {
    pub fn new(at: Instant, from: u32, rate: Rate, times: &Times) -> Self {
        Self { at, from, modulation: Modulation::of(rate), header_until: at + times.header(rate) }
    }
}

/// A frame being received.
#[derive(Clone, Copy, Debug)]
pub struct Reception {
    onset: Onset,
    /// In dBm, NaN if the model has no signals.
    pub signal: f32,
    /// An overlapping frame destroyed it.
    pub spoiled: bool,
    /// Negative logarithm of the probability that it has survived interference until `reckoned`.
    damage: f64,
    reckoned: Instant,
}

impl Reception {
    /// The probability that interference has broken it.
    pub fn broken(&self) -> f64 {
        if self.damage > 0.0 { -libm::expm1(-self.damage) } else { 0.0 }
    }
    /// Accounts for this interference until now.
    fn expose(&mut self, now: Instant, noise: f64, surroundings: &Surroundings) {
        let from = std::mem::replace(&mut self.reckoned, now);
        let Some(despreading) = surroundings.despreading.as_deref().filter(|_| noise > 0.0) else { return };
        let ratio = surroundings.power(self.signal) / noise;
        let border = self.onset.header_until.max(from).min(now);
        let micros = |from: Instant, until: Instant| until.since(from).as_nanos() as f64 / 1000.0;
        self.damage += despreading.damage(Modulation::Binary, ratio, micros(from, border));
        self.damage += despreading.damage(self.onset.modulation, ratio, micros(border, now));
    }
}

/// What one station senses.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// Transmissions of others that make the channel busy.
    sensed: u32,
    /// Transmissions of others that interfere.
    disturbing: u32,
    /// The strongest of these since there was none.
    loudest: f32,
    /// The sum of their powers.
    noise: f64,
    /// It is sending.
    pub sending: bool,
    /// It is switched on.
    pub on: bool,
    /// It has a frame to send and waits for the channel.
    pub contends: bool,
    pub backoff: Backoff,
    /// Since when the channel has been idle.
    idle_from: Instant,
    /// Earliest start of the back-off, after an erroneous frame or a missing answer.
    defer_until: Instant,
    /// End of the reservation by others (the network allocation vector, NAV).
    reserved_until: Instant,
    /// When the reservation lapses unless a frame begins before.
    lapses_at: Instant,
    /// When it sends, as of now.
    pub access_at: Instant,
    /// The earliest timer for this in the heap.
    pub timer_at: Instant,
    /// The frame being received.
    reception: Option<Reception>,
    sending_since: Instant,
    /// Time spent sending and receiving.
    pub airtime: AirtimeUse,
}

impl Carrier {
    pub fn new() -> Self {
        Self {
            sensed: 0,
            disturbing: 0,
            loudest: f32::NEG_INFINITY,
            noise: 0.0,
            sending: false,
            on: true,
            contends: false,
            backoff: Backoff::None,
            idle_from: Instant::ZERO,
            defer_until: Instant::ZERO,
            reserved_until: Instant::ZERO,
            lapses_at: Instant::NEVER,
            access_at: Instant::NEVER,
            timer_at: Instant::NEVER,
            reception: None,
            sending_since: Instant::ZERO,
            airtime: AirtimeUse::default(),
        }
    }
    /// Whether the channel is idle, its own transmissions included.
    pub fn is_clear(&self) -> bool {
        self.sensed == 0 && !self.sending
    }
    /// Whether others have reserved the channel.
    pub fn is_reserved(&self, now: Instant) -> bool {
        self.reserved_until.min(self.lapses_at) > now
    }
    /// Whether it is receiving a frame.
    pub fn is_receiving(&self) -> bool {
        self.reception.is_some()
    }
    /// From when slots count, if the channel stays idle.
    fn counting_from(&self, times: &Times) -> Instant {
        let reserved = self.reserved_until.min(self.lapses_at);
        (self.idle_from.max(reserved) + times.distributed_space).max(self.defer_until)
    }
    /// When its back-off of `slots` ends, if the channel stays idle.
    pub fn free_at(&self, slots: u32, times: &Times) -> Instant {
        self.counting_from(times) + times.slot * u64::from(slots)
    }
    /// The channel becomes busy: slots that have passed are counted, and a waiting station keeps waiting, unless it
    /// sends at this very time.
    fn freeze(&mut self, now: Instant, times: &Times) {
        let committed = self.access_at == now;
        if !committed {
            self.access_at = Instant::NEVER;
        }
        match self.backoff {
            Backoff::Slots(slots) => {
                let from = self.counting_from(times);
                if from <= now && !committed {
                    let gone = now.since(from).as_nanos() / times.slot.as_nanos().max(1);
                    self.backoff = match u64::from(slots).saturating_sub(gone) {
                        0 => Backoff::None,
                        left => Backoff::Slots(left as u32),
                    };
                }
            }
            Backoff::None if self.contends && !committed && times.interrupted == Interrupted::BacksOff => {
                self.backoff = Backoff::Owed;
            }
            Backoff::None | Backoff::Owed => {}
        }
    }
    /// The channel becomes idle.
    fn thaw(&mut self, now: Instant) {
        if self.is_clear() {
            self.idle_from = now;
        }
    }

    /// It begins to send; a frame being received is lost.
    pub fn start_sending(&mut self, now: Instant, times: &Times) {
        if self.sensed == 0 {
            self.freeze(now, times);
        }
        self.end_reception(now);
        self.sending = true;
        self.sending_since = now;
    }
    /// Its transmission ends.
    pub fn stop_sending(&mut self, now: Instant) {
        self.sending = false;
        self.airtime.sending += now.since(self.sending_since);
        self.thaw(now);
    }
    /// A transmission that reaches it begins.
    pub fn on_start(&mut self, onset: &Onset, neighbor: &Neighbor, surroundings: &Surroundings) {
        let now = onset.at;
        if neighbor.senses() {
            if self.is_clear() {
                self.freeze(now, &surroundings.times);
            }
            self.sensed += 1;
        }
        let signal = neighbor.signal;
        if neighbor.interferes() {
            self.disturb(now, signal, surroundings);
        }
        let free = self.on && !self.sending && self.reception.is_none();
        let noticed = self.disturbing == 0 || surroundings.is_noticed(signal, self.loudest, self.noise);
        if neighbor.decodes() && free && noticed {
            self.reception = Some(Reception { onset: *onset, signal, spoiled: false, damage: 0.0, reckoned: now });
            if self.lapses_at <= now {
                self.reserved_until = self.lapses_at;
            }
            self.lapses_at = Instant::NEVER;
        }
        if neighbor.interferes() {
            self.disturbing += 1;
            self.loudest = self.loudest.max(signal);
            self.noise += surroundings.power(signal);
        }
    }
    /// Another frame with this signal begins, perhaps during a reception.
    fn disturb(&mut self, now: Instant, signal: f32, surroundings: &Surroundings) {
        let Some(reception) = &mut self.reception else { return };
        match surroundings.overlap {
            Overlap::Spoils => reception.spoiled = true,
            Overlap::Capture(margin) => {
                let survives = reception.signal >= signal + margin;
                reception.spoiled |= !survives;
            }
            Overlap::Despreads => {
                let own = surroundings.power(reception.signal);
                let others = if self.disturbing > 1 { (self.noise - own).max(0.0) } else { 0.0 };
                reception.expose(now, others, surroundings);
                let hidden = !surroundings.is_noticed(reception.signal, 0.0, others + surroundings.power(signal));
                if hidden && now.since(reception.onset.at) <= DETECTION {
                    self.end_reception(now);
                }
            }
        }
    }
    /// A transmission that reaches it has ended; returns the received frame, if any.
    pub fn on_end(
        &mut self,
        now: Instant,
        from: u32,
        neighbor: &Neighbor,
        surroundings: &Surroundings,
    ) -> Option<Reception> {
        if neighbor.interferes() {
            if let Some(reception) = &mut self.reception
                && surroundings.overlap == Overlap::Despreads
            {
                let own = surroundings.power(reception.signal);
                let others = if self.disturbing > 1 { (self.noise - own).max(0.0) } else { 0.0 };
                reception.expose(now, others, surroundings);
            }
            self.disturbing -= 1;
            self.noise -= surroundings.power(neighbor.signal);
            if self.disturbing == 0 {
                self.loudest = f32::NEG_INFINITY;
                self.noise = 0.0;
            }
        }
        if neighbor.senses() {
            self.sensed -= 1;
            self.thaw(now);
        }
        if self.reception.is_some_and(|reception| reception.onset.from == from) {
            self.end_reception(now)
        } else {
            None
        }
    }
    fn end_reception(&mut self, now: Instant) -> Option<Reception> {
        let reception = self.reception.take()?;
        self.airtime.receiving += now.since(reception.onset.at);
        Some(reception)
    }
    /// It received an erroneous frame.
    pub fn on_error(&mut self, now: Instant, times: &Times) {
        self.defer_until = now + times.extended_space;
    }
    /// It received a frame without error, which ends the EIFS after an erroneous one.
    pub fn on_frame(&mut self) {
        self.defer_until = Instant::ZERO;
    }
    /// An answer is missing: the back-off starts DIFS later.
    pub fn on_silence(&mut self, now: Instant, times: &Times) {
        self.defer_until = self.defer_until.max(now + times.distributed_space);
    }
    /// A frame for others reserves the channel for some time after it. The reservation of an RTS can lapse.
    pub fn reserve(&mut self, now: Instant, reservation: Duration, lapse: Option<Duration>) {
        let until = now + reservation;
        if until > self.reserved_until.min(self.lapses_at) {
            self.reserved_until = until;
            self.lapses_at = lapse.map_or(Instant::NEVER, |lapse| now + lapse);
        }
    }
    /// It is switched off or on.
    pub fn switch(&mut self, now: Instant, on: bool) {
        self.on = on;
        self.end_reception(now);
        self.contends = false;
        self.access_at = Instant::NEVER;
        self.backoff = Backoff::None;
        self.reserved_until = Instant::ZERO;
        self.lapses_at = Instant::NEVER;
    }
}
