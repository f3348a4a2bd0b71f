//! Writes a stream as received, for a decoder: an IVF file of the pictures that arrived, with display indices as times.
//! It begins with the header of the stream, which counts as known in advance and is never lost.
//!
//! IVF is 32 bytes of header, then per picture its length (32 bits), its time (64 bits) and its bytes, little-endian.
//! The time base is one frame, so a decoder knows exactly which frames are missing and can repeat the picture before
//! them.

use crate::elementary::{Codec, ElementaryStream};
use crate::frame::FrameType;
use crate::trace::FrameRate;
use thiserror::Error;

/// Bytes of the file header.
const HEAD: usize = 32;
/// Bytes before each picture.
const PICTURE_HEAD: usize = 12;

/// Why a stream cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum LossyError {
    /// The number of flags is not that of the frames of all passes.
    #[error("{arrived} frames are said to have arrived or not, but {passes} passes of the stream have {frames}")]
    Count {
        /// Flags passed.
        arrived: usize,
        /// Frames per pass.
        frames: usize,
        /// Passes asked for.
        passes: usize,
    },
}

/// A stream as it was received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// The IVF file.
    pub ivf: Vec<u8>,
    /// Number of frames to show, lost ones included.
    pub frames: usize,
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// Pictures in the file: those that arrived, without undecodable B pictures.
    pub pictures: usize,
}

/// The stream of `passes` repetitions of `stream`, with the frames that arrived according to `arrived`, in coding
/// order.
///
/// ```no_run
/// use anabranch_media::{Ffmpeg, clip, lossy};
///
/// let mut arrived = vec![true; clip::FRAMES];
/// arrived[7] = false;
/// let received = lossy::received(&clip::stream(), 1, &arrived)?;
/// std::fs::write("lossy.ivf", &received.ivf)?;
/// // Decoded, with the picture before it where one is missing: planes Y, U and V.
/// Ffmpeg::find()?.decode(&received, |place, planes| println!("{place}: {}", planes.len()))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `arrived` has not one flag for each frame.
pub fn received(stream: &ElementaryStream, passes: usize, arrived: &[bool]) -> Result<Received, LossyError> {
    let once = stream.pictures.len();
    let frames = once.saturating_mul(passes);
    if arrived.len() != frames {
        return Err(LossyError::Count { arrived: arrived.len(), frames, passes });
    }
    Ok(beginning(stream, arrived))
}

/// The first part of a stream, or of its repetitions, with the frames that arrived according to `arrived`, in coding
/// order.
pub(crate) fn beginning(stream: &ElementaryStream, arrived: &[bool]) -> Received {
    let (once, display) = (stream.pictures.len(), stream.display());
    let rate = stream.format.rate.or(FrameRate::new(30, 1));
    let mut file = Ivf::new(stream, rate);
    for (index, _) in given(stream, arrived).iter().enumerate().filter(|(_, given)| **given) {
        let (pass, within) = (index / once, index % once);
        let place = pass * once + display[within] as usize;
        file.picture(place as u64, stream.pictures[within].payload(), &stream.format.header);
    }
    let (width, height) = (stream.format.width, stream.format.height);
    Received { ivf: file.bytes, frames: arrived.len(), size: (width, height), pictures: file.pictures as usize }
}

/// Which of the frames that arrived are passed to a decoder, in coding order. These are left out:
///
/// - B frames before the first other frame: without a prediction source, decoders drop them, and a file of such
///   pictures alone would be an error;
/// - in MPEG-4 part 2, B frames whose preceding I or P frame in coding order is lost. Their coded blocks depend on the
///   blocks which that frame skips (ISO/IEC 14496-2: such blocks of a B-VOP are not coded), so that they cannot be
///   parsed without it. Decoders detect the loss by the times, except for some at the turn of a second, for which
///   ffmpeg produces noise that depends on everything decoded before.
pub(crate) fn given(stream: &ElementaryStream, arrived: &[bool]) -> Vec<bool> {
    let mut anchor = false;
    let mut any = false;
    let frame = |(index, arrived): (usize, &bool)| {
        let b = stream.pictures[index % stream.pictures.len()].frame_type == FrameType::B;
        if !b {
            (anchor, any) = (*arrived, any || *arrived);
        }
        *arrived && any && (!b || anchor || stream.format.codec != Codec::Mpeg4)
    };
    arrived.iter().enumerate().map(frame).collect()
}

/// An IVF file of these pictures of a stream, given by their indices in coding order, each with its time in ms; earlier
/// pictures do not exist for the decoder.
pub(crate) fn pictures(stream: &ElementaryStream, pictures: impl Iterator<Item = (u64, usize)>) -> Vec<u8> {
    let mut file = Ivf::new(stream, FrameRate::new(1_000, 1));
    for (time, index) in pictures {
        if let Some(picture) = stream.pictures.get(index) {
            file.picture(time, picture.payload(), &stream.format.header);
        }
    }
    file.bytes
}

/// A file being written.
struct Ivf {
    bytes: Vec<u8>,
    pictures: u32,
}

impl Ivf {
    fn new(stream: &ElementaryStream, rate: Option<FrameRate>) -> Self {
        let name: &[u8; 4] = match stream.format.codec {
            Codec::Mpeg4 => b"FMP4",
            Codec::H264 => b"H264",
        };
        let (numerator, denominator) = rate.map_or((30, 1), FrameRate::fraction);
        let mut bytes = b"DKIF\0\0\x20\0".to_vec();
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(&(stream.format.width as u16).to_le_bytes());
        bytes.extend_from_slice(&(stream.format.height as u16).to_le_bytes());
        bytes.extend_from_slice(&numerator.to_le_bytes());
        bytes.extend_from_slice(&denominator.to_le_bytes());
        // The number of pictures, updated with each, and four unused bytes.
        bytes.resize(HEAD, 0);
        Self { bytes, pictures: 0 }
    }

    fn picture(&mut self, time: u64, payload: &[u8], header: &[u8]) {
        let header = if self.pictures == 0 { header } else { &[] };
        let length = header.len() + payload.len();
        self.bytes.reserve(PICTURE_HEAD + length);
        self.bytes.extend_from_slice(&(length as u32).to_le_bytes());
        self.bytes.extend_from_slice(&time.to_le_bytes());
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(payload);
        self.pictures += 1;
        self.bytes[24..28].copy_from_slice(&self.pictures.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clip;

    #[test]
    fn a_file_has_what_arrived_with_display_places_as_times() {
        let mut stream = clip::stream();
        stream.pictures.truncate(4);
        // I0 P3 B1 B2: the first B is lost.
        let received = received(&stream, 1, &[true, true, false, true]).expect("four flags");
        let ivf = &received.ivf;
        assert_eq!(&ivf[..12], b"DKIF\0\0\x20\0FMP4");
        assert_eq!(ivf[12..32], [176, 0, 144, 0, 30, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ivf[32..44], [62, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "31 + 287 bytes at place 0");
        assert_eq!(ivf[44..44 + 318], clip::MPEG4[..318]);
        assert_eq!(ivf[362..374], [87, 1, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0], "343 bytes at place 3");
        assert_eq!(ivf[717..729], [20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((ivf.len(), received.frames, received.pictures), (749, 4, 3));
    }

    #[test]
    fn the_header_stands_before_whatever_arrives_first() {
        let mut stream = clip::stream();
        stream.pictures.truncate(4);
        let received = received(&stream, 1, &[false, true, false, false]).expect("four flags");
        assert_eq!(received.ivf[44..44 + 31], stream.format.header);
    }

    #[test]
    fn b_pictures_without_the_picture_coded_before_them_are_left_out() {
        let mut stream = clip::stream();
        stream.pictures.truncate(4);
        let pictures = |arrived| received(&stream, 1, arrived).expect("four flags").pictures;
        assert_eq!(pictures(&[false, false, true, true]), 0);
        assert_eq!(pictures(&[false, true, true, true]), 3);
        assert_eq!(pictures(&[true, false, true, true]), 1);
    }

    #[test]
    fn flags_that_are_no_match_are_one_clear_sentence() {
        let error = received(&clip::stream(), 5, &[true; 2000]).expect_err("10,000 are needed").to_string();
        assert_eq!(error, "2000 frames are said to have arrived or not, but 5 passes of the stream have 10000");
    }
}
