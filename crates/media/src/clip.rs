//! The clip that comes with the crate: 2,000 frames of Big Buck Bunny at 176x144, coded as the recPR paper's was.
//!
//! `assets/README.md` has its source, its licence and how it was made.

use crate::elementary::ElementaryStream;
use crate::trace::Trace;

pub const WIDTH: u32 = 176;
pub const HEIGHT: u32 = 144;
/// Frames in a pass.
pub const FRAMES: usize = 2_000;
/// Frames per second.
pub const RATE: u32 = 30;

pub const TRACE: &str = include_str!("../assets/bbb_qcif.trace");

/// The clip in MPEG-4 part 2, with its header once at the start.
pub const MPEG4: &[u8] = include_bytes!("../assets/bbb_qcif.m4v");

/// The reference of the clip, in H.264. It replaces the uncompressed original, which is too large to include: its
/// PSNR-Y against that is 37.18 dB.
pub const ORIGINAL: &[u8] = include_bytes!("../assets/bbb_qcif_original.h264");

/// The clip's frames: 223 I, 445 P, 1332 B at 30 per second; repeated five times they are the paper's 10,000.
pub fn trace() -> Trace {
    Trace::from_text(TRACE).expect("the clip's trace is read in the tests")
}

/// The clip's pictures with their bytes.
pub fn stream() -> ElementaryStream {
    ElementaryStream::read(MPEG4).expect("the clip's stream is read in the tests")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{ByType, FrameType};
    use crate::packetiser::Packetiser;
    use crate::trace::FrameRate;

    #[test]
    fn five_passes_are_the_papers_frames_and_packets() {
        let paper = trace().repeat(5).expect("10,000 frames");
        assert_eq!(paper.counts(), ByType { i: 1115, p: 2225, b: 6660 }, "section V.A");
        let packets = Packetiser::default().counts(&paper);
        assert_eq!(packets.total(), 11_250, "as the paper has it");
        assert_eq!(packets, ByType { i: 2305, p: 2285, b: 6660 }, "the paper's clip has 2315, 2265, 6670");
    }

    #[test]
    fn a_group_begins_as_the_papers_does() {
        let head: String = trace().frames().iter().take(7).map(|frame| frame.frame_type.letter()).collect();
        assert_eq!(head, "IPBBPBB");
    }

    #[test]
    fn the_trace_is_that_of_the_stream() {
        let other = FrameRate::new(25, 1).expect("a rate that the stream overrules");
        assert_eq!(stream().trace(other).expect("a trace").to_text(), TRACE);
    }

    #[test]
    fn the_header_of_the_stream_goes_out_of_band() {
        let stream = stream();
        assert_eq!(stream.format.header.len(), 31);
        assert_eq!((stream.format.width, stream.format.height), (WIDTH, HEIGHT));
        let bytes: usize = stream.pictures.iter().map(|picture| picture.payload().len()).sum();
        assert_eq!(bytes + 31, MPEG4.len());
    }

    #[test]
    fn the_original_has_as_many_frames() {
        let original = ElementaryStream::read(ORIGINAL).expect("H.264");
        assert_eq!(original.pictures.len(), FRAMES);
        assert_eq!((original.format.width, original.format.height), (WIDTH, HEIGHT));
        assert_eq!(original.format.rate, FrameRate::new(RATE, 1));
        assert_eq!(original.pictures[0].frame_type, FrameType::I);
    }

    #[test]
    fn what_comes_along_is_less_than_a_megabyte() {
        assert!(MPEG4.len() + ORIGINAL.len() <= 1_000_000);
    }
}
