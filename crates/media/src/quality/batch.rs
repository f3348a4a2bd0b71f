//! Scores many passes of one stream together: each picture that can be shown is decoded once, and scored once at each
//! display index.
//!
//! Passes that lost the same I and P frames of a section have the same pictures there ([`super::history`]). Those of
//! many sections are decoded in one run of ffmpeg. The pictures of a pass are then looked up: for each display index
//! the picture of its frame, if it arrived and was decoded, or else the one shown before. The scores equal those of
//! decoding each pass separately; tests compare both.

use super::album::{Album, Given, Shown};
use super::comparison::Comparison;
use super::error::QualityError;
use super::history::{History, Pass, histories, kind};
use crate::ffmpeg::FfmpegError;
use crate::frame::FrameType;
use crate::lossy;
use crate::metrics::difference::mean_squared_error;
use crate::metrics::score::{FrameScore, Scorer};
use crate::metrics::{Plane, WrongSize};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Limit of stored decoded pictures in bytes.
const KEPT: usize = 192 << 20;

/// Scores of the frames of many passes.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    /// Distinct scores; also against the uncompressed original, if available.
    pub(super) figures: [Vec<FrameScore>; 2],
    /// Mean squared errors against the frames as encoded.
    pub(super) coded: Vec<f64>,
    /// Indices of scores, by pass and display index.
    pub(super) passes: Vec<Vec<u32>>,
}

impl Scores {
    /// Scores of a pass, in display order; empty if there is no such pass.
    pub fn of(&self, pass: usize) -> impl Iterator<Item = FrameScore> + '_ {
        self.look_up(pass, 0)
    }

    /// Mean squared errors of a pass against the video as encoded: the effect of the transport alone, 0 without losses.
    pub fn of_transport(&self, pass: usize) -> impl Iterator<Item = f64> + '_ {
        self.passes.get(pass).into_iter().flatten().filter_map(|place| self.coded.get(*place as usize).copied())
    }

    /// Scores against the uncompressed original; empty if it is not available.
    pub fn of_uncompressed(&self, pass: usize) -> impl Iterator<Item = FrameScore> + '_ {
        self.look_up(pass, 1)
    }

    fn look_up(&self, pass: usize, original: usize) -> impl Iterator<Item = FrameScore> + '_ {
        let figures = &self.figures[original];
        self.passes.get(pass).into_iter().flatten().filter_map(|place| figures.get(*place as usize).copied())
    }
}

/// Sections to decode, by history, each with the B frames that arrived in some pass.
type Wanted = BTreeMap<History, BTreeSet<usize>>;
/// Decoded pictures, by number of the history and coding index of the frame.
type Pictures = BTreeMap<Place, Shown>;

/// Scores passes of a stream that has histories.
pub(super) fn score(comparison: &Comparison, passes: &[Vec<bool>]) -> Result<Scores, QualityError> {
    let passes: Vec<Vec<bool>> = passes.iter().map(|arrived| lossy::given(&comparison.stream, arrived)).collect();
    let parsed: Vec<Pass> = passes.par_iter().map(|arrived| histories(&comparison.stream, arrived)).collect();
    let wanted = wanted(comparison, &passes, &parsed);
    let openings: BTreeSet<&[bool]> =
        parsed.iter().map(|pass| &*pass.opening).filter(|flags| !flags.is_empty()).collect();
    let openings: Vec<&[bool]> = openings.into_iter().collect();
    let numbers: BTreeMap<&History, usize> = wanted.keys().zip(0..).collect();
    let mut walks: Vec<Walk<'_>> = Vec::with_capacity(passes.len());
    for (arrived, pass) in passes.iter().zip(&parsed) {
        let numbers = pass.histories.iter().map(|history| numbers[history]).collect();
        walks.push(Walk::new(arrived, pass, numbers, openings.binary_search(&&*pass.opening).ok()));
    }
    let display = comparison.stream.display();
    let mut coded_at = vec![0; display.len()];
    display.iter().zip(0..).for_each(|(place, frame)| coded_at[*place as usize] = frame);

    let (mut album, mut pool) = (Album::default(), Pool::new(comparison));
    let opened = decode_openings(comparison, &openings)?;
    let opened: Vec<Vec<Shown>> =
        opened.into_iter().map(|given| given.into_iter().map(|given| album.shown(given)).collect()).collect();
    let section = |(number, (history, b))| Section { number, history, b };
    let sections: Vec<Section<'_>> = wanted.iter().enumerate().map(section).collect();
    let mut rest = &sections[..];
    while let Some((first, later)) = fitting(rest, comparison) {
        let pictures = decode(comparison, first)?.into_iter().map(|(of, given)| (of, album.shown(given))).collect();
        let end = first.len() + sections.len() - rest.len();
        let decoded = Decoded { coded_at: &coded_at, opened: &opened, pictures: &pictures };
        walks.par_iter_mut().for_each(|walk| walk.go_on(end, &decoded));
        pool.score(&mut walks, &album)?;
        album.keep(walks.iter().map(|walk| walk.shown).chain(opened.iter().flatten().copied()));
        rest = later;
    }
    let decoded = Decoded { coded_at: &coded_at, opened: &opened, pictures: &Pictures::new() };
    walks.iter_mut().for_each(|walk| walk.end(&decoded));
    pool.score(&mut walks, &album)?;
    let passes = walks.into_iter().map(|walk| walk.figures).collect();
    Ok(Scores { figures: pool.figures, coded: pool.coded, passes })
}

fn wanted(comparison: &Comparison, passes: &[Vec<bool>], parsed: &[Pass]) -> Wanted {
    let mut wanted = Wanted::new();
    for (arrived, pass) in passes.iter().zip(parsed) {
        for history in &pass.histories {
            let (from, to) = history.range;
            let b = (from..to).filter(|frame| arrived[*frame] && kind(&comparison.stream, *frame) == FrameType::B);
            let b = b.filter(|frame| history.tells(*frame));
            match wanted.get_mut(history) {
                Some(frames) => frames.extend(b),
                None => {
                    let b = b.collect();
                    wanted.insert(history.clone(), b);
                }
            }
        }
    }
    wanted
}

/// A section to be decoded.
#[derive(Clone, Copy)]
struct Section<'a> {
    /// The number of its history.
    number: usize,
    history: &'a History,
    /// The B frames that arrived in some pass.
    b: &'a BTreeSet<usize>,
}

impl Section<'_> {
    /// Its frames in coding order, and whether their pictures are needed or only their effect on the decoder.
    fn frames(&self) -> Vec<(usize, bool)> {
        let mut own: Vec<usize> = self.history.own.iter().chain(self.b).copied().collect();
        own.sort_unstable();
        let before = self.history.before.iter().map(|frame| (*frame, false));
        before.chain(own.into_iter().map(|frame| (frame, true))).collect()
    }
}

/// Splits off as many sections as fit into the limit, at least one.
fn fitting<'a, 'b>(rest: &'a [Section<'b>], comparison: &Comparison) -> Option<(&'a [Section<'b>], &'a [Section<'b>])> {
    let mut bytes = 0;
    let fits = |section: &&Section<'_>| {
        bytes += (section.history.own.len() + section.b.len()) * comparison.scorer.plane();
        bytes <= KEPT
    };
    let count = rest.iter().take_while(fits).count().max(1);
    (!rest.is_empty()).then(|| rest.split_at(count))
}

/// The number of a history, and a coding index.
type Place = (usize, usize);

/// Decodes sections, on all cores.
fn decode(comparison: &Comparison, sections: &[Section<'_>]) -> Result<Vec<(Place, Given)>, FfmpegError> {
    let display = comparison.stream.display();
    let part = |sections: &[Section<'_>]| {
        let (mut file, mut of_time) = (Vec::new(), Vec::new());
        for section in sections {
            let frames = section.frames();
            // Only the order of the times matters.
            let mut order: Vec<usize> = (0..frames.len()).collect();
            order.sort_unstable_by_key(|at| display[frames[*at].0]);
            let mut times = vec![0; frames.len()];
            order.iter().zip(of_time.len() as u64..).for_each(|(at, time)| times[*at] = time);
            file.extend(times.iter().zip(&frames).map(|(time, (frame, _))| (*time, *frame)));
            of_time.extend(order.iter().map(|at| (section.number, frames[*at])));
        }
        let mut given = Vec::new();
        comparison.ffmpeg.pictures(lossy::pictures(&comparison.stream, file.into_iter()), |time, luma| {
            if let Some((number, (frame, true))) = of_time.get(time as usize) {
                given.push(((*number, *frame), comparison.given(display[*frame], luma)));
            }
        })?;
        Ok(given)
    };
    let parts = sections.par_chunks(sections.len().div_ceil(rayon::current_num_threads()).max(1)).map(part);
    Ok(parts.collect::<Result<Vec<_>, FfmpegError>>()?.concat())
}

/// Decodes the starts of passes, each with its own decoder, since the state before the first I frame depends on it: the
/// picture shown at each index.
fn decode_openings(comparison: &Comparison, openings: &[&[bool]]) -> Result<Vec<Vec<Given>>, FfmpegError> {
    let one = |arrived: &&[bool]| {
        let mut shown = Vec::with_capacity(arrived.len());
        let show = |place: usize, planes: &[u8]| {
            shown.push(comparison.given(place as u32, &planes[..comparison.scorer.plane()]))
        };
        comparison.ffmpeg.decode(&lossy::beginning(&comparison.stream, arrived), show)?;
        Ok(shown)
    };
    openings.par_iter().map(one).collect()
}

/// Lookup tables.
struct Decoded<'a> {
    /// Coding indices by display index.
    coded_at: &'a [usize],
    /// Pictures shown at the start of passes, for each opening.
    opened: &'a [Vec<Shown>],
    pictures: &'a Pictures,
}

/// Progress of a pass.
struct Walk<'a> {
    /// Which frames its decoder gets, in coding order.
    arrived: &'a [bool],
    pass: &'a Pass,
    /// The numbers of its histories, and the index of the next.
    numbers: Vec<usize>,
    next: usize,
    opening: Option<usize>,
    shown: Shown,
    /// Pictures shown at the display indices without scores.
    pending: Vec<Shown>,
    figures: Vec<u32>,
}

impl<'a> Walk<'a> {
    fn new(arrived: &'a [bool], pass: &'a Pass, numbers: Vec<usize>, opening: Option<usize>) -> Self {
        let (pending, figures) = (Vec::new(), Vec::with_capacity(arrived.len()));
        Self { arrived, pass, numbers, next: 0, opening, shown: Shown::Nothing, pending, figures }
    }

    /// Continues up to the first history with number `end` or higher.
    fn go_on(&mut self, end: usize, decoded: &Decoded<'_>) {
        while let Some(number) = self.numbers.get(self.next).copied().filter(|number| *number < end) {
            self.show(self.pass.histories[self.next].range.1, Some(number), decoded);
            self.next += 1;
        }
    }

    /// Continues to the end of the pass.
    fn end(&mut self, decoded: &Decoded<'_>) {
        self.show(self.arrived.len(), None, decoded);
        if self.shown == Shown::Nothing {
            self.shown = Shown::Grey;
            self.pending.fill(Shown::Grey);
        }
    }

    /// Shows pictures of this history up to display index `to`.
    fn show(&mut self, to: usize, history: Option<usize>, decoded: &Decoded<'_>) {
        let opened = self.opening.and_then(|opening| decoded.opened.get(opening)).map_or(&[][..], Vec::as_slice);
        for place in self.figures.len() + self.pending.len()..to {
            let frame = decoded.coded_at[place];
            let arrived = history.filter(|_| self.arrived[frame]);
            let picture = arrived.and_then(|history| decoded.pictures.get(&(history, frame)));
            if let Some(picture) = opened.get(place).or(picture) {
                if self.shown == Shown::Nothing {
                    // Before the first picture, the first is shown.
                    self.pending.fill(*picture);
                }
                self.shown = *picture;
            }
            self.pending.push(self.shown);
        }
    }
}

/// Distinct scores.
struct Pool<'a> {
    scorers: Vec<&'a Scorer>,
    figures: [Vec<FrameScore>; 2],
    coded: Vec<f64>,
    /// Index of the scores of a picture at a display index; scores of pictures as encoded are at the display index.
    known: BTreeMap<(u32, Shown), u32>,
}

impl<'a> Pool<'a> {
    fn new(comparison: &'a Comparison) -> Self {
        let scorers: Vec<&Scorer> = comparison.scorers().collect();
        let mut figures = [const { Vec::new() }; 2];
        figures.iter_mut().zip(&scorers).for_each(|(figures, scorer)| figures.extend(scorer.scores()));
        let coded = vec![0.0; comparison.scorer.frames()];
        Self { scorers, figures, coded, known: BTreeMap::new() }
    }

    /// Scores the pictures of the passes that have no scores yet.
    fn score(&mut self, walks: &mut [Walk<'_>], album: &Album) -> Result<(), QualityError> {
        let mut fresh: BTreeMap<u32, BTreeSet<Shown>> = BTreeMap::new();
        for walk in walks.iter().filter(|walk| walk.shown != Shown::Nothing) {
            for (shown, place) in walk.pending.iter().zip(walk.figures.len() as u32..) {
                if *shown != Shown::Coded(place) && !self.known.contains_key(&(place, *shown)) {
                    fresh.entry(place).or_default().insert(*shown);
                }
            }
        }
        let fresh: Vec<(u32, BTreeSet<Shown>)> = fresh.into_iter().collect();
        for (scorer, figures) in self.scorers.iter().zip(&mut self.figures) {
            let of_place = |(place, shown): &(u32, BTreeSet<Shown>)| {
                let reference = scorer.prepared(*place as usize);
                pictures(scorer, shown, album)
                    .map(|luma| Ok(reference.score(luma?)))
                    .collect::<Result<Vec<_>, WrongSize>>()
            };
            figures.extend(fresh.par_iter().map(of_place).collect::<Result<Vec<_>, WrongSize>>()?.concat());
        }
        let scorer = self.scorers[0];
        let of_place = |(place, shown): &(u32, BTreeSet<Shown>)| {
            let coded = scorer.coded(*place as usize);
            pictures(scorer, shown, album)
                .map(|luma| Ok(mean_squared_error(coded, luma?)))
                .collect::<Result<Vec<_>, WrongSize>>()
        };
        self.coded.extend(fresh.par_iter().map(of_place).collect::<Result<Vec<_>, WrongSize>>()?.concat());
        let count: usize = fresh.iter().map(|(_, shown)| shown.len()).sum();
        let keys = fresh.iter().flat_map(|(place, shown)| shown.iter().map(move |shown| (*place, *shown)));
        self.known.extend(keys.zip((self.figures[0].len() - count) as u32..));
        walks.par_iter_mut().filter(|walk| walk.shown != Shown::Nothing).for_each(|walk| {
            let first = walk.figures.len() as u32;
            let at = |(shown, place): (Shown, u32)| {
                if shown == Shown::Coded(place) { place } else { self.known[&(place, shown)] }
            };
            walk.figures.extend(walk.pending.drain(..).zip(first..).map(at));
        });
        Ok(())
    }
}

/// The luma of what is shown.
fn pictures<'a>(
    scorer: &'a Scorer,
    shown: &'a BTreeSet<Shown>,
    album: &'a Album,
) -> impl Iterator<Item = Result<Plane<'a>, WrongSize>> {
    let (width, height) = scorer.size();
    shown.iter().map(move |shown| match shown {
        Shown::Coded(place) => Ok(scorer.coded(*place as usize)),
        Shown::Other(number) => Plane::new(album.picture(*number), width, height),
        Shown::Nothing | Shown::Grey => Plane::new(scorer.grey(), width, height),
    })
}
