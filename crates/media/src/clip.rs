//! The clip that comes with the crate: 2,000 frames of Big Buck Bunny at 176x144, coded as the recPR paper's was.
//!
//! Where it comes from, its licence and how it was made stand in `assets/README.md`.

use crate::trace::Trace;

/// The clip's frames as text.
pub const TRACE: &str = include_str!("../assets/bbb_qcif.trace");

/// The clip's frames: 223 I, 445 P, 1332 B at 30 per second; five times in a row they are the paper's 10,000.
pub fn trace() -> Trace {
    Trace::from_text(TRACE).expect("the clip's trace is read in the tests")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::ByType;
    use crate::packetiser::Packetiser;

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
}
