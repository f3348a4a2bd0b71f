//! Scaled traces: the frames of a coded trace with other sizes, for loads without a clip.
//!
//! The properties that matter to a transport are kept: order, times, and the variation of sizes between frames and
//! between I, P and B frames. A real clip at a higher rate has relatively larger P and B frames; where that matters,
//! read one with [`crate::elementary`].

use super::{Trace, TraceError};
use crate::frame::Frame;
use anabranch_policy::Duration;

impl Trace {
    /// The same frames with sizes multiplied by `factor`, rounded to whole bytes, at least one.
    ///
    /// # Errors
    /// [`TraceError::Factor`] if the factor is not a positive number, or a frame would be larger than 16 MiB, the limit
    /// of readers.
    pub fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        let most = crate::elementary::LONGEST_PICTURE as f64;
        let size = |frame: &Frame| (f64::from(frame.size) * factor).round().max(1.0);
        if !(factor > 0.0 && factor.is_finite()) || self.frames.iter().any(|frame| size(frame) > most) {
            return Err(TraceError::Factor);
        }
        let frames = self.frames.iter().map(|frame| Frame { size: size(frame) as u32, ..*frame });
        Self::new(frames.collect(), self.length)
    }

    /// The frames repeated for at least `lasts`, cut there at a position where no B frame misses a needed frame, and
    /// scaled to `bits` per second.
    ///
    /// # Errors
    /// As [`Self::scaled`], [`Self::repeat`] and [`Self::head`].
    pub fn at_bit_rate(&self, bits: f64, lasts: Duration) -> Result<Self, TraceError> {
        let passes = lasts.as_nanos().div_ceil(self.period().as_nanos().max(1)).max(1);
        let long = self.repeat(u32::try_from(passes).map_err(|_| TraceError::TooLong)?)?;
        let frames = long.frames.iter().filter(|frame| frame.at < lasts).count();
        let cut = long.head(frames.max(1))?;
        cut.scaled(bits / cut.bit_rate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clip;

    #[test]
    fn a_scaled_trace_differs_in_sizes_alone() {
        let (once, larger) = (clip::trace(), clip::trace().scaled(4.0).expect("four times the load"));
        assert_eq!(larger.frames()[0].size, 4 * 287);
        assert_eq!(larger.bytes().total(), 4 * once.bytes().total());
        assert_eq!(larger.counts(), once.counts());
        assert_eq!(larger.frames()[7].play_out, once.frames()[7].play_out);
        assert_eq!(once.scaled(1e-9).expect("tiny").bytes().total(), 2000, "a byte each at least");
    }

    #[test]
    fn a_bit_rate_is_met_to_a_thousandth() {
        for bits in [1e6, 2e6, 4e6, 8e6] {
            let trace = clip::trace().at_bit_rate(bits, Duration::from_secs(120)).expect("a trace");
            assert!((trace.bit_rate() / bits - 1.0).abs() < 1e-3, "{} for {bits}", trace.bit_rate());
            let seconds = trace.frames().last().map_or(0.0, |frame| frame.at.as_secs_f64());
            assert!((119.0..=120.0).contains(&seconds), "{seconds}");
        }
    }

    #[test]
    fn short_and_long_are_cut_where_every_b_frame_has_its_references() {
        let short = clip::trace().at_bit_rate(1e6, Duration::from_millis(500)).expect("half a second");
        // Frames 0 to 14 in coding order, of which the first 13 are the first 13 shown.
        assert_eq!(short.frames().len(), 13);
        assert_eq!(clip::trace().at_bit_rate(1e6, Duration::ZERO).expect("one frame").frames().len(), 1);
    }

    #[test]
    fn a_factor_that_makes_no_video_is_one_clear_sentence() {
        let sentence = "sizes cannot be scaled so: the factor must be above 0, and no frame may exceed 16 MiB";
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e6] {
            assert_eq!(clip::trace().scaled(factor).expect_err("refused").to_string(), sentence, "{factor}");
        }
    }
}
