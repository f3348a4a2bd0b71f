//! A video as sent, its reference, and a decoder.

use super::album::Given;
use crate::elementary::ElementaryStream;
use crate::ffmpeg::Ffmpeg;
use crate::metrics::score::Scorer;

/// Everything that scores depend on.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) ffmpeg: Ffmpeg,
    pub(super) stream: ElementaryStream,
    pub(super) scorer: Scorer,
    /// The scorer against the uncompressed original, if that is another.
    pub(super) source: Option<Scorer>,
}

impl Comparison {
    /// One for each original.
    pub(super) fn scorers(&self) -> impl Iterator<Item = &Scorer> {
        [Some(&self.scorer), self.source.as_ref()].into_iter().flatten()
    }

    /// What is shown at this place.
    pub(super) fn given(&self, place: u32, luma: &[u8]) -> Given {
        if self.scorer.is_undamaged(place as usize, luma) { Given::Coded(place) } else { Given::Other(luma.to_vec()) }
    }
}
