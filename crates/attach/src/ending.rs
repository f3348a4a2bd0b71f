//! Signals that end the program.

use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The signals received.
#[derive(Clone)]
struct Heard {
    /// Number of requests to end the program.
    asked: watch::Sender<u64>,
    /// Number of SIGHUPs that do not request the end.
    hang_ups: watch::Sender<u64>,
}

/// The received signals, with the thread that receives them: signals belong to the whole program, not to a runtime.
static HEARD: LazyLock<io::Result<Heard>> = LazyLock::new(listen);

/// The same error again: what the system said, where it did.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Whether SIGHUP has another meaning than the end.
static HANG_UP_IS_NO_END: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT, SIGTERM and SIGHUP only make [`asked_to_end`] complete. Call this before any setup that must be
/// undone.
///
/// # Errors
/// If signals cannot be handled.
pub fn listen_for_the_end() -> io::Result<()> {
    HEARD.as_ref().map(|_| ()).map_err(again)
}

/// Completes once a signal has requested the end since [`listen_for_the_end`].
///
/// # Errors
/// If signals cannot be handled.
pub async fn asked_to_end() -> io::Result<()> {
    let mut asked = HEARD.as_ref().map_err(again)?.asked.subscribe();
    // The sender is never dropped.
    let _ = asked.wait_for(|asked| *asked > 0).await;
    Ok(())
}

/// Completes with the second signal that requests the end, or the next one if there was none so far: an end that takes its time
/// is to be cut short.
///
/// # Errors
/// If signals cannot be handled.
pub async fn asked_again() -> io::Result<()> {
    let mut asked = HEARD.as_ref().map_err(again)?.asked.subscribe();
    let before = (*asked.borrow()).min(1);
    // The sender is never dropped.
    let _ = asked.wait_for(|asked| *asked > before).await;
    Ok(())
}

/// Receives further SIGHUPs.
pub struct HangUps(watch::Receiver<u64>);

/// From now on SIGHUP does not request the end, but makes [`HangUps::next`] complete.
///
/// # Errors
/// As for [`listen_for_the_end`].
pub fn listen_for_hang_ups() -> io::Result<HangUps> {
    let heard = HEARD.as_ref().map_err(again)?;
    HANG_UP_IS_NO_END.store(true, Ordering::Relaxed);
    Ok(HangUps(heard.hang_ups.subscribe()))
}

impl HangUps {
    /// Completes with the next SIGHUP, or at once if there was one since the last call; several count as one.
    pub async fn next(&mut self) {
        // The sender is never dropped.
        let _ = self.0.changed().await;
    }
}

fn listen() -> io::Result<Heard> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let signals = {
        let _inside = runtime.enter();
        kinds.into_iter().map(signal).collect::<io::Result<Vec<Signal>>>()?
    };
    let heard = Heard { asked: watch::channel(0).0, hang_ups: watch::channel(0).0 };
    let Heard { asked, hang_ups } = heard.clone();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            let [mut interrupt, mut terminate, mut hang_up] = match <[Signal; 3]>::try_from(signals) {
                Ok(signals) => signals,
                Err(_) => return,
            };
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hang_up.recv() => {
                        if HANG_UP_IS_NO_END.load(Ordering::Relaxed) {
                            hang_ups.send_modify(|count| *count += 1);
                            continue;
                        }
                    }
                }
                asked.send_modify(|count| *count += 1);
            }
        });
    })?;
    Ok(heard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_said_is_said_again() {
        // errno(3): EMFILE is 24. Its kind alone is "uncategorized error".
        let error = again(&io::Error::from_raw_os_error(24));
        assert!(error.to_string().starts_with("Too many open files"), "{error}");
    }
}
