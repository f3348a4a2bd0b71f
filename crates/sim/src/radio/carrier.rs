//! What a station hears: carrier sense, physical and virtual, the frame it receives, and the back-off that both hold up.

use super::airtime::Times;
use super::config::{Interrupted, MediumConfig};
use super::energy::AirtimeUse;
use super::overlap::{Despreading, Modulation, Overlap};
use super::reach::Neighbor;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// Where a station is with its back-off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backoff {
    /// There is none, or it is over: an idle channel may be used at once.
    None,
    /// One must be drawn.
    Owed,
    /// So many slots are left, as of the last time the channel became busy or idle.
    Slots(u32),
}

/// What is the same wherever a station listens.
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
    /// What a signal counts for among others, zero unless that is asked.
    fn power(&self, signal: f32) -> f64 {
        match self.overlap {
            Overlap::Despreads if signal.is_nan() => 1.0,
            Overlap::Despreads => libm::pow(10.0, f64::from(signal) / 10.0),
            Overlap::Spoils | Overlap::Capture(_) => 0.0,
        }
    }
    /// Whether a receiver notices a frame at all that begins with this signal, given the strongest and the sum of what
    /// disturbs it. 4 dB are ns-3's threshold for preambles.
    fn is_noticed(&self, signal: f32, loudest: f32, noise: f64) -> bool {
        match self.overlap {
            Overlap::Spoils => false,
            Overlap::Capture(margin) => signal >= loudest + margin,
            Overlap::Despreads => self.power(signal) >= noise * 2.512,
        }
    }
}

/// A preamble is recognised within this time; until then another frame of like strength hides it.
const DETECTION: Duration = Duration::from_micros(4);

/// A frame that begins.
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
    /// Its signal in dBm, NaN if the model has none.
    pub signal: f32,
    /// Another frame overlapped it and it did not survive.
    pub spoiled: bool,
    /// What has been reckoned up until then of what others did to it: the negative logarithm of its chance.
    damage: f64,
    reckoned: Instant,
}

impl Reception {
    /// The probability that what overlapped it has broken it.
    pub fn broken(&self) -> f64 {
        if self.damage > 0.0 { -libm::expm1(-self.damage) } else { 0.0 }
    }
    /// Reckons up what this noise has done to it until now.
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

/// What one station hears.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// Transmissions of others that it senses.
    sensed: u32,
    /// Transmissions of others that disturb it.
    disturbing: u32,
    /// The strongest of those, since there was none.
    loudest: f32,
    /// The sum of their powers.
    noise: f64,
    /// It sends.
    pub sending: bool,
    /// It is switched on.
    pub on: bool,
    /// It has something to send and waits for the channel.
    pub contends: bool,
    /// Its back-off.
    pub backoff: Backoff,
    /// Since when nothing has been on the air.
    idle_from: Instant,
    /// No back-off counts before: behind an erroneous frame, or an answer that did not come.
    defer_until: Instant,
    /// Until when others have reserved the channel (the network allocation vector, NAV).
    reserved_until: Instant,
    /// When the reservation lapses unless a frame begins before.
    lapses_at: Instant,
    /// When it sends, as things are.
    pub access_at: Instant,
    /// The earliest timer for this that is in the heap.
    pub timer_at: Instant,
    /// The frame it receives.
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
    /// Whether nothing is on the air that it senses, itself included.
    pub fn is_clear(&self) -> bool {
        self.sensed == 0 && !self.sending
    }
    /// Whether others have reserved the channel.
    pub fn is_reserved(&self, now: Instant) -> bool {
        self.reserved_until.min(self.lapses_at) > now
    }
    /// Whether it is in the middle of a frame.
    pub fn is_receiving(&self) -> bool {
        self.reception.is_some()
    }
    /// From when slots count, if the channel stays clear.
    fn counting_from(&self, times: &Times) -> Instant {
        let reserved = self.reserved_until.min(self.lapses_at);
        (self.idle_from.max(reserved) + times.distributed_space).max(self.defer_until)
    }
    /// When its back-off of `slots` is over, if the channel stays clear.
    pub fn free_at(&self, slots: u32, times: &Times) -> Instant {
        self.counting_from(times) + times.slot * u64::from(slots)
    }
    /// The channel becomes busy: slots that have passed are counted, and who wanted to send must go on waiting, unless
    /// it sends at this very moment.
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
    /// Nothing is on the air any more.
    fn thaw(&mut self, now: Instant) {
        if self.is_clear() {
            self.idle_from = now;
        }
    }

    /// It begins to send; what it was receiving is lost.
    pub fn start_sending(&mut self, now: Instant, times: &Times) {
        if self.sensed == 0 {
            self.freeze(now, times);
        }
        self.end_reception(now);
        self.sending = true;
        self.sending_since = now;
    }
    /// It has sent.
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
    /// Another frame with this signal begins while it may be receiving one.
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
    /// A transmission that reaches it has ended; returns what it received of it.
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
    /// What it received was erroneous.
    pub fn on_error(&mut self, now: Instant, times: &Times) {
        self.defer_until = now + times.extended_space;
    }
    /// It received a frame without error, which ends the wait after an erroneous one.
    pub fn on_frame(&mut self) {
        self.defer_until = Instant::ZERO;
    }
    /// An answer did not come: the back-off counts from DIFS after that.
    pub fn on_silence(&mut self, now: Instant, times: &Times) {
        self.defer_until = self.defer_until.max(now + times.distributed_space);
    }
    /// A frame for others reserves the channel for the time behind it. If it was an RTS, the reservation lapses.
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
