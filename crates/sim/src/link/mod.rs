//! A unidirectional link: queue, rate, delay, loss, schedule.
//!
//! A link is a sans-IO machine: [`Link::handle_packet`] and [`Link::handle_timeout`] are its inputs,
//! [`Link::poll_delivery`] and [`Link::poll_timeout`] its outputs. It carries any type for which there is a [`Cargo`]:
//! indices into a pool in the lab, byte arrays in real time.
//!
//! Packets pass through nested stages. A packet waits in the **queue**, leaves it when the **rate** allows its
//! transmission to start, is under way for the **delay** after its last bit has left, and may be hit by the **loss**
//! models and the impairments (duplication, corruption, reordering): losses use capacity, as on a radio link. The
//! **coverage** lowers the rate and raises the loss while a station moves. The **schedule** applies to all of it: when
//! a link goes down, everything queued or under way is dropped, and so is everything offered until it is up again; a
//! delivery at the very time of the change still takes place.
//!
//! Service does not need events. Every call replays the transmissions that started since the last one, in order and at
//! exact times, so that a packet costs one event per link: its delivery.

mod changes;
mod counters;
mod coverage;
mod delay;
mod loss;
mod queue;
mod rate;
mod schedule;
#[cfg(test)]
mod tests;

pub use counters::{DropCause, Drops, LinkCounters};
pub use coverage::{Coverage, CoveragePoint};
pub use delay::{DelayModel, Ordering};
pub use loss::LossModel;
pub use queue::{Discipline, QueueConfig, QueueLimit};
pub use rate::{RateModel, RateTrace, TraceError};
pub use schedule::Schedule;

use crate::random::{Chance, RandomStream};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use coverage::Walk;
use delay::Delay;
use loss::Loss;
use queue::{Queue, Verdict, Waiting};
use rate::Server;
use schedule::{Change, Clockwork};
use std::collections::VecDeque;

/// What a link needs to know about packets, and its operations on them.
pub trait Cargo {
    type Item;
    /// Bytes on the link, IP header included.
    fn length(&self, item: &Self::Item) -> u32;
    /// Marks an ECN-capable packet "congestion experienced"; returns false if it is not ECN-capable (RFC 3168, section
    /// 5).
    fn mark_congestion(&mut self, item: &mut Self::Item) -> bool;
    /// Corrupts the packet; `luck` selects how.
    fn corrupt(&mut self, item: &mut Self::Item, luck: u32);
    fn duplicate(&mut self, item: &Self::Item) -> Self::Item;
    /// The link drops the packet.
    fn discard(&mut self, item: Self::Item, cause: DropCause);
}

/// Probabilities of impairments of single packets, for tests of protocols.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Impairments {
    pub duplication: f64,
    pub corruption: f64,
    /// Of a delay by `held_back`, so that later packets overtake it.
    pub reordering: f64,
    /// Additional delay of reordered packets.
    pub held_back: Duration,
}

/// The MTU of a link. Longer packets are dropped silently: a black hole (RFC 2923, section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkMtu {
    /// Bytes, IP header included.
    pub bytes: u32,
    /// When the MTU takes effect.
    pub from: Instant,
}

/// Settings of a link. The default delivers everything at once.
#[derive(Clone, Debug, Default)]
pub struct LinkConfig {
    pub queue: QueueConfig,
    pub rate: RateModel,
    pub delay: DelayModel,
    /// Whether packets may overtake when the delay varies.
    pub ordering: Ordering,
    /// The loss models; each decides on the packets that the earlier ones have passed.
    pub loss: Vec<LossModel>,
    /// Changes of rate and loss while a station moves.
    pub coverage: Coverage,
    pub impairments: Impairments,
    pub schedule: Schedule,
    /// Start and end of pauses, in which no transmission starts and the queue waits, as in a handover; packets under
    /// way still arrive.
    pub pauses: Vec<(Instant, Instant)>,
    /// `None`: no limit.
    pub mtu: Option<LinkMtu>,
}

impl LinkConfig {
    /// A link of a fixed rate and delay with a drop-tail queue of `queue_packets` packets.
    pub fn new(rate: Rate, delay: Duration, queue_packets: usize) -> Self {
        Self {
            queue: QueueConfig { limit: QueueLimit::Packets(queue_packets), discipline: Discipline::DropTail },
            rate: RateModel::Fixed(rate),
            delay: DelayModel::Fixed(delay),
            ..Self::default()
        }
    }
    /// Whether everything passes at once, so that a driver can bypass the link.
    pub fn is_transparent(&self) -> bool {
        matches!(self.rate, RateModel::Unlimited)
            && self.delay == DelayModel::Fixed(Duration::ZERO)
            && self.loss.is_empty()
            && self.coverage.is_full()
            && self.impairments == Impairments::default()
            && self.schedule == Schedule::AlwaysUp
            && self.pauses.is_empty()
            && self.mtu.is_none()
    }
    /// Whether packets always arrive in the order of sending: always up, one rate, one delay.
    pub(crate) fn is_steady(&self) -> bool {
        matches!(self.rate, RateModel::Fixed(_))
            && matches!(self.delay, DelayModel::Fixed(_))
            && self.ordering == Ordering::Kept
            && self.coverage.is_full()
            && self.impairments == Impairments::default()
            && self.schedule == Schedule::AlwaysUp
    }
}

#[derive(Clone, Debug)]
struct UnderWay<T> {
    arrives: Instant,
    length: u32,
    item: T,
}

/// State of the impairments.
#[derive(Clone, Debug)]
struct Mischief {
    duplication: Chance,
    corruption: Chance,
    reordering: Chance,
    held_back: Duration,
    random: RandomStream,
}

/// State of a link.
#[derive(Clone, Debug)]
pub struct Link<T> {
    clockwork: Clockwork,
    server: Server,
    queue: Queue<T>,
    /// In order of arrival.
    under_way: VecDeque<UnderWay<T>>,
    delay: Delay,
    /// Earliest arrival of the next packet, if order is kept.
    not_before: Instant,
    losses: Vec<Loss>,
    walk: Option<Box<Walk>>,
    mischief: Option<Box<Mischief>>,
    ordering: Ordering,
    mtu: LinkMtu,
    /// Only rate and a fixed delay, in order: the common case.
    plain: bool,
    counters: LinkCounters,
}

impl<T> Link<T> {
    /// A link whose random streams are derived from the run's seed and its name.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Self {
        let stream = |stage: &str| RandomStream::new(seed, &format!("{name}/{stage}"));
        let losses = config.loss.iter().enumerate();
        let Impairments { duplication, corruption, reordering, held_back } = config.impairments;
        let [duplication, corruption, reordering] = [duplication, corruption, reordering].map(Chance::new);
        let harmless = duplication.is_never() && corruption.is_never() && reordering.is_never();
        Self {
            clockwork: Clockwork::new(&config.schedule, &config.pauses, || stream("schedule")),
            server: Server::new(&config.rate),
            queue: Queue::new(&config.queue),
            under_way: VecDeque::new(),
            delay: Delay::new(config.delay, || stream("delay")),
            not_before: Instant::ZERO,
            losses: losses.map(|(index, model)| Loss::new(*model, stream(&format!("loss {index}")))).collect(),
            walk: (!config.coverage.is_full())
                .then(|| Box::new(Walk::new(config.coverage.clone(), stream("coverage")))),
            mischief: (!harmless).then(|| {
                let random = stream("impairments");
                Box::new(Mischief { duplication, corruption, reordering, held_back, random })
            }),
            ordering: config.ordering,
            plain: harmless
                && config.loss.is_empty()
                && config.coverage.is_full()
                && matches!(config.delay, DelayModel::Fixed(_))
                && config.ordering == Ordering::Kept,
            mtu: config.mtu.unwrap_or(LinkMtu { bytes: u32::MAX, from: Instant::ZERO }),
            counters: LinkCounters::default(),
        }
    }
    /// Counters as of the last input.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }
    /// Packets and bytes in the queue as of the last input.
    pub fn waiting(&self) -> (usize, u64) {
        (self.queue.packets(), self.queue.bytes())
    }

    /// Counts a packet that bypasses a link which [`LinkConfig::is_transparent`].
    pub fn pass(&mut self, length: u32) {
        let LinkCounters { offered_packets, offered_bytes, delivered_packets, delivered_bytes, .. } =
            &mut self.counters;
        *offered_packets += 1;
        *offered_bytes += u64::from(length);
        *delivered_packets += 1;
        *delivered_bytes += u64::from(length);
    }

    /// A packet is offered to the link.
    pub fn handle_packet<C: Cargo<Item = T>>(&mut self, now: Instant, item: T, cargo: &mut C) {
        self.advance(now, cargo);
        let length = cargo.length(&item);
        self.counters.offered_packets += 1;
        self.counters.offered_bytes += u64::from(length);
        let packet = Waiting { item, length, came: now };
        if !self.clockwork.up {
            return self.discard(packet.item, DropCause::LinkDown, cargo);
        }
        if length > self.mtu.bytes && now >= self.mtu.from {
            return self.discard(packet.item, DropCause::TooBig, cargo);
        }
        if self.queue.can_be_skipped() && self.server.start(now) == now {
            return self.send(packet, cargo);
        }
        if !self.queue.has_room(length) {
            return self.discard(packet.item, DropCause::Overflow, cargo);
        }
        self.queue.push(packet);
        self.counters.peak_queue_packets = self.counters.peak_queue_packets.max(self.queue.packets() as u64);
        self.counters.peak_queue_bytes = self.counters.peak_queue_bytes.max(self.queue.bytes());
        // With others queued before it, it does not start either.
        if self.queue.packets() == 1 {
            self.serve(now, Instant::NEVER, cargo);
        }
    }
    /// Handles [`Self::poll_timeout`]; early and late calls do no harm.
    pub fn handle_timeout<C: Cargo<Item = T>>(&mut self, now: Instant, cargo: &mut C) {
        self.advance(now, cargo);
    }
    /// The link goes up or down now, regardless of its schedule; the schedule's next change toggles it again.
    pub fn handle_state<C: Cargo<Item = T>>(&mut self, now: Instant, up: bool, cargo: &mut C) {
        self.advance(now, cargo);
        if self.clockwork.up != up {
            self.clockwork.up = up;
            self.on_change(now, cargo);
        }
    }
    /// Sets a fixed rate from the next packet on.
    pub fn handle_rate<C: Cargo<Item = T>>(&mut self, now: Instant, rate: Rate, cargo: &mut C) {
        self.advance(now, cargo);
        self.server.set_rate(now, rate);
    }
    /// The next packet that has arrived by now; call after [`Self::handle_timeout`] until it returns `None`.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<T> {
        if self.under_way.front()?.arrives > now {
            return None;
        }
        let packet = self.under_way.pop_front()?;
        self.counters.delivered_packets += 1;
        self.counters.delivered_bytes += u64::from(packet.length);
        Some(packet.item)
    }
    /// When [`Self::handle_timeout`] is due, [`Instant::NEVER`] if nothing is queued or under way.
    #[inline]
    pub fn poll_timeout(&self) -> Instant {
        let arrival = self.under_way.front().map_or(Instant::NEVER, |packet| packet.arrives);
        // A queued packet can arrive before those under way only if packets may overtake.
        if arrival != Instant::NEVER && self.ordering == Ordering::Kept && self.mischief.is_none() {
            return arrival;
        }
        arrival.min(self.queue.head().map_or(Instant::NEVER, |head| self.server.start(head.came)))
    }

    /// Replays everything since the last call, up to and including `now`.
    #[inline(always)]
    fn advance<C: Cargo<Item = T>>(&mut self, now: Instant, cargo: &mut C) {
        while self.clockwork.next_change <= now {
            let change = self.clockwork.next_change;
            self.serve(change, change, cargo);
            match self.clockwork.turn() {
                Change::Turned => self.on_change(change, cargo),
                Change::Paused => self.server.pause(self.clockwork.paused_until),
            }
        }
        self.serve(now, Instant::NEVER, cargo);
    }
    /// The link has gone up or down.
    fn on_change<C: Cargo<Item = T>>(&mut self, time: Instant, cargo: &mut C) {
        if self.clockwork.up {
            self.server.restart(time.max(self.clockwork.paused_until));
            return;
        }
        let kept = self.under_way.partition_point(|packet| packet.arrives <= time);
        let drops = &mut self.counters.drops;
        for item in self.queue.clear().chain(self.under_way.drain(kept..).map(|packet| packet.item)) {
            drops.add(DropCause::LinkDown);
            cargo.discard(item, DropCause::LinkDown);
        }
        self.not_before = time;
    }
    /// Starts all transmissions due at `last` or earlier, but before `end`.
    #[inline]
    fn serve<C: Cargo<Item = T>>(&mut self, last: Instant, end: Instant, cargo: &mut C) {
        // Usually the link is busy with the packet before.
        if self.queue.head().is_some_and(|head| self.server.start(head.came) <= last) {
            self.serve_waiting(last, end, cargo);
        }
    }
    #[inline(never)]
    fn serve_waiting<C: Cargo<Item = T>>(&mut self, last: Instant, end: Instant, cargo: &mut C) {
        while let Some(head) = self.queue.head() {
            let start = self.server.start(head.came);
            if start > last || start >= end {
                return;
            }
            let Some((mut packet, verdict)) = self.queue.pop(start) else { return };
            if verdict == Verdict::MarkOrDrop {
                if !cargo.mark_congestion(&mut packet.item) {
                    self.queue.dropped();
                    self.discard(packet.item, DropCause::CoDel, cargo);
                    continue;
                }
                self.queue.marked();
                self.counters.marked += 1;
            }
            self.send(packet, cargo);
        }
    }
    /// Transmits a packet.
    #[inline(always)]
    fn send<C: Cargo<Item = T>>(&mut self, packet: Waiting<T>, cargo: &mut C) {
        if !self.plain {
            return self.send_with_luck(packet, cargo);
        }
        let Waiting { item, length, came } = packet;
        let left = self.server.serve(came, length);
        let mut arrives = left;
        if left != Instant::NEVER {
            arrives = (left + self.delay.least()).max(self.not_before);
            self.not_before = arrives;
        }
        self.depart(arrives, length, item);
    }
    /// As `send`, for a link that loses, corrupts, delays or reorders.
    #[inline(never)]
    fn send_with_luck<C: Cargo<Item = T>>(&mut self, packet: Waiting<T>, cargo: &mut C) {
        let Waiting { mut item, length, came } = packet;
        let left = match &self.walk {
            None => self.server.serve(came, length),
            Some(walk) => self.server.serve_slowed(came, length, |full, start| walk.rate(full, start)),
        };
        if left == Instant::NEVER {
            // At rate zero the packet never leaves; it occupies the link until that goes down.
            return self.under_way.push_back(UnderWay { arrives: left, length, item });
        }
        for loss in &mut self.losses {
            if loss.loses(left) {
                return self.discard(item, DropCause::Loss, cargo);
            }
        }
        if self.walk.as_mut().is_some_and(|walk| walk.loses(left)) {
            return self.discard(item, DropCause::Loss, cargo);
        }
        let mut arrives = left + self.delay.of_packet(left);
        let (mut copy, mut overtaken) = (None, false);
        if let Some(mischief) = &mut self.mischief {
            if mischief.random.happens(mischief.corruption) {
                let luck = mischief.random.bits32();
                cargo.corrupt(&mut item, luck);
                self.counters.corrupted += 1;
            }
            if mischief.random.happens(mischief.duplication) {
                copy = Some(cargo.duplicate(&item));
                self.counters.duplicated += 1;
            }
            if mischief.random.happens(mischief.reordering) {
                arrives += mischief.held_back;
                overtaken = true;
                self.counters.held_back += 1;
            }
        }
        if self.ordering == Ordering::Kept && !overtaken {
            arrives = arrives.max(self.not_before);
            self.not_before = arrives;
        }
        self.depart(arrives, length, item);
        if let Some(item) = copy {
            self.depart(arrives, length, item);
        }
    }
    /// Inserts a packet among those under way.
    #[inline]
    fn depart(&mut self, arrives: Instant, length: u32, item: T) {
        // Constructed in place: a copy through a pointer stalls longer than everything else here.
        if self.under_way.back().is_none_or(|last| last.arrives <= arrives) {
            self.under_way.push_back(UnderWay { arrives, length, item });
        } else {
            self.overtake(UnderWay { arrives, length, item });
        }
    }
    /// Inserts a packet that arrives before others under way.
    #[inline(never)]
    fn overtake(&mut self, packet: UnderWay<T>) {
        let place = self.under_way.partition_point(|other| other.arrives <= packet.arrives);
        self.under_way.insert(place, packet);
    }
    fn discard<C: Cargo<Item = T>>(&mut self, item: T, cause: DropCause, cargo: &mut C) {
        self.counters.drops.add(cause);
        cargo.discard(item, cause);
    }
}
