//! Writes the trace of a stream: `cargo run -p anabranch-media --example trace -- FILE [FRAMES PER SECOND] > FILE.trace`.

use anabranch_media::{ElementaryStream, FrameRate};
use std::io::Write;
use std::process::ExitCode;

fn trace() -> Result<String, String> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a file of MPEG-4 part 2 or H.264")?;
    let rate = arguments.next().map_or(Ok(30), |rate| rate.parse().map_err(|_| "the rate is a whole number"))?;
    let rate = FrameRate::new(rate, 1).ok_or("the rate is 1 to 1000")?;
    let bytes = std::fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
    let stream = ElementaryStream::read(&bytes).map_err(|error| format!("{file}: {error}"))?;
    Ok(stream.trace(rate).map_err(|error| format!("{file}: {error}"))?.to_text())
}

fn main() -> ExitCode {
    match trace().and_then(|text| std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "{reason}");
            ExitCode::FAILURE
        }
    }
}
