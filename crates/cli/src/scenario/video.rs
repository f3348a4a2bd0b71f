//! Reads `[video]`: what a live source sends in place of a transfer, and when it is of use.

use super::model::{MessageUnit, Video};
use super::reader::{Item, Reader};
use crate::diagnostic::Diagnostic;
use anabranch_media::{Trace, clip};
use anabranch_policy::time::Duration;
use std::path::Path;
use std::sync::Arc;

const KEYS: &[&str] = &["trace", "repeats", "quick_repeats", "load", "deadline", "messages"];

/// The trace that comes with the program.
pub const BUILT_IN: &str = "bbb_qcif";

/// Reads `[video]`, if there is one.
pub fn video(top: &Reader<'_>, directory: &Path) -> Result<Option<Video>, Diagnostic> {
    let Some(item) = top.get("video") else { return Ok(None) };
    for key in ["transfer", "mesh", "moving"] {
        if let Some(other) = top.get(key) {
            return Err(other.error(format!("a scenario with a [video] has no [{key}]")));
        }
    }
    let table = item.table("a video", KEYS)?;
    let trace_item = table.get("trace");
    let name = table.text_or("trace", BUILT_IN)?;
    let once = match trace_item {
        Some(item) if name != BUILT_IN => from_file(&item, &directory.join(&name))?,
        _ => clip::trace(),
    };
    let times = |key: &str| table.get(key).map(|item| item.count(1..=1000)).transpose();
    let repeats = times("repeats")?.unwrap_or(1) as u32;
    let quick_repeats = (times("quick_repeats")?.unwrap_or(1) as u32).min(repeats);
    let load = match table.get("load") {
        Some(item) => possible_load(&item)?,
        None => 1.0,
    };
    let deadline_item = table.required("deadline")?;
    let deadline: Duration = deadline_item.quantity()?;
    if deadline == Duration::ZERO {
        return Err(deadline_item.error("nothing arrives at once: a deadline is longer than nothing"));
    }
    let units = [("frames", MessageUnit::Frames), ("packets", MessageUnit::Packets)];
    let messages = table.get("messages").map_or(Ok(MessageUnit::Frames), |item| item.word(&units))?;
    let built_in = name == BUILT_IN;
    Ok(Some(Video { name, built_in, trace: Arc::new(once), repeats, quick_repeats, load, deadline, messages }))
}

fn from_file(item: &Item<'_>, path: &Path) -> Result<Trace, Diagnostic> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| item.error(format!("cannot read the trace {}: {error}", path.display())))?;
    Trace::from_text(&text).map_err(|error| item.error(format!("{}: {error}", path.display())))
}

fn possible_load(item: &Item<'_>) -> Result<f64, Diagnostic> {
    let load = item.number()?;
    if (0.01..=10_000.0).contains(&load) {
        Ok(load)
    } else {
        Err(item.error("the load is how many times the trace's bytes are sent: from 0.01 to 10000"))
    }
}
