//! BonnMotion's native movement files: one line per node with its waypoints, each a time and a position.
//!
//! ```text
//! t x y t x y ...        two dimensions
//! t x y z t x y z ...    three; the height is not used
//! ```
//!
//! Times are seconds, positions metres; nodes move between waypoints in straight lines at constant speed. Empty lines
//! and lines that begin with # are skipped. The parameter file (`.params`) is not needed. Format: BonnMotion 3 manual,
//! section "The native format".

use super::error::{MAX_NODES, MobilityError};
use super::movement::{Movement, Track, at_seconds};
use crate::radio::Position;

/// Number of coordinates per position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dimensions {
    /// East and north.
    Two,
    /// East, north and height.
    Three,
}

/// Reads the text of a file.
pub fn read(text: &str, dimensions: Dimensions) -> Result<Movement, MobilityError> {
    let stride = match dimensions {
        Dimensions::Two => 3,
        Dimensions::Three => 4,
    };
    let mut tracks = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let bad = |reason| MobilityError::BadLine { line: index + 1, reason };
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let number = |word: &str| word.parse::<f64>().ok().filter(|number| number.is_finite());
        let numbers: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
        let numbers = numbers.ok_or_else(|| bad("something that is not a number"))?;
        if !numbers.len().is_multiple_of(stride) {
            return Err(bad("the last waypoint is not whole"));
        }
        let mut track = Track::default();
        let mut latest = 0.0;
        for waypoint in numbers.chunks_exact(stride) {
            if waypoint[0] < latest {
                return Err(bad("times run backwards: is it of another number of dimensions?"));
            }
            latest = waypoint[0];
            track.push(at_seconds(latest), Position { x: waypoint[1], y: waypoint[2] });
        }
        if tracks.len() == MAX_NODES {
            return Err(MobilityError::TooManyNodes);
        }
        tracks.push(track);
    }
    Ok(Movement { tracks })
}
