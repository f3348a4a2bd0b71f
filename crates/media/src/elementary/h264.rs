//! H.264 in byte stream format: parameter sets (7.3.2), slice headers as far as needed for order and type (7.3.3), the
//! start of pictures (7.4.1.2.4), picture order counts (8.2.1).
//!
//! Not supported: auxiliary pictures, other views and layers (their units stay with the picture before them); the reset
//! of order by memory management operation 5, which needs the whole slice header.

mod order;
mod parameters;
mod unit_type;

#[cfg(test)]
mod tests;

use super::{Format, LONGEST_PICTURE, Picture, StreamError};
use crate::frame::FrameType;
use order::{Order, Slice};
pub(super) use parameters::is_profile;
use parameters::{PictureParameters, SequenceParameters};
use std::collections::BTreeMap;

/// Bytes of a unit that are examined: valid parameter sets are shorter.
const LOOKED_AT: usize = 4096;

/// A picture whose slices are still arriving.
#[derive(Debug)]
struct Open {
    data: Vec<u8>,
    slice: Slice,
    frame_type: FrameType,
    referenced: bool,
    order: (u32, i64),
    /// Whether its second field has arrived.
    complete: bool,
}

/// Assembles units into pictures.
#[derive(Debug, Default)]
pub(super) struct H264 {
    format: Option<Format>,
    sequences: BTreeMap<u32, SequenceParameters>,
    pictures: BTreeMap<u32, PictureParameters>,
    /// Whether a slice with known parameter sets has arrived: the format's header is complete.
    settled: bool,
    order: Order,
    open: Option<Open>,
    /// Units before the next picture.
    before: Vec<u8>,
    count: u64,
    dropped: u64,
}

impl H264 {
    pub(super) const fn format(&self) -> Option<&Format> {
        self.format.as_ref()
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes one unit from start code to start code. Returns the picture before it, if it begins a new one.
    pub(super) fn handle_unit(&mut self, unit: Vec<u8>) -> Result<Option<Picture>, StreamError> {
        let Some(&first) = unit.get(3) else { return Ok(None) };
        let payload = without_emulation(unit.get(4..).unwrap_or_default());
        match first & 0x1F {
            unit_type::SLICE | unit_type::PARTITION_A | unit_type::IDR => return self.slice(&unit, first, &payload),
            unit_type::SEQUENCE => {
                let (id, parameters) = SequenceParameters::read(&payload)?;
                let format = self.format.get_or_insert_with(|| parameters.format());
                if !self.settled {
                    format.header.extend_from_slice(&unit);
                }
                self.sequences.insert(id, parameters);
            }
            unit_type::PICTURE => {
                let (id, parameters) =
                    PictureParameters::read(&payload).ok_or(StreamError::Header("picture parameter set"))?;
                if let Some(format) = self.format.as_mut().filter(|_| !self.settled) {
                    format.header.extend_from_slice(&unit);
                }
                self.pictures.insert(id, parameters);
            }
            unit_type::SEI | unit_type::DELIMITER | unit_type::FIRST_RESERVED..=unit_type::LAST_RESERVED => {}
            // The end of a sequence, filler, extensions: part of the picture before them.
            _ => {
                let place = self.open.as_mut().map_or(&mut self.before, |open| &mut open.data);
                place.extend_from_slice(&unit);
                let length = place.len();
                return self.bounded(length, None);
            }
        }
        self.before.extend_from_slice(&unit);
        let header = self.format.as_ref().map_or(0, |format| format.header.len());
        let (length, closed) = (self.before.len().max(header), self.close());
        self.bounded(length, closed)
    }

    fn bounded(&self, length: usize, picture: Option<Picture>) -> Result<Option<Picture>, StreamError> {
        if length > LONGEST_PICTURE { Err(StreamError::TooLong) } else { Ok(picture) }
    }

    /// The last picture at the end of the stream.
    pub(super) fn finish(&mut self) -> Result<Option<Picture>, StreamError> {
        if self.format.is_none() {
            return Err(StreamError::Header("header of the stream (SPS)"));
        }
        Ok(self.close_now())
    }

    /// Ends the present picture, unless it is a first field whose second may follow.
    fn close(&mut self) -> Option<Picture> {
        if self.open.as_ref().is_some_and(|open| open.slice.field.is_some() && !open.complete) {
            return None;
        }
        self.close_now()
    }

    fn close_now(&mut self) -> Option<Picture> {
        let open = self.open.take()?;
        self.count += 1;
        Some(Picture {
            data: open.data,
            header: 0,
            frame_type: open.frame_type,
            referenced: open.referenced,
            order: open.order,
            time: None,
        })
    }

    fn slice(&mut self, unit: &[u8], first: u8, payload: &[u8]) -> Result<Option<Picture>, StreamError> {
        let damaged = StreamError::Picture(self.count + u64::from(self.open.is_some()));
        let (frame_type, parameters) = order::slice_start(payload).ok_or(damaged.clone())?;
        let known =
            self.pictures.get(&parameters).and_then(|picture| Some((picture, self.sequences.get(&picture.sequence)?)));
        let Some((picture, sequence)) = known else {
            if self.settled {
                return Err(damaged);
            }
            // Joined in the middle: its parameter sets are unknown.
            self.before.clear();
            self.dropped += 1;
            return Ok(None);
        };
        let slice = Slice::read(first, payload, picture, sequence).ok_or(damaged)?;
        self.settled = true;
        let same = self.open.as_ref().is_some_and(|open| self.before.is_empty() && open.slice.same_picture(&slice));
        let second = self.open.as_ref().is_some_and(|open| !same && !open.complete && open.slice.second_field(&slice));
        let mut closed = None;
        if !same {
            let order = self.order.of(&slice, sequence);
            if second {
                self.second_field(slice, order);
            } else {
                closed = self.close_now();
                let data = core::mem::take(&mut self.before);
                let referenced = slice.reference_idc > 0;
                self.open = Some(Open { data, slice, frame_type, referenced, order, complete: false });
            }
        }
        let mut length = 0;
        if let Some(open) = &mut self.open {
            open.data.extend_from_slice(unit);
            // With slices of several types, the one with most dependencies counts.
            open.frame_type = open.frame_type.max(frame_type);
            length = open.data.len();
        }
        self.bounded(length, closed)
    }

    /// The second field of the present frame, with the units between the two.
    fn second_field(&mut self, slice: Slice, order: (u32, i64)) {
        if let Some(open) = &mut self.open {
            open.data.append(&mut self.before);
            open.order = open.order.min(order);
            open.referenced |= slice.reference_idc > 0;
            open.slice = slice;
            open.complete = true;
        }
    }
}

/// The payload of a unit without emulation prevention bytes (7.3.1), as far as it is examined.
fn without_emulation(bytes: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(bytes.len().min(LOOKED_AT));
    let mut zeros = 0;
    for &byte in bytes.iter().take(LOOKED_AT) {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        payload.push(byte);
    }
    payload
}
