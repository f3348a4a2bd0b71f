//! Cuts an incoming stream of bytes into pieces that can be lost separately, without changing a byte: coded pictures of
//! an elementary stream, PES packets of an MPEG transport stream.
//!
//! [`Cutter`] takes bytes as they arrive and returns [`Piece`]s as soon as they are complete, which is when the next
//! one begins. The dependencies of a piece are read from its own headers; nothing is decoded. Any input is accepted: an
//! unknown format is an error at the start, and skipped and counted later; a piece is never longer than [`MOST`].

mod elementary;
mod pictures;
mod piece;
mod times;
mod transport;

use elementary::Elementary;
use transport::Transport;

pub use piece::{CutCounters, Format, MOST, Piece};
pub(crate) use transport::aligned;
pub use transport::{PACKET, PacketHead};

/// Bytes examined to detect the format.
const LOOKED_AT: usize = 64 * 1024;

impl Format {
    /// The format of a stream that begins with `bytes`; `None` if it is unknown, or if more bytes are needed.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        if transport::aligned(bytes).is_some() {
            return Some(Self::TransportStream);
        }
        let code = elementary::first_code(bytes)?;
        match code {
            // A group of MPEG-4 if a picture follows: a sequence of MPEG-2 has the same code.
            0xb3 if elementary::second_code(bytes) != Some(0xb6) => None,
            // A video object, its layer, or headers before them; in H.264 these are units of no type.
            0xb0..=0xb6 | 0x00 | 0x01 | 0x20 => Some(Self::Mpeg4),
            // Delimiter and supplementary information are never referenced; the codes that say so are those of H.265.
            0x26 | 0x46 | 0x66 | 0x29 | 0x49 | 0x69 => None,
            // Delimiter, parameters, supplementary information, or a picture that needs no other.
            _ if code < 0x80 && matches!(code & 0x1f, 5..=9) => Some(Self::H264),
            _ => None,
        }
    }

    /// The format of a stream whose start is impossible in this format.
    fn contradicted_by(self, bytes: &[u8]) -> Option<Self> {
        let found = Self::detect(bytes)?;
        let code = elementary::first_code(bytes).unwrap_or_default();
        let certain = match (self, found) {
            // No start code of H.264 has this bit set; MPEG-4 reserves the others.
            (Self::H264, Self::Mpeg4) => code >= 0x80,
            (Self::Mpeg4, Self::H264) => code >= 0x60,
            (said, found) => said != found,
        };
        certain.then_some(found)
    }
}

/// Why a stream cannot be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CutError {
    /// The stream was empty.
    #[error("nothing came in")]
    Empty,
    /// No known format begins like this.
    #[error("what comes in is neither MPEG-TS nor a raw H.264 or MPEG-4 stream")]
    Unknown,
    /// It is not in the stated format.
    #[error("what comes in is not {}: nothing of it was found in the first 4 MiB", .0.name())]
    NotThat(Format),
    /// It begins like another format than the stated one.
    #[error("what comes in is {}, not {}", found.name(), said.name())]
    Other {
        /// The stated format.
        said: Format,
        /// The detected format.
        found: Format,
    },
    /// The stream ended without a picture that states its type.
    #[error("what comes in has no picture of {}: it is cut off, damaged, or something else", .0.name())]
    NoPictures(Format),
}

#[derive(Debug)]
enum Kind {
    Unknown(Vec<u8>),
    Elementary(Elementary),
    Transport(Box<Transport>),
}

/// ```
/// use anabranch_media::{clip, cut::Cutter};
///
/// let mut cutter = Cutter::new(None); // finds out what it is
/// let mut pieces = cutter.push(&clip::MPEG4[..1_000])?;
/// pieces.extend(cutter.finish()?);
/// let first = &pieces[0];
/// assert_eq!((first.picture.map(|picture| picture.letter()), first.importance), (Some('I'), 0));
/// # Ok::<(), anabranch_media::cut::CutError>(())
/// ```
#[derive(Debug)]
pub struct Cutter {
    kind: Kind,
    format: Option<Format>,
    begun: bool,
    found: bool,
    pictures: bool,
}

impl Cutter {
    /// For a given format, or one to be detected.
    pub fn new(format: Option<Format>) -> Self {
        let kind = format.map_or_else(|| Kind::Unknown(Vec::new()), of_format);
        Self { kind, format, begun: false, found: false, pictures: false }
    }

    /// The format, once it is known.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    pub fn counters(&self) -> CutCounters {
        match &self.kind {
            Kind::Unknown(_) => CutCounters::default(),
            Kind::Elementary(cutter) => cutter.counters(),
            Kind::Transport(cutter) => cutter.counters(),
        }
    }

    /// Takes more bytes; returns the pieces that are complete now.
    ///
    /// # Errors
    /// [`CutError`] at the start of an unknown stream; never later.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, CutError> {
        if let (false, Some(said)) = (self.begun, self.format)
            && let Some(found) = said.contradicted_by(bytes)
        {
            return Err(CutError::Other { said, found });
        }
        self.begun |= !bytes.is_empty();
        let mut pieces = Vec::new();
        match &mut self.kind {
            Kind::Elementary(cutter) => cutter.push(bytes, &mut pieces),
            Kind::Transport(cutter) => cutter.push(bytes, &mut pieces),
            Kind::Unknown(waiting) => {
                waiting.extend_from_slice(bytes);
                match Format::detect(waiting) {
                    Some(format) => {
                        let waiting = core::mem::take(waiting);
                        (self.kind, self.format) = (of_format(format), Some(format));
                        return self.push(&waiting);
                    }
                    None if waiting.len() >= LOOKED_AT => return Err(CutError::Unknown),
                    None => {}
                }
            }
        }
        self.found |= !pieces.is_empty();
        self.pictures |= pieces.iter().any(|piece| piece.picture.is_some());
        match self.format {
            Some(format) if !self.found && self.counters().skipped_bytes >= MOST as u64 => {
                Err(CutError::NotThat(format))
            }
            _ => Ok(pieces),
        }
    }

    /// The input has ended; returns the remaining pieces.
    ///
    /// # Errors
    /// [`CutError`] if there was never a usable piece.
    pub fn finish(&mut self) -> Result<Vec<Piece>, CutError> {
        let mut pieces = Vec::new();
        match &mut self.kind {
            Kind::Elementary(cutter) => cutter.finish(&mut pieces),
            Kind::Transport(cutter) => cutter.finish(&mut pieces),
            Kind::Unknown(waiting) if waiting.is_empty() => return Err(CutError::Empty),
            Kind::Unknown(_) => return Err(CutError::Unknown),
        }
        self.pictures |= pieces.iter().any(|piece| piece.picture.is_some());
        if self.found || !pieces.is_empty() {
            return match (&self.kind, self.format) {
                (Kind::Elementary(_), Some(format)) if !self.pictures => Err(CutError::NoPictures(format)),
                _ => Ok(pieces),
            };
        }
        let nothing = self.counters().skipped_bytes == 0;
        Err(self.format.filter(|_| !nothing).map_or(CutError::Empty, CutError::NotThat))
    }
}

fn of_format(format: Format) -> Kind {
    match format {
        Format::TransportStream => Kind::Transport(Box::default()),
        Format::H264 | Format::Mpeg4 => Kind::Elementary(Elementary::new(format)),
    }
}

#[cfg(test)]
mod tests;
