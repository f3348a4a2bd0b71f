//! Owns the limit of memory that the buffers of several connections share.

use core::sync::atomic::{AtomicU64, Ordering};

/// Memory for data that waits in buffers, beyond what every connection may hold: 64 KiB to send, and the initial
/// receive buffer.
///
/// A connection may hold as much beyond that as is free for all. So N connections that want all have the same part, 1 /
/// (N + 1) of the limit, and what is left is there at once for the next one (dynamic thresholds: Choudhury and Hahne,
/// IEEE/ACM Transactions on Networking 6(2), 1998, with the factor 1).
///
/// One object may serve connections of several endpoints, in several threads.
#[derive(Debug)]
pub struct BufferMemory {
    limit: u64,
    used: AtomicU64,
}

impl BufferMemory {
    /// Bytes of payload in all buffers; [`u64::MAX`]: no limit.
    pub const fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes in use, within 64 KiB for each connection.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes left.
    pub fn free(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// A connection that held `before` bytes now holds `after`.
    pub(crate) fn exchange(&self, before: u64, after: u64) {
        // Nothing else depends on this number, so no order between threads is needed.
        if after >= before {
            self.used.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_use_is_what_all_connections_hold_and_the_rest_is_free() {
        let memory = BufferMemory::new(1_000);
        assert_eq!((memory.limit(), memory.used(), memory.free()), (1_000, 0, 1_000));
        memory.exchange(0, 600);
        memory.exchange(0, 300);
        assert_eq!((memory.used(), memory.free()), (900, 100));
        memory.exchange(600, 800);
        assert_eq!((memory.used(), memory.free()), (1_100, 0), "beyond the limit nothing is free");
        memory.exchange(800, 800);
        memory.exchange(800, 50);
        assert_eq!((memory.used(), memory.free()), (350, 650));
        memory.exchange(300, 0);
        memory.exchange(50, 0);
        assert_eq!(memory.used(), 0);
    }
}
