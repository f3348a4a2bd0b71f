//! Changes of a link while it is used, and what is on it.

use super::delay::{Delay, DelayModel};
use super::loss::{Loss, LossModel};
use super::{Cargo, Link, QueueLimit};
use crate::random::RandomStream;
use anabranch_policy::time::{Duration, Instant};

impl<T> Link<T> {
    /// Sets a fixed delay from the next packet on. Packets do not overtake those under way unless the link lets them.
    pub fn handle_delay<C: Cargo<Item = T>>(&mut self, now: Instant, delay: Duration, cargo: &mut C) {
        self.advance(now, cargo);
        self.delay = Delay::new(DelayModel::Fixed(delay), || unreachable!("a fixed delay draws nothing"));
    }
    /// Loses each packet with this probability from the next one on, in place of its loss models.
    pub fn handle_loss<C: Cargo<Item = T>>(&mut self, now: Instant, loss: f64, random: RandomStream, cargo: &mut C) {
        self.advance(now, cargo);
        self.plain = false;
        self.losses = vec![Loss::new(LossModel::Uniform(loss), random)];
    }
    /// Limits the queue from now on; what waits beyond it is sent.
    pub fn handle_queue_limit<C: Cargo<Item = T>>(&mut self, now: Instant, limit: QueueLimit, cargo: &mut C) {
        self.advance(now, cargo);
        self.queue.set_limit(limit);
    }
    /// Whether it is up as of the last input.
    pub fn is_up(&self) -> bool {
        self.clockwork.up
    }
    /// The packets under way as of the last input, with their times of arrival, in that order.
    pub fn under_way(&self) -> impl Iterator<Item = (Instant, &T)> {
        self.under_way.iter().map(|packet| (packet.arrives, &packet.item))
    }
}
