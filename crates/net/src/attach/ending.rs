//! When the program is asked to end.

use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Completes when the program is asked to end (SIGINT, SIGTERM or SIGHUP). From the first poll on these signals do nothing
/// else. To be called within a runtime.
///
/// # Errors
/// If the operating system lets nobody listen to signals.
pub async fn asked_to_end() -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}
