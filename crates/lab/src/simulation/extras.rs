//! Options of a run: captures, and a file to send.

use super::own::OwnPolicies;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::RunResult;
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;

/// A file to send.
#[derive(Clone, Debug)]
pub struct SentFile {
    /// As the user wrote it.
    pub name: String,
    pub content: Bytes,
    /// SHA-256 in hexadecimal.
    pub digest: String,
}

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Encode and decode every segment.
    pub wire: bool,
    /// Write a capture into this directory.
    pub pcap: Option<PathBuf>,
    /// Keep the series.
    pub curves: bool,
    /// Send this file instead of the scenario's transfer.
    pub send: Option<Arc<SentFile>>,
    /// Policies in place of the contender's.
    pub own: OwnPolicies,
    /// Schedulers and congestion controls in place of those, of the transfer's first connections, in order.
    pub own_by_connection: Vec<OwnPolicies>,
}

/// With `--wire` every decoded packet must equal the original.
pub fn check_wire(results: &RunResult) -> Result<(), Diagnostic> {
    let Some(check) = results.wire.as_ref().filter(|check| check.mismatches > 0) else { return Ok(()) };
    let first = check.first_mismatch.as_deref().unwrap_or("unknown");
    let (mismatches, packets) = (check.mismatches, check.packets);
    Err(Diagnostic::plain(format!("--wire: {mismatches} of {packets} packets came back different; the first: {first}")))
}
