//! One direction of a session: AES-256-GCM with the nonces and the change of keys of the Noise protocol (revision 34, sections
//! 5.1, 11.3 and 12.4), in place. `snow` has the same for its own buffers, and copies each byte for it.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Bytes of a key.
pub(super) const KEY: usize = 32;
/// Bytes that tell whether a record was changed.
pub(super) const TAG: usize = 16;
/// After so many records a direction changes its key (Noise, section 11.3): under 2 GiB, far from the limits of
/// AES-GCM (RFC 8446, section 5.5: 2^24.5 records of this size).
pub(super) const RECORDS_PER_KEY: u64 = 1 << 17;

/// One direction of a session.
pub(super) struct Cipher {
    key: LessSafeKey,
    /// How many records there were.
    count: u64,
}

impl Cipher {
    /// Before the first record.
    pub(super) fn new(key: &[u8; KEY]) -> Self {
        Self { key: schedule(key), count: 0 }
    }

    /// Encrypts a record in place; returns its tag.
    pub(super) fn seal(&mut self, record: &mut [u8]) -> [u8; TAG] {
        let tag = self.key.seal_in_place_separate_tag(nonce(self.count), Aad::empty(), record);
        let tag = tag.expect("a record is shorter than 64 GB");
        self.advance();
        let mut bytes = [0; TAG];
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    /// Decrypts a record with its tag in place; returns the length without the tag, or nothing if it was changed.
    pub(super) fn open(&mut self, record: &mut [u8]) -> Option<usize> {
        let length = self.key.open_in_place(nonce(self.count), Aad::empty(), record).ok()?.len();
        self.advance();
        Some(length)
    }

    fn advance(&mut self) {
        // 2^64 - 1 is the nonce for the change of keys; no session has that many records.
        self.count += 1;
        if self.count.is_multiple_of(RECORDS_PER_KEY) {
            self.key = next_key(&self.key);
        }
    }
}

/// The key that follows a key.
pub(super) fn next_key(key: &LessSafeKey) -> LessSafeKey {
    let mut next = [0; KEY];
    let tag = key.seal_in_place_separate_tag(nonce(u64::MAX), Aad::empty(), &mut next);
    let _not_part_of_the_key = tag.expect("a key is shorter than 64 GB");
    schedule(&next)
}

pub(super) fn schedule(key: &[u8; KEY]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("the key has the length"))
}

/// Four zeros and the number, the greatest byte first (section 12.4).
pub(super) fn nonce(count: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&count.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}
