//! The stream after the handshake: records of at most 16 kB, each with its length before it, encrypted and authenticated.

use super::cipher::{Cipher, KEY, TAG};
use bytes::{Buf as _, Bytes, BytesMut};
use std::io::IoSliceMut;

/// Most bytes of the stream in a record: what a slow path delivers late by one record is little, and the overhead is
/// still a thousandth.
const LARGEST: usize = 16 * 1024;
/// Bytes of the length before a record.
const LENGTH: usize = 2;
/// Bytes of a record that is full.
const FULL: usize = LENGTH + LARGEST + TAG;
/// Records that [`Records::places`] makes room for.
const PLACES: usize = 4;

/// Bytes of a buffer for [`Records::places`].
pub(crate) const SEALED: usize = PLACES * FULL;

/// A record was changed, left out, repeated or cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a record was tampered with")]
pub struct Tampered;

/// What came out of [`Records::open`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opened {
    /// Bytes of the stream, at least one.
    Bytes(Bytes),
    /// The end of the stream, in a record of the peer's.
    End,
    /// Nothing yet: the next record is not whole.
    More,
}

/// Both directions of an encrypted stream.
pub struct Records {
    // Each is half a kilobyte of key schedule.
    ciphers: Box<Ciphers>,
    ended: bool,
}

struct Ciphers {
    outgoing: Cipher,
    incoming: Cipher,
}

impl Records {
    /// With the handshake's keys for each direction.
    pub(super) fn new(outgoing: &[u8; KEY], incoming: &[u8; KEY]) -> Self {
        let ciphers = Ciphers { outgoing: Cipher::new(outgoing), incoming: Cipher::new(incoming) };
        Self { ciphers: Box::new(ciphers), ended: false }
    }

    /// Appends `plain` as records to `out`.
    pub fn seal(&mut self, plain: &[u8], out: &mut BytesMut) {
        out.reserve(plain.len() + plain.len().div_ceil(LARGEST) * (LENGTH + TAG));
        plain.chunks(LARGEST).for_each(|chunk| self.seal_record(chunk, out));
    }

    /// Appends the record that ends the stream.
    pub fn seal_end(&mut self, out: &mut BytesMut) {
        self.seal_record(&[], out);
    }

    fn seal_record(&mut self, plain: &[u8], out: &mut BytesMut) {
        out.extend_from_slice(&length_of(plain.len()));
        let start = out.len();
        out.extend_from_slice(plain);
        let tag = self.ciphers.outgoing.seal(&mut out[start..]);
        out.extend_from_slice(&tag);
    }

    /// Where in a buffer of [`SEALED`] bytes the stream's bytes must be for [`Self::seal_places`]: one place after the other,
    /// each full but the last.
    pub(crate) fn places(buffer: &mut [u8]) -> [IoSliceMut<'_>; PLACES] {
        let mut places = buffer.chunks_exact_mut(FULL).map(|record| &mut record[LENGTH..LENGTH + LARGEST]);
        [(); PLACES].map(|()| IoSliceMut::new(places.next().unwrap_or_default()))
    }

    /// Seals the first `length` bytes that are in the places of a buffer, in place; returns how many bytes at its beginning
    /// are the records.
    pub(crate) fn seal_places(&mut self, buffer: &mut [u8], length: usize) -> usize {
        let (mut left, mut end) = (length, 0);
        for record in buffer.chunks_exact_mut(FULL) {
            let plain = left.min(LARGEST);
            if plain == 0 {
                break;
            }
            record[..LENGTH].copy_from_slice(&length_of(plain));
            let tag = self.ciphers.outgoing.seal(&mut record[LENGTH..LENGTH + plain]);
            record[LENGTH + plain..LENGTH + plain + TAG].copy_from_slice(&tag);
            left -= plain;
            end += LENGTH + plain + TAG;
        }
        end
    }

    /// Takes the next record from the front of `input`.
    ///
    /// # Errors
    /// [`Tampered`]; then nothing more can be read.
    pub fn open(&mut self, input: &mut BytesMut) -> Result<Opened, Tampered> {
        if self.ended {
            return Ok(Opened::End);
        }
        let Some(length) = input.first_chunk() else { return Ok(Opened::More) };
        let length = usize::from(u16::from_be_bytes(*length));
        if !(TAG..=LARGEST + TAG).contains(&length) {
            return Err(Tampered);
        }
        if input.len() < LENGTH + length {
            return Ok(Opened::More);
        }
        let mut record = input.split_to(LENGTH + length);
        record.advance(LENGTH);
        let plain = self.ciphers.incoming.open(&mut record).ok_or(Tampered)?;
        self.ended = plain == 0;
        match plain {
            0 => Ok(Opened::End),
            // Shorter ones are copied, so that waiting bytes never keep a buffer of more than four times their size alive.
            LARGEST => {
                record.truncate(plain);
                Ok(Opened::Bytes(record.freeze()))
            }
            _ => Ok(Opened::Bytes(Bytes::copy_from_slice(&record[..plain]))),
        }
    }
}

/// The length field of a record of so many bytes of the stream.
fn length_of(plain: usize) -> [u8; LENGTH] {
    // 16 kB and a tag at most.
    ((plain + TAG) as u16).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::cipher::RECORDS_PER_KEY;
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
    fn sealed_in_place_is_as_sealed_elsewhere() {
        for length in [1, 100, LARGEST - 1, LARGEST, LARGEST + 1, 4 * LARGEST] {
            let (mut client, mut server) = pair();
            let text: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut buffer = vec![0xff; SEALED];
            let mut rest = text.as_slice();
            for mut place in Records::places(&mut buffer) {
                let (now, later) = rest.split_at(rest.len().min(place.len()));
                place[..now.len()].copy_from_slice(now);
                rest = later;
            }
            let end = client.seal_places(&mut buffer, length);
            assert_eq!(end, length + length.div_ceil(LARGEST) * 18);
            let (mut input, mut arrived) = (BytesMut::from(&buffer[..end]), Vec::new());
            while let Opened::Bytes(bytes) = read(&mut server, &mut input) {
                arrived.extend_from_slice(&bytes);
            }
            assert!(arrived == text, "{length}");
        }
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
