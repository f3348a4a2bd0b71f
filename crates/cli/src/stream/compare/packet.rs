//! A part of a frame as a datagram, numbered so that the receiver detects complete frames.

/// Maximum bytes of a datagram: the payload of one packet of SRT and of RIST.
pub const LARGEST: usize = 1316;
/// Bytes before the payload.
pub const HEADER: usize = 12;
/// First bytes of a datagram.
const MARK: [u8; 4] = *b"ANBF";

/// Identifies a part of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Index of the frame.
    pub frame: u32,
    /// Index of the part, from 0.
    pub part: u16,
    /// Number of parts.
    pub parts: u16,
}

impl Part {
    /// Parses the header of a datagram.
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let rest = datagram.strip_prefix(&MARK)?;
        let (frame, rest) = rest.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_first_chunk::<2>()?;
        let (parts, _) = rest.split_first_chunk::<2>()?;
        let [part, parts] = [part, parts].map(|bytes| u16::from_be_bytes(*bytes));
        (part < parts).then_some(Self { frame: u32::from_be_bytes(*frame), part, parts })
    }

    fn head(self) -> impl Iterator<Item = u8> {
        let [part, parts] = [self.part, self.parts].map(u16::to_be_bytes);
        MARK.into_iter().chain(self.frame.to_be_bytes()).chain(part).chain(parts)
    }
}

/// The datagrams of a frame of `length` bytes.
pub fn datagrams(frame: u32, length: u32) -> Vec<Vec<u8>> {
    let parts = length.div_ceil(LARGEST as u32).max(1);
    (0..parts)
        .map(|part| {
            // Parts of nearly equal length.
            let bytes = length / parts + u32::from(part < length % parts);
            let head = Part { frame, part: part as u16, parts: parts as u16 };
            let mut datagram: Vec<u8> = head.head().collect();
            datagram.resize((bytes as usize).max(HEADER), 0x5a);
            datagram
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_cut_into_parts_that_are_read_again_and_lose_no_byte() {
        let datagrams = datagrams(7, 3_000);
        let parts: Vec<Part> = datagrams.iter().filter_map(|datagram| Part::read(datagram)).collect();
        assert_eq!(parts, [0, 1, 2].map(|part| Part { frame: 7, part, parts: 3 }));
        assert_eq!(datagrams.iter().map(Vec::len).sum::<usize>(), 3_000);
    }

    #[test]
    fn what_is_not_ours_is_no_part() {
        for other in [&b""[..], b"ANBF", b"ANBF\0\0\0\x01\0\x02\0\x02", b"GET / HTTP/1.1\r\n"] {
            assert_eq!(Part::read(other), None, "{other:?}");
        }
    }
}
