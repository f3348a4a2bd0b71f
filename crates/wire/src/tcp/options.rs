//! The TCP options of a segment, and their layout in the header.
//!
//! The layout is Linux's: every option padded to four bytes, NOPs before those of plain TCP and after those of MPTCP,
//! SACK-permitted in place of two of them. If that takes more than 40 bytes, the same options are packed without
//! padding, so that everything parsed can be emitted.

use super::flags::Flags;
use super::sack::{SackBlock, SackBlocks};
use crate::error::EmitError;
use crate::mptcp::{self, Dss, MptcpOption, Parsed};
use crate::reader::Reader;
use crate::seq::SeqNumber;

const END: u8 = 0;
const NOP: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Largest shift of the window scale option (RFC 7323, section 2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;

/// Bytes of option space of the maximum segment size option.
pub const MAXIMUM_SEGMENT_SIZE_LEN: usize = 4;
/// Bytes of the window scale option, padding included.
pub const WINDOW_SCALE_LEN: usize = 4;
/// Bytes of SACK-permitted without timestamps, padding included; with timestamps it replaces padding.
pub const SACK_PERMITTED_LEN: usize = 4;
/// Bytes of the timestamps option, padding included.
pub const TIMESTAMPS_LEN: usize = 12;
/// Bytes of a SACK option without blocks, padding included.
pub const SACK_LEN: usize = 4;
/// Bytes of each SACK block.
pub const SACK_BLOCK_LEN: usize = 8;

/// The option space of a TCP header, bytes (RFC 9293, section 3.1).
pub const OPTION_SPACE: usize = 40;

/// The timestamps option (RFC 7323, section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The echoed clock of the other side, valid with [`Flags::ACK`].
    pub echo: u32,
}

/// The options of a segment. Unknown options are ignored when parsed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Maximum segment size (RFC 9293, section 3.7.1), SYN only.
    pub maximum_segment_size: Option<u16>,
    /// Window scale shift (RFC 7323, section 2), SYN only; at most 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018, section 2), SYN only.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgement.
    pub sack: SackBlocks,
    /// Data sequence signal: the MPTCP option of nearly every segment, so it has its own field.
    pub dss: Option<Dss>,
    /// All other MPTCP options, in order. Empty (and without allocation) on nearly every segment.
    pub mptcp: Vec<MptcpOption>,
}

impl TcpOptions {
    /// Removes all options.
    #[inline]
    pub fn clear(&mut self) {
        let Self { maximum_segment_size, window_scale, sack_permitted, timestamps, sack, dss, mptcp } = self;
        (*maximum_segment_size, *window_scale, *sack_permitted) = (None, None, false);
        (*timestamps, *dss) = (None, None);
        sack.clear();
        mptcp.clear();
    }

    /// Bytes of the options in the header, padding included: a multiple of 4; above [`OPTION_SPACE`] they cannot be
    /// emitted. Takes only a few additions for segments with timestamps and DSS.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        let aligned = self.aligned_len();
        if aligned <= OPTION_SPACE { aligned } else { self.packed_len().next_multiple_of(4) }
    }

    /// Bytes of option space free for further options with their own `encoded_len`.
    pub fn room(&self) -> usize {
        OPTION_SPACE.saturating_sub(self.encoded_len())
    }

    /// Number of SACK blocks that can still be pushed to `sack`.
    pub fn sack_room(&self) -> usize {
        let header = if self.sack.is_empty() { SACK_LEN } else { 0 };
        let blocks = self.room().saturating_sub(header) / SACK_BLOCK_LEN;
        blocks.min(SackBlocks::MAX - self.sack.len())
    }

    #[inline]
    fn aligned_len(&self) -> usize {
        let mut length = if self.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 };
        if !self.sack.is_empty() {
            length += SACK_LEN + SACK_BLOCK_LEN * self.sack.len();
        }
        if let Some(dss) = &self.dss {
            length += dss.encoded_len();
        }
        if self.has_rare() { length + self.rare_aligned_len() } else { length }
    }

    /// Whether there are options that are rare on established connections.
    #[inline]
    pub fn has_rare(&self) -> bool {
        let syn = self.maximum_segment_size.is_some() | self.window_scale.is_some() | self.sack_permitted;
        syn | !self.mptcp.is_empty()
    }

    #[inline(never)]
    fn rare_aligned_len(&self) -> usize {
        let mut length = 0;
        if self.maximum_segment_size.is_some() {
            length += MAXIMUM_SEGMENT_SIZE_LEN;
        }
        if self.sack_permitted && self.timestamps.is_none() {
            length += SACK_PERMITTED_LEN;
        }
        if self.window_scale.is_some() {
            length += WINDOW_SCALE_LEN;
        }
        for option in &self.mptcp {
            length += option.encoded_len();
        }
        length
    }

    /// The sum of the options' own lengths.
    #[inline(never)]
    fn packed_len(&self) -> usize {
        let mut length = 0;
        length += if self.maximum_segment_size.is_some() { 4 } else { 0 };
        length += if self.timestamps.is_some() { 10 } else { 0 };
        length += if self.sack_permitted { 2 } else { 0 };
        length += if self.window_scale.is_some() { 3 } else { 0 };
        length += if self.sack.is_empty() { 0 } else { 2 + SACK_BLOCK_LEN * self.sack.len() };
        length += self.dss.as_ref().map_or(0, |dss| dss.option_len());
        length + self.mptcp.iter().map(|option| option.option_len()).sum::<usize>()
    }

    /// Checks that the receiver of a segment with these flags parses the same options.
    pub(super) fn check(&self, flags: Flags) -> Result<(), EmitError> {
        let syn_only = self.maximum_segment_size.is_some() || self.window_scale.is_some() || self.sack_permitted;
        if syn_only && !flags.contains(Flags::SYN) {
            return Err(EmitError::BadValue);
        }
        if self.window_scale.is_some_and(|shift| shift > MAX_WINDOW_SCALE) {
            return Err(EmitError::BadValue);
        }
        if self.dss.is_some_and(|dss| dss.data_fin && dss.mapping.is_none()) {
            return Err(EmitError::BadValue);
        }
        self.mptcp.iter().try_for_each(|option| option.check(flags))
    }

    /// Appends the options and their padding, [`Self::encoded_len`] bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let aligned = self.aligned_len() <= OPTION_SPACE;
        if let Some(size) = self.maximum_segment_size {
            let [s0, s1] = size.to_be_bytes();
            out.extend_from_slice(&[MAXIMUM_SEGMENT_SIZE, 4, s0, s1]);
        }
        match (self.sack_permitted, aligned) {
            (true, true) if self.timestamps.is_none() => out.extend_from_slice(&[NOP, NOP, SACK_PERMITTED, 2]),
            (true, _) => out.extend_from_slice(&[SACK_PERMITTED, 2]),
            (false, true) if self.timestamps.is_some() => out.extend_from_slice(&[NOP, NOP]),
            (false, _) => {}
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            let [v0, v1, v2, v3] = value.to_be_bytes();
            let [e0, e1, e2, e3] = echo.to_be_bytes();
            out.extend_from_slice(&[TIMESTAMPS, 10, v0, v1, v2, v3, e0, e1, e2, e3]);
        }
        if let Some(shift) = self.window_scale {
            let option = [NOP, WINDOW_SCALE, 3, shift];
            out.extend_from_slice(if aligned { &option } else { option.get(1..).unwrap_or(&[]) });
        }
        if !self.sack.is_empty() {
            self.write_sack(aligned, out);
        }
        if let Some(dss) = &self.dss {
            dss.write(out);
            pad(aligned, start, out);
        }
        for option in &self.mptcp {
            option.write(out);
            pad(aligned, start, out);
        }
        pad(true, start, out);
    }

    fn write_sack(&self, aligned: bool, out: &mut Vec<u8>) {
        if aligned {
            out.extend_from_slice(&[NOP, NOP]);
        }
        out.extend_from_slice(&[SACK, (2 + SACK_BLOCK_LEN * self.sack.len()) as u8]);
        for SackBlock { start, end } in self.sack.as_slice() {
            out.extend_from_slice(&start.0.to_be_bytes());
            out.extend_from_slice(&end.0.to_be_bytes());
        }
    }

    /// Parses the option space of a segment with these flags.
    ///
    /// Unknown and malformed options are skipped. Of repeated options the last one counts, except for MPTCP options
    /// other than DSS, all of which are kept.
    ///
    /// An option whose length is below 2 or runs out of the header ends the list, since nothing behind it can be found;
    /// what precedes it counts, and so does the segment, as in Linux (RFC 9293, section 3.1, MUST-7).
    pub fn parse(bytes: &[u8], flags: Flags) -> Self {
        let mut options = Self::default();
        let mut reader = Reader(bytes);
        while let Some(kind) = reader.u8() {
            match kind {
                END => break,
                NOP => {}
                _ => {
                    let length = reader.u8().and_then(|length| usize::from(length).checked_sub(2));
                    let Some(body) = length.and_then(|length| reader.bytes(length)) else { break };
                    options.take(kind, body, flags);
                }
            }
        }
        options
    }

    /// Accepts an option if it is known, well-formed and allowed on the segment.
    fn take(&mut self, kind: u8, body: &[u8], flags: Flags) {
        // Options of the handshake have no meaning elsewhere (RFC 9293, section 3.7.1; RFC 7323, section 2.1; RFC 2018,
        // section 2).
        let syn = flags.contains(Flags::SYN);
        match (kind, body) {
            (MAXIMUM_SEGMENT_SIZE, &[s0, s1]) if syn => self.maximum_segment_size = Some(u16::from_be_bytes([s0, s1])),
            // RFC 7323, section 2.3: a larger shift is read as 14.
            (WINDOW_SCALE, &[shift]) if syn => self.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
            (SACK_PERMITTED, []) if syn => self.sack_permitted = true,
            (SACK, blocks) => {
                if let Some(sack) = parse_sack(blocks) {
                    self.sack = sack;
                }
            }
            (TIMESTAMPS, &[v0, v1, v2, v3, e0, e1, e2, e3]) => {
                let value = u32::from_be_bytes([v0, v1, v2, v3]);
                self.timestamps = Some(Timestamps { value, echo: u32::from_be_bytes([e0, e1, e2, e3]) });
            }
            (mptcp::KIND, body) => match mptcp::parse(body, flags) {
                Some(Parsed::Dss(dss)) => self.dss = Some(dss),
                Some(Parsed::Other(option)) => self.mptcp.push(option),
                None => {}
            },
            _ => {}
        }
    }
}

/// One to four blocks, or none if the length is wrong (RFC 2018, section 3).
fn parse_sack(body: &[u8]) -> Option<SackBlocks> {
    let (blocks, rest) = body.as_chunks::<8>();
    if blocks.is_empty() || !rest.is_empty() {
        return None;
    }
    let mut sack = SackBlocks::new();
    for [s0, s1, s2, s3, e0, e1, e2, e3] in blocks {
        let start = SeqNumber(u32::from_be_bytes([*s0, *s1, *s2, *s3]));
        let end = SeqNumber(u32::from_be_bytes([*e0, *e1, *e2, *e3]));
        // Four fill the option space, so all of them fit.
        sack.push(SackBlock { start, end });
    }
    Some(sack)
}

/// Appends NOPs up to a multiple of four bytes since `start`, if `aligned`.
fn pad(aligned: bool, start: usize, out: &mut Vec<u8>) {
    if aligned {
        let padding = (out.len() - start).wrapping_neg() % 4;
        out.extend_from_slice([NOP; 3].get(..padding).unwrap_or(&[]));
    }
}
