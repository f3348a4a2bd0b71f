//! The wire format between client and server; docs/datagrams.md has the tables.
//!
//! Parsing functions are total: any bytes give a message or `None`.

mod lengths;
mod message;
mod reading;

pub use lengths::{HEADER, TAG};
pub use message::{Data, Message, PathCount, Piece, Told, before_payload, read_message, write_data, write_message};
use reading::Reading;

/// The version of the format, in the upper half of the first byte.
const VERSION: u8 = 1 << 4;
const HELLO_KIND: u8 = 0;
const ANSWER_KIND: u8 = 1;
const SEALED_KIND: u8 = 2;

/// Bytes of a handshake message: an ephemeral public key, a 64-bit number, and the tag.
pub const HANDSHAKE: usize = 32 + 8 + 16;

/// A message of the handshake.
pub type Handshake = [u8; HANDSHAKE];

/// The header before the ciphertext, authenticated with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The client's number for its uplink.
    pub path: u8,
    /// The number of the session, which selects the keys.
    pub session: u64,
    /// The counter of this datagram on its path and in its direction.
    pub counter: u64,
}

/// A datagram as it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outer<'a> {
    /// The client's first message.
    Hello(&'a Handshake),
    /// The server's answer.
    Answer(&'a Handshake),
    /// A sealed datagram; ciphertext and tag follow the header.
    Sealed(Header),
}

/// Parses the unencrypted part of a datagram; `None` if it has another format.
pub fn read_outer(datagram: &[u8]) -> Option<Outer<'_>> {
    let mut reading = Reading(datagram);
    let kind = reading.byte()?.checked_sub(VERSION)?;
    match kind {
        HELLO_KIND => reading.0.try_into().ok().map(Outer::Hello),
        ANSWER_KIND => reading.0.try_into().ok().map(Outer::Answer),
        SEALED_KIND => {
            let path = reading.byte().filter(|path| usize::from(*path) < anabranch_policy::datagram::MAX_PATHS)?;
            let header = Header { path, session: reading.word8()?, counter: reading.word8()? };
            (reading.0.len() > TAG).then_some(Outer::Sealed(header))
        }
        _ => None,
    }
}

impl Header {
    /// The encoded header.
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let (kind, rest) = bytes.split_at_mut(2);
        let (session, counter) = rest.split_at_mut(8);
        kind.copy_from_slice(&[VERSION | SEALED_KIND, self.path]);
        session.copy_from_slice(&self.session.to_be_bytes());
        counter.copy_from_slice(&self.counter.to_be_bytes());
        bytes
    }
}

/// Encodes the client's first message as a datagram.
pub fn hello(message: &Handshake) -> [u8; HANDSHAKE + 1] {
    before(VERSION | HELLO_KIND, message)
}

/// Encodes the server's answer as a datagram, no longer than the client's message.
pub fn answer(message: &Handshake) -> [u8; HANDSHAKE + 1] {
    before(VERSION | ANSWER_KIND, message)
}

fn before(kind: u8, message: &Handshake) -> [u8; HANDSHAKE + 1] {
    let mut bytes = [kind; HANDSHAKE + 1];
    let (_kind, rest) = bytes.split_at_mut(1);
    rest.copy_from_slice(message);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let header = Header { path: 3, session: 0x0102_0304_0506_0708, counter: 9 };
        let mut datagram = header.bytes().to_vec();
        assert_eq!(datagram, [0x12, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9]);
        datagram.extend([0; TAG]);
        assert_eq!(read_outer(&datagram), None, "nothing is sealed");
        datagram.push(0);
        assert_eq!(read_outer(&datagram), Some(Outer::Sealed(header)));
    }

    #[test]
    fn what_is_none_of_ours_is_not_read() {
        let long = [0; 64];
        for datagram in [&[][..], &[0x12], &[0x13; 64], &[0x22; 64], &long, &[0x12, 32][..]] {
            assert_eq!(read_outer(datagram), None, "{datagram:?}");
        }
        let mut path_too_high = [0; 40];
        (path_too_high[0], path_too_high[1]) = (0x12, 32);
        assert_eq!(read_outer(&path_too_high), None);
    }

    #[test]
    fn messages_of_the_handshake_have_one_length() {
        let message = [7; HANDSHAKE];
        assert_eq!(read_outer(&hello(&message)), Some(Outer::Hello(&message)));
        assert_eq!(read_outer(&answer(&message)), Some(Outer::Answer(&message)));
        assert_eq!(read_outer(&hello(&message)[..HANDSHAKE]), None);
        let mut longer = hello(&message).to_vec();
        longer.push(0);
        assert_eq!(read_outer(&longer), None);
    }
}
