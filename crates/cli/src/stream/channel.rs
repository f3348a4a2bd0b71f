//! The connection of a stream: key proof first, then encryption of each message.
//!
//! The handshake uses messages too: [`HELLO`] and the 48 bytes of the Noise pattern, one each way. Message headers stay
//! readable, since both stacks withdraw messages by them; each payload is bound to its header. The last message is
//! empty, so that truncation is detected.

use anabranch_mptcp::{MessageOptions, Record};
use anabranch_perf::messages::{MessagePort, Messages};
use anabranch_policy::time::Duration;
use anabranch_proxy::Keys;
use anabranch_proxy::noise::messages::{Initiator, Messages as Session, respond};
use anabranch_proxy::noise::{MESSAGE, Message};
use anabranch_wire::MessageHeader;
use bytes::Bytes;
use std::fmt;
use std::io;
use std::time::Instant;
use tokio::time::timeout;

/// Prefix of handshake messages.
const HELLO: &[u8; 16] = b"anabranch stream";
/// Time limit of the key proof.
const PROOF: std::time::Duration = std::time::Duration::from_secs(10);
/// Lifetime of messages that all others depend on: no policy may withdraw them.
const LASTING: Duration = Duration::from_secs(3_600);

/// Why the key proof failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The peer has another key.
    AnotherKey,
    /// The peer sends data without a handshake.
    NoKey,
    /// The peer closed the connection.
    Closed,
    /// The peer does not answer.
    Silent,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AnotherKey => "it does not prove the key: it has another one",
            Self::NoKey => {
                "it does not encrypt the stream: give it the key with --key FILE, or both ends --unencrypted"
            }
            Self::Closed => "it has ended the connection: it has another key, or none",
            Self::Silent => "it has not proved the key within 10 s; does it have --key FILE?",
        })
    }
}

/// The role of this end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    /// It opened the connection.
    pub connects: bool,
    /// It sends the stream.
    pub sends: bool,
}

pub struct Channel {
    messages: Messages,
    session: Option<Session>,
    /// Number of the next message sent.
    number: u32,
    /// Time 0 of the stream, if that was before its first message.
    began: Option<Instant>,
    /// The peer has ended the stream.
    ended: bool,
}

impl Channel {
    /// Proves the key in both directions; without keys nothing is proved or encrypted.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn open(messages: Messages, keys: Option<&Keys>, role: Role) -> Result<Self, Refusal> {
        let mut channel = Self { messages, session: None, number: 0, began: None, ended: false };
        if let Some(keys) = keys {
            let proved = timeout(PROOF, channel.prove(keys, role)).await.unwrap_or(Err(Refusal::Silent));
            if let Err(refusal) = proved {
                channel.messages.abort();
                return Err(refusal);
            }
        }
        Ok(channel)
    }

    async fn prove(&mut self, keys: &Keys, role: Role) -> Result<(), Refusal> {
        if role.connects {
            let (_, key) = keys.iter().next().ok_or(Refusal::AnotherKey)?;
            let (initiator, message) = Initiator::new(key).map_err(|_| Refusal::AnotherKey)?;
            self.greet(&message).await?;
            let answer = self.greeting().await?;
            self.session = Some(initiator.finish(&answer).map_err(|_| Refusal::AnotherKey)?);
            // The sender waits for the answer, so that this end can decrypt all later messages.
            if role.sends { Ok(()) } else { self.finish_stream().await.map_err(|_| Refusal::Closed) }
        } else {
            let message = self.greeting().await?;
            let answered = keys.iter().find_map(|(_, key)| respond(key, &message).ok());
            let (answer, session) = answered.ok_or(Refusal::AnotherKey)?;
            self.greet(&answer).await?;
            self.session = Some(session);
            if !role.sends {
                return Ok(());
            }
            match self.read().await {
                Ok(None) if self.ended => {
                    self.ended = false;
                    Ok(())
                }
                Ok(None) => Err(Refusal::Closed),
                Ok(Some(_)) | Err(_) => Err(Refusal::AnotherKey),
            }
        }
    }

    async fn greet(&mut self, message: &Message) -> Result<(), Refusal> {
        // The stream's time 0, which is also the first that the peer's play-out clock learns of it.
        self.began = Some(Instant::now());
        let options = MessageOptions { lifetime: Some(LASTING), ..MessageOptions::default() };
        self.write([HELLO, message.as_slice()].concat(), &options).await.map_err(|_| Refusal::Closed)
    }

    async fn greeting(&mut self) -> Result<Message, Refusal> {
        match self.messages.read().await {
            Ok(Some(Record::Message { payload, .. })) => hello(&payload).ok_or(Refusal::NoKey),
            Ok(Some(_)) => Err(Refusal::NoKey),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(Refusal::NoKey),
            Ok(None) | Err(_) => Err(Refusal::Closed),
        }
    }

    /// Time 0 of the stream, if known before its first message.
    pub fn began(&self) -> Option<Instant> {
        self.began
    }

    /// Refuses further connections on the port.
    pub fn turn_others_away(&mut self, port: MessagePort) {
        self.messages.turn_others_away(port);
    }

    /// The underlying connection, for statistics.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Writes a message.
    ///
    /// # Errors
    /// As for [`Messages::write`].
    pub async fn write(&mut self, mut payload: Vec<u8>, options: &MessageOptions) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            let bound = bound(options.importance, options.play_out.as_micros());
            session.seal(self.number, &bound, &mut payload).map_err(io::Error::other)?;
        }
        self.number = self.number.wrapping_add(1);
        self.messages.write(Bytes::from(payload), options).await
    }

    /// The next decrypted record; none at the end of the stream.
    ///
    /// # Errors
    /// As for [`Messages::read`], and if a message was modified or the stream was truncated.
    pub async fn read(&mut self) -> io::Result<Option<Record>> {
        let record = self.messages.read().await?;
        let Some(session) = &mut self.session else { return Ok(record) };
        match record {
            Some(Record::Message { offset, header, payload, arrived }) => {
                let mut payload = payload.to_vec();
                let opened = session.open(header.number, &bound(header.importance, header.play_out), &mut payload);
                opened.map_err(|_| io::Error::other("a message was changed on its way"))?;
                if payload.is_empty() {
                    self.ended = true;
                    return Ok(None);
                }
                let header =
                    MessageHeader { length: u32::try_from(payload.len()).map_err(io::Error::other)?, ..header };
                Ok(Some(Record::Message { offset, header, payload: payload.into(), arrived }))
            }
            None => Err(io::Error::other("the connection ended before the stream did")),
            Some(other) => Ok(Some(other)),
        }
    }

    /// Marks the end of an encrypted stream.
    async fn finish_stream(&mut self) -> io::Result<()> {
        if self.session.is_none() {
            return Ok(());
        }
        let played = self.began.map_or(Duration::ZERO, |began| Duration::from_nanos(began.elapsed().as_nanos() as u64));
        let options = MessageOptions { importance: 0, play_out: played, lifetime: Some(LASTING) };
        self.write(Vec::new(), &options).await
    }

    /// Ends the stream and our direction; waits for buffer space.
    ///
    /// # Errors
    /// As for [`Messages::write`].
    pub async fn finish(&mut self) -> io::Result<()> {
        self.finish_stream().await?;
        self.messages.close();
        Ok(())
    }

    /// Waits until the peer has closed, too.
    ///
    /// # Errors
    /// If the connection failed.
    pub async fn closed_by_peer(&mut self) -> io::Result<()> {
        self.messages.closed_by_peer().await
    }

    /// Closes our direction; waits only for buffer space.
    pub async fn close(&mut self) {
        let _ = timeout(std::time::Duration::from_millis(100), self.finish_stream()).await;
        self.messages.close();
    }
}

/// Authenticated header data of a payload; the number is its nonce, and the length is authenticated implicitly.
fn bound(importance: u8, play_out: u64) -> [u8; 9] {
    let mut bound = [importance; 9];
    bound[1..].copy_from_slice(&play_out.to_be_bytes());
    bound
}

/// Parses a handshake message.
fn hello(payload: &[u8]) -> Option<Message> {
    payload.strip_prefix(HELLO)?.first_chunk::<MESSAGE>().copied().filter(|_| payload.len() == HELLO.len() + MESSAGE)
}

/// Whether a payload begins a handshake.
pub fn is_hello(payload: &[u8]) -> bool {
    hello(payload).is_some()
}
