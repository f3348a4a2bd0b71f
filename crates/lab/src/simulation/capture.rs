//! Captures packets to and from the server into a file, with one interface for all paths.

use super::network::Lines;
use crate::scenario::Scenario;
use anabranch_settings::contender::{Contender, Route};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::World;
use anabranch_sim::network::Tapped;
use anabranch_wire::pcapng::{Direction, PacketNote, Writer};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A capture in progress, shared with the world's tap.
pub struct Capture {
    path: PathBuf,
    state: Arc<Mutex<State>>,
}

struct State {
    /// None once it is finished.
    writer: Option<Writer<BufWriter<File>>>,
    /// The first error.
    error: Option<io::Error>,
}

/// `lm3_motivation-case_2.pcapng`; with the path if the contender runs on each alone.
pub fn file_name(scenario: &Scenario, contender: &Contender, paths: &[usize]) -> String {
    let path = match contender.route {
        Route::Best => paths.first().and_then(|place| scenario.paths.get(*place)).map(|path| format!("-{}", path.name)),
        _ => None,
    };
    let name = format!("{}-{}{}", scenario.name, contender.name, path.unwrap_or_default());
    let harmless = |c: char| if c.is_alphanumeric() || "-_.+".contains(c) { c } else { '_' };
    name.chars().map(harmless).collect::<String>() + ".pcapng"
}

/// Starts the capture: all packets delivered by the server's links from now on are written to `path`.
pub fn start(world: &mut World, path: &Path, lines: &Lines) -> Result<Capture, Diagnostic> {
    let fail = |error: io::Error| Diagnostic::file(path, "write the capture", &error);
    let file = File::create(path).map_err(fail)?;
    let mut writer = Writer::new(BufWriter::new(file), "Anabranch").map_err(fail)?;
    let interface = writer.add_interface("server", "packets to and from the server").map_err(fail)?;
    let state = Arc::new(Mutex::new(State { writer: Some(writer), error: None }));
    let shared = Arc::clone(&state);
    let (arrive, leave) = lines.server_links;
    let mut bytes = Vec::new();
    let tap = move |now: anabranch_policy::time::Instant, link, tapped: Tapped| {
        let Tapped::Tcp(packet) = tapped else { return };
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let Some(writer) = &mut state.writer else { return };
        bytes.clear();
        // A packet that cannot be encoded is a fault of the engine, which --wire detects.
        let written = packet.emit(&mut bytes).map_err(|error| io::Error::other(error.to_string()));
        let direction = Some(if link == arrive { Direction::Inbound } else { Direction::Outbound });
        let note = PacketNote { direction, comment: None };
        let written = written.and_then(|()| writer.write_packet(interface, now.as_nanos(), &bytes, note));
        if let Err(error) = written {
            state.error.get_or_insert(error);
        }
    };
    world.tap(&[arrive, leave], Box::new(tap));
    Ok(Capture { path: path.to_owned(), state })
}

impl Capture {
    /// Closes the file.
    pub fn finish(self) -> Result<(), Diagnostic> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = state.writer.take().map_or(Ok(()), |writer| writer.finish().map(drop));
        let outcome = state.error.take().map_or(ended, Err);
        outcome.map_err(|error| Diagnostic::file(&self.path, "write the capture", &error))
    }
}
