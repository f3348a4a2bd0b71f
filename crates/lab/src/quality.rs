//! Video quality of an experiment: decodes the frames that arrived in time, and scores them.
//!
//! All passes of all runs are scored together, so that each picture is decoded and scored once for all runs.

use crate::record::{Moment, Outcome, Pictures, PolicyRuns, Record, Still, VideoRun};
use crate::scenario::model::Footage;
use anabranch_media::metrics::difference::psnr;
use anabranch_media::metrics::score::{FrameScore, Score};
use anabranch_media::quality::Scores;
use anabranch_media::{Ffmpeg, Film, FilmError, Quality, QualityError, clip};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether each frame of a pass was in time, in coding order.
type Set = Vec<bool>;

/// Picture metrics, in the order of [`add_scores`].
const METRICS: [&str; 6] = ["psnr", "psnr_of_mean", "ssim", "ssim_blocks", "vqm", "mos"];
/// Compared with the encoded video: the effect of the transport alone.
const TRANSPORT: &str = "psnr_coded";
/// Compared with the uncompressed original, if available.
const UNCOMPRESSED: [&str; 3] = ["psnr_uncompressed", "ssim_uncompressed", "vqm_uncompressed"];
/// Whether a metric is computed from pictures.
fn is_of_pictures(metric: &str) -> bool {
    METRICS.contains(&metric) || metric == TRANSPORT || UNCOMPRESSED.contains(&metric)
}

/// Number of instants shown.
const MOMENTS: usize = 3;
/// Minimum distance of two instants in frames: ten seconds.
const APART: usize = 10 * clip::RATE as usize;

/// Adds picture scores to the records of an experiment with a video, and stills; or the reason why it cannot.
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

/// A clip with its decoder.
#[derive(Clone)]
struct Viewer(Arc<Quality>);

/// Cache of the last clip: consecutive experiments mostly use the same video.
static OPEN: Mutex<Option<(Footage, Viewer)>> = Mutex::new(None);

impl Viewer {
    fn open(footage: Footage) -> Result<Self, String> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, viewer)) = open.as_ref().filter(|(known, _)| *known == footage) {
            return Ok(viewer.clone());
        }
        let viewer = Self(Arc::new(Self::quality(footage)?));
        *open = Some((footage, viewer.clone()));
        Ok(viewer)
    }

    fn quality(footage: Footage) -> Result<Quality, String> {
        if let Footage::Film(megabits) = footage {
            // Reports a missing film before a missing decoder.
            let film = Film::find().map_err(|error| error.to_string())?;
            let ffmpeg = Ffmpeg::find().map_err(|error| error.to_string())?;
            return film.quality(&ffmpeg, megabits).map_err(|error| error.to_string());
        }
        let ffmpeg = Ffmpeg::find().map_err(|error| error.to_string())?;
        let quality = Quality::of_clip(ffmpeg.clone()).map_err(|error| error.to_string())?;
        match Film::find() {
            Err(FilmError::Unnamed) => Ok(quality),
            Err(error) => Err(error.to_string()),
            Ok(film) => {
                let original = film.original_of_clip(&ffmpeg).map_err(|error| error.to_string())?;
                quality.with_uncompressed(original).map_err(|error| error.to_string())
            }
        }
    }

    /// Scores all runs. Returns the instants at which the runs of the first seed differ most.
    fn watch(&self, outcome: &mut Outcome) -> Result<Vec<Moment>, String> {
        let scenario = &outcome.scenario;
        let film = scenario.video.as_ref().is_some_and(|video| matches!(video.footage, Footage::Film(_)));
        // Scores are computed only if something shows them.
        let swept = scenario.results.sweep.as_ref().is_some_and(|sweep| is_of_pictures(&sweep.metric));
        let varied =
            scenario.results.sensitivity.as_ref().is_some_and(|sensitivity| is_of_pictures(&sensitivity.metric));
        let sweep = outcome.sweep.iter_mut().filter(|_| swept).flat_map(|point| &mut point.policies);
        let sensitivity = outcome.sensitivity.iter_mut().filter(|_| varied).flat_map(|point| &mut point.policies);
        let runs = outcome.policies.iter_mut().chain(sweep).chain(sensitivity);
        let mut records: Vec<&mut Record> = runs.flat_map(|runs| &mut runs.records).collect();
        let videos = records.iter().filter_map(|record| record.video.as_ref());
        let mut sets: Vec<Set> = videos.flat_map(VideoRun::passes).collect();
        sets.sort_unstable();
        sets.dedup();
        let scores = self.0.frames_of_passes(&sets).map_err(|error| error.to_string())?;
        let scored = Scored { sets, scores, film };
        records.par_iter_mut().for_each(|record| add_scores(record, &scored));
        self.moments(&outcome.policies, &scored)
    }

    fn moments(&self, policies: &[PolicyRuns], scored: &Scored) -> Result<Vec<Moment>, String> {
        let seen: Vec<(String, Set)> = policies.iter().filter_map(first_pass).collect();
        let all: Vec<Vec<FrameScore>> = seen.iter().map(|(_, set)| scored.of(set).collect()).collect();
        let frames = worst(&all.iter().map(Vec::as_slice).collect::<Vec<_>>());
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

/// The first pass of a contender's first run.
fn first_pass(runs: &PolicyRuns) -> Option<(String, Set)> {
    let run = runs.records.first()?.video.as_ref()?;
    Some((runs.label(), run.passes().into_iter().next()?))
}

/// Passes in ascending order, and their scores.
struct Scored {
    sets: Vec<Set>,
    scores: Scores,
    /// Whether the uncompressed original is available.
    film: bool,
}

impl Scored {
    fn of(&self, set: &Set) -> impl Iterator<Item = FrameScore> + '_ {
        self.pass(set).flat_map(|pass| self.scores.of(pass))
    }

    fn pass(&self, set: &Set) -> impl Iterator<Item = usize> + use<> {
        self.sets.binary_search(set).into_iter()
    }
}

/// Adds the means over all passes of a run.
fn add_scores(record: &mut Record, scored: &Scored) {
    let Some(run) = &record.video else { return };
    let passes: Vec<usize> = run.passes().iter().flat_map(|set| scored.pass(set)).collect();
    let of = |pass: &usize| scored.scores.of(*pass);
    let score = Score::of(&passes.iter().flat_map(of).collect::<Vec<FrameScore>>());
    let values =
        [score.mean_of_psnr, score.psnr_of_mean, score.ssim_gaussian, score.ssim_blocks, score.vqm, score.opinion];
    let mut metrics: Vec<(&str, f64)> = METRICS.into_iter().zip(values).collect();
    let errors: Vec<f64> = passes.iter().flat_map(|pass| scored.scores.of_transport(*pass)).collect();
    metrics.push((TRANSPORT, psnr(errors.iter().sum::<f64>() / errors.len().max(1) as f64)));
    let of = |pass: &usize| scored.scores.of_uncompressed(*pass);
    let uncompressed = Score::of(&passes.iter().flat_map(of).collect::<Vec<FrameScore>>());
    let against = if scored.film { score } else { uncompressed };
    if against.frames > 0 {
        metrics.extend(UNCOMPRESSED.into_iter().zip([against.mean_of_psnr, against.ssim_gaussian, against.vqm]));
    }
    record.metrics.extend(metrics.into_iter().map(|(name, value)| (name.to_owned(), value)));
}

/// Frames with the largest sum over contenders of squared errors above the smallest, in order of time; none where all
/// are equal.
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
