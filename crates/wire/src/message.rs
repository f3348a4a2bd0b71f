//! Messages in a stream of bytes: the header before each, and the search for the next one after a gap.
//!
//! The headers are part of the stream, so that any program can write them to any socket; a receiver needs only the
//! stream to know the boundaries, the importance and the play-out time of messages.
//!
//! ```text
//!     0..1: magic, 0xab 0x4d
//!        2: version 1 in the upper four bits; the lower four are 0
//!        3: importance, 0 (never to be abandoned) to 255 (first)
//!     4..7: bytes of payload
//!    8..11: message number: the sender counts from 0, and wraps
//!   12..19: when it is to be played, microseconds since the stream's beginning, less than 2^48
//!   20..23: CRC-32 (ISO 3309) of bytes 0 to 19
//!      24..: the payload
//! ```
//!
//! Numbers are in network byte order. After a gap [`find`] searches for the next header: 56 of its bits are determined
//! by the others or by the format, and 16 of the play-out time are 0. It also finds headers inside of payload, so a
//! reader that knows where a message ends does not need it.

use crate::error::{EmitError, ParseError};
use crate::reader::Reader;

/// Bytes before the payload.
pub const HEADER: usize = 24;

/// Limit of play-out times in microseconds: almost nine years.
pub(crate) const PLAY_OUT_LIMIT: u64 = 1 << 48;

const MAGIC: [u8; 2] = [0xab, 0x4d];
/// Version 1, no flags.
const VERSION: u8 = 0x10;
/// Bytes covered by the check.
const CHECKED: usize = HEADER - 4;

/// The header of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MessageHeader {
    /// Messages of a sender count from 0 and wrap. A missing number was never sent, or withdrawn.
    pub number: u32,
    /// 0: never withdrawn for lack of room; greater values are withdrawn sooner.
    pub importance: u8,
    /// Bytes of payload.
    pub length: u32,
    /// Play-out time in microseconds since the start of the stream; less than 2^48.
    pub play_out: u64,
}

impl MessageHeader {
    /// The header as bytes.
    ///
    /// # Errors
    /// [`EmitError::BadValue`] if the play-out time does not fit.
    pub fn encode(&self) -> Result<[u8; HEADER], EmitError> {
        if self.play_out >= PLAY_OUT_LIMIT {
            return Err(EmitError::BadValue);
        }
        let [a, b] = MAGIC;
        let [l0, l1, l2, l3] = self.length.to_be_bytes();
        let [n0, n1, n2, n3] = self.number.to_be_bytes();
        let [p0, p1, p2, p3, p4, p5, p6, p7] = self.play_out.to_be_bytes();
        let checked: [u8; CHECKED] =
            [a, b, VERSION, self.importance, l0, l1, l2, l3, n0, n1, n2, n3, p0, p1, p2, p3, p4, p5, p6, p7];
        let mut header = [0; HEADER];
        let check = crc32(&checked).to_be_bytes();
        header.iter_mut().zip(checked.into_iter().chain(check)).for_each(|(place, byte)| *place = byte);
        Ok(header)
    }

    /// The header at the start of `bytes`; bytes after it are ignored.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] with fewer than [`HEADER`] bytes; [`ParseError::BadValue`] without the magic or with a
    /// play-out time that does not fit; [`ParseError::Unsupported`] (another version) and [`ParseError::BadChecksum`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader(bytes);
        let Some(checked) = Reader(bytes).bytes(CHECKED).filter(|_| bytes.len() >= HEADER) else {
            return Err(ParseError::Truncated);
        };
        let header = (reader.array::<2>(), reader.u8(), reader.u8(), reader.u32(), reader.u32(), reader.u64());
        let (Some(magic), Some(version), Some(importance), Some(length), Some(number), Some(play_out)) = header else {
            return Err(ParseError::Truncated);
        };
        if magic != MAGIC {
            return Err(ParseError::BadValue);
        }
        if version != VERSION {
            return Err(ParseError::Unsupported);
        }
        if reader.u32() != Some(crc32(checked)) {
            return Err(ParseError::BadChecksum);
        }
        if play_out >= PLAY_OUT_LIMIT {
            return Err(ParseError::BadValue);
        }
        Ok(Self { number, importance, length, play_out })
    }
}

/// Offset and contents of the first complete header in `bytes`.
///
/// If more bytes follow, a header may begin in the last [`HEADER`] - 1 of these.
pub fn find(bytes: &[u8]) -> Option<(usize, MessageHeader)> {
    let mut from = 0;
    loop {
        let rest = bytes.get(from..).filter(|rest| rest.len() >= HEADER)?;
        let at = from + rest.windows(2).position(|pair| pair == MAGIC)?;
        if let Ok(header) = MessageHeader::decode(bytes.get(at..)?) {
            return Some((at, header));
        }
        from = at + 1;
    }
}

/// CRC-32 as in Ethernet and gzip (ISO 3309): polynomial 0x04c11db7 with reversed bits.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        let entry = TABLE.get(usize::from(crc as u8 ^ byte)).copied().unwrap_or_default();
        crc >> 8 ^ entry
    };
    !bytes.iter().fold(!0, step)
}

static TABLE: [u32; 256] = table();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, which would refuse it")]
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> MessageHeader {
        MessageHeader { number: 7, importance: 64, length: 1_012, play_out: 33_333 }
    }

    #[test]
    fn the_check_is_that_of_iso_3309() {
        // The check value of CRC-32 in catalogues of CRCs.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_header_lies_on_the_wire_as_its_picture_says() {
        let bytes = header().encode().unwrap();
        assert_eq!(bytes[..12], [0xab, 0x4d, 0x10, 64, 0, 0, 0x03, 0xf4, 0, 0, 0, 7]);
        // 33,333 = 0x8235.
        assert_eq!(bytes[12..20], [0, 0, 0, 0, 0, 0, 0x82, 0x35]);
        assert_eq!(bytes[20..], crc32(&bytes[..20]).to_be_bytes());
    }

    #[test]
    fn what_is_no_header_is_refused_for_its_reason() {
        let good = header().encode().unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] = byte;
            MessageHeader::decode(&bytes)
        };
        assert_eq!(MessageHeader::decode(&good[..23]), Err(ParseError::Truncated));
        assert_eq!(with(0, 0), Err(ParseError::BadValue));
        assert_eq!(with(2, 0x20), Err(ParseError::Unsupported));
        assert_eq!(with(3, 65), Err(ParseError::BadChecksum));
        let late = MessageHeader { play_out: PLAY_OUT_LIMIT, ..header() };
        assert_eq!(late.encode(), Err(EmitError::BadValue));
    }

    #[test]
    fn the_next_header_is_found_behind_the_rest_of_a_torn_message() {
        let mut bytes = vec![0xab, 0x4d, 0x10, 0xab];
        bytes.extend(header().encode().unwrap());
        assert_eq!(find(&bytes), Some((4, header())));
        // Not before its last byte has arrived.
        assert_eq!(find(&bytes[..27]), None);
        assert_eq!(find(&[]), None);
    }

    proptest! {
        #[test]
        fn a_header_comes_back_as_it_went(
            number: u32, importance: u8, length: u32, play_out in 0..PLAY_OUT_LIMIT, before in 0_usize..40,
        ) {
            let header = MessageHeader { number, importance, length, play_out };
            let mut bytes = vec![0xab; before];
            bytes.extend(header.encode().unwrap());
            prop_assert_eq!(MessageHeader::decode(&bytes[before..]), Ok(header));
            prop_assert_eq!(find(&bytes), Some((before, header)));
        }

        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some((at, header)) = find(&bytes) {
                prop_assert_eq!(&header.encode().unwrap()[..], &bytes[at..at + HEADER]);
            }
        }

        #[test]
        fn a_flipped_bit_is_noticed(bit in 0_usize..HEADER * 8) {
            let mut bytes = header().encode().unwrap();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(MessageHeader::decode(&bytes).is_err());
        }
    }
}
