//! The parameter sets of H.264 for sequences and pictures (7.3.2.1, 7.3.2.2, E.1.1).

use crate::elementary::bits::Bits;
use crate::elementary::{Codec, Format, StreamError};
use crate::trace::FrameRate;

/// How pictures are ordered (8.2.1).
#[derive(Debug)]
pub(super) enum OrderType {
    /// Type 0: the slice has the low bits.
    LowBits(u32),
    /// Type 1: an expected step, and differences in the slice unless that is always zero.
    Steps { always_zero: bool, for_others: i64, to_bottom: i64, steps: Vec<i64> },
    /// Type 2: in coding order.
    AsCoded,
}

/// A sequence parameter set.
#[derive(Debug)]
pub(super) struct SequenceParameters {
    pub(super) separate_planes: bool,
    pub(super) frame_number_bits: u32,
    pub(super) order: OrderType,
    pub(super) frames_only: bool,
    width: u32,
    height: u32,
    rate: Option<FrameRate>,
}

/// A picture parameter set.
#[derive(Debug)]
pub(super) struct PictureParameters {
    pub(super) sequence: u32,
    /// bottom_field_pic_order_in_frame_present_flag.
    pub(super) bottom_order: bool,
}

/// Profiles with the longer form (7.3.2.1.1).
const HIGH: [u8; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// Whether a number is a profile of H.264 (annexes A, F, G).
pub(in crate::elementary) fn is_profile(number: u8) -> bool {
    [66, 77, 88].contains(&number) || HIGH.contains(&number)
}

impl PictureParameters {
    /// Identifier and contents; `None` if cut off or out of range.
    pub(super) fn read(payload: &[u8]) -> Option<(u32, Self)> {
        let mut bits = Bits::new(payload);
        let id = bits.unsigned().filter(|&id| id < 256)?;
        let sequence = bits.unsigned().filter(|&id| id < 32)?;
        bits.skip(1);
        Some((id, Self { sequence, bottom_order: bits.flag()? }))
    }
}

impl SequenceParameters {
    /// Identifier and contents.
    pub(super) fn read(payload: &[u8]) -> Result<(u32, Self), StreamError> {
        let mut bits = Bits::new(payload);
        let profile = bits.read(8).ok_or(StreamError::Header("sequence parameter set"))?;
        if !is_profile(profile as u8) {
            return Err(StreamError::NotSupported("H.264 of an unknown profile"));
        }
        Self::behind_profile(profile as u8, &mut bits).ok_or(StreamError::Header("sequence parameter set"))
    }

    fn behind_profile(profile: u8, bits: &mut Bits<'_>) -> Option<(u32, Self)> {
        bits.skip(16);
        let id = bits.unsigned().filter(|&id| id < 32)?;
        let chroma = if HIGH.contains(&profile) { Chroma::read(bits)? } else { Chroma::default() };
        let frame_number_bits = bits.unsigned().filter(|&bits| bits <= 12)? + 4;
        let order = order_type(bits)?;
        // Reference frames, gaps in frame numbers.
        bits.unsigned()?;
        bits.flag()?;
        let Size { frames_only, width, height } = Size::read(bits, &chroma)?;
        let rate = if bits.flag()? { usability(bits)? } else { None };
        let separate_planes = chroma.separate_planes;
        Some((id, Self { separate_planes, frame_number_bits, order, frames_only, width, height, rate }))
    }

    pub(super) const fn format(&self) -> Format {
        Format { codec: Codec::H264, width: self.width, height: self.height, rate: self.rate, header: Vec::new() }
    }
}

/// How colours are coded.
struct Chroma {
    /// chroma_format_idc.
    format: u32,
    separate_planes: bool,
}

impl Default for Chroma {
    /// That of profiles that do not say.
    fn default() -> Self {
        Self { format: 1, separate_planes: false }
    }
}

impl Chroma {
    /// Reads the fields that only the longer form of the set has.
    fn read(bits: &mut Bits<'_>) -> Option<Self> {
        let format = bits.unsigned().filter(|&format| format <= 3)?;
        let separate_planes = format == 3 && bits.flag()?;
        // Depths of luma and chroma, bypass of the transform.
        bits.unsigned()?;
        bits.unsigned()?;
        bits.flag()?;
        if bits.flag()? {
            scaling_lists(bits, if format == 3 { 12 } else { 8 })?;
        }
        Some(Self { format, separate_planes })
    }

    /// Table 6-1: luma samples per chroma sample, across and down; one without chroma or with separate colour planes.
    fn subsampling(&self) -> (u32, u32) {
        match self.format {
            1 => (2, 2),
            2 => (2, 1),
            _ => (1, 1),
        }
    }
}

/// The size of a frame without cropped parts, in luma samples.
struct Size {
    frames_only: bool,
    width: u32,
    height: u32,
}

impl Size {
    fn read(bits: &mut Bits<'_>, chroma: &Chroma) -> Option<Self> {
        let across = bits.unsigned().filter(|&blocks| blocks < 1 << 12)? + 1;
        let down = bits.unsigned().filter(|&blocks| blocks < 1 << 12)? + 1;
        let frames_only = bits.flag()?;
        if !frames_only {
            bits.skip(1);
        }
        bits.skip(1);
        let fields = if frames_only { 1 } else { 2 };
        let cropping = if bits.flag()? {
            [bits.unsigned()?, bits.unsigned()?, bits.unsigned()?, bits.unsigned()?]
        } else {
            [0; 4]
        };
        let (unit_across, unit_down) = chroma.subsampling();
        let width = cropped(across * 16, unit_across, cropping[0], cropping[1])?;
        let height = cropped(down * 16 * fields, unit_down * fields, cropping[2], cropping[3])?;
        Some(Self { frames_only, width, height })
    }
}

/// The rest of `full` samples without the cropped units at both ends; `None` if nothing is left.
fn cropped(full: u32, unit: u32, from: u32, to: u32) -> Option<u32> {
    let cut = unit.checked_mul(from.checked_add(to)?)?;
    full.checked_sub(cut).filter(|&left| left > 0)
}

/// Skips scaling lists (7.3.2.1.1.1): six of 16, the others of 64.
fn scaling_lists(bits: &mut Bits<'_>, count: usize) -> Option<()> {
    for list in 0..count {
        if !bits.flag()? {
            continue;
        }
        let (mut last, mut next) = (8_i64, 8_i64);
        for _ in 0..if list < 6 { 16 } else { 64 } {
            if next != 0 {
                next = (last + bits.signed()? + 256).rem_euclid(256);
            }
            if next != 0 {
                last = next;
            }
        }
    }
    Some(())
}

fn order_type(bits: &mut Bits<'_>) -> Option<OrderType> {
    match bits.unsigned()? {
        0 => Some(OrderType::LowBits(bits.unsigned().filter(|&bits| bits <= 12)? + 4)),
        1 => {
            let always_zero = bits.flag()?;
            let (for_others, to_bottom) = (bits.signed()?, bits.signed()?);
            let count = bits.unsigned().filter(|&count| count < 256)?;
            let steps = (0..count).map(|_| bits.signed()).collect::<Option<_>>()?;
            Some(OrderType::Steps { always_zero, for_others, to_bottom, steps })
        }
        2 => Some(OrderType::AsCoded),
        _ => None,
    }
}

/// Frames per second from the usability information (E.1.1), where a tick is a field.
fn usability(bits: &mut Bits<'_>) -> Option<Option<FrameRate>> {
    const EXTENDED_ASPECT: u32 = 255;
    if bits.flag()? && bits.read(8)? == EXTENDED_ASPECT {
        bits.skip(32);
    }
    if bits.flag()? {
        bits.skip(1);
    }
    if bits.flag()? {
        bits.skip(4);
        if bits.flag()? {
            bits.skip(24);
        }
    }
    if bits.flag()? {
        bits.unsigned()?;
        bits.unsigned()?;
    }
    if !bits.flag()? {
        return Some(None);
    }
    let (ticks, scale) = (bits.read(32)?, bits.read(32)?);
    Some(ticks.checked_mul(2).and_then(|ticks| FrameRate::new(scale, ticks)))
}
