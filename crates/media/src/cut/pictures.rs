//! Properties of coded pictures: type, and whether others are predicted from them.

use crate::frame::FrameType;
use anabranch_policy::reliability::{DEPENDED_ON, ESSENTIAL, EXPENDABLE};

/// Properties that a picture states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Picture {
    pub frame_type: FrameType,
    /// Whether others are predicted from it.
    pub referenced: bool,
}

impl Picture {
    /// Its class for being abandoned, as in [`crate::frame::Frame::importance`].
    pub const fn importance(self) -> u8 {
        match (self.frame_type, self.referenced) {
            (FrameType::I, _) => ESSENTIAL,
            (_, true) => DEPENDED_ON,
            (_, false) => EXPENDABLE,
        }
    }
}

/// The first index of `00 00 01` in `bytes` from `from` on.
pub fn start_code(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(3).position(|three| three == [0, 0, 1]).map(|at| from + at)
}

/// Reads Exp-Golomb codes (ISO 14496-10, 9.1) from the first bytes of a slice. Emulation prevention bytes do not matter
/// there: the two numbers are in the first few bytes, of which three are never 0, 0, 3.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> Option<u32> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(u32::from(bit))
    }

    fn exp_golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.bit()? == 0 {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        let mut value = 1_u64;
        for _ in 0..zeros {
            value = value << 1 | u64::from(self.bit()?);
        }
        u32::try_from(value - 1).ok()
    }
}

/// A slice of H.264 (ISO 14496-10, 7.3.3), from the byte after its start code on: whether it is its picture's first,
/// and the picture's properties. `None` for other units.
pub fn h264_slice(unit: &[u8]) -> Option<(bool, Picture)> {
    let head = *unit.first()?;
    let (kind, idc) = (head & 0x1f, head >> 5 & 3);
    if !matches!(kind, 1 | 2 | 5) {
        return None;
    }
    let mut bits = Bits { bytes: unit.get(1..)?, at: 0 };
    let first_macroblock = bits.exp_golomb()?;
    let frame_type = match bits.exp_golomb()? % 5 {
        0 | 3 => FrameType::P,
        1 => FrameType::B,
        _ => FrameType::I,
    };
    Some((first_macroblock == 0, Picture { frame_type, referenced: idc != 0 }))
}

/// A video object plane (ISO 14496-2, 6.2.5), from the byte after its start code on: `vop_coding_type` is the first two
/// bits. Sprites (S) are predicted like P.
pub fn mpeg4_plane(after_code: &[u8]) -> Option<Picture> {
    let frame_type = match after_code.first()? >> 6 {
        0 => FrameType::I,
        2 => FrameType::B,
        _ => FrameType::P,
    };
    Some(Picture { frame_type, referenced: frame_type != FrameType::B })
}

/// A picture of MPEG-1 or MPEG-2 video (ISO 13818-2, 6.2.3), from the byte after its start code on: ten bits of
/// temporal reference, three of the type.
pub fn mpeg2_picture(after_code: &[u8]) -> Option<Picture> {
    let frame_type = match after_code.get(1)? >> 3 & 7 {
        1 => FrameType::I,
        2 => FrameType::P,
        3 => FrameType::B,
        _ => return None,
    };
    Some(Picture { frame_type, referenced: frame_type != FrameType::B })
}

/// A unit of H.265 (ISO 23008-2, 7.3.1.2 and table 7-1): random access pictures, reference pictures of their layer, and
/// those of even types below 16, to which none refers.
pub fn h265_unit(unit: &[u8]) -> Option<Picture> {
    let kind = unit.first()? >> 1 & 0x3f;
    match kind {
        16..=21 => Some(Picture { frame_type: FrameType::I, referenced: true }),
        0..=15 if kind % 2 == 1 => Some(Picture { frame_type: FrameType::P, referenced: true }),
        0..=15 => Some(Picture { frame_type: FrameType::B, referenced: false }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_says_its_type_and_whether_it_is_the_first_of_its_picture() {
        // first_mb_in_slice 0 is `1`; slice types 7 (I), 5 (P) and 6 (B) are `0001000`, `00110` and `00111`.
        let slice = |head: u8, bits: u8| h264_slice(&[head, bits, 0]);
        let picture = |frame_type, referenced| Picture { frame_type, referenced };
        assert_eq!(slice(0x65, 0b1000_1000), Some((true, picture(FrameType::I, true))));
        assert_eq!(slice(0x41, 0b1001_1000), Some((true, picture(FrameType::P, true))));
        assert_eq!(slice(0x01, 0b1001_1100), Some((true, picture(FrameType::B, false))));
        // first_mb_in_slice 1 is `010`.
        assert_eq!(slice(0x41, 0b0100_0110).map(|(first, _)| first), Some(false));
        assert_eq!(slice(0x67, 0xff), None);
        assert_eq!(h264_slice(&[0x65, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn planes_and_pictures_say_their_type_in_their_first_bits() {
        let letters = |of: fn(&[u8]) -> Option<Picture>, bytes: &[[u8; 2]]| -> Vec<Option<FrameType>> {
            bytes.iter().map(|bytes| of(bytes).map(|picture| picture.frame_type)).collect()
        };
        let [i, p, b] = FrameType::ALL.map(Some);
        assert_eq!(letters(mpeg4_plane, &[[0, 0], [0x40, 0], [0x80, 0], [0xc0, 0]]), [i, p, b, p]);
        assert_eq!(letters(mpeg2_picture, &[[0, 0x08], [0, 0x10], [0, 0x18], [0, 0]]), [i, p, b, None]);
        // IDR_W_RADL, TRAIL_R, TRAIL_N, VPS.
        assert_eq!(letters(h265_unit, &[[19 << 1, 1], [1 << 1, 1], [0, 1], [32 << 1, 1]]), [i, p, b, None]);
    }
}
