//! The scenarios that come with the program.

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::scenario::Document;
use std::path::Path;

/// A scenario that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct Embedded {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// A paper's experiment, for `reproduce`.
    pub experiment: bool,
}

/// All of them, in the order of `reproduce`.
pub const SCENARIOS: &[Embedded] = &[
    Embedded { name: "lm3_motivation", text: include_str!("../../../scenarios/lm3_motivation.toml"), experiment: true },
    Embedded { name: "lm3_evaluation", text: include_str!("../../../scenarios/lm3_evaluation.toml"), experiment: true },
    Embedded { name: "maps", text: include_str!("../../../scenarios/maps.toml"), experiment: true },
    Embedded { name: "maps_stream", text: include_str!("../../../scenarios/maps_stream.toml"), experiment: true },
    Embedded { name: "recpr_bulk", text: include_str!("../../../scenarios/recpr_bulk.toml"), experiment: true },
    Embedded { name: "recpr_video", text: include_str!("../../../scenarios/recpr_video.toml"), experiment: true },
    Embedded { name: "recpr_video_10", text: include_str!("../../../scenarios/recpr_video_10.toml"), experiment: true },
    Embedded {
        name: "recpr_video_300",
        text: include_str!("../../../scenarios/recpr_video_300.toml"),
        experiment: true,
    },
    Embedded {
        name: "recpr_video_in_turn",
        text: include_str!("../../../scenarios/recpr_video_in_turn.toml"),
        experiment: true,
    },
    Embedded {
        name: "recpr_video_360p",
        text: include_str!("../../../scenarios/recpr_video_360p.toml"),
        experiment: true,
    },
    Embedded {
        name: "recpr_video_360p_300",
        text: include_str!("../../../scenarios/recpr_video_360p_300.toml"),
        experiment: true,
    },
    Embedded {
        name: "manet_homogeneous",
        text: include_str!("../../../scenarios/manet_homogeneous.toml"),
        experiment: true,
    },
    Embedded {
        name: "manet_heterogeneous",
        text: include_str!("../../../scenarios/manet_heterogeneous.toml"),
        experiment: true,
    },
    Embedded {
        name: "manet_receive_buffer",
        text: include_str!("../../../scenarios/manet_receive_buffer.toml"),
        experiment: true,
    },
    Embedded { name: "manet_file", text: include_str!("../../../scenarios/manet_file.toml"), experiment: true },
    Embedded { name: "manet_timeouts", text: include_str!("../../../scenarios/manet_timeouts.toml"), experiment: true },
    Embedded { name: "manet_moving", text: include_str!("../../../scenarios/manet_moving.toml"), experiment: true },
    Embedded { name: "manet_forecast", text: include_str!("../../../scenarios/manet_forecast.toml"), experiment: true },
    Embedded { name: "manet_cuts", text: include_str!("../../../scenarios/manet_cuts.toml"), experiment: true },
    Embedded { name: "manet_scale", text: include_str!("../../../scenarios/manet_scale.toml"), experiment: true },
    Embedded { name: "two_paths", text: include_str!("../../../scenarios/two_paths.toml"), experiment: false },
    Embedded {
        name: "stream_two_paths",
        text: include_str!("../../../scenarios/stream_two_paths.toml"),
        experiment: false,
    },
    Embedded { name: "wifi-lte", text: include_str!("../../../scenarios/wifi-lte.toml"), experiment: false },
];

impl Embedded {
    /// As a document, with options laid over it.
    pub fn document(&self, options: &[String]) -> Document {
        Document::embedded(&format!("scenarios/{}.toml", self.name), self.text, options)
    }
}

/// The file at `path`, or the scenario of that name that comes with the program.
pub fn open(path: &Path, options: &[String]) -> Result<Document, Diagnostic> {
    let embedded = path.to_str().and_then(|name| SCENARIOS.iter().find(|known| known.name == name));
    match embedded {
        Some(known) if !path.exists() => Ok(known.document(options)),
        _ => Document::open(path, options).map_err(|error| {
            let hint = did_you_mean(&path.to_string_lossy(), SCENARIOS.iter().map(|known| known.name));
            if hint.is_empty() { error } else { Diagnostic::plain(format!("{}{hint}", error.message())) }
        }),
    }
}

/// The experiments whose names begin with `name`; all of them if none is given.
pub fn experiments(name: Option<&str>) -> Result<Vec<&'static Embedded>, Diagnostic> {
    let all = SCENARIOS.iter().filter(|known| known.experiment);
    let chosen: Vec<_> = all.clone().filter(|known| known.name.starts_with(name.unwrap_or(""))).collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let (name, names) = (name.unwrap_or(""), all.map(|known| known.name));
    let hint = did_you_mean(name, names.clone());
    let known = names.collect::<Vec<_>>().join(", ");
    Err(Diagnostic::plain(format!("there is no experiment '{name}': known are {known}{hint}")))
}
