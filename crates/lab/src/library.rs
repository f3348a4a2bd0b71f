//! Scenarios that are embedded in the program.

use crate::scenario::Document;
use anabranch_settings::diagnostic::{Diagnostic, did_you_mean};
use std::path::Path;

/// An embedded scenario.
#[derive(Clone, Copy, Debug)]
pub struct Embedded {
    pub name: &'static str,
    pub text: &'static str,
    /// Whether it is a paper's experiment, for `reproduce`.
    pub experiment: bool,
}

/// Scenarios with these names: papers' experiments, then others.
macro_rules! embedded {
    (experiments: [$($experiment:literal,)*], others: [$($other:literal,)*],) => {
        &[
            $(embedded!($experiment, true),)*
            $(embedded!($other, false),)*
        ]
    };
    ($name:literal, $experiment:literal) => {
        Embedded {
            name: $name,
            text: include_str!(concat!("../scenarios/", $name, ".toml")),
            experiment: $experiment,
        }
    };
}

/// All scenarios, in the order of `reproduce`.
pub const SCENARIOS: &[Embedded] = embedded! {
    experiments: [
        "lm3_motivation",
        "lm3_evaluation",
        "maps",
        "recpr_bulk",
        "recpr_video",
        "maps_stream",
        "recpr_video_10",
        "manet_homogeneous",
        "manet_heterogeneous",
        "manet_file",
        "manet_file_heterogeneous",
        "manet_receive_buffer",
        "manet_timeouts",
        "manet_moving",
        "manet_forecast",
        "manet_cuts",
        "manet_scale",
    ],
    others: [
        "recpr_video_300",
        "recpr_video_360p",
        "recpr_video_360p_300",
        "beside",
        "bottleneck",
        "call_wifi_lte",
        "call_satellite",
        "call_dead_path",
        "call_beside_tcp",
        "large_stream",
        "mesh_download",
        "mesh_quality",
        "steering",
        "two_paths",
        "stream_two_paths",
        "wifi-lte",
    ],
};

impl Embedded {
    /// A document with options applied.
    pub fn document(&self, options: &[String]) -> Document {
        Document::embedded(&format!("scenarios/{}.toml", self.name), self.text, options)
    }
}

/// The command that shows an embedded scenario in a browser; none if there is no such scenario, or it cannot be watched.
pub fn watch_command(name: &str) -> Option<String> {
    let embedded = SCENARIOS.iter().find(|known| known.name == name)?;
    let scenario = embedded.document(&[]).scenario().ok()?;
    scenario.cannot_be_watched().is_none().then(|| format!("anabranch play {name}"))
}

/// The file at `path`, or else the embedded scenario with this name.
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

/// Experiments whose names start with one of `names`; without any, all.
///
/// # Errors
/// No experiment's name starts with one of them.
pub fn experiments<S: AsRef<str>>(names: &[S]) -> Result<Vec<&'static Embedded>, Diagnostic> {
    let all = SCENARIOS.iter().filter(|known| known.experiment);
    let starts = |known: &&Embedded, name: &S| known.name.starts_with(name.as_ref());
    if let Some(unknown) = names.iter().find(|name| !all.clone().any(|known| starts(&known, name))) {
        let (unknown, names) = (unknown.as_ref(), all.map(|known| known.name));
        let hint = did_you_mean(unknown, names.clone());
        let known = names.collect::<Vec<_>>().join(", ");
        return Err(Diagnostic::plain(format!("there is no experiment '{unknown}': known are {known}{hint}")));
    }
    Ok(all.filter(|known| names.is_empty() || names.iter().any(|name| starts(known, name))).collect())
}
