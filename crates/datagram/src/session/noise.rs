//! Proof of the shared key, and the keys of a session: the Noise protocol (revision 34) with pattern NNpsk0, by the crate `snow`.
//!
//! The client's message has the client's number, the server's answer the server's number for the client; both are
//! encrypted. The server checks the key before any expensive operation.

use super::epoch::Epoch;
use crate::format::{HANDSHAKE, Handshake};
use anabranch_policy::time::Instant;
use snow::{Builder, HandshakeState};

/// The Noise protocol name; both ends must use the same.
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// Bound into the handshake: another version of the format fails like a wrong key.
const PROLOGUE: &[u8] = b"anabranch datagram 1";

/// The peer has another key or protocol, or its message was changed. The cause is not disclosed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the peer does not prove the key")]
pub struct Unproven;

impl From<snow::Error> for Unproven {
    fn from(_told_to_nobody: snow::Error) -> Self {
        Self
    }
}

fn builder(key: &[u8; 32]) -> Result<Builder<'_>, Unproven> {
    let pattern = PATTERN.parse().map_err(|_: snow::Error| Unproven)?;
    Ok(Builder::new(pattern).prologue(PROLOGUE)?.psk(0, key)?)
}

/// A client that waits for the server's answer.
pub struct Initiator(Box<HandshakeState>);

impl Initiator {
    /// Starts a handshake. Returns the message for the server, with the client's number.
    ///
    /// # Errors
    /// Only if the operating system has no random numbers.
    pub fn new(key: &[u8; 32], client: u64) -> Result<(Self, Handshake), Unproven> {
        let mut state = builder(key)?.build_initiator()?;
        let mut message = [0; HANDSHAKE];
        state.write_message(&client.to_be_bytes(), &mut message)?;
        Ok((Self(Box::new(state)), message))
    }

    /// Completes the handshake with the server's message. Returns the keys, and the server's number for this client.
    /// After an error another message can be tried.
    ///
    /// # Errors
    /// [`Unproven`].
    pub fn finish(&mut self, message: &Handshake, now: Instant) -> Result<(Epoch, u64), Unproven> {
        let mut server = [0; HANDSHAKE];
        self.0.read_message(message, &mut server)?;
        let (outgoing, incoming) = self.0.dangerously_get_raw_split();
        Ok((Epoch::new(id(&self.0), &outgoing, &incoming, now), number(&server)))
    }
}

/// The result of a client's message.
pub struct Response {
    /// The client's number.
    pub client: u64,
    /// The answer for the client.
    pub answer: Handshake,
    /// The server's number for the client.
    pub known_as: u64,
    /// The keys.
    pub epoch: Epoch,
}

/// The server's side of the handshake; `known_as` returns the server's number for a client.
///
/// # Errors
/// [`Unproven`], before any public-key operation.
pub fn respond(
    key: &[u8; 32],
    known_as: impl Fn(u64) -> u64,
    message: &Handshake,
    now: Instant,
) -> Result<Response, Unproven> {
    let mut state = builder(key)?.build_responder()?;
    let mut client = [0; HANDSHAKE];
    state.read_message(message, &mut client)?;
    let client = number(&client);
    let known_as = known_as(client);
    let mut answer = [0; HANDSHAKE];
    state.write_message(&known_as.to_be_bytes(), &mut answer)?;
    let (incoming, outgoing) = state.dangerously_get_raw_split();
    Ok(Response { client, answer, known_as, epoch: Epoch::new(id(&state), &outgoing, &incoming, now) })
}

/// The number of a session: both ends compute it, and it is unique.
fn id(state: &HandshakeState) -> u64 {
    state.get_handshake_hash().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn number(payload: &Handshake) -> u64 {
    payload.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    #[test]
    fn both_ends_get_the_same_session_and_each_others_number() {
        let (mut client, message) = Initiator::new(&KEY, 11).expect("random numbers");
        let response = respond(&KEY, |_| 22, &message, Instant::ZERO).expect("the same key");
        assert_eq!(response.client, 11);
        let (epoch, server) = client.finish(&response.answer, Instant::ZERO).expect("the same key");
        assert_eq!((epoch.id(), server), (response.epoch.id(), 22));
    }

    #[test]
    fn another_key_proves_nothing_at_either_end() {
        let (_, message) = Initiator::new(&KEY, 1).expect("random numbers");
        assert!(respond(&[8; 32], |_| 2, &message, Instant::ZERO).is_err());
        let (mut client, _) = Initiator::new(&KEY, 1).expect("random numbers");
        let (_, other) = Initiator::new(&[8; 32], 1).expect("random numbers");
        let theirs = respond(&[8; 32], |_| 2, &other, Instant::ZERO).expect("its own key");
        assert!(client.finish(&theirs.answer, Instant::ZERO).is_err());
    }

    #[test]
    fn a_changed_bit_in_either_message_is_found_out_and_the_true_answer_still_counts() {
        for bit in 0..HANDSHAKE * 8 {
            let (mut client, message) = Initiator::new(&KEY, 1).expect("random numbers");
            let response = respond(&KEY, |_| 2, &message, Instant::ZERO).expect("the same key");
            let (mut changed, mut answer) = (message, response.answer);
            changed[bit / 8] ^= 1 << (bit % 8);
            answer[bit / 8] ^= 1 << (bit % 8);
            assert!(respond(&KEY, |_| 2, &changed, Instant::ZERO).is_err(), "bit {bit}");
            assert!(client.finish(&answer, Instant::ZERO).is_err(), "bit {bit}");
            assert!(client.finish(&response.answer, Instant::ZERO).is_ok(), "bit {bit}");
        }
    }
}
