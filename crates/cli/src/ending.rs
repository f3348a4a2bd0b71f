//! Signal handling of commands that run until they are stopped.

use crate::console::remark;
use anabranch_settings::diagnostic::Diagnostic;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `work` on a single-threaded runtime.
pub fn block_on<T>(work: impl Future<Output = Result<T, Diagnostic>>) -> Result<T, Diagnostic> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Diagnostic::plain(format!("cannot start the event loop: {error}")))?.block_on(work)
}

/// From now on a signal only makes [`asked_to_end`] complete. Call this before anything that must be undone.
pub fn listen() -> Result<(), Diagnostic> {
    anabranch_attach::listen_for_the_end().map_err(|error| cannot_listen(&error))
}

fn cannot_listen(error: &io::Error) -> Diagnostic {
    Diagnostic::plain(format!("cannot listen to signals: {error}"))
}

/// Completes when a signal tells the program to end.
pub async fn asked_to_end() {
    // Without the signals only SIGKILL ends it.
    if anabranch_attach::asked_to_end().await.is_err() {
        std::future::pending().await
    }
}

/// A flag that is set when the program is told to end; present runs are finished first.
pub fn watch() -> Result<Arc<AtomicBool>, Diagnostic> {
    listen()?;
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| cannot_listen(&error))?;
    let wait = move || {
        if runtime.block_on(anabranch_attach::asked_to_end()).is_ok() {
            asked.store(true, Ordering::Relaxed);
            remark("ending: the runs that have begun are finished first");
        }
    };
    std::thread::Builder::new().name("the end".to_owned()).spawn(wait).map_err(|error| cannot_listen(&error))?;
    Ok(stop)
}
