//! Memory for reads from devices and sockets and for writes of applications: slots of one size that are reused, the
//! last one released first, since it is in the processor's cache.

use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limit of unused slots.
const MAX_FREE: usize = 64;

#[derive(Clone)]
pub struct Slots {
    free: Arc<Mutex<Vec<Box<[u8]>>>>,
    size: usize,
}

impl Slots {
    /// No slots yet; each will have `size` bytes.
    pub fn new(size: usize) -> Self {
        Self { free: Arc::default(), size }
    }

    /// A slot with its previous content.
    pub fn take(&self) -> Slot {
        let old = self.lock().pop();
        let bytes = old.unwrap_or_else(|| vec![0; self.size].into_boxed_slice());
        Slot { bytes, home: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Box<[u8]>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot in use; it returns to the others when it is dropped.
pub struct Slot {
    pub bytes: Box<[u8]>,
    home: Slots,
}

impl Slot {
    /// A part of the slot without a copy, which keeps the whole slot alive. Empty if the range is invalid.
    pub fn share(self, part: Range<usize>) -> Bytes {
        let part = part.start.min(self.bytes.len())..part.end.min(self.bytes.len());
        Bytes::from_owner(self).slice(part)
    }
}

impl AsRef<[u8]> for Slot {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut free = self.home.lock();
        if free.len() < MAX_FREE {
            free.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_comes_back_when_the_last_part_of_it_is_dropped() {
        let slots = Slots::new(8);
        let mut slot = slots.take();
        slot.bytes.copy_from_slice(b"abcdefgh");
        let place = slot.bytes.as_ptr();
        let part = slot.share(2..6);
        let (one, other) = (part.slice(..2), part.slice(2..));
        drop(part);
        drop(other);
        assert!(slots.lock().is_empty());
        assert_eq!(one, b"cd"[..]);
        drop(one);
        assert_eq!(slots.take().bytes.as_ptr(), place);
    }

    #[test]
    fn no_more_slots_are_kept_than_the_limit() {
        let slots = Slots::new(1);
        let taken: Vec<Slot> = (0..MAX_FREE + 3).map(|_| slots.take()).collect();
        drop(taken);
        assert_eq!(slots.lock().len(), MAX_FREE);
    }
}
