//! One pair of keys: seals and opens datagrams of all paths, and rejects replays.
//!
//! Each path has its own counter and replay window in each direction, so that nothing is rejected on a slower path. The
//! nonce is the path (four bytes) and the counter (eight), and the header is authenticated. The Noise handshake makes
//! the keys. The cipher is that of `ring`, in place: `snow` copies each byte and authenticates no header.

use super::window::Window;
use crate::format::{HEADER, Header};
use anabranch_policy::datagram::MAX_PATHS;
use anabranch_policy::time::{Duration, Instant};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Size of the replay window: the most datagrams of a path that may overtake one.
const WINDOW: u64 = 4_096;
/// Age at which the client renews the keys.
pub const RENEW_AFTER: Duration = Duration::from_secs(120);
/// The client also renews them after this many datagrams in one direction, half of the limit for AES-GCM (RFC 9001,
/// section 6.6).
const RENEW_AFTER_COUNT: u64 = 1 << 22;
/// Age at which keys expire.
pub const LIFETIME: Duration = Duration::from_secs(300);

/// One pair of keys.
pub struct Epoch {
    id: u64,
    outgoing: LessSafeKey,
    incoming: LessSafeKey,
    begun: Instant,
    sealed: u64,
    opened: u64,
    windows: Vec<Option<Window>>,
}

impl Epoch {
    pub fn new(id: u64, outgoing: &[u8; 32], incoming: &[u8; 32], begun: Instant) -> Self {
        Self { id, outgoing: key(outgoing), incoming: key(incoming), begun, sealed: 0, opened: 0, windows: Vec::new() }
    }

    /// The number of the session on the wire.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the client should renew the keys.
    pub fn is_old(&self, now: Instant) -> bool {
        now.since(self.begun) >= RENEW_AFTER || self.sealed.max(self.opened) >= RENEW_AFTER_COUNT
    }

    /// Whether the keys have expired.
    pub fn is_over(&self, now: Instant) -> bool {
        now.since(self.begun) >= LIFETIME
    }

    /// The latest time for renewal.
    pub fn renew_at(&self) -> Instant {
        self.begun + RENEW_AFTER
    }

    /// Appends a sealed datagram to `out`; `write` appends the plaintext. A `counter` must not be reused on a path.
    pub fn seal(&mut self, path: u8, counter: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let header = Header { path, session: self.id, counter }.bytes();
        out.extend(header);
        let begin = out.len();
        write(out);
        let plain = out.get_mut(begin..).unwrap_or_default();
        let tag = self.outgoing.seal_in_place_separate_tag(nonce(path, counter), Aad::from(header), plain);
        let tag = tag.expect("a datagram is shorter than 64 GB");
        out.extend_from_slice(tag.as_ref());
        self.sealed += 1;
    }

    /// Opens a datagram in place, unless it fails authentication or is a replay. Returns the plaintext, and whether the
    /// counter is the highest of its path.
    pub fn open<'a>(&mut self, header: &Header, datagram: &'a mut [u8]) -> Option<(&'a [u8], bool)> {
        let index = usize::from(header.path).min(MAX_PATHS);
        if self.windows.get(index).and_then(Option::as_ref).is_some_and(|window| !window.is_new(header.counter)) {
            return None;
        }
        let (before, sealed) = datagram.split_at_mut_checked(HEADER)?;
        let nonce = nonce(header.path, header.counter);
        let plain = self.incoming.open_in_place(nonce, Aad::from(&*before), sealed).ok()?;
        self.opened += 1;
        // Windows are allocated only after authentication.
        if self.windows.len() <= index {
            self.windows.resize_with(index + 1, || None);
        }
        let highest = self.windows.get_mut(index)?.get_or_insert_with(|| Window::new(WINDOW)).insert(header.counter);
        Some((plain, highest))
    }
}

impl Epoch {
    /// Whether a datagram authenticates. The replay window does not change.
    pub fn try_open(&self, header: &Header, datagram: &mut [u8]) -> bool {
        let Some((before, sealed)) = datagram.split_at_mut_checked(HEADER) else { return false };
        self.incoming.open_in_place(nonce(header.path, header.counter), Aad::from(&*before), sealed).is_ok()
    }
}

fn key(bytes: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).expect("the key has the length"))
}

fn nonce(path: u8, counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    let (first, last) = bytes.split_at_mut(4);
    first.copy_from_slice(&u32::from(path).to_be_bytes());
    last.copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Outer, TAG, read_outer};

    fn pair() -> (Epoch, Epoch) {
        (Epoch::new(5, &[1; 32], &[2; 32], Instant::ZERO), Epoch::new(5, &[2; 32], &[1; 32], Instant::ZERO))
    }

    fn sealed(from: &mut Epoch, path: u8, counter: u64) -> Vec<u8> {
        let mut out = Vec::new();
        from.seal(path, counter, &mut out, |out| out.extend(b"words"));
        out
    }

    fn open(by: &mut Epoch, mut datagram: Vec<u8>) -> Option<(Vec<u8>, bool)> {
        let Some(Outer::Sealed(header)) = read_outer(&datagram) else { panic!("not sealed") };
        by.open(&header, &mut datagram).map(|(plain, highest)| (plain.to_vec(), highest))
    }

    #[test]
    fn a_datagram_is_opened_once() {
        let (mut ours, mut theirs) = pair();
        let datagram = sealed(&mut ours, 1, 0);
        assert_eq!(datagram.len(), 5 + HEADER + TAG);
        assert_eq!(open(&mut theirs, datagram.clone()), Some((b"words".to_vec(), true)));
        assert_eq!(open(&mut theirs, datagram), None);
    }

    #[test]
    fn keys_are_old_after_two_minutes_or_four_million_datagrams_in_either_direction() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let (mut ours, mut theirs) = pair();
        assert!(!ours.is_old(at(119_999)) && ours.is_old(at(120_000)));
        (ours.sealed, theirs.opened) = ((1 << 22) - 1, (1 << 22) - 1);
        assert!(!ours.is_old(at(0)) && !theirs.is_old(at(0)));
        let datagram = sealed(&mut ours, 0, 0);
        assert!(open(&mut theirs, datagram).is_some());
        assert!(ours.is_old(at(0)) && theirs.is_old(at(0)));
    }

    #[test]
    fn a_path_that_is_slower_by_a_million_datagrams_loses_nothing() {
        let (mut ours, mut theirs) = pair();
        let slow = sealed(&mut ours, 0, 0);
        let fast = sealed(&mut ours, 1, 1_000_000);
        assert!(open(&mut theirs, fast).is_some());
        assert_eq!(open(&mut theirs, slow), Some((b"words".to_vec(), true)));
    }

    #[test]
    fn one_that_was_overtaken_on_its_path_is_good_and_not_the_highest() {
        let (mut ours, mut theirs) = pair();
        let (first, second) = (sealed(&mut ours, 0, 0), sealed(&mut ours, 0, 1));
        assert_eq!(open(&mut theirs, second).map(|(_, highest)| highest), Some(true));
        assert_eq!(open(&mut theirs, first).map(|(_, highest)| highest), Some(false));
    }

    #[test]
    fn a_changed_bit_anywhere_is_found_out_and_the_true_one_still_counts() {
        let (mut ours, mut theirs) = pair();
        let datagram = sealed(&mut ours, 1, 3);
        for bit in 0..datagram.len() * 8 {
            let mut changed = datagram.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // A change in the first bytes gives another format, or a path that does not exist.
            if matches!(read_outer(&changed), Some(Outer::Sealed(_))) {
                assert_eq!(open(&mut theirs, changed), None, "bit {bit}");
            }
        }
        assert!(open(&mut theirs, datagram).is_some());
    }

    #[test]
    fn what_was_sent_does_not_come_back_as_the_peers() {
        let (mut ours, _) = pair();
        let datagram = sealed(&mut ours, 1, 0);
        assert_eq!(open(&mut ours, datagram), None);
    }
}
