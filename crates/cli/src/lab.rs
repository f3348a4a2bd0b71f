//! Builds the world that a scenario describes, runs it, and measures it.
use crate::contender::Contender;
use crate::diagnostic::Diagnostic;
use crate::record::Record;
use crate::scenario::Scenario;
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
    /// Encode and decode every segment on each hop.
    pub wire: bool,
    /// Write a capture of the first seed into this directory.
    pub pcap: Option<PathBuf>,
    /// Record the series.
    pub curves: bool,
    /// Carry this file in place of the scenario's transfer.
    pub send: Option<Arc<SentFile>>,
}

/// Runs `combination` over those `paths` of the scenario.
pub fn run(_scenario: &Scenario, contender: &Contender, _paths: &[usize], _seed: u64, _extras: &Extras) -> Result<Record, Diagnostic> {
    Err(Diagnostic::plain("not yet"))
}
