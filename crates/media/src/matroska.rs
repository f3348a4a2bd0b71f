//! Extracts pictures and their times from an incoming Matroska stream: the output format of ffmpeg with the least code
//! that shows which pictures a decoder returned and which it did not.
//!
//! RFC 8794 (EBML) and RFC 9559 (Matroska). Only what ffmpeg writes for raw pictures is read: one track, no lacing.

/// Elements that are entered instead of skipped.
const INSIDE: [u32; 3] = [SEGMENT, CLUSTER, BLOCK_GROUP];
const SEGMENT: u32 = 0x1853_8067;
const CLUSTER: u32 = 0x1f43_b675;
const BLOCK_GROUP: u32 = 0xa0;
const TIMESTAMP: u32 = 0xe7;
const BLOCKS: [u32; 2] = [0xa3, 0xa1];

/// Processed bytes are dropped in chunks of this size.
const DROPPED: usize = 1 << 20;

/// An incremental reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matroska {
    bytes: Vec<u8>,
    read: usize,
    /// Time of the cluster.
    cluster: u64,
}

impl Matroska {
    /// Takes a chunk and shows the pictures that are complete, each with its time in ms.
    pub fn feed(&mut self, piece: &[u8], show: &mut dyn FnMut(u64, &[u8])) {
        self.bytes.extend_from_slice(piece);
        while let Some(length) = self.element(show) {
            self.read += length;
        }
        if self.read > DROPPED {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
    }

    /// Reads one element, or the header of one that is entered; returns its length, `None` if it is incomplete.
    fn element(&mut self, show: &mut dyn FnMut(u64, &[u8])) -> Option<usize> {
        let here = self.bytes.get(self.read..)?;
        let (identity, first) = number(here, true)?;
        let (size, second) = number(here.get(first..)?, false)?;
        let head = first + second;
        if INSIDE.iter().any(|inside| u64::from(*inside) == identity) {
            return Some(head);
        }
        let size = usize::try_from(size).ok()?;
        let content = here.get(head..)?.get(..size)?;
        if identity == u64::from(TIMESTAMP) {
            self.cluster = content.iter().fold(0, |time, byte| time << 8 | u64::from(*byte));
        } else if BLOCKS.iter().any(|block| u64::from(*block) == identity) {
            // The track, the time relative to the cluster's, flags.
            let (_, track) = number(content, false)?;
            if let Some(([high, low, _], picture)) = content.get(track..).and_then(<[u8]>::split_first_chunk) {
                let since = i64::from(i16::from_be_bytes([*high, *low]));
                show(self.cluster.saturating_add_signed(since), picture);
            }
        }
        Some(head + size)
    }
}

/// A number of variable length (RFC 8794, section 4) and its bytes; with its marker if it is an element's ID.
fn number(bytes: &[u8], marker: bool) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = first.leading_zeros() as usize + 1;
    let value = bytes.get(..length)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    // Nine bytes are invalid: a zero as the first byte means that the stream is not Matroska, and reading stops.
    let mask = if marker { u64::MAX } else { (1_u64 << (7 * length.min(8))) - 1 };
    (length <= 8).then_some((value & mask, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header, a segment of unknown length with an unknown element, two clusters.
    fn stream() -> Vec<u8> {
        let mut bytes = vec![0x1a, 0x45, 0xdf, 0xa3, 0x82, 7, 7];
        bytes.extend([0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        bytes.extend([0xec, 0x40, 0x02, 0, 0]);
        bytes.extend([0x1f, 0x43, 0xb6, 0x75, 0x91, 0xe7, 0x82, 0x01, 0x00]);
        bytes.extend([0xa3, 0x85, 0x81, 0x00, 0x02, 0x80, 11]);
        bytes.extend([0xa0, 0x88, 0xa1, 0x86, 0x81, 0xff, 0xff, 0x00, 12, 13]);
        bytes.extend([0x1f, 0x43, 0xb6, 0x75, 0xff, 0xe7, 0x81, 0x09, 0xa3, 0x85, 0x81, 0x00, 0x00, 0x80, 14]);
        bytes
    }

    #[test]
    fn pictures_come_with_their_times_however_the_stream_is_cut() {
        let expected = [(258, vec![11]), (255, vec![12, 13]), (9, vec![14])];
        for cut in 1..stream().len() {
            let (mut reader, mut shown) = (Matroska::default(), Vec::new());
            for piece in stream().chunks(cut) {
                reader.feed(piece, &mut |time, picture| shown.push((time, picture.to_vec())));
            }
            assert_eq!(shown, expected, "in pieces of {cut}");
        }
    }

    #[test]
    fn what_is_no_matroska_shows_nothing() {
        let mut reader = Matroska::default();
        reader.feed(&[0; 64], &mut |_, _| panic!("there is nothing"));
        reader.feed(b"no video", &mut |_, _| panic!("there is nothing"));
    }
}
