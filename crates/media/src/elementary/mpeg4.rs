//! MPEG-4 part 2 (ISO/IEC 14496-2): the header up to the video object layer (VOL, 6.2.3), groups (6.2.4) and the types and
//! times of pictures (VOP, 6.2.5).

use super::bits::Bits;
use super::{Codec, Format, Picture, StreamError};
use crate::frame::FrameType;
use crate::trace::FrameRate;
use anabranch_policy::Duration;

/// The byte after the start code (table 6-3).
mod code {
    pub(super) const SEQUENCE: u8 = 0xB0;
    pub(super) const USER_DATA: u8 = 0xB2;
    pub(super) const GROUP: u8 = 0xB3;
    pub(super) const OBJECT: u8 = 0xB5;
    pub(super) const PICTURE: u8 = 0xB6;
    pub(super) const FIRST_LAYER: u8 = 0x20;
    pub(super) const LAST_LAYER: u8 = 0x2F;
}

/// The fields of the video object layer that pictures need.
#[derive(Debug)]
struct Layer {
    /// Ticks per second.
    resolution: u32,
    format: Format,
}

/// Assembles units into pictures.
#[derive(Debug, Default)]
pub(super) struct Mpeg4 {
    layer: Option<Layer>,
    /// The present header, until another unit follows it.
    header: Vec<u8>,
    /// Units between the header and the picture: a group's header.
    before: Vec<u8>,
    /// Base of the time increments of the last two I or P pictures, in seconds.
    base: u64,
    base_before: u64,
    count: u64,
    dropped: u64,
}

impl Mpeg4 {
    pub(super) fn format(&self) -> Option<&Format> {
        self.layer.as_ref().map(|layer| &layer.format)
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes one unit from start code to start code. Returns it if it is a picture.
    pub(super) fn handle_unit(&mut self, unit: Vec<u8>) -> Result<Option<Picture>, StreamError> {
        let Some(&kind) = unit.get(3) else { return Ok(None) };
        match kind {
            code::PICTURE => return self.picture(&unit),
            code::GROUP => {
                if let Some(seconds) = group_time(&unit) {
                    self.base = seconds;
                }
                self.before.extend_from_slice(&unit);
            }
            code::SEQUENCE | code::OBJECT | 0..=code::LAST_LAYER | code::USER_DATA if self.before.is_empty() => {
                self.header.extend_from_slice(&unit);
                if (code::FIRST_LAYER..=code::LAST_LAYER).contains(&kind) && self.layer.is_none() {
                    self.layer = Some(layer(&unit)?);
                }
            }
            _ => self.before.extend_from_slice(&unit),
        }
        if self.header.len() + self.before.len() > super::LONGEST_PICTURE {
            return Err(StreamError::TooLong);
        }
        Ok(None)
    }

    /// Nothing is pending: a picture ends with its unit.
    pub(super) fn finish(&mut self) -> Result<Option<Picture>, StreamError> {
        if self.layer.is_none() {
            return Err(StreamError::Header("header of the stream (VOL)"));
        }
        Ok(None)
    }

    fn picture(&mut self, unit: &[u8]) -> Result<Option<Picture>, StreamError> {
        let (header, before) = (core::mem::take(&mut self.header), core::mem::take(&mut self.before));
        let Some(layer) = &mut self.layer else {
            self.dropped += 1;
            return Ok(None);
        };
        if layer.format.header.is_empty() {
            layer.format.header.clone_from(&header);
        }
        let Heading { frame_type, seconds, increment, coded } =
            picture_header(unit, layer.resolution).ok_or(StreamError::Picture(self.count))?;
        // 6.3.5: an I or P picture's seconds count from the one before it, a B picture's from the one before that.
        let base = if frame_type == FrameType::B {
            self.base_before.saturating_add(seconds)
        } else {
            self.base_before = self.base;
            self.base = self.base.saturating_add(seconds);
            self.base
        };
        if !coded {
            // A repetition of the picture before it, no picture of its own. Its bytes go with the next one.
            (self.header, self.before) = (header, before);
            self.before.extend_from_slice(unit);
            return Ok(None);
        }
        let part = u64::from(increment) * 1_000_000_000 / u64::from(layer.resolution);
        let repeated = if header == layer.format.header { header.len() } else { 0 };
        self.count += 1;
        Ok(Some(Picture {
            data: [header.as_slice(), &before, unit].concat(),
            header: repeated,
            frame_type,
            referenced: frame_type != FrameType::B,
            order: (0, 0),
            time: Some(Duration::from_secs(base) + Duration::from_nanos(part)),
        }))
    }
}

/// Seconds of the time code of a group (6.2.4); `None` if it is truncated.
fn group_time(unit: &[u8]) -> Option<u64> {
    let mut bits = Bits::new(unit.get(4..)?);
    let (hours, minutes) = (bits.read(5)?, bits.read(6)?);
    bits.skip(1);
    let seconds = bits.read(6)?;
    Some(u64::from(hours * 3600 + minutes * 60 + seconds))
}

/// The header of a picture.
struct Heading {
    frame_type: FrameType,
    seconds: u64,
    increment: u32,
    /// Whether data follows.
    coded: bool,
}

/// Reads the header of a picture (6.2.5).
fn picture_header(unit: &[u8], resolution: u32) -> Option<Heading> {
    let mut bits = Bits::new(unit.get(4..)?);
    let frame_type = match bits.read(2)? {
        0 => FrameType::I,
        2 => FrameType::B,
        // 1 is P; 3, S, is also predicted from the picture before it.
        _ => FrameType::P,
    };
    let mut seconds = 0;
    while bits.flag()? {
        seconds += 1;
    }
    marker(&mut bits)?;
    let increment = bits.read(increment_bits(resolution))?;
    marker(&mut bits)?;
    let coded = bits.flag()?;
    (increment < resolution).then_some(Heading { frame_type, seconds, increment, coded })
}

/// A bit that is always 1.
fn marker(bits: &mut Bits<'_>) -> Option<()> {
    bits.flag()?.then_some(())
}

/// Bits that hold 0 to `resolution` - 1, at least one.
const fn increment_bits(resolution: u32) -> u32 {
    match resolution {
        0..=2 => 1,
        more => u32::BITS - (more - 1).leading_zeros(),
    }
}

fn layer(unit: &[u8]) -> Result<Layer, StreamError> {
    const WHAT: StreamError = StreamError::Header("header of the stream (VOL)");
    let mut bits = Bits::new(unit.get(4..).unwrap_or_default());
    let (resolution, rate, shape) = layer_time(&mut bits).ok_or(WHAT)?;
    if shape != 0 {
        return Err(StreamError::NotSupported("MPEG-4 video of a shape that is no rectangle"));
    }
    let mut size = || {
        marker(&mut bits)?;
        bits.read(13).filter(|&size| size > 0)
    };
    let (width, height) = size().zip(size()).ok_or(WHAT)?;
    Ok(Layer { resolution, format: Format { codec: Codec::Mpeg4, width, height, rate, header: Vec::new() } })
}

/// The VOL up to its times (6.2.3): ticks per second, rate if it is fixed, shape.
fn layer_time(bits: &mut Bits<'_>) -> Option<(u32, Option<FrameRate>, u32)> {
    const GRAYSCALE: u32 = 3;
    const EXTENDED_ASPECT: u32 = 15;
    bits.skip(1 + 8);
    let mut version = 1;
    if bits.flag()? {
        version = bits.read(4)?;
        bits.skip(3);
    }
    if bits.read(4)? == EXTENDED_ASPECT {
        bits.skip(16);
    }
    if bits.flag()? {
        bits.skip(2 + 1);
        if bits.flag()? {
            // Bit rate, buffer size and occupancy of the decoder's buffer, with their markers.
            bits.skip(79);
        }
    }
    let shape = bits.read(2)?;
    if shape == GRAYSCALE && version != 1 {
        bits.skip(4);
    }
    marker(bits)?;
    let resolution = bits.read(16).filter(|&resolution| resolution > 0)?;
    marker(bits)?;
    let rate = if bits.flag()? { FrameRate::new(resolution, bits.read(increment_bits(resolution))?) } else { None };
    Some((resolution, rate, shape))
}
