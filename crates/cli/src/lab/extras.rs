//! Additions to a run: captures, a file to send, and later inspection.

use crate::diagnostic::Diagnostic;
use anabranch_sim::RunResult;
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;

/// A file to carry.
#[derive(Clone, Debug)]
pub struct SentFile {
    /// Its name, as the user wrote it.
    pub name: String,
    /// Its bytes.
    pub content: Bytes,
    /// Their SHA-256, in hexadecimal.
    pub digest: String,
}

/// What goes beside a run.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Encode and decode every segment.
    pub wire: bool,
    /// Write a capture into this directory.
    pub pcap: Option<PathBuf>,
    /// Keep the series.
    pub curves: bool,
    /// Carry this file in place of the scenario's transfer.
    pub send: Option<Arc<SentFile>>,
}

/// With `--wire` every packet must come back as it was.
pub fn check_wire(results: &RunResult) -> Result<(), Diagnostic> {
    let Some(check) = results.wire.as_ref().filter(|check| check.mismatches > 0) else { return Ok(()) };
    let first = check.first_mismatch.as_deref().unwrap_or("unknown");
    let (mismatches, packets) = (check.mismatches, check.packets);
    Err(Diagnostic::plain(format!("--wire: {mismatches} of {packets} packets came back different; the first: {first}")))
}
