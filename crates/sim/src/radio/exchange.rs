//! Progress of an exchange: RTS, CTS, data, ACK, and the reactions to missing frames (IEEE 802.11-2016, 10.3).

use super::airtime::DATA_OVERHEAD;
use super::carrier::Backoff;
use super::station::{Frame, Kind, Stage};
use super::timers::Due;
use super::{Delivery, Medium, StationId, Status, signal};
use anabranch_policy::time::{Duration, Instant};

impl<C: Clone> Medium<C> {
    /// A station has got a packet to send.
    pub(super) fn contend(&mut self, now: Instant, index: usize) {
        let (station, carrier) = (&self.stations[index], &mut self.carriers[index]);
        carrier.contends = station.stage == Stage::Waiting && !station.queue.is_empty() && carrier.on;
        if !carrier.contends {
            return;
        }
        // The back-off after the last packet may have passed while the queue was empty.
        if let Backoff::Slots(slots) = carrier.backoff
            && carrier.is_clear()
            && carrier.free_at(slots, &self.surroundings.times) < now
        {
            carrier.backoff = Backoff::None;
        }
        if carrier.backoff == Backoff::None && (!carrier.is_clear() || carrier.is_reserved(now)) {
            carrier.backoff = Backoff::Owed;
        }
        self.schedule(now, index);
    }
    /// A station gets access to the channel.
    pub(super) fn access(&mut self, now: Instant, index: usize) {
        let carrier = &mut self.carriers[index];
        carrier.access_at = Instant::NEVER;
        carrier.contends = false;
        carrier.backoff = Backoff::None;
        self.expire(now, index);
        let station = &mut self.stations[index];
        let Some(head) = station.queue.front() else { return };
        station.stage = Stage::Sending;
        let times = &self.surroundings.times;
        let Some(to) = head.destination else {
            return self.start(now, index, Frame { kind: Kind::Data, to: None, reservation: Duration::ZERO });
        };
        let answered = times.short_space + times.acknowledgment;
        if head.bytes + DATA_OVERHEAD <= self.config.rts_threshold {
            return self.start(now, index, Frame { kind: Kind::Data, to: Some(to), reservation: answered });
        }
        let data = times.data(head.bytes, false);
        let reservation = times.short_space * 2 + times.clear + data + answered;
        self.start(now, index, Frame { kind: Kind::Request, to: Some(to), reservation });
    }
    /// A station's transmission has ended.
    pub(super) fn on_sent(&mut self, now: Instant, index: usize, frame: &Frame) {
        let timeout = now + self.surroundings.times.answer_timeout;
        let station = &mut self.stations[index];
        let counters = &mut station.counters;
        match frame.kind {
            Kind::Clear => counters.clears_sent += 1,
            Kind::Acknowledgment => counters.acknowledgments_sent += 1,
            Kind::Request => {
                counters.requests_sent += 1;
                station.stage = Stage::AwaitClear(timeout);
                self.timers.put(timeout, Due::Timeout, index as u32);
            }
            Kind::Data => {
                let bytes = station.queue.front().map_or(0, |head| head.bytes);
                counters.bytes_sent += u64::from(bytes + DATA_OVERHEAD);
                if frame.to.is_none() {
                    counters.broadcasts_sent += 1;
                    return self.finish(now, index, true);
                }
                counters.data_sent += 1;
                if !self.carriers[index].on {
                    return self.finish(now, index, false);
                }
                station.stage = Stage::AwaitAcknowledgment(timeout);
                self.timers.put(timeout, Due::Timeout, index as u32);
            }
        }
    }
    /// A station has received a frame without error.
    pub(super) fn receive(&mut self, now: Instant, index: usize, from: usize, frame: &Frame, strength: f32) {
        if frame.to.is_some_and(|to| to as usize != index) {
            let lapse = (frame.kind == Kind::Request).then_some(self.surroundings.times.reservation_lapse);
            self.carriers[index].reserve(now, frame.reservation, lapse);
            return self.on_other_frame(now, index);
        }
        match (frame.kind, self.stations[index].stage) {
            (Kind::Clear, Stage::AwaitClear(_)) => {
                self.stations[index].short_retries = 0;
                self.stations[index].stage = Stage::Sending;
                let reservation = self.surroundings.times.short_space + self.surroundings.times.acknowledgment;
                self.answer_with(now, index, Frame { kind: Kind::Data, to: Some(from as u32), reservation });
            }
            (Kind::Acknowledgment, Stage::AwaitAcknowledgment(_)) => self.finish(now, index, true),
            (Kind::Clear | Kind::Acknowledgment, _) => self.on_other_frame(now, index),
            (Kind::Request, _) => {
                self.on_other_frame(now, index);
                if !self.carriers[index].is_reserved(now) {
                    let reservation =
                        frame.reservation - self.surroundings.times.short_space - self.surroundings.times.clear;
                    self.answer_with(now, index, Frame { kind: Kind::Clear, to: Some(from as u32), reservation });
                }
            }
            (Kind::Data, _) => {
                self.on_other_frame(now, index);
                self.deliver(index, from, frame.to.is_none(), strength);
                if frame.to.is_some() {
                    let to = Some(from as u32);
                    let reservation = Duration::ZERO;
                    self.answer_with(now, index, Frame { kind: Kind::Acknowledgment, to, reservation });
                }
            }
        }
    }
    /// Delivers the packet at the head of the sender's queue to a receiver, without duplicates.
    fn deliver(&mut self, index: usize, from: usize, broadcast: bool, strength: f32) {
        let Some(head) = self.stations[from].queue.front_mut() else { return };
        let again = std::mem::replace(&mut head.received, !broadcast);
        let cargo = (!again).then(|| head.cargo.clone());
        let counters = &mut self.stations[index].counters;
        let Some(cargo) = cargo else {
            counters.repetitions += 1;
            return;
        };
        counters.received += 1;
        let (to, from) = (StationId(index as u32), StationId(from as u32));
        self.deliveries.push_back(Delivery { to, from, broadcast, cargo, signal: signal(strength) });
    }
    /// A station sends this frame after SIFS, regardless of the channel.
    fn answer_with(&mut self, now: Instant, index: usize, frame: Frame) {
        if self.carriers[index].on {
            self.stations[index].answer = Some(frame);
            self.timers.put(now + self.surroundings.times.short_space, Due::Answer, index as u32);
        }
    }
    pub(super) fn answer(&mut self, now: Instant, index: usize) {
        if let Some(frame) = self.stations[index].answer.take()
            && !self.carriers[index].sending
        {
            self.start(now, index, frame);
        }
    }
    /// A station that may be waiting for an answer has received another frame.
    pub(super) fn on_other_frame(&mut self, now: Instant, index: usize) {
        if matches!(self.stations[index].stage, Stage::AwaitClear(_) | Stage::AwaitAcknowledgment(_)) {
            self.fail(now, index);
        }
    }
    /// The wait for an answer is over, unless a frame has begun.
    pub(super) fn time_out(&mut self, now: Instant, index: usize) {
        let (Stage::AwaitClear(until) | Stage::AwaitAcknowledgment(until)) = self.stations[index].stage else { return };
        if until == now && !self.carriers[index].is_receiving() {
            self.fail(now, index);
        }
    }
    /// An attempt has failed.
    fn fail(&mut self, now: Instant, index: usize) {
        let protected = self.stations[index]
            .queue
            .front()
            .is_some_and(|head| head.destination.is_some() && head.bytes + DATA_OVERHEAD > self.config.rts_threshold);
        let station = &mut self.stations[index];
        self.carriers[index].on_silence(now, &self.surroundings.times);
        let last = if matches!(station.stage, Stage::AwaitClear(_)) {
            station.counters.requests_failed += 1;
            station.short_retries += 1;
            station.short_retries >= self.config.short_retry_limit
        } else if protected {
            station.counters.data_failed += 1;
            station.long_retries += 1;
            station.long_retries >= self.config.long_retry_limit
        } else {
            station.counters.data_failed += 1;
            station.short_retries += 1;
            station.short_retries >= self.config.short_retry_limit
        };
        if last {
            return self.finish(now, index, false);
        }
        station.window = (2 * station.window + 1).min(self.config.contention_window_max);
        station.stage = Stage::Waiting;
        self.carriers[index].backoff = Backoff::Slots(station.draw());
        self.contend(now, index);
    }
    /// A station is done with the packet at the head of its queue.
    fn finish(&mut self, now: Instant, index: usize, delivered: bool) {
        let station = &mut self.stations[index];
        station.stage = Stage::Waiting;
        station.reset(self.config.contention_window_min);
        self.carriers[index].backoff = Backoff::Slots(station.draw());
        if let Some(done) = station.queue.pop_front() {
            if done.destination.is_some() {
                station.counters.acknowledged += u64::from(delivered);
                station.counters.given_up += u64::from(!delivered);
            }
            let destination = done.destination.map(StationId);
            let station = StationId(index as u32);
            self.statuses.push_back(Status { station, destination, delivered, cargo: done.cargo });
        }
        self.contend(now, index);
    }
    /// Drops packets that have been queued for too long. The contention window and the attempts are kept: only an
    /// acknowledgment or the last attempt resets them (10.3.3).
    fn expire(&mut self, now: Instant, index: usize) {
        let station = &mut self.stations[index];
        while station.queue.front().is_some_and(|head| head.expires < now) {
            let Some(done) = station.queue.pop_front() else { return };
            station.counters.expired += 1;
            let destination = done.destination.map(StationId);
            let id = StationId(index as u32);
            self.statuses.push_back(Status { station: id, destination, delivered: false, cargo: done.cargo });
        }
    }
    /// Resets a station that was switched on or off. The packet whose frame is on the air stays until its end.
    pub(super) fn abandon(&mut self, index: usize) {
        let station = &mut self.stations[index];
        station.answer = None;
        station.reset(self.config.contention_window_min);
        let sends_data = self.transmissions[index].frame.is_some_and(|frame| frame.kind == Kind::Data);
        station.stage = if sends_data { Stage::Sending } else { Stage::Waiting };
        for done in station.queue.drain(usize::from(sends_data)..) {
            let destination = done.destination.map(StationId);
            let station = StationId(index as u32);
            self.statuses.push_back(Status { station, destination, delivered: false, cargo: done.cargo });
        }
    }
}
