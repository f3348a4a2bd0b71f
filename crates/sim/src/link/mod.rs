//! A link in one direction: queue, rate, delay, loss, schedule.
//!
//! A link is a sans-IO machine: [`Link::handle_packet`] and [`Link::handle_timeout`] are its inputs,
//! [`Link::poll_delivery`] and [`Link::poll_timeout`] its outputs. It carries anything for which there is a [`Cargo`]:
//! indices into a pool in the lab, byte arrays in real time.
//!
//! Its stages nest. A packet waits in the **queue** until it is its turn, leaves it when the **rate** lets it start, is
//! under way for the **delay** after its last bit has left, and may fall to the **loss** models and the impairments
//! (duplication, corruption, holding back) on the way: losses cost capacity, as they do on a radio link. The **coverage**
//! makes a link slower and more lossy while somebody walks. Around all this is the **schedule**: when a link goes down,
//! all that waits or is under way is dropped, and so is all that is offered until it is up again; a delivery at the very
//! moment still takes place.
//!
//! Service is not an event. Whenever the link is touched, it replays what has started since the last time, in
//! order and at the exact times, so that a packet costs one event per link: its delivery.

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

/// What a link needs to know of the things it carries, and to do to them.
pub trait Cargo {
    /// One packet.
    type Item;
    /// Bytes on the link, IP header included.
    fn length(&self, item: &Self::Item) -> u32;
    /// Marks an ECN-capable packet "congestion experienced"; false if it is not ECN-capable (RFC 3168, section 5).
    fn mark_congestion(&mut self, item: &mut Self::Item) -> bool;
    /// Damages the packet in a way that `luck` chooses.
    fn corrupt(&mut self, item: &mut Self::Item, luck: u32);
    /// A second packet just like it.
    fn duplicate(&mut self, item: &Self::Item) -> Self::Item;
    /// The link drops the packet.
    fn discard(&mut self, item: Self::Item, cause: DropCause);
}

/// What happens to single packets on the way, each with a probability; for tests of protocols.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Impairments {
    /// Is duplicated.
    pub duplication: f64,
    /// Is damaged.
    pub corruption: f64,
    /// Is held back, so that later packets overtake it.
    pub reordering: f64,
    /// For how long it is held back.
    pub held_back: Duration,
}

/// The longest packet that a link carries. Longer ones are dropped silently: a black hole (RFC 2923, section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkMtu {
    /// Bytes, IP header included.
    pub bytes: u32,
    /// From then on.
    pub from: Instant,
}

/// What can be chosen about a link. The default lets everything pass at once.
#[derive(Clone, Debug, Default)]
pub struct LinkConfig {
    /// The queue.
    pub queue: QueueConfig,
    /// The rate.
    pub rate: RateModel,
    /// The propagation delay.
    pub delay: DelayModel,
    /// Whether packets may overtake when the delay varies.
    pub ordering: Ordering,
    /// The loss models; each decides on the packets that the ones before it let pass.
    pub loss: Vec<LossModel>,
    /// How its rate and its losses change while somebody walks.
    pub coverage: Coverage,
    /// What else happens on the way.
    pub impairments: Impairments,
    /// When the link is up.
    pub schedule: Schedule,
    /// From when to when it begins to send nothing while its queue waits, as in a hand-over; what has left arrives.
    pub pauses: Vec<(Instant, Instant)>,
    /// The longest packet; none: any.
    pub mtu: Option<LinkMtu>,
}

impl LinkConfig {
    /// A link of a fixed rate and delay with a drop-tail queue of so many packets.
    pub fn new(rate: Rate, delay: Duration, queue_packets: usize) -> Self {
        Self {
            queue: QueueConfig { limit: QueueLimit::Packets(queue_packets), discipline: Discipline::DropTail },
            rate: RateModel::Fixed(rate),
            delay: DelayModel::Fixed(delay),
            ..Self::default()
        }
    }
    /// Whether everything passes at once, so that a driver need not pass packets to the link at all.
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
    /// Whether what is sent later arrives later, whatever happens: it is always up, and has one rate and one delay.
    pub(crate) fn is_steady(&self) -> bool {
        matches!(self.rate, RateModel::Fixed(_))
            && matches!(self.delay, DelayModel::Fixed(_))
            && self.ordering == Ordering::Kept
            && self.coverage.is_full()
            && self.impairments == Impairments::default()
            && self.schedule == Schedule::AlwaysUp
    }
}

/// A packet under way.
#[derive(Clone, Debug)]
struct UnderWay<T> {
    arrives: Instant,
    length: u32,
    item: T,
}

/// The impairments at work.
#[derive(Clone, Debug)]
struct Mischief {
    duplication: Chance,
    corruption: Chance,
    reordering: Chance,
    held_back: Duration,
    random: RandomStream,
}

/// A link at work.
#[derive(Clone, Debug)]
pub struct Link<T> {
    clockwork: Clockwork,
    server: Server,
    queue: Queue<T>,
    /// In order of arrival.
    under_way: VecDeque<UnderWay<T>>,
    delay: Delay,
    /// No packet arrives before this, if order is kept.
    not_before: Instant,
    losses: Vec<Loss>,
    walk: Option<Box<Walk>>,
    mischief: Option<Box<Mischief>>,
    ordering: Ordering,
    mtu: LinkMtu,
    /// Only rate and a fixed delay, in order: all that most links are.
    plain: bool,
    counters: LinkCounters,
}

impl<T> Link<T> {
    /// A link that draws its luck from streams derived from the run's seed and its own name.
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
    /// What has been counted up to the last input.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }
    /// Packets and bytes that wait, as of the last input.
    pub fn waiting(&self) -> (usize, u64) {
        (self.queue.packets(), self.queue.bytes())
    }

    /// Counts a packet that passes a link which [`LinkConfig::is_transparent`], without being carried.
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
        // Behind others that have not started it does not start either.
        if self.queue.packets() == 1 {
            self.serve(now, Instant::NEVER, cargo);
        }
    }
    /// The time that [`Self::poll_timeout`] named has come; early and late calls do no harm.
    pub fn handle_timeout<C: Cargo<Item = T>>(&mut self, now: Instant, cargo: &mut C) {
        self.advance(now, cargo);
    }
    /// The link goes up or down now, whatever its schedule says; the schedule's next change turns it over again.
    pub fn handle_state<C: Cargo<Item = T>>(&mut self, now: Instant, up: bool, cargo: &mut C) {
        self.advance(now, cargo);
        if self.clockwork.up != up {
            self.clockwork.up = up;
            self.on_change(now, cargo);
        }
    }
    /// The link has a fixed rate of `rate` from the next packet on.
    pub fn handle_rate<C: Cargo<Item = T>>(&mut self, now: Instant, rate: Rate, cargo: &mut C) {
        self.advance(now, cargo);
        self.server.set_rate(now, rate);
    }
    /// The next packet that has arrived by now; to be called after [`Self::handle_timeout`] until there is none.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<T> {
        if self.under_way.front()?.arrives > now {
            return None;
        }
        let packet = self.under_way.pop_front()?;
        self.counters.delivered_packets += 1;
        self.counters.delivered_bytes += u64::from(packet.length);
        Some(packet.item)
    }
    /// When [`Self::handle_timeout`] is due, [`Instant::NEVER`] if nothing waits or is under way.
    #[inline]
    pub fn poll_timeout(&self) -> Instant {
        let arrival = self.under_way.front().map_or(Instant::NEVER, |packet| packet.arrives);
        // What has not started yet can arrive before what has only if packets may overtake.
        if arrival != Instant::NEVER && self.ordering == Ordering::Kept && self.mischief.is_none() {
            return arrival;
        }
        arrival.min(self.queue.head().map_or(Instant::NEVER, |head| self.server.start(head.came)))
    }

    /// Replays all that has happened since the last call, up to and including `now`.
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
    /// Starts all packets whose turn comes at `last` or earlier, but before `end`.
    #[inline]
    fn serve<C: Cargo<Item = T>>(&mut self, last: Instant, end: Instant, cargo: &mut C) {
        // As a rule the link is busy with the packet before.
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
    /// Sends a packet whose turn it is.
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
    /// The same on a link that loses, damages, delays or reorders.
    #[inline(never)]
    fn send_with_luck<C: Cargo<Item = T>>(&mut self, packet: Waiting<T>, cargo: &mut C) {
        let Waiting { mut item, length, came } = packet;
        let left = match &self.walk {
            None => self.server.serve(came, length),
            Some(walk) => self.server.serve_slowed(came, length, |full, start| walk.rate(full, start)),
        };
        if left == Instant::NEVER {
            // At rate zero the packet never leaves; it holds the link until that goes down.
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
    /// Puts a packet in its place among those under way.
    #[inline]
    fn depart(&mut self, arrives: Instant, length: u32, item: T) {
        // Built in place from registers: through a pointer, this one copy stalls longer than all else here takes.
        if self.under_way.back().is_none_or(|last| last.arrives <= arrives) {
            self.under_way.push_back(UnderWay { arrives, length, item });
        } else {
            self.overtake(UnderWay { arrives, length, item });
        }
    }
    /// Puts a packet that arrives before others under way in its place.
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
