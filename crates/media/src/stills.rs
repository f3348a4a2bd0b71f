//! Single frames as PNG, for reports.

use crate::ffmpeg::{Ffmpeg, FfmpegError};
use crate::lossy::Received;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why there are no stills.
#[derive(Debug, Error)]
pub enum StillsError {
    /// The video could not be decoded.
    #[error(transparent)]
    Ffmpeg(#[from] FfmpegError),
    /// A frame that does not exist.
    #[error("there is no frame {index}: the video has {frames}, counted from 0")]
    Index {
        /// The requested index.
        index: usize,
        /// The number of frames.
        frames: usize,
    },
    /// The picture could not be encoded.
    #[error("a still could not be made: {0}")]
    Png(#[from] png::EncodingError),
    /// The picture could not be written.
    #[error("{}: {reason}", path.display())]
    File {
        path: PathBuf,
        /// The error of the system.
        reason: std::io::Error,
    },
}

/// Decodes the stream as received and returns the frames with these display indices as PNG files in memory, in the
/// given order.
///
/// # Errors
/// If a frame does not exist or cannot be decoded.
pub fn stills(ffmpeg: &Ffmpeg, received: &Received, indices: &[usize]) -> Result<Vec<Vec<u8>>, StillsError> {
    if let Some(&index) = indices.iter().find(|&&index| index >= received.frames) {
        return Err(StillsError::Index { index, frames: received.frames });
    }
    let mut found: BTreeMap<usize, Result<Vec<u8>, png::EncodingError>> = BTreeMap::new();
    ffmpeg.decode(received, |index, frame| {
        if indices.contains(&index) {
            found.insert(index, encode(received.size, frame));
        }
    })?;
    let mut pictures = BTreeMap::new();
    for (index, picture) in found {
        pictures.insert(index, picture?);
    }
    Ok(indices.iter().filter_map(|index| pictures.get(index).cloned()).collect())
}

/// As [`stills`], written to `PREFIX-INDEX.png` in `directory`. Returns the files.
///
/// # Errors
/// As [`stills`]; if a file cannot be written.
pub fn write(
    ffmpeg: &Ffmpeg,
    received: &Received,
    indices: &[usize],
    directory: &Path,
    prefix: &str,
) -> Result<Vec<PathBuf>, StillsError> {
    let pictures = stills(ffmpeg, received, indices)?;
    let mut files = Vec::with_capacity(pictures.len());
    for (index, picture) in indices.iter().zip(pictures) {
        let path = directory.join(format!("{prefix}-{index}.png"));
        std::fs::write(&path, picture).map_err(|reason| StillsError::File { path: path.clone(), reason })?;
        files.push(path);
    }
    Ok(files)
}

/// Planes Y, U, V at 4:2:0 as a PNG.
fn encode((width, height): (u32, u32), frame: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb((width as usize, height as usize), frame))?;
    writer.finish()?;
    Ok(file)
}

/// Red, green and blue after ITU-R BT.601 in studio range, the convention for this size. Missing samples are black.
fn rgb((width, height): (usize, usize), frame: &[u8]) -> Vec<u8> {
    let (half, luma) = (width.div_ceil(2), width * height);
    let chroma = half * height.div_ceil(2);
    let sample = |at: usize, without: u8| f64::from(frame.get(at).copied().unwrap_or(without));
    let mut pixels = Vec::with_capacity(3 * luma);
    for y in 0..height {
        for x in 0..width {
            let at = luma + (y / 2) * half + x / 2;
            let light = 255.0 / 219.0 * (sample(y * width + x, 16) - 16.0);
            let (blue, red) = (sample(at, 128) - 128.0, sample(at + chroma, 128) - 128.0);
            let colours = [light + 1.596 * red, light - 0.391_8 * blue - 0.813 * red, light + 2.017_2 * blue];
            pixels.extend(colours.map(|colour| colour.round().clamp(0.0, 255.0) as u8));
        }
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_bt_601() {
        // One pixel each, of 2x1: Y Y U V. White, black; the primary colours of 75 % colour bars.
        assert_eq!(rgb((2, 1), &[235, 16, 128, 128]), [255, 255, 255, 0, 0, 0]);
        assert_eq!(rgb((1, 1), &[81, 90, 240]), [254, 0, 0], "red is 81, 90, 240");
        assert_eq!(rgb((1, 1), &[41, 240, 110]), [0, 0, 255], "blue is 41, 240, 110");
        assert_eq!(rgb((1, 1), &[]), [0, 0, 0]);
    }

    #[test]
    fn a_still_is_a_png_of_the_videos_size() {
        let file = encode((2, 2), &[235, 16, 235, 16, 128, 128]).expect("a picture");
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(file[16..24], [0, 0, 0, 2, 0, 0, 0, 2]);
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().expect("a PNG");
        let mut pixels = vec![0; 12];
        reader.next_frame(&mut pixels).expect("its pixels");
        assert_eq!(pixels, [255, 255, 255, 0, 0, 0, 255, 255, 255, 0, 0, 0]);
    }
}
