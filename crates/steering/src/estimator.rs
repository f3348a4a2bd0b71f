//! Whether a connection is blocked, and by what: estimated from counters, since the kernel does not tell.
//!
//! `tcpi_rwnd_limited` stays 0 on subflows: the window is enforced above TCP. The connection's window and its next byte
//! to send are not exported. What is visible:
//!
//! - *backlog*: at no sample of the last `REMEMBERED` was less than `LEAST_BACKLOG` segments unacknowledged at data
//!   level (`write_seq - snd_una`, which contains what the program has written and no subflow has). A program that
//!   writes less than the paths carry lets it fall to nothing now and then.
//! - *busy share*: the share of time with data on a subflow (`busy_time`), of the active subflow that has the least of
//!   it, mean over the same samples. With backlog the scheduler fills every path, unless something above TCP stops it.
//!
//! So with backlog and a busy share under `BUSY` the connection is blocked. If what is unacknowledged reaches the
//! largest window that the peer advertised on a subflow, by the receive window; otherwise the program waits for space
//! in the send buffer.

use std::collections::VecDeque;

/// Samples that the backlog is looked for in.
const REMEMBERED: usize = 8;
/// Segments.
const LEAST_BACKLOG: u64 = 4;
/// Least busy share of a path that is not kept from sending.
const BUSY: f64 = 0.9;

/// What keeps a connection from sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Blocked {
    /// Its paths, or its program: nothing that paths have to do with.
    #[default]
    No,
    /// The peer's receive window, which a hole keeps shut.
    ReceiveWindow,
    /// Our send buffer, full of what waits for a hole.
    SendBuffer,
}

/// What a sample says of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Reading {
    /// Bytes written and not acknowledged at data level.
    pub held: u64,
    /// The least share of time since the last sample that an active subflow was busy, 0 to 1; none if not known.
    pub least_busy: Option<f64>,
    /// The largest window in bytes that an active subflow has, if known.
    pub window: Option<u64>,
    /// The largest payload of a segment.
    pub mss: u64,
}

/// The estimator of a connection.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    held: VecDeque<u64>,
    busy: VecDeque<f64>,
    blocked: Blocked,
}

impl Estimator {
    /// What it thinks now.
    pub fn blocked(&self) -> Blocked {
        self.blocked
    }

    /// The mean busy share of the least busy active subflow, 0 to 1; 1 before the second sample.
    pub fn busy_share(&self) -> f64 {
        if self.busy.is_empty() { 1.0 } else { self.busy.iter().sum::<f64>() / self.busy.len() as f64 }
    }

    /// Forgets the shares: other subflows are active now.
    pub(crate) fn restart(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn observe(&mut self, reading: &Reading) -> Blocked {
        if self.held.len() == REMEMBERED {
            self.held.pop_front();
        }
        self.held.push_back(reading.held);
        if let Some(share) = reading.least_busy {
            if self.busy.len() == REMEMBERED {
                self.busy.pop_front();
            }
            self.busy.push_back(share);
        }
        let backlog = self.held.iter().all(|held| *held > LEAST_BACKLOG * reading.mss);
        let idle = self.busy_share() < BUSY;
        self.blocked = match reading.window {
            _ if !backlog || !idle || self.held.len() < REMEMBERED / 2 => Blocked::No,
            Some(window) if reading.held + reading.mss < window => Blocked::SendBuffer,
            _ => Blocked::ReceiveWindow,
        };
        self.blocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(estimator: &mut Estimator, held: u64, busy: f64, window: u64) -> Blocked {
        let mut blocked = Blocked::No;
        for _ in 0..20 {
            let reading = Reading { held, least_busy: Some(busy), window: Some(window), mss: 1000 };
            blocked = estimator.observe(&reading);
        }
        blocked
    }

    #[test]
    fn an_idle_path_with_data_waiting_means_blocked_and_the_window_says_by_what() {
        assert_eq!(after(&mut Estimator::default(), 200_000, 0.6, 200_000), Blocked::ReceiveWindow);
        assert_eq!(after(&mut Estimator::default(), 200_000, 0.6, 500_000), Blocked::SendBuffer);
        assert_eq!(after(&mut Estimator::default(), 200_000, 1.0, 200_000), Blocked::No);
    }

    #[test]
    fn a_program_that_writes_little_is_not_blocked() {
        assert_eq!(after(&mut Estimator::default(), 4_000, 0.1, 4_000), Blocked::No);
        let mut estimator = Estimator::default();
        after(&mut estimator, 200_000, 0.5, 200_000);
        let reading = Reading { held: 0, least_busy: Some(0.5), window: Some(200_000), mss: 1000 };
        assert_eq!(estimator.observe(&reading), Blocked::No);
    }
}
