//! Parses `[video]`: a live source instead of a transfer, with deadlines.

use super::files::Files;
use super::model::{Footage, MessageUnit, Video};
use anabranch_media::{ElementaryStream, FrameRate, StreamError, Trace, clip, film};
use anabranch_policy::rate::Rate;
use anabranch_policy::reliability::{Deadline, DeadlineOf};
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::{Diagnostic, reason};
use anabranch_settings::reader::{Item, Reader};
use std::sync::Arc;

const KEYS: &[&str] =
    &["trace", "rate", "repeats", "quick_repeats", "sweep_repeats", "load", "deadline", "deadline_of", "messages"];

/// The trace whose pictures are embedded in the program.
const CLIP: &str = "bbb_qcif";
/// The film at 640x360, encoded at several rates.
const FILM: &str = "bbb_360p";

/// Parses `[video]`, if present.
pub fn video(top: &Reader<'_>, files: &Files<'_>) -> Result<Option<Video>, Diagnostic> {
    let Some(item) = top.get("video") else { return Ok(None) };
    for key in ["transfer", "mesh", "moving"] {
        if let Some(other) = top.get(key) {
            return Err(other.error(format!("a scenario with a [video] has no [{key}]")));
        }
    }
    let table = item.table("a video", KEYS)?;
    let (name, footage, once) = trace(&table, files)?;
    let times = |key: &str| table.get(key).map(|item| item.count(1..=1000)).transpose();
    let repeats = times("repeats")?.unwrap_or(1) as u32;
    let quick_repeats = (times("quick_repeats")?.unwrap_or(1) as u32).min(repeats);
    let sweep_repeats = (times("sweep_repeats")?.map_or(repeats, |count| count as u32)).min(repeats);
    let load = match table.get("load") {
        Some(item) => possible_load(&item)?,
        None => 1.0,
    };
    let deadline_item = table.required("deadline")?;
    let latency: Duration = deadline_item.quantity()?;
    if latency == Duration::ZERO {
        return Err(deadline_item.error("nothing arrives at once: a deadline is longer than nothing"));
    }
    let of = [("frame", DeadlineOf::Frame), ("group", DeadlineOf::Group)];
    let of = table.get("deadline_of").map_or(Ok(DeadlineOf::Frame), |item| item.word(&of))?;
    let deadline = Deadline { latency, of };
    let units = [("frames", MessageUnit::Frames), ("packets", MessageUnit::Packets)];
    let messages = table.get("messages").map_or(Ok(MessageUnit::Frames), |item| item.word(&units))?;
    let trace = Arc::new(once);
    Ok(Some(Video { name, footage, trace, repeats, quick_repeats, sweep_repeats, load, deadline, messages }))
}

/// The frames to send, and the location of their pictures.
fn trace(table: &Reader<'_>, files: &Files<'_>) -> Result<(String, Footage, Trace), Diagnostic> {
    let name = table.text_or("trace", CLIP)?;
    let rate = table.get("rate");
    if name == FILM {
        let (megabits, trace) = coding(&rate.map_or_else(|| table.required("rate"), Ok)?)?;
        return Ok((name, Footage::Film(megabits), trace));
    }
    if let Some(rate) = rate {
        return Err(rate.error(format!("only {FILM} is coded for several rates; the frames of {name} have a 'load'")));
    }
    match table.get("trace") {
        Some(item) if name != CLIP => {
            let trace = from_file(&item, files, &name)?;
            Ok((name, Footage::Nowhere, trace))
        }
        _ => Ok((name, Footage::Clip, clip::trace())),
    }
}

/// The film's encoding for a rate.
fn coding(item: &Item<'_>) -> Result<(u32, Trace), Diagnostic> {
    let bits = item.quantity::<Rate>()?.bits_per_second();
    let coded = film::MEGABITS.into_iter().find(|megabits| u64::from(*megabits) * 1_000_000 == bits);
    let found = coded.and_then(|megabits| Some((megabits, film::trace(megabits)?)));
    found.ok_or_else(|| item.error(format!("{FILM} is coded for 1, 2, 4 and 8 Mbit/s, not for this rate")))
}

fn from_file(item: &Item<'_>, files: &Files<'_>, name: &str) -> Result<Trace, Diagnostic> {
    let path = files.place(name);
    let bytes = files
        .bytes(name)
        .map_err(|error| item.error(format!("cannot read the trace {}: {}", path.display(), reason(&error))))?;
    let trace = match std::str::from_utf8(&bytes) {
        Ok(text) => Trace::from_text(text).map_err(|error| error.to_string()),
        // Not text: perhaps an elementary stream, which has frames too.
        Err(_) => from_stream(&bytes).map_err(|error| error.to_string()),
    };
    trace.map_err(|error| item.error(format!("{}: {error}", path.display())))
}

/// Frames of an elementary stream, at its own rate or at 30 per second if it has none.
fn from_stream(bytes: &[u8]) -> Result<Trace, StreamError> {
    ElementaryStream::read(bytes)?.trace(FrameRate::new(clip::RATE, 1).expect("thirty is a rate"))
}

fn possible_load(item: &Item<'_>) -> Result<f64, Diagnostic> {
    let load = item.number()?;
    if (0.01..=10_000.0).contains(&load) {
        Ok(load)
    } else {
        Err(item.error("the load is how many times the trace's bytes are sent: from 0.01 to 10000"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;
    use std::path::Path;

    fn video(options: &[&str]) -> Result<Video, String> {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let document = library::open(Path::new("recpr_video"), &options).expect("it comes with the program");
        let scenario = document.scenario().map_err(|error| error.message().to_owned())?;
        Ok(scenario.video.expect("it has a video"))
    }

    /// Parses `[video]` for a file with these bytes.
    fn of_file(name: &str, bytes: &[u8]) -> Result<Video, String> {
        let path = std::env::temp_dir().join(format!("anabranch-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a file in a folder for such");
        let option = format!("video.trace={}", path.display());
        let read = video(&[&option]);
        std::fs::remove_file(&path).expect("it is there");
        read.map_err(|message| message.replace(&path.display().to_string(), "FILE"))
    }

    #[test]
    fn the_film_is_sent_at_the_rate_that_is_asked_for() {
        for (rate, megabits) in [("1 Mbit/s", 1), ("8000 kbit/s", 8)] {
            let read = video(&["video.trace=bbb_360p", &format!("video.rate={rate}")]).expect("a coding");
            assert_eq!(read.footage, Footage::Film(megabits));
            assert_eq!(Some(read.trace.as_ref().clone()), film::trace(megabits));
        }
    }

    #[test]
    fn a_deadline_is_of_each_frame_or_of_each_group() {
        let of = |options: &[&str]| video(options).expect("a video").deadline;
        assert_eq!(of(&["video.deadline_of=group", "video.deadline=300 ms"]).of, DeadlineOf::Group);
        assert_eq!(of(&["video.deadline_of=frame", "video.deadline=300 ms"]), Duration::from_millis(300).into());
        let said = video(&["video.deadline_of=gop"]).expect_err("no such word");
        assert!(said.contains("frame") && said.contains("group"), "{said}");
    }

    #[test]
    fn impossible_videos_are_one_clear_sentence() {
        let said = |options: &[&str]| video(options).expect_err("refused");
        let negative = "'-500 ms' is not possible for a time: it must not be negative";
        assert_eq!(said(&["video.deadline=-500 ms"]), negative);
        assert_eq!(said(&["video.deadline=0 s"]), "nothing arrives at once: a deadline is longer than nothing");
        let rates = "bbb_360p is coded for 1, 2, 4 and 8 Mbit/s, not for this rate";
        assert_eq!(said(&["video.trace=bbb_360p", "video.rate=3 Mbit/s"]), rates);
        assert!(said(&["video.trace=bbb_360p"]).contains("'rate'"), "{}", said(&["video.trace=bbb_360p"]));
        let only = "only bbb_360p is coded for several rates; the frames of bbb_qcif have a 'load'";
        assert_eq!(said(&["video.rate=1 Mbit/s"]), only);
        assert!(said(&["video.trace=/nowhere/a"]).starts_with("cannot read the trace /nowhere/a: "));
    }

    #[test]
    fn a_file_is_a_trace_or_a_stream_or_one_clear_sentence() {
        let frames = |read: Result<Video, String>| read.expect("a video").trace.frames().len();
        assert_eq!(frames(of_file("text", clip::TRACE.as_bytes())), 2_000);
        assert_eq!(frames(of_file("stream", clip::MPEG4)), 2_000);
        let said = |name, bytes| of_file(name, bytes).expect_err("refused");
        let cut = clip::TRACE.lines().take(1_000).collect::<Vec<_>>().join("\n");
        assert_eq!(said("cut", cut.as_bytes()), "FILE: the trace is cut off: it announces 2000 frames and has 996");
        let no_pictures = "FILE: the stream has a header but no picture: it is cut off or has no frame types";
        assert_eq!(said("header", &clip::MPEG4[..31]), no_pictures);
        let neither = "FILE: the stream is neither MPEG-4 part 2 nor H.264: it has no header with a start code that either \
                       would have";
        assert_eq!(said("noise", &[0xff; 100]), neither);
    }
}
