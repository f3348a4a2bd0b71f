//! The film at 640x360, coded at four rates: types and sizes of its frames are included, pictures require the film's
//! file.
//!
//! The coded streams are 8 to 66 MB and the film is 50 MB, too large to include. So the frames are a table in
//! `assets/bbb_360p.sizes`, and for pictures [`VARIABLE`] names the film's file: it is encoded again, and must result
//! in the frames of the table. `assets/README.md` has its source, its licence, and how the streams were made.

use crate::clip;
use crate::elementary::{ElementaryStream, StreamError};
use crate::ffmpeg::{Ffmpeg, FfmpegError};
use crate::frame::FrameType;
use crate::quality::{Quality, QualityError};
use crate::trace::{FrameRate, Trace};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

pub const WIDTH: u32 = 640;
pub const HEIGHT: u32 = 360;
/// Frames in a pass.
pub const FRAMES: usize = 2_000;
/// Frames per second.
pub const RATE: u32 = 30;
/// The rates in Mbit/s at which it is coded.
pub const MEGABITS: [u32; 4] = [1, 2, 4, 8];

/// The environment variable with the path of the film's file.
pub const VARIABLE: &str = "ANABRANCH_FILM";
/// SHA-256 of the film's file.
pub(crate) const SHA256: &str = "475fbbf34c4c367998f80c29ea03b15a743941179b12da3373fc6706e68621d0";

/// One frame a line in coding order: its type, and its bytes at each of [`MEGABITS`].
const SIZES: &str = include_str!("../assets/bbb_360p.sizes");

/// Processing of the film's frames before coding. All rounding is specified, so that results do not depend on the
/// machine.
const FILTER: &str = "scale=640:360:flags=bicubic+accurate_rnd+bitexact,setpts=N/30/TB";

/// Processing of the film's frames for the clip ([`crate::clip`]), and SHA-256 of the luma of the resulting 2,000.
const CLIP_FILTER: &str = "crop=880:720,scale=176:144";
const CLIP_SHA256: &str = "cb2a4fc9e5e61d4db22e73c6df2f1f21994761481f878c248d0515d0db28bc19";

/// Why there are no pictures of the film.
#[derive(Debug, Error)]
pub enum FilmError {
    /// [`VARIABLE`] is not set.
    #[error("the film is too large to come along: name its file in {VARIABLE} (docs/media.md says which it is)")]
    Unnamed,
    /// It cannot be read.
    #[error("cannot read the film {path}: {reason}")]
    File {
        path: String,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// It is another file.
    #[error("{0} is not the film that was coded: its SHA-256 is not {SHA256}")]
    Other(String),
    /// There is no coding at this rate.
    #[error("the film is coded for 1, 2, 4 and 8 Mbit/s, not for {0}")]
    Rate(u32),
    /// This ffmpeg encodes it differently.
    #[error("ffmpeg {0} codes the film to other frames than those that were sent: its pictures would not be theirs")]
    Coded(String),
    /// This ffmpeg produces other frames than those the clip was coded from.
    #[error("ffmpeg {0} makes other frames of the film than those that the clip was coded from")]
    Scaled(String),
    /// The encoded stream cannot be read.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// Encoding or decoding failed.
    #[error(transparent)]
    Ffmpeg(#[from] FfmpegError),
    /// Scoring failed.
    #[error(transparent)]
    Quality(#[from] QualityError),
}

/// The frames of the film at a rate in Mbit/s; `None` unless it is one of [`MEGABITS`].
pub fn trace(megabits: u32) -> Option<Trace> {
    let column = MEGABITS.iter().position(|&coded| coded == megabits)?;
    let lines = SIZES.lines().filter(|line| !line.starts_with('#'));
    let frame = |line: &str| {
        let mut words = line.split(' ');
        let letter = words.next()?;
        let frame_type = FrameType::ALL.into_iter().find(|kind| letter == kind.letter().to_string())?;
        Some((frame_type, words.nth(column)?.parse().ok()?))
    };
    let coded: Option<Vec<(FrameType, u32)>> = lines.map(frame).collect();
    let rate = FrameRate::new(RATE, 1).expect("thirty is a rate");
    Some(Trace::at_rate(&coded.expect("the table is read in the tests"), rate).expect("so is its trace"))
}

/// The verified file of the film.
#[derive(Clone, Debug)]
pub struct Film(PathBuf);

impl Film {
    /// The file in [`VARIABLE`].
    ///
    /// # Errors
    /// If it is not set; as [`Self::at`].
    pub fn find() -> Result<Self, FilmError> {
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).ok_or(FilmError::Unnamed)?;
        Self::at(Path::new(&named))
    }

    /// A given file.
    ///
    /// # Errors
    /// If it cannot be read, or is another one.
    pub fn at(path: &Path) -> Result<Self, FilmError> {
        let name = path.display().to_string();
        let wrong = |reason| FilmError::File { path: name.clone(), reason };
        let mut hash = Hashed(Sha256::new());
        let mut file = std::fs::File::open(path).map_err(wrong)?;
        std::io::copy(&mut file, &mut hash).map_err(wrong)?;
        let digest: String = hash.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if digest == SHA256 { Ok(Self(path.to_owned())) } else { Err(FilmError::Other(name)) }
    }

    /// Encodes the film at a rate in Mbit/s and compares the decoded frames with those before coding. Takes about a
    /// minute and a gigabyte.
    ///
    /// # Errors
    /// If there is no such coding; if ffmpeg fails, or its frames differ from [`trace`].
    pub fn quality(&self, ffmpeg: &Ffmpeg, megabits: u32) -> Result<Quality, FilmError> {
        let expected = trace(megabits).ok_or(FilmError::Rate(megabits))?;
        let ffmpeg = &ffmpeg.clone().within(Duration::from_secs(1_800));
        let stream = ElementaryStream::read(&self.coded(ffmpeg, megabits)?)?;
        let rate = FrameRate::new(RATE, 1).expect("thirty is a rate");
        if !stream.trace(rate).is_ok_and(|trace| trace == expected) {
            return Err(FilmError::Coded(ffmpeg.version().to_owned()));
        }
        let plane = WIDTH as usize * HEIGHT as usize;
        let mut original = Vec::with_capacity(plane * FRAMES);
        ffmpeg.decode_file(&self.0, FILTER, (WIDTH, HEIGHT), FRAMES, |_, frame| {
            original.extend_from_slice(&frame[..plane]);
        })?;
        Ok(Quality::against(ffmpeg.clone(), stream, original)?)
    }

    /// The luma planes of the clip's frames before coding, in display order: its uncompressed original, 51 MB.
    ///
    /// # Errors
    /// If ffmpeg fails, or produces other frames than those that were coded.
    pub fn original_of_clip(&self, ffmpeg: &Ffmpeg) -> Result<Vec<u8>, FilmError> {
        let plane = (clip::WIDTH * clip::HEIGHT) as usize;
        let mut original = Vec::with_capacity(plane * clip::FRAMES);
        ffmpeg.decode_file(&self.0, CLIP_FILTER, (clip::WIDTH, clip::HEIGHT), clip::FRAMES, |_, frame| {
            original.extend_from_slice(&frame[..plane]);
        })?;
        let digest: String = Sha256::digest(&original).iter().map(|byte| format!("{byte:02x}")).collect();
        if digest == CLIP_SHA256 { Ok(original) } else { Err(FilmError::Scaled(ffmpeg.version().to_owned())) }
    }

    /// Encodes the stream: at a constant rate within a second, like live encoders, and with the groups of the clip.
    fn coded(&self, ffmpeg: &Ffmpeg, megabits: u32) -> Result<Vec<u8>, FfmpegError> {
        let (rate, frames) = (format!("{megabits}M"), FRAMES.to_string());
        let mut arguments = vec!["-vf", FILTER, "-r", "30", "-frames:v", &frames, "-pix_fmt", "yuv420p"];
        arguments.extend(["-c:v", "mpeg4", "-g", "9", "-bf", "2", "-b_strategy", "0", "-sc_threshold", "1000000000"]);
        arguments.extend(["-b:v", &rate, "-minrate", &rate, "-maxrate", &rate, "-bufsize", &rate]);
        // The finest quantiser, without which the rate does not exceed 3.5 Mbit/s.
        arguments.extend(["-qmin", "1", "-lmin", "1", "-mblmin", "1", "-threads", "1", "-flags", "+bitexact"]);
        ffmpeg.code_file(&self.0, &arguments, "m4v")
    }
}

/// Hashes bytes as they are written.
struct Hashed(Sha256);

impl std::io::Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::ByType;

    #[test]
    fn each_coding_has_the_clips_groups_and_its_rate_within_two_per_cent() {
        for megabits in MEGABITS {
            let trace = trace(megabits).expect("a coding");
            assert_eq!(trace.counts(), ByType { i: 223, p: 445, b: 1332 });
            let types = |trace: &Trace| trace.frames().iter().map(|frame| frame.frame_type).collect::<Vec<_>>();
            assert_eq!(types(&trace), types(&clip::trace()));
            assert_eq!(trace.frames()[7].at, clip::trace().frames()[7].at);
            let off = trace.bit_rate() / (f64::from(megabits) * 1e6) - 1.0;
            assert!(off.abs() < 0.02, "{} for {megabits} Mbit/s", trace.bit_rate());
        }
    }

    #[test]
    fn other_rates_and_other_files_are_one_clear_sentence() {
        assert!(trace(3).is_none());
        assert_eq!(FilmError::Rate(3).to_string(), "the film is coded for 1, 2, 4 and 8 Mbit/s, not for 3");
        let missing = Film::at(Path::new("/nowhere/bbb.mp4")).expect_err("it is not there").to_string();
        assert!(missing.starts_with("cannot read the film /nowhere/bbb.mp4: "), "{missing}");
        let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let other = Film::at(&this).expect_err("it is another file").to_string();
        assert!(other.contains("Cargo.toml is not the film that was coded: its SHA-256 is not 475fbb"), "{other}");
    }

    #[test]
    fn the_table_is_small() {
        assert!(SIZES.len() < 64_000);
    }
}
