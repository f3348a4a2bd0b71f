//! Subflows in TIME-WAIT whose connections are forgotten. A busy host has many times as many of them as open
//! connections, so each takes little memory and no timer of its own.

use crate::connection::TimeWait;
use anabranch_policy::time::{Duration, Instant};
use core::net::SocketAddr;
use foldhash::quality::FixedState;
use std::collections::{HashMap, VecDeque};

/// By how much an entry may outlive its time, so that entries that expire one after the other need a single wake-up.
const LATENESS: Duration = Duration::from_secs(1);

/// Local and remote address with ports.
type Pair = (SocketAddr, SocketAddr);

/// An entry, and the time of its valid element in the queue. Other elements of the same pair are of earlier entries.
struct Entry {
    time_wait: TimeWait,
    queued: Instant,
}

/// Subflows in TIME-WAIT by address pair.
pub struct TimeWaitTable {
    waits: HashMap<Pair, Entry, FixedState>,
    /// When each entry expires; in order, except for connections whose settings differ.
    queue: VecDeque<(Instant, Pair)>,
    most: usize,
}

impl TimeWaitTable {
    /// An empty table of at most `most` entries, whose hash is keyed as that of the connections.
    pub fn new(most: usize, hash: FixedState) -> Self {
        Self { waits: HashMap::with_hasher(hash), queue: VecDeque::new(), most }
    }

    /// Adds an entry. Returns whether the oldest was removed for it.
    pub fn insert(&mut self, time_wait: TimeWait) -> bool {
        let pair = (time_wait.local, time_wait.remote);
        let full = self.waits.len() >= self.most;
        while self.waits.len() >= self.most {
            let Some((at, oldest)) = self.queue.pop_front() else { return true };
            if self.waits.get(&oldest).is_some_and(|entry| entry.queued == at) {
                self.waits.remove(&oldest);
            }
        }
        self.waits.insert(pair, Entry { time_wait, queued: time_wait.until });
        self.queue.push_back((time_wait.until, pair));
        full
    }

    pub fn get(&self, local: SocketAddr, remote: SocketAddr) -> Option<&TimeWait> {
        self.waits.get(&(local, remote)).map(|entry| &entry.time_wait)
    }

    pub fn get_mut(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<&mut TimeWait> {
        self.waits.get_mut(&(local, remote)).map(|entry| &mut entry.time_wait)
    }

    pub fn remove(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<TimeWait> {
        self.waits.remove(&(local, remote)).map(|entry| entry.time_wait)
    }

    /// Removes expired entries.
    pub fn expire(&mut self, now: Instant) {
        while let Some(&(at, pair)) = self.queue.front().filter(|(at, _)| *at <= now) {
            self.queue.pop_front();
            let Some(entry) = self.waits.get_mut(&pair).filter(|entry| entry.queued == at) else { continue };
            if entry.time_wait.until > now {
                // A late FIN has restarted the timer.
                entry.queued = entry.time_wait.until;
                self.queue.push_back((entry.queued, pair));
            } else {
                self.waits.remove(&pair);
            }
        }
        if self.queue.is_empty() {
            // Releases memory after a busy time.
            self.waits.shrink_to_fit();
            self.queue.shrink_to_fit();
        }
    }

    /// When [`Self::expire`] should be called next: late enough to remove several entries at once.
    pub fn next_timeout(&self) -> Instant {
        self.queue.front().map_or(Instant::NEVER, |(at, _)| *at + LATENESS)
    }

    pub fn len(&self) -> usize {
        self.waits.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_for_a_new_one_and_a_pair_that_waits_again_is_not_the_oldest() {
        let end = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let wait = |port, secs| TimeWait::between(end(port), end(80), Instant::ZERO + Duration::from_secs(secs));
        let mut table = TimeWaitTable::new(2, FixedState::default());
        assert!(!table.insert(wait(1, 10)));
        // A new connection took over the pair and entered TIME-WAIT in turn, behind another.
        assert!(table.remove(end(1), end(80)).is_some());
        assert!(!table.insert(wait(2, 15)));
        assert!(!table.insert(wait(1, 20)));
        assert!(table.insert(wait(3, 25)));
        let left = [1, 2, 3].map(|port| table.get(end(port), end(80)).is_some());
        assert_eq!(left, [true, false, true]);
    }
}
