//! Messages after the handshake, each encrypted and authenticated by itself, so that others may be missing: for streams of which some is
//! abandoned. The number of a message is its nonce; a number is taken once, and never after a greater one.

use super::cipher::{KEY, TAG, next_key, nonce, schedule};
use super::{Key, Message, Tampered, Unproven};
use ring::aead::{Aad, LessSafeKey};
use snow::HandshakeState;

/// Bound into the handshake, so that nothing of a proxy's session fits here.
const PROLOGUE: &[u8] = b"anabranch stream 1";
/// Bytes by which a sealed message is longer.
pub const OVERHEAD: usize = TAG;
/// After so many numbers a direction changes its key: with messages of 16 MB, the longest that are taken, after 256 GB, less than RFC
/// 8446, section 5.5, allows.
const MESSAGES_PER_KEY: u64 = 1 << 14;
/// Most numbers that are missing in a row: a forged one costs a change of keys for each [`MESSAGES_PER_KEY`] at most.
const MOST_MISSING: u32 = 1 << 24;

/// The end that has sent the first message.
pub struct Initiator(Box<HandshakeState>);

impl Initiator {
    /// Begins: the message for the responder.
    ///
    /// # Errors
    /// Only if the operating system has no random numbers.
    pub fn new(key: &Key) -> Result<(Self, Message), Unproven> {
        let (state, message) = super::begin(key, PROLOGUE)?;
        Ok((Self(state), message))
    }

    /// Ends with the responder's message.
    ///
    /// # Errors
    /// [`Unproven`].
    pub fn finish(self, message: &Message) -> Result<Messages, Unproven> {
        let (outgoing, incoming) = super::conclude(self.0, message)?;
        Ok(Messages::new(&outgoing, &incoming))
    }
}

/// The responder's whole part: from the initiator's message, its own.
///
/// # Errors
/// [`Unproven`], before any public-key operation.
pub fn respond(key: &Key, message: &Message) -> Result<(Message, Messages), Unproven> {
    let (answer, (incoming, outgoing)) = super::answer(key, PROLOGUE, message)?;
    Ok((answer, Messages::new(&outgoing, &incoming)))
}

/// Both directions of a session of messages.
pub struct Messages {
    outgoing: Direction,
    incoming: Direction,
}

impl Messages {
    fn new(outgoing: &[u8; KEY], incoming: &[u8; KEY]) -> Self {
        Self { outgoing: Direction::new(outgoing), incoming: Direction::new(incoming) }
    }

    /// Encrypts our message of this number, greater than those before (it may wrap), and appends its tag. `bound` is authenticated with it.
    ///
    /// # Errors
    /// [`Tampered`] if the number is not greater: nothing is encrypted then.
    pub fn seal(&mut self, number: u32, bound: &[u8], message: &mut Vec<u8>) -> Result<(), Tampered> {
        let (number, key) = self.outgoing.at(number)?;
        let tag = key.seal_in_place_separate_tag(nonce(number), Aad::from(bound), message).map_err(|_| Tampered)?;
        message.extend_from_slice(tag.as_ref());
        self.outgoing.advance(number, key);
        Ok(())
    }

    /// Decrypts the peer's message of this number, and takes its tag off.
    ///
    /// # Errors
    /// [`Tampered`] if it was changed, moved or repeated; then it is as if it had not come.
    pub fn open(&mut self, number: u32, bound: &[u8], message: &mut Vec<u8>) -> Result<(), Tampered> {
        let (number, key) = self.incoming.at(number)?;
        let plain = key.open_in_place(nonce(number), Aad::from(bound), message).map_err(|_| Tampered)?.len();
        message.truncate(plain);
        self.incoming.advance(number, key);
        Ok(())
    }
}

/// The key and the numbers of a direction.
struct Direction {
    key: LessSafeKey,
    /// How many changes of keys there were.
    changes: u64,
    /// The least number that may come now, without wrapping.
    next: u64,
}

impl Direction {
    fn new(key: &[u8; KEY]) -> Self {
        Self { key: schedule(key), changes: 0, next: 0 }
    }

    /// The whole number that is meant by its last 32 bits, and its key.
    fn at(&self, number: u32) -> Result<(u64, LessSafeKey), Tampered> {
        let missing = number.wrapping_sub(self.next as u32);
        if missing > MOST_MISSING {
            return Err(Tampered);
        }
        let number = self.next + u64::from(missing);
        let changes = self.changes..number / MESSAGES_PER_KEY;
        Ok((number, changes.fold(self.key.clone(), |key, _| next_key(&key))))
    }

    fn advance(&mut self, number: u64, key: LessSafeKey) {
        (self.key, self.changes, self.next) = (key, number / MESSAGES_PER_KEY, number + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Messages, Messages) {
        let key = Key::generate().expect("random numbers");
        let (initiator, message) = Initiator::new(&key).expect("random numbers");
        let (answer, responder) = respond(&key, &message).expect("the same key");
        (initiator.finish(&answer).expect("the same key"), responder)
    }

    fn sealed(from: &mut Messages, number: u32) -> Vec<u8> {
        let mut message = b"picture".to_vec();
        from.seal(number, b"header", &mut message).expect("the number is new");
        assert_eq!(message.len(), 7 + OVERHEAD);
        message
    }

    fn opened(at: &mut Messages, number: u32, mut message: Vec<u8>) -> Result<Vec<u8>, Tampered> {
        at.open(number, b"header", &mut message).map(|()| message)
    }

    #[test]
    fn messages_are_read_although_others_are_missing_also_beyond_changes_of_keys() {
        let (mut from, mut to) = pair();
        for number in [0, 1, 5, MESSAGES_PER_KEY as u32 - 1, MESSAGES_PER_KEY as u32, 5 * MESSAGES_PER_KEY as u32 + 3] {
            let message = sealed(&mut from, number);
            assert_eq!(opened(&mut to, number, message), Ok(b"picture".to_vec()), "{number}");
        }
    }

    #[test]
    fn numbers_wrap_and_nonces_do_not() {
        let (mut from, mut to) = pair();
        let first = sealed(&mut from, 0);
        assert!(opened(&mut to, 0, first.clone()).is_ok());
        for end in [&mut from.outgoing, &mut to.incoming] {
            end.next = u64::from(u32::MAX);
            end.changes = end.next / MESSAGES_PER_KEY;
        }
        for number in [u32::MAX, 0, 1] {
            let message = sealed(&mut from, number);
            assert_ne!(message, first);
            assert!(opened(&mut to, number, message).is_ok(), "{number}");
        }
    }

    #[test]
    fn a_message_cannot_be_changed_repeated_or_moved_and_the_next_is_read_still() {
        let (mut from, mut to) = pair();
        let (first, second) = (sealed(&mut from, 1), sealed(&mut from, 2));
        assert_eq!(opened(&mut to, 2, first.clone()), Err(Tampered), "moved");
        assert_eq!(to.open(1, b"another", &mut first.clone()), Err(Tampered), "under another header");
        for bit in 0..first.len() * 8 {
            let mut changed = first.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opened(&mut to, 1, changed), Err(Tampered), "bit {bit}");
        }
        assert!(opened(&mut to, 1, first.clone()).is_ok());
        assert_eq!(opened(&mut to, 1, first), Err(Tampered), "repeated");
        assert!(opened(&mut to, 2, second).is_ok());
        let reflected = sealed(&mut from, 3);
        assert_eq!(opened(&mut from, 3, reflected), Err(Tampered), "of the other direction");
        assert_eq!(opened(&mut to, 0, Vec::new()), Err(Tampered), "shorter than a tag, and an old number");
        assert_eq!(opened(&mut to, 4, Vec::new()), Err(Tampered), "shorter than a tag");
    }

    #[test]
    fn a_number_is_sealed_once() {
        let (mut from, _) = pair();
        sealed(&mut from, 7);
        assert_eq!(from.seal(7, b"", &mut b"again".to_vec()), Err(Tampered));
        assert_eq!(from.seal(6, b"", &mut b"before".to_vec()), Err(Tampered));
    }

    #[test]
    fn a_handshake_of_the_proxy_opens_no_session_of_messages() {
        let key = Key::generate().expect("random numbers");
        let (_, message) = super::super::Initiator::new(&key).expect("random numbers");
        assert_eq!(respond(&key, &message).err(), Some(Unproven));
        let other = Key::generate().expect("random numbers");
        let (_, message) = Initiator::new(&other).expect("random numbers");
        assert_eq!(respond(&key, &message).err(), Some(Unproven));
    }
}
