//! Captures of runs, for Wireshark.

use crate::failure::failure;
use crate::request::Request;
use crate::running;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::runner::{Runner, processors};
use anabranch_settings::diagnostic::Diagnostic;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Runs each policy with the first seed, and writes its packets into the directory; gives the names of the files.
#[pyfunction]
pub fn capture(py: Python<'_>, request: &str, directory: PathBuf) -> PyResult<Vec<PathBuf>> {
    let cannot = |error: std::io::Error| failure(Diagnostic::file(&directory, "make the directory", &error));
    std::fs::create_dir_all(&directory).map_err(cannot)?;
    let request = Request::read(request)?;
    let (document, mut plan) = (request.document(), request.plan(Default::default()));
    plan.extras.pcap = Some(directory.clone());
    let experiment = Experiment::prepare(&document, &plan).map_err(failure)?;
    let files = experiment.captures().into_iter().map(|name| directory.join(name)).collect();
    let stop = AtomicBool::new(false);
    let outcome = running::wait(py, &stop, None, |told| {
        experiment.run(&Runner { jobs: processors(), stop: &stop, progress: told }, None).map(drop)
    })?;
    outcome.map_err(failure).map(|()| files)
}
