//! A queue of datagrams to send, contiguous in memory, so that those of one size and destination go to the kernel in
//! one batch.

/// The queue; `To` is the destination type.
#[derive(Debug)]
pub struct Outbox<To> {
    bytes: Vec<u8>,
    entries: Vec<(To, usize)>,
}

impl<To> Default for Outbox<To> {
    fn default() -> Self {
        Self { bytes: Vec::new(), entries: Vec::new() }
    }
}

/// Datagrams for one call: all have `size` bytes, except that the last may be shorter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch<'a, To> {
    /// The destination.
    pub to: To,
    /// Bytes of each datagram but the last.
    pub size: usize,
    /// The number of datagrams.
    pub count: usize,
    /// The datagrams, contiguous.
    pub bytes: &'a [u8],
}

/// Most bytes passed in one call.
const LARGEST_BATCH: usize = 65_000;
/// Most queued datagrams.
const MOST: usize = 4_096;

impl<To: Copy + PartialEq> Outbox<To> {
    /// Appends a datagram; `write` appends its bytes. Returns its length, or `None` if the queue is full.
    pub fn push(&mut self, to: To, write: impl FnOnce(&mut Vec<u8>)) -> Option<usize> {
        if self.entries.len() >= MOST {
            return None;
        }
        let before = self.bytes.len();
        write(&mut self.bytes);
        let length = self.bytes.len() - before;
        self.entries.push((to, length));
        Some(length)
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drains the queue in batches of at most `most` datagrams.
    pub fn drain(&mut self, most: usize, mut send: impl FnMut(Batch<'_, To>)) {
        let (mut entries, mut bytes) = (self.entries.as_slice(), self.bytes.as_slice());
        while let Some(&(to, size)) = entries.first() {
            let (mut count, mut length) = (1, size);
            for &(next_to, next) in entries.get(1..).unwrap_or_default() {
                let full = length != count * size || count >= most || length + next > LARGEST_BATCH;
                if full || next_to != to || next > size {
                    break;
                }
                (count, length) = (count + 1, length + next);
            }
            let (batch, rest) = bytes.split_at_checked(length).unwrap_or_default();
            send(Batch { to, size, count, bytes: batch });
            (entries, bytes) = (entries.get(count..).unwrap_or_default(), rest);
        }
        self.entries.clear();
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(sizes: &[(u8, usize)], most: usize) -> Vec<(u8, usize, usize, usize)> {
        let mut outbox = Outbox::default();
        for (to, size) in sizes {
            outbox.push(*to, |out| out.extend(vec![*to; *size]));
        }
        let mut seen = Vec::new();
        outbox.drain(most, |batch| {
            assert!(batch.bytes.iter().all(|byte| *byte == batch.to));
            seen.push((batch.to, batch.size, batch.count, batch.bytes.len()));
        });
        assert!(outbox.is_empty());
        seen
    }

    #[test]
    fn datagrams_of_one_size_and_destination_go_together_with_one_that_is_smaller_behind() {
        assert_eq!(batches(&[(1, 9), (1, 9), (1, 4), (1, 4)], 64), [(1, 9, 3, 22), (1, 4, 1, 4)]);
        assert_eq!(batches(&[(1, 9), (2, 9), (2, 9), (1, 10)], 64), [(1, 9, 1, 9), (2, 9, 2, 18), (1, 10, 1, 10)]);
        assert_eq!(batches(&[(1, 4), (1, 9)], 64), [(1, 4, 1, 4), (1, 9, 1, 9)]);
    }

    #[test]
    fn no_batch_is_larger_than_the_kernel_takes() {
        assert_eq!(batches(&[(1, 9); 5], 2), [(1, 9, 2, 18), (1, 9, 2, 18), (1, 9, 1, 9)]);
        let counts: Vec<usize> = batches(&[(1, 1_400); 50], 64).iter().map(|batch| batch.2).collect();
        assert_eq!(counts, [46, 4]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut outbox = Outbox::default();
        let taken = (0..MOST + 3).filter(|_| outbox.push((), |out| out.push(0)).is_some()).count();
        assert_eq!(taken, MOST);
    }
}
