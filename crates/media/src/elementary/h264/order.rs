//! Slice headers of H.264 up to the order of their picture, and the order they define (7.3.3, 8.2.1).

use super::parameters::{OrderType, PictureParameters, SequenceParameters};
use super::unit_type;
use crate::elementary::bits::Bits;
use crate::frame::FrameType;

/// The fields of a slice header about its picture.
#[derive(Debug)]
pub(super) struct Slice {
    parameters: u32,
    frame_number: u32,
    /// Whether it is the bottom field; `None` for a frame.
    pub(super) field: Option<bool>,
    /// idr_pic_id of an IDR picture.
    idr: Option<u32>,
    pub(super) reference_idc: u8,
    low_bits: u32,
    /// Of the bottom field relative to the top (type 0), or relative to the expected value (type 1).
    deltas: [i64; 2],
}

/// Type and picture parameter set of a slice.
pub(super) fn slice_start(payload: &[u8]) -> Option<(FrameType, u32)> {
    let mut bits = Bits::new(payload);
    bits.unsigned()?;
    let frame_type = match bits.unsigned()? {
        0 | 3 | 5 | 8 => FrameType::P,
        1 | 6 => FrameType::B,
        2 | 4 | 7 | 9 => FrameType::I,
        _ => return None,
    };
    Some((frame_type, bits.unsigned()?))
}

impl Slice {
    /// Reads the header; `first` is the byte after the start code.
    pub(super) fn read(
        first: u8,
        payload: &[u8],
        picture: &PictureParameters,
        sequence: &SequenceParameters,
    ) -> Option<Self> {
        let mut bits = Bits::new(payload);
        // First macroblock, type.
        bits.unsigned()?;
        bits.unsigned()?;
        let parameters = bits.unsigned()?;
        if sequence.separate_planes {
            bits.skip(2);
        }
        let frame_number = bits.read(sequence.frame_number_bits)?;
        let field = if !sequence.frames_only && bits.flag()? { Some(bits.flag()?) } else { None };
        let idr = if first & 0x1F == unit_type::IDR { Some(bits.unsigned()?) } else { None };
        let both = picture.bottom_order && field.is_none();
        let (low_bits, deltas) = order_of(&mut bits, &sequence.order, both)?;
        let reference_idc = first >> 5 & 3;
        Some(Self { parameters, frame_number, field, idr, reference_idc, low_bits, deltas })
    }

    /// Whether both slices belong to one picture (7.4.1.2.4).
    pub(super) fn same_picture(&self, other: &Self) -> bool {
        self.parameters == other.parameters
            && self.frame_number == other.frame_number
            && self.field == other.field
            && self.idr == other.idr
            && (self.reference_idc == 0) == (other.reference_idc == 0)
            && self.low_bits == other.low_bits
            && self.deltas == other.deltas
    }

    /// Whether `other` belongs to the second field of this one's frame (7.4.1.2.4, 3.30).
    pub(super) fn second_field(&self, other: &Self) -> bool {
        let opposite = self.field.zip(other.field).is_some_and(|(first, second)| first != second);
        opposite && self.frame_number == other.frame_number && other.idr.is_none()
    }
}

/// The low bits and differences of the order count, by its type; `both` if the bottom field has its own difference.
fn order_of(bits: &mut Bits<'_>, order: &OrderType, both: bool) -> Option<(u32, [i64; 2])> {
    let bottom = |bits: &mut Bits<'_>| if both { bits.signed() } else { Some(0) };
    match order {
        OrderType::LowBits(count) => {
            let low_bits = bits.read(*count)?;
            Some((low_bits, [0, bottom(bits)?]))
        }
        OrderType::Steps { always_zero: false, .. } => {
            let top = bits.signed()?;
            Some((0, [top, bottom(bits)?]))
        }
        OrderType::Steps { .. } | OrderType::AsCoded => Some((0, [0, 0])),
    }
}

/// Orders pictures for display.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Number of IDR pictures so far.
    sequence: u32,
    /// High and low bits of the last referenced picture (type 0).
    high: i64,
    low: i64,
    /// Frame number and the offset from its wrapping (types 1 and 2).
    frame_number: u32,
    offset: i64,
}

impl Order {
    /// The number of IDR pictures so far, and the order count since the last of them (8.2.1).
    pub(super) fn of(&mut self, slice: &Slice, parameters: &SequenceParameters) -> (u32, i64) {
        if slice.idr.is_some() {
            *self = Self { sequence: self.sequence.saturating_add(1), ..Self::default() };
        }
        if slice.frame_number < self.frame_number {
            self.offset = self.offset.saturating_add(1 << parameters.frame_number_bits);
        }
        self.frame_number = slice.frame_number;
        let count = match &parameters.order {
            OrderType::LowBits(bits) => self.by_low_bits(slice, *bits),
            OrderType::Steps { for_others, to_bottom, steps, .. } => {
                let expected = self.expected(slice, steps, *for_others);
                by_steps(slice, expected, *to_bottom)
            }
            // 8.2.1.3.
            OrderType::AsCoded => {
                let double = 2 * self.offset.saturating_add(i64::from(slice.frame_number)).min(i64::MAX / 4);
                double - i64::from(slice.reference_idc == 0)
            }
        };
        (self.sequence, count)
    }

    /// 8.2.1.1.
    fn by_low_bits(&mut self, slice: &Slice, bits: u32) -> i64 {
        let range = 1_i64 << bits;
        let low = i64::from(slice.low_bits);
        let high = if low < self.low && self.low - low >= range / 2 {
            self.high.saturating_add(range)
        } else if low > self.low && low - self.low > range / 2 {
            self.high.saturating_sub(range)
        } else {
            self.high
        };
        if slice.reference_idc > 0 {
            (self.high, self.low) = (high, low);
        }
        let count = high.saturating_add(low);
        count.min(count.saturating_add(slice.deltas[1]))
    }

    /// 8.2.1.2: the expected value of the picture, without its own differences.
    fn expected(&self, slice: &Slice, steps: &[i64], for_others: i64) -> i64 {
        let mut number = if steps.is_empty() { 0 } else { self.offset.saturating_add(i64::from(slice.frame_number)) };
        if slice.reference_idc == 0 && number > 0 {
            number -= 1;
        }
        let mut expected = 0_i64;
        if let (Some(before), length @ 1..) = (number.checked_sub(1).filter(|&before| before >= 0), steps.len()) {
            let (rounds, part) = (before / length as i64, (before % length as i64) as usize);
            let whole = steps.iter().fold(0_i64, |sum, step| sum.saturating_add(*step));
            expected = rounds.saturating_mul(whole);
            expected = steps.iter().take(part + 1).fold(expected, |sum, step| sum.saturating_add(*step));
        }
        if slice.reference_idc == 0 { expected.saturating_add(for_others) } else { expected }
    }
}

fn by_steps(slice: &Slice, expected: i64, to_bottom: i64) -> i64 {
    let top = expected.saturating_add(slice.deltas[0]);
    match slice.field {
        None => top.min(top.saturating_add(to_bottom).saturating_add(slice.deltas[1])),
        Some(false) => top,
        Some(true) => top.saturating_add(to_bottom),
    }
}
