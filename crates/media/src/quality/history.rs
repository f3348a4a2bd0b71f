//! The frames on which the pictures of a decoder depend.
//!
//! An MPEG-4 part 2 decoder keeps two pictures, the last two I or P frames in coding order. A B frame has no effect on
//! later pictures, and an I frame that arrives resets the state, except for the B frames between it and the next I or P
//! frame, which are also predicted from the frame before it. So a stream consists of sections, each from an I frame
//! that arrived up to the next one. Their pictures depend only on which I and P frames arrived in the section and in
//! the one before it. There are few such histories compared with the number of loss patterns.

use crate::elementary::{Codec, ElementaryStream};
use crate::frame::FrameType;
use std::ops::Range;

/// A section of a stream and the frames its pictures depend on, as coding indices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct History {
    /// From an I frame that arrived up to the next one; display indices are the same.
    pub range: (usize, usize),
    /// I and P frames that arrived in the section before it; empty before the first.
    pub before: Vec<usize>,
    /// I and P frames that arrived in it.
    pub own: Vec<usize>,
}

impl History {
    /// Whether a decoder with only this history decodes that B frame of the section like one with the whole stream.
    /// Without a section before it, B frames directly after the first I frame are predicted from the decoder's initial
    /// state.
    pub fn tells(&self, frame: usize) -> bool {
        !self.before.is_empty() || self.own.get(1).is_some_and(|second| *second < frame)
    }
}

/// The histories of a pass, and the start that must be decoded as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Pass {
    /// In order.
    pub histories: Vec<History>,
    /// Which frames a decoder gets up to the first I or P frame after the first I frame; display indices are the same.
    /// Empty if that I frame is the only one.
    pub opening: Vec<bool>,
}

/// Whether this module applies to a stream: its codec keeps two pictures, and all frames that precede an I or P frame
/// in coding order are shown before all others.
pub(super) fn has_histories(stream: &ElementaryStream) -> bool {
    let display = stream.display();
    let mut shown = 0;
    let mut falls = |(index, place): (usize, &u32)| {
        let cut = stream.pictures[index].frame_type == FrameType::B || shown == index;
        shown = shown.max(*place as usize + 1);
        cut
    };
    stream.format.codec == Codec::Mpeg4 && display.iter().enumerate().all(&mut falls)
}

/// The dependencies of a pass's pictures; `arrived` are the frames passed to the decoder ([`crate::lossy`]).
pub(super) fn histories(stream: &ElementaryStream, arrived: &[bool]) -> Pass {
    let anchors = |range: Range<usize>| range.filter(|index| arrived[*index] && kind(stream, *index) != FrameType::B);
    let mut begins: Vec<usize> =
        anchors(0..arrived.len()).filter(|index| kind(stream, *index) == FrameType::I).collect();
    let first = begins.first().copied();
    let opening_ends =
        first.map_or(arrived.len(), |first| anchors(first + 1..arrived.len()).next().unwrap_or(arrived.len()));
    let mut opening = (0..opening_ends).filter(|index| arrived[*index]);
    let opening = if opening.any(|index| Some(index) != first) { arrived[..opening_ends].to_vec() } else { Vec::new() };
    begins.push(arrived.len());
    let mut before = Vec::new();
    let section = |pair: &[usize]| {
        let own: Vec<usize> = anchors(pair[0]..pair[1]).collect();
        History { range: (pair[0], pair[1]), before: std::mem::replace(&mut before, own.clone()), own }
    };
    Pass { histories: begins.windows(2).map(section).collect(), opening }
}

pub(super) fn kind(stream: &ElementaryStream, index: usize) -> FrameType {
    stream.pictures[index].frame_type
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clip;
    use crate::lossy::given;

    /// The first 25 frames of the clip: I P B B P B B, then I B B P B B P B B twice.
    fn three_groups() -> ElementaryStream {
        let mut stream = clip::stream();
        stream.pictures.truncate(25);
        stream
    }

    fn without(lost: &[usize]) -> Pass {
        let arrived: Vec<bool> = (0..25).map(|index| !lost.contains(&index)).collect();
        histories(&three_groups(), &given(&three_groups(), &arrived))
    }

    #[test]
    fn the_clip_and_what_the_film_is_coded_to_have_histories_and_h264_has_none() {
        assert!(has_histories(&clip::stream()));
        let original = ElementaryStream::read(clip::ORIGINAL).expect("H.264");
        assert!(!has_histories(&original));
    }

    #[test]
    fn a_section_goes_from_an_i_frame_to_the_next_that_arrived() {
        let whole = without(&[]);
        let of = |range, before: &[usize], own: &[usize]| History { range, before: before.to_vec(), own: own.to_vec() };
        let (first, second, third) = ([0, 1, 4], [7, 10, 13], [16, 19, 22]);
        let all = [of((0, 7), &[], &first), of((7, 16), &first, &second), of((16, 25), &second, &third)];
        assert_eq!(whole, Pass { histories: all.to_vec(), opening: Vec::new() });
        // A lost B frame changes no history, a P frame its own and the next, an I frame joins two.
        assert_eq!(without(&[8]), whole);
        let p = without(&[10]);
        assert_eq!(p.histories[1..], [of((7, 16), &first, &[7, 13]), of((16, 25), &[7, 13], &third)]);
        let i = without(&[7]);
        let joined = [0, 1, 4, 10, 13];
        assert_eq!(i.histories, [of((0, 16), &[], &joined), of((16, 25), &joined, &third)]);
    }

    #[test]
    fn what_comes_before_the_first_i_frame_goes_to_a_decoder_as_it_was() {
        // P B B P B B without their I frame, then I, two B frames, up to the next P frame at 10.
        let no_i = without(&[0]);
        assert_eq!(no_i.opening.len(), 10);
        assert_eq!(no_i.histories[0].range, (7, 16));
        assert!(no_i.histories[0].before.is_empty());
        assert!(!no_i.histories[0].tells(8) && no_i.histories[0].tells(11));
        // B frames alone are not passed to it.
        assert_eq!(without(&[0, 1, 4, 8, 9]).opening, Vec::<bool>::new());
        assert_eq!(without(&[0, 1, 4, 8]).opening.len(), 10);
        let nothing: Vec<usize> = (0..25).collect();
        assert_eq!(without(&nothing), Pass::default());
    }
}
