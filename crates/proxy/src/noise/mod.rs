//! Proof of the shared key, and encryption: the Noise protocol (revision 34) with pattern NNpsk0, by the crate `snow`.
//!
//! Two messages of 48 bytes, then records. Making the client's first message and reading the server's needs the key. Both ends
//! make fresh ephemeral keys, so that a recording cannot be decrypted when the key becomes known later. The client's request is
//! in the first record and not in the first message: the answer to a replayed message is useless without its ephemeral key, and
//! the server does nothing else for it. The server checks the key before any expensive computation. docs/proxy.md has the format and what an attacker can and cannot do.

mod cipher;
mod exchange;
pub mod messages;
mod records;

pub(crate) use records::SEALED;
pub use records::{Opened, Records, Tampered};

use super::key::Key;
use cipher::KEY;
use exchange::Resolver;
use snow::{Builder, HandshakeState};

/// Everything that both ends must agree on.
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// Bound into the handshake: another version of the format fails as another key does.
const PROLOGUE: &[u8] = b"anabranch proxy 1";

/// Length of each of the two messages: an ephemeral public key and the tag of an empty payload.
pub const MESSAGE: usize = 48;

/// A message of the handshake.
pub type Message = [u8; MESSAGE];

/// The peer has another key or protocol, or an attacker changed or replayed its messages. Which of these it is must
/// not be revealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the peer does not prove the key")]
pub struct Unproven;

impl From<snow::Error> for Unproven {
    fn from(_told_to_nobody: snow::Error) -> Self {
        Self
    }
}

fn builder<'a>(key: &'a Key, prologue: &'a [u8]) -> Result<Builder<'a>, Unproven> {
    let pattern = PATTERN.parse().map_err(|_: snow::Error| Unproven)?;
    Ok(Builder::with_resolver(pattern, Box::new(Resolver)).prologue(prologue)?.psk(0, key.bytes())?)
}

/// The key of each direction: the initiator's, then the responder's.
type Split = ([u8; KEY], [u8; KEY]);

/// The initiator's message.
fn begin(key: &Key, prologue: &[u8]) -> Result<(Box<HandshakeState>, Message), Unproven> {
    let mut state = builder(key, prologue)?.build_initiator()?;
    let mut message = [0; MESSAGE];
    state.write_message(&[], &mut message)?;
    Ok((Box::new(state), message))
}

/// The initiator's end of it, with the responder's message.
fn conclude(mut state: Box<HandshakeState>, message: &Message) -> Result<Split, Unproven> {
    state.read_message(message, &mut [0; MESSAGE])?;
    Ok(state.dangerously_get_raw_split())
}

/// The responder's whole part.
fn answer(key: &Key, prologue: &[u8], message: &Message) -> Result<(Message, Split), Unproven> {
    let mut state = builder(key, prologue)?.build_responder()?;
    state.read_message(message, &mut [0; MESSAGE])?;
    let mut answer = [0; MESSAGE];
    state.write_message(&[], &mut answer)?;
    Ok((answer, state.dangerously_get_raw_split()))
}

/// A client that has sent its message.
pub struct Initiator(Box<HandshakeState>);

impl Initiator {
    /// Begins: the message for the server.
    ///
    /// # Errors
    /// Only if the operating system has no random numbers.
    pub fn new(key: &Key) -> Result<(Self, Message), Unproven> {
        let (state, message) = begin(key, PROLOGUE)?;
        Ok((Self(state), message))
    }

    /// Ends with the server's message.
    ///
    /// # Errors
    /// [`Unproven`].
    pub fn finish(self, message: &Message) -> Result<Records, Unproven> {
        let (outgoing, incoming) = conclude(self.0, message)?;
        Ok(Records::new(&outgoing, &incoming))
    }
}

/// A server's whole part: from the client's message, its own.
///
/// # Errors
/// [`Unproven`], before any public-key operation.
pub fn respond(key: &Key, message: &Message) -> Result<(Message, Records), Unproven> {
    let (answer, (incoming, outgoing)) = answer(key, PROLOGUE, message)?;
    Ok((answer, Records::new(&outgoing, &incoming)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::cipher::{Cipher, RECORDS_PER_KEY};
    use super::*;

    /// Both ends after a handshake.
    pub fn pair() -> (Records, Records) {
        let key = Key::generate().expect("random numbers");
        let (initiator, message) = Initiator::new(&key).expect("random numbers");
        let (answer, server) = respond(&key, &message).expect("the same key");
        (initiator.finish(&answer).expect("the same key"), server)
    }

    #[test]
    fn another_key_proves_nothing() {
        let (ours, theirs) = (Key::generate().expect("random"), Key::generate().expect("random"));
        let (_, message) = Initiator::new(&ours).expect("random numbers");
        assert_eq!(respond(&theirs, &message).err(), Some(Unproven));
    }

    #[test]
    fn a_server_without_the_key_is_found_out() {
        let (ours, theirs) = (Key::generate().expect("random"), Key::generate().expect("random"));
        let (initiator, _) = Initiator::new(&ours).expect("random numbers");
        let (_, other) = Initiator::new(&theirs).expect("random numbers");
        let (answer, _) = respond(&theirs, &other).expect("its own key");
        assert_eq!(initiator.finish(&answer).err(), Some(Unproven));
    }

    #[test]
    fn a_changed_bit_anywhere_in_either_message_is_found_out() {
        let key = Key::generate().expect("random");
        for bit in 0..MESSAGE * 8 {
            let (initiator, mut message) = Initiator::new(&key).expect("random numbers");
            let (mut answer, _) = respond(&key, &message).expect("the same key");
            message[bit / 8] ^= 1 << (bit % 8);
            answer[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(respond(&key, &message).err(), Some(Unproven), "bit {bit}");
            assert_eq!(initiator.finish(&answer).err(), Some(Unproven), "bit {bit}");
        }
    }

    #[test]
    fn a_replayed_message_gets_a_session_that_the_replayer_cannot_use() {
        let key = Key::generate().expect("random");
        let (initiator, message) = Initiator::new(&key).expect("random numbers");
        let (answer, _) = respond(&key, &message).expect("the same key");
        let mut client = initiator.finish(&answer).expect("the same key");
        let mut recorded = bytes::BytesMut::new();
        client.seal(b"connect me", &mut recorded);
        // An attacker replays a whole recording.
        let (again, mut server) = respond(&key, &message).expect("the message is good");
        assert_ne!(again, answer);
        assert_eq!(server.open(&mut recorded).err(), Some(Tampered));
    }

    /// Records are those of the Noise protocol, also beyond a change of keys: another implementation reads them.
    #[test]
    fn snow_reads_what_is_sealed_in_place() {
        let key = Key::generate().expect("random");
        let mut client = builder(&key, PROLOGUE).and_then(|builder| Ok(builder.build_initiator()?)).expect("a pattern");
        let mut server = builder(&key, PROLOGUE).and_then(|builder| Ok(builder.build_responder()?)).expect("a pattern");
        let (mut message, mut answer) = ([0; MESSAGE], [0; MESSAGE]);
        client.write_message(&[], &mut message).expect("it fits");
        server.read_message(&message, &mut [0; MESSAGE]).expect("the same key");
        server.write_message(&[], &mut answer).expect("it fits");
        client.read_message(&answer, &mut [0; MESSAGE]).expect("the same key");
        let mut ours = Cipher::new(&client.dangerously_get_raw_split().0);
        let mut theirs = server.into_transport_mode().expect("the handshake is over");
        for count in 0..RECORDS_PER_KEY + 2 {
            let mut sealed = count.to_be_bytes().to_vec();
            let tag = ours.seal(&mut sealed);
            sealed.extend_from_slice(&tag);
            let mut opened = [0; 64];
            assert_eq!(theirs.read_message(&sealed, &mut opened).expect("it is one"), 8);
            assert_eq!(opened[..8], count.to_be_bytes());
            if (count + 1).is_multiple_of(RECORDS_PER_KEY) {
                theirs.rekey_incoming();
            }
        }
    }

    #[test]
    fn what_a_client_sends_does_not_come_back_to_it_as_the_servers() {
        let key = Key::generate().expect("random");
        let (initiator, message) = Initiator::new(&key).expect("random numbers");
        assert_eq!(initiator.finish(&message).err(), Some(Unproven));
    }
}
