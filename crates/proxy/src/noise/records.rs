//! The stream after the handshake: records of at most 16 kB, each with its length before it, encrypted and authenticated.

use bytes::{Buf as _, Bytes, BytesMut};
use snow::TransportState;

/// Most bytes of the stream in a record: what a slow path delivers late by one record is little, and the overhead is
/// still a thousandth.
const LARGEST: usize = 16 * 1024;
/// Bytes of the length before a record.
const LENGTH: usize = 2;
/// Bytes that tell whether a record was changed.
const TAG: usize = 16;
/// After so many records each direction changes its key (Noise, section 11.3): under 2 GiB, far from the limits of
/// AES-GCM (RFC 8446, section 5.5: 2^24.5 records of this size).
const RECORDS_PER_KEY: u64 = 1 << 17;

/// A record was changed, left out, repeated or cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a record was tampered with")]
pub struct Tampered;

/// What came out of [`Records::open`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opened {
    /// Bytes of the stream, at least one.
    Bytes(Bytes),
    /// The end of the stream: the peer has said so itself.
    End,
    /// Nothing yet: the next record is not whole.
    More,
}

/// Both directions of an encrypted stream.
pub struct Records {
    state: Box<TransportState>,
    ended: bool,
}

impl Records {
    pub(super) fn new(state: TransportState) -> Self {
        Self { state: Box::new(state), ended: false }
    }

    /// Appends `plain` as records to `out`.
    pub fn seal(&mut self, plain: &[u8], out: &mut BytesMut) {
        out.reserve(plain.len() + plain.len().div_ceil(LARGEST) * (LENGTH + TAG));
        plain.chunks(LARGEST).for_each(|chunk| self.seal_record(chunk, out));
    }

    /// Appends the record that says that nothing follows.
    pub fn seal_end(&mut self, out: &mut BytesMut) {
        self.seal_record(&[], out);
    }

    fn seal_record(&mut self, plain: &[u8], out: &mut BytesMut) {
        let length = plain.len() + TAG;
        // 16 kB and a tag at most.
        out.extend_from_slice(&(length as u16).to_be_bytes());
        let start = out.len();
        out.resize(start + length, 0);
        let sealed = self.state.write_message(plain, &mut out[start..]);
        // Only 2^64 records, or one of 64 kB, would fail.
        assert_eq!(sealed.ok(), Some(length), "a record is short, and there are fewer than 2^64");
        if self.state.sending_nonce().is_multiple_of(RECORDS_PER_KEY) {
            self.state.rekey_outgoing();
        }
    }

    /// Takes all whole records from the front of `input`.
    ///
    /// # Errors
    /// [`Tampered`]; then nothing more can be read.
    pub fn open(&mut self, input: &mut BytesMut) -> Result<Opened, Tampered> {
        let mut plain = BytesMut::new();
        while !self.ended {
            let Some(length) = input.first_chunk() else { break };
            let length = usize::from(u16::from_be_bytes(*length));
            if !(TAG..=LARGEST + TAG).contains(&length) {
                return Err(Tampered);
            }
            let Some(record) = input.get(LENGTH..LENGTH + length) else { break };
            if plain.capacity() == 0 {
                // The records that are here, and the tag of the last, which is taken off after decryption.
                plain.reserve(input.len());
            }
            let start = plain.len();
            plain.resize(start + length, 0);
            let opened = self.state.read_message(record, &mut plain[start..]).map_err(|_| Tampered)?;
            plain.truncate(start + opened);
            input.advance(LENGTH + length);
            if self.state.receiving_nonce().is_multiple_of(RECORDS_PER_KEY) {
                self.state.rekey_incoming();
            }
            self.ended = opened == 0;
        }
        match plain.is_empty() {
            false => Ok(Opened::Bytes(plain.freeze())),
            true if self.ended => Ok(Opened::End),
            true => Ok(Opened::More),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pair;
    use super::*;

    fn read(records: &mut Records, input: &mut BytesMut) -> Opened {
        records.open(input).expect("nobody touched it")
    }

    #[test]
    fn a_stream_arrives_whole_however_it_is_cut() {
        let (mut client, mut server) = pair();
        let text: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        let mut sealed = BytesMut::new();
        client.seal(&text, &mut sealed);
        // Seven records: 6 of 16,384 bytes and one of 1,696, each with 18 bytes more.
        assert_eq!(sealed.len(), 100_000 + 7 * 18);
        client.seal_end(&mut sealed);
        let (mut input, mut arrived, mut ended) = (BytesMut::new(), Vec::new(), false);
        for piece in sealed.chunks(1_000) {
            input.extend_from_slice(piece);
            loop {
                match read(&mut server, &mut input) {
                    Opened::Bytes(bytes) => arrived.extend_from_slice(&bytes),
                    Opened::More => break,
                    Opened::End => {
                        ended = true;
                        break;
                    }
                }
            }
        }
        assert!(arrived == text && ended);
    }

    #[test]
    fn both_directions_are_apart() {
        let (mut client, mut server) = pair();
        let (mut up, mut down) = (BytesMut::new(), BytesMut::new());
        client.seal(b"ping", &mut up);
        server.seal(b"pong", &mut down);
        assert_ne!(up, down);
        let mut reflected = up.clone();
        assert_eq!(client.open(&mut reflected), Err(Tampered));
        assert_eq!(read(&mut server, &mut up), Opened::Bytes(Bytes::from_static(b"ping")));
    }

    #[test]
    fn a_changed_bit_anywhere_is_found_out() {
        for bit in 0..(2 + 4 + 16) * 8 {
            let (mut client, mut server) = pair();
            let mut sealed = BytesMut::new();
            client.seal(b"ping", &mut sealed);
            sealed[bit / 8] ^= 1 << (bit % 8);
            let opened = server.open(&mut sealed);
            // A greater length waits for bytes that do not come; nothing is ever delivered.
            assert!(matches!(opened, Err(Tampered) | Ok(Opened::More)), "bit {bit}: {opened:?}");
        }
    }

    #[test]
    fn records_cannot_be_left_out_repeated_or_swapped() {
        let sealed = |client: &mut Records, text: &[u8]| {
            let mut out = BytesMut::new();
            client.seal(text, &mut out);
            out
        };
        let (mut client, mut server) = pair();
        let first = sealed(&mut client, b"one");
        let mut second = sealed(&mut client, b"two");
        assert_eq!(server.open(&mut second), Err(Tampered), "left out or swapped");
        let (mut client, mut server) = pair();
        let mut first_again = [first, sealed(&mut client, b"one")].concat().as_slice().into();
        assert_eq!(server.open(&mut first_again), Err(Tampered), "of another session");
        let (mut client, mut server) = pair();
        let one = sealed(&mut client, b"one");
        assert_eq!(read(&mut server, &mut one.clone()), Opened::Bytes(Bytes::from_static(b"one")));
        assert_eq!(server.open(&mut one.clone()), Err(Tampered), "repeated");
    }

    #[test]
    fn lengths_that_no_record_has_are_refused_at_once() {
        let (_, mut server) = pair();
        for length in [0_u16, 15, 16_401, 0xffff] {
            let mut input = BytesMut::from(&length.to_be_bytes()[..]);
            assert_eq!(server.open(&mut input), Err(Tampered), "{length}");
        }
    }

    #[test]
    fn nothing_is_read_after_the_end() {
        let (mut client, mut server) = pair();
        let mut sealed = BytesMut::new();
        client.seal(b"bye", &mut sealed);
        client.seal_end(&mut sealed);
        client.seal(b"but", &mut sealed);
        assert_eq!(read(&mut server, &mut sealed), Opened::Bytes(Bytes::from_static(b"bye")));
        assert_eq!(read(&mut server, &mut sealed), Opened::End);
        assert_eq!(read(&mut server, &mut sealed), Opened::End);
    }

    #[test]
    fn keys_change_on_the_way_and_the_stream_goes_on() {
        let (mut client, mut server) = pair();
        let mut sealed = BytesMut::new();
        for count in 0..RECORDS_PER_KEY + 10 {
            client.seal(&count.to_be_bytes(), &mut sealed);
            let expected = Bytes::copy_from_slice(&count.to_be_bytes());
            assert_eq!(read(&mut server, &mut sealed), Opened::Bytes(expected));
        }
    }
}
