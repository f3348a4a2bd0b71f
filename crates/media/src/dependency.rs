//! Prediction between frames, and which frames decode, given those that arrived.
//!
//! The rule, in display order, among the frames that are earlier in coding order: an I frame needs none; a P frame
//! needs the nearest I or P frame before it; a B frame needs the nearest referenced frame before it and the nearest
//! after it, if there is one. For MPEG-4 part 2 and for H.264 with plain B frames this follows the standards. H.264 may
//! predict from more frames and MPEG-4 from fewer (a frame of intra blocks only), which types do not show: then it is a
//! model.

use crate::frame::{Frame, FrameType};
use crate::trace::Trace;
use std::collections::BTreeMap;

/// The frames that each frame of a trace is predicted from.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// By index in coding order: indices in coding order, each smaller than the frame's own.
    needs: Vec<[Option<u32>; 2]>,
}

impl Dependency {
    pub fn new(trace: &Trace) -> Self {
        // Display index -> index in coding order, of the referenced frames since the last I frame but one. Earlier ones
        // cannot be nearest any more.
        let mut anchors: BTreeMap<u32, u32> = BTreeMap::new();
        let mut referenced: BTreeMap<u32, u32> = BTreeMap::new();
        let mut last_i: Option<u32> = None;
        let mut needs = Vec::with_capacity(trace.frames().len());
        for (index, frame) in trace.frames().iter().enumerate() {
            needs.push(Self::of(frame, &anchors, &referenced));
            if !frame.referenced {
                continue;
            }
            let index = index as u32;
            referenced.insert(frame.display, index);
            if frame.frame_type != FrameType::B {
                anchors.insert(frame.display, index);
            }
            if frame.frame_type == FrameType::I
                && let Some(oldest) = last_i.replace(frame.display)
            {
                anchors = anchors.split_off(&oldest);
                referenced = referenced.split_off(&oldest);
            }
        }
        Self { needs }
    }

    fn of(frame: &Frame, anchors: &BTreeMap<u32, u32>, referenced: &BTreeMap<u32, u32>) -> [Option<u32>; 2] {
        let nearest = |found: Option<(&u32, &u32)>| found.map(|(_, &index)| index);
        match frame.frame_type {
            FrameType::I => [None, None],
            FrameType::P => [nearest(anchors.range(..frame.display).next_back()), None],
            FrameType::B => {
                let before = nearest(referenced.range(..frame.display).next_back());
                [before, nearest(referenced.range(frame.display..).next())]
            }
        }
    }

    /// The frames that frame `index` needs, as indices in coding order; none for an unknown frame.
    pub fn needs(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        self.needs.get(index).into_iter().flatten().flatten().map(|&needed| needed as usize)
    }

    /// Which frames decode without errors: those that arrived completely, and whose needed frames do. In coding order,
    /// like `arrived`; frames beyond the end of `arrived` are lost.
    ///
    /// ```
    /// use anabranch_media::{Dependency, FrameRate, FrameType::{B, I, P}, Trace};
    ///
    /// let coded = [I, P, B, B, I].map(|frame_type| (frame_type, 500));
    /// let trace = Trace::at_rate(&coded, FrameRate::new(30, 1).unwrap())?;
    /// // Without the P frame, the two B frames between it and the I frame before it are of no use.
    /// let decodable = Dependency::new(&trace).decodable(&[true, false, true, true, true]);
    /// assert_eq!(decodable, [true, false, false, false, true]);
    /// # Ok::<(), anabranch_media::TraceError>(())
    /// ```
    pub fn decodable(&self, arrived: &[bool]) -> Vec<bool> {
        let mut decodable: Vec<bool> = Vec::with_capacity(self.needs.len());
        for index in 0..self.needs.len() {
            // The needed frames are earlier, so they are decided.
            let whole = arrived.get(index).copied().unwrap_or(false);
            decodable.push(whole && self.needs(index).all(|needed| decodable[needed]));
        }
        decodable
    }

    /// Number of displayed frames that change when only this one is lost: itself and all predicted from it.
    pub fn damage(&self, lost: usize) -> usize {
        let mut arrived = vec![true; self.needs.len()];
        match arrived.get_mut(lost) {
            Some(place) => *place = false,
            None => return 0,
        }
        self.decodable(&arrived).iter().filter(|decodable| !**decodable).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::FrameRate;

    /// `I P B B P B B I B B P B B P B B I ...`: the paper's group of 9 in coding order, all frames of one size.
    fn paper(frames: usize) -> Trace {
        // Display order I B B P B B P B B, repeated; a B at the very end has nothing after it and is coded as P.
        let letter = |display: usize| match display % 9 {
            0 => FrameType::I,
            3 | 6 => FrameType::P,
            _ if display / 3 == (frames - 1) / 3 => FrameType::P,
            _ => FrameType::B,
        };
        let mut coded = Vec::new();
        let mut held = Vec::new();
        for display in 0..frames {
            match letter(display) {
                FrameType::B => held.push((FrameType::B, 100)),
                other => {
                    coded.push((other, 1000));
                    coded.append(&mut held);
                }
            }
        }
        Trace::at_rate(&coded, FrameRate::new(30, 1).expect("a rate")).expect("a trace")
    }

    #[test]
    fn the_papers_counts_are_those_of_a_group_of_nine_with_two_b_frames() {
        let once = paper(2000);
        let head: String = once.frames().iter().take(16).map(|frame| frame.frame_type.letter()).collect();
        assert_eq!(head, "IPBBPBBIBBPBBPBB");
        let whole = once.repeat(5).expect("10,000 frames");
        let counts = whole.counts();
        assert_eq!((counts.i, counts.p, counts.b), (1115, 2225, 6660), "section V.A of the paper");
    }

    #[test]
    fn losing_a_b_a_p_or_an_i_frame_changes_one_eight_or_eleven_displayed_frames() {
        let trace = paper(2000);
        let dependency = Dependency::new(&trace);
        let at_display = |display: usize| trace.display_order()[display];
        assert_eq!(dependency.damage(at_display(91)), 1, "B");
        assert_eq!(dependency.damage(at_display(93)), 8, "the first P of a group: itself, one P and six B");
        assert_eq!(dependency.damage(at_display(96)), 5, "the second P of a group: itself and four B");
        assert_eq!(dependency.damage(at_display(90)), 11, "I: its group of nine, and two B of the one before");
        assert_eq!(dependency.damage(5000), 0, "a frame that is not there");
    }

    #[test]
    fn a_frame_needs_what_the_standard_says() {
        // Coding order I0 P3 B1 B2 P6 B4 B5 I9 B7 B8, the numbers being display places.
        let trace = paper(28);
        let dependency = Dependency::new(&trace);
        let displayed: Vec<Vec<u32>> = (0..10)
            .map(|index| dependency.needs(index).map(|needed| trace.frames()[needed].display).collect())
            .collect();
        let expected: [&[u32]; 10] = [&[], &[0], &[0, 3], &[0, 3], &[3], &[3, 6], &[3, 6], &[], &[6, 9], &[6, 9]];
        assert_eq!(displayed, expected);
    }

    #[test]
    fn nothing_decodes_when_nothing_arrived_and_everything_when_all_did() {
        let trace = paper(100);
        let dependency = Dependency::new(&trace);
        assert!(dependency.decodable(&[]).iter().all(|decodable| !decodable));
        assert!(dependency.decodable(&[true; 100]).iter().all(|decodable| *decodable));
    }

    #[test]
    fn a_b_frame_that_others_need_is_counted_among_what_they_need() {
        // Display I0 b1 B2 b3 P4, coded I0 P4 B2 b1 b3: b1 needs I0 and B2, b3 needs B2 and P4.
        let spread = Trace::at_rate(&[(FrameType::I, 9), (FrameType::P, 9)], FrameRate::new(30, 1).expect("a rate"));
        let first = spread.expect("a trace").frames()[0];
        let micros = anabranch_policy::Duration::from_micros;
        let frame = |frame_type, referenced, display: u32, coded: u64| crate::Frame {
            frame_type,
            referenced,
            display,
            at: micros(coded * 100),
            play_out: micros(u64::from(display) * 100 + 300),
            ..first
        };
        let frames = vec![
            frame(FrameType::I, true, 0, 0),
            frame(FrameType::P, true, 4, 1),
            frame(FrameType::B, true, 2, 2),
            frame(FrameType::B, false, 1, 3),
            frame(FrameType::B, false, 3, 4),
        ];
        assert_eq!(frames.iter().map(crate::Frame::importance).collect::<Vec<_>>(), [0, 128, 128, 255, 255]);
        let trace = Trace::new(frames, micros(800)).expect("a trace");
        let dependency = Dependency::new(&trace);
        let needs = |index| dependency.needs(index).collect::<Vec<_>>();
        assert_eq!((needs(2), needs(3), needs(4)), (vec![0, 1], vec![0, 2], vec![2, 1]));
    }
}
