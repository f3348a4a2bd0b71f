//! Attempts of ours to join: the kernel tells nothing of one before it is established or has ended, and samples may miss
//! one that ends at once.

use crate::sample::Endpoints;
use anabranch_policy::time::{Duration, Instant};
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

/// Most pairs of addresses of a connection that are known.
const MOST: usize = 64;
/// Most attempts that gave way to others and whose end is awaited.
const MOST_GIVEN_UP: usize = 16;

/// Longest wait for the next SYN of an attempt. Not shorter: when an attempt is destroyed, the kernel sends all data
/// again that is not acknowledged at data level.
const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// The wait may be longer, by so much of the time since the first attempt: a peer may have announced an address that
/// nobody reaches.
const PATIENCE: f64 = 0.1;

/// Attempts between two addresses, in a row until one works.
#[derive(Clone, Copy, Debug)]
struct Row {
    local: IpAddr,
    remote: SocketAddr,
    /// When the first began.
    since: Instant,
    /// As a backup.
    backup: bool,
    /// The last is not known as a subflow yet.
    unseen: bool,
}

impl Row {
    fn is_between(&self, local: IpAddr, remote: SocketAddr) -> bool {
        self.local == local && self.remote == remote
    }
}

/// The attempts of a connection.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    rows: VecDeque<Row>,
    /// Those that gave way to others. Their end is no news.
    given_up: VecDeque<Endpoints>,
}

impl Attempts {
    /// The kernel began one.
    pub fn begin(&mut self, now: Instant, local: IpAddr, remote: SocketAddr, backup: bool) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.is_between(local, remote)) {
            (row.backup, row.unseen) = (backup, true);
            return;
        }
        if self.rows.len() == MOST {
            self.rows.pop_front();
        }
        self.rows.push_back(Row { local, remote, since: now, backup, unseen: true });
    }

    /// There is a subflow between the two.
    pub fn see(&mut self, endpoints: Endpoints) {
        let between = |row: &&mut Row| row.is_between(endpoints.local.ip(), endpoints.remote);
        if let Some(row) = self.rows.iter_mut().find(between) {
            row.unseen = false;
        }
    }

    /// It is established.
    pub fn succeed(&mut self, endpoints: Endpoints) {
        self.rows.retain(|row| !row.is_between(endpoints.local.ip(), endpoints.remote));
    }

    /// The address is gone.
    pub fn forget(&mut self, local: IpAddr) {
        self.rows.retain(|row| row.local != local);
    }

    /// A subflow ended that is not known, perhaps one without our address: the attempt that it was.
    pub fn end(&mut self, mut endpoints: Endpoints) -> Option<Endpoints> {
        let local = endpoints.local.ip();
        let is_it = |row: &&mut Row| {
            row.unseen && row.is_between(if local.is_unspecified() { row.local } else { local }, endpoints.remote)
        };
        let row = self.rows.iter_mut().find(is_it)?;
        row.unseen = false;
        endpoints.local.set_ip(row.local);
        Some(endpoints)
    }

    /// Whether one that is not answered is to give way to a new one, since its next SYN is that far away; and whether
    /// that is a backup.
    pub fn is_late(&self, now: Instant, endpoints: Endpoints, wait: Duration) -> Option<bool> {
        let row = self.rows.iter().find(|row| row.is_between(endpoints.local.ip(), endpoints.remote))?;
        (wait > LONGEST_WAIT.max(now.since(row.since).mul_f64(PATIENCE))).then_some(row.backup)
    }

    pub fn give_up(&mut self, endpoints: Endpoints) {
        if self.given_up.len() == MOST_GIVEN_UP {
            self.given_up.pop_front();
        }
        self.given_up.push_back(endpoints);
    }

    /// Whether a subflow that ended had given way to another. The kernel may tell of it without our address.
    pub fn was_given_up(&mut self, endpoints: Endpoints) -> bool {
        let same = |known: &Endpoints| {
            let local = endpoints.local.ip();
            known.remote == endpoints.remote
                && known.local.port() == endpoints.local.port()
                && (local.is_unspecified() || local == known.local.ip())
        };
        let found = self.given_up.iter().position(same);
        found.and_then(|at| self.given_up.remove(at)).is_some()
    }
}

/// Whether an attempt that the path manager wants again is to give way to a new one.
pub(crate) fn is_long(wait: Duration) -> bool {
    wait > LONGEST_WAIT
}
