//! How the videos of an experiment look: pictures decoded from what came in time, and their scores.

use crate::record::{Outcome, Pictures};

/// Adds the scores of pictures to the records of an experiment with a video, and stills.
pub fn add(outcome: &mut Outcome) {
    if outcome.scenario.video.is_none() {
        return;
    }
    outcome.pictures = Some(Pictures { missing: Some("not yet".to_owned()), moments: Vec::new() });
}
