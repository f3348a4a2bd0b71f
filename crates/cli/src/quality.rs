//! How the videos of an experiment look: pictures decoded from what was in time, and their scores.
//!
//! A pass of the clip in which the same frames were in time looks the same: each set is decoded and scored once, on all cores,
//! however many runs have it.

use crate::record::{Moment, Outcome, Pictures, PolicyRuns, Record, Still};
use crate::scenario::model::Footage;
use anabranch_media::metrics::score::{FrameScore, Score};
use anabranch_media::{Ffmpeg, Film, Quality, QualityError, clip};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Which frames of a pass were in time, in coding order.
type Set = Vec<bool>;

/// What is said of pictures, in the order of [`add_scores`].
const METRICS: [&str; 6] = ["psnr", "psnr_of_mean", "ssim", "ssim_blocks", "vqm", "mos"];
/// Instants shown.
const MOMENTS: usize = 3;
/// Frames between two of them at least: ten seconds.
const APART: usize = 10 * clip::RATE as usize;

/// Adds scores of pictures to the records of an experiment with a video, and stills; says why not, where it cannot.
pub fn add(outcome: &mut Outcome) {
    let Some(video) = &outcome.scenario.video else { return };
    let seen = match video.footage {
        Footage::Nowhere => Err(format!("the pictures of the trace {} are not here", video.name)),
        footage => Viewer::open(footage).and_then(|viewer| viewer.watch(outcome)),
    };
    outcome.pictures = Some(match seen {
        Ok(moments) => Pictures { missing: None, moments },
        Err(reason) => Pictures { missing: Some(reason), moments: Vec::new() },
    });
}

/// The clip, and what it takes to look at it.
struct Viewer(Quality);

impl Viewer {
    fn open(footage: Footage) -> Result<Self, String> {
        if let Footage::Film(megabits) = footage {
            // Whether there is a film at all is told before whether it could be decoded.
            let film = Film::find().map_err(|error| error.to_string())?;
            let ffmpeg = Ffmpeg::find().map_err(|error| error.to_string())?;
            return film.quality(&ffmpeg, megabits).map(Self).map_err(|error| error.to_string());
        }
        let ffmpeg = Ffmpeg::find().map_err(|error| error.to_string())?;
        Quality::of_clip(ffmpeg).map(Self).map_err(|error| error.to_string())
    }

    /// Scores all runs, and gives the instants at which those of the first seed differ most.
    fn watch(&self, outcome: &mut Outcome) -> Result<Vec<Moment>, String> {
        // Pictures of a whole sweep take minutes, so only one that draws them is looked at.
        let draws = outcome.scenario.sweep.as_ref().is_some_and(|sweep| METRICS.contains(&sweep.metric.as_str()));
        let swept = outcome.sweep.iter().filter(|_| draws).flat_map(|point| &point.policies);
        let runs = outcome.policies.iter().chain(swept).flat_map(|runs| &runs.records);
        let mut sets: Vec<Set> = runs.filter_map(|record| record.video.as_ref()).flat_map(|run| run.passes()).collect();
        sets.sort_unstable();
        sets.dedup();
        let scores = sets.into_par_iter().map(|set| self.0.frames(&set).map(|scores| (set, scores)));
        let scores: BTreeMap<Set, Vec<FrameScore>> =
            scores.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let swept = outcome.sweep.iter_mut().filter(|_| draws).flat_map(|point| &mut point.policies);
        for record in outcome.policies.iter_mut().chain(swept).flat_map(|runs| &mut runs.records) {
            add_scores(record, &scores);
        }
        self.moments(&outcome.policies, &scores)
    }

    fn moments(&self, policies: &[PolicyRuns], scores: &BTreeMap<Set, Vec<FrameScore>>) -> Result<Vec<Moment>, String> {
        let seen: Vec<(String, Set)> = policies.iter().filter_map(first_pass).collect();
        let of = |set: &Set| scores.get(set).map_or(&[][..], Vec::as_slice);
        let all: Vec<&[FrameScore]> = seen.iter().map(|(_, set)| of(set)).collect();
        let frames = worst(&all);
        let mut moments: Vec<Moment> = Vec::new();
        for frame in &frames {
            moments.push(Moment { at: *frame as f64 / f64::from(clip::RATE), frame: *frame, stills: Vec::new() });
        }
        if frames.is_empty() {
            return Ok(moments);
        }
        let mut sets: Vec<&Set> = seen.iter().map(|(_, set)| set).collect();
        sets.sort_unstable();
        sets.dedup();
        let pictures = sets.into_par_iter().map(|set| Ok((set, self.0.stills(set, &frames)?)));
        let pictures: BTreeMap<&Set, Vec<Vec<u8>>> =
            pictures.collect::<Result<_, QualityError>>().map_err(|error| error.to_string())?;
        for ((label, set), scores) in seen.iter().zip(&all) {
            let pictures = pictures.get(set).into_iter().flatten().cloned();
            for (moment, png) in moments.iter_mut().zip(pictures) {
                let psnr = scores.get(moment.frame).map_or(f64::NAN, |score| score.psnr);
                moment.stills.push(Still { label: label.clone(), png, psnr });
            }
        }
        Ok(moments)
    }
}

/// The first pass of a combination's first run.
fn first_pass(runs: &PolicyRuns) -> Option<(String, Set)> {
    let run = runs.records.first()?.video.as_ref()?;
    Some((runs.label(), run.passes().into_iter().next()?))
}

/// Adds the means over all passes of a run.
fn add_scores(record: &mut Record, scores: &BTreeMap<Set, Vec<FrameScore>>) {
    let Some(run) = &record.video else { return };
    let passes = run.passes();
    let frames: Vec<FrameScore> = passes.iter().filter_map(|set| scores.get(set)).flatten().copied().collect();
    let score = Score::of(&frames);
    let values =
        [score.mean_of_psnr, score.psnr_of_mean, score.ssim_gaussian, score.ssim_blocks, score.vqm, score.opinion];
    record.metrics.extend(METRICS.iter().zip(values).map(|(name, value)| ((*name).to_owned(), value)));
}

/// The frames at which the combinations have the largest squared errors beyond the least of them, all added up, the first in
/// time first; none where they are all alike.
fn worst(scores: &[&[FrameScore]]) -> Vec<usize> {
    let length = scores.iter().map(|scores| scores.len()).min().unwrap_or(0);
    let spread = |frame: usize| {
        let errors = scores.iter().map(|scores| scores[frame].error);
        let least = errors.clone().fold(f64::MAX, f64::min);
        errors.map(|error| error - least).sum::<f64>()
    };
    let mut order: Vec<(usize, f64)> = (0..length).map(|frame| (frame, spread(frame))).collect();
    order.retain(|(_, spread)| *spread > 0.0);
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut chosen: Vec<usize> = Vec::new();
    for (frame, _) in order {
        if chosen.len() < MOMENTS && chosen.iter().all(|other| other.abs_diff(frame) >= APART) {
            chosen.push(frame);
        }
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(values: &[f64]) -> Vec<FrameScore> {
        let score =
            |error: &f64| FrameScore { error: *error, psnr: 30.0, ssim_blocks: 1.0, ssim_gaussian: 1.0, vqm: 0.0 };
        values.iter().map(score).collect()
    }

    #[test]
    fn the_instants_shown_are_those_at_which_most_is_lost_and_not_next_to_each_other() {
        let (mut one, other) = (vec![1.0; 2000], errors(&[1.0; 2000]));
        for (frame, error) in [(100, 50.0), (101, 60.0), (900, 20.0), (500, 30.0), (1500, 10.0)] {
            one[frame] = error;
        }
        assert_eq!(worst(&[&errors(&one), &other]), [101, 500, 900]);
        assert_eq!(worst(&[&other, &other]), Vec::<usize>::new());
    }
}
