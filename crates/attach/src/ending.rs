//! Signals that end the program.

use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// What was heard.
#[derive(Clone)]
struct Heard {
    /// Somebody asked the program to end.
    asked: watch::Sender<bool>,
    /// SIGHUPs that were no such wish.
    hang_ups: watch::Sender<u64>,
}

/// What was heard, and a thread that hears it: signals are the whole program's, not one runtime's.
static HEARD: LazyLock<Result<Heard, io::ErrorKind>> = LazyLock::new(|| listen().map_err(|error| error.kind()));

/// Whether SIGHUP is something else than a wish to end.
static HANG_UP_IS_NO_END: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT, SIGTERM and SIGHUP only make [`asked_to_end`] complete. To be called before anything is set
/// up that must be undone.
///
/// # Errors
/// If signals cannot be handled.
pub fn listen_for_the_end() -> io::Result<()> {
    HEARD.as_ref().map(|_| ()).map_err(|kind| (*kind).into())
}

/// Completes when the program is asked to end, or has been since [`listen_for_the_end`].
///
/// # Errors
/// If signals cannot be handled.
pub async fn asked_to_end() -> io::Result<()> {
    let mut asked = HEARD.as_ref().map_err(|kind| io::Error::from(*kind))?.asked.subscribe();
    // The sender is never dropped.
    let _ = asked.wait_for(|asked| *asked).await;
    Ok(())
}

/// SIGHUPs that come from now on.
pub struct HangUps(watch::Receiver<u64>);

/// From now on SIGHUP is no wish to end: it has [`HangUps::next`] complete.
///
/// # Errors
/// As of [`listen_for_the_end`].
pub fn listen_for_hang_ups() -> io::Result<HangUps> {
    let heard = HEARD.as_ref().map_err(|kind| io::Error::from(*kind))?;
    HANG_UP_IS_NO_END.store(true, Ordering::Relaxed);
    Ok(HangUps(heard.hang_ups.subscribe()))
}

impl HangUps {
    /// Completes with the next SIGHUP, or at once if there was one since the last; several count once.
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
    let heard = Heard { asked: watch::channel(false).0, hang_ups: watch::channel(0).0 };
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
                asked.send_replace(true);
            }
        });
    })?;
    Ok(heard)
}
