//! Signals that end the program.

use std::io;
use std::sync::LazyLock;
use std::thread;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Whether a signal has come, and the thread that receives it: signals are the whole program's, not one runtime's.
static ASKED: LazyLock<Result<watch::Sender<bool>, io::ErrorKind>> =
    LazyLock::new(|| listen().map_err(|error| error.kind()));

/// From now on SIGINT, SIGTERM and SIGHUP only make [`asked_to_end`] complete. To be called before anything is set
/// up that must be undone.
///
/// # Errors
/// If signals cannot be handled.
pub fn listen_for_the_end() -> io::Result<()> {
    ASKED.as_ref().map(|_| ()).map_err(|kind| (*kind).into())
}

/// Completes when the program is asked to end, or has been since [`listen_for_the_end`].
///
/// # Errors
/// If signals cannot be handled.
pub async fn asked_to_end() -> io::Result<()> {
    let mut asked = ASKED.as_ref().map_err(|kind| io::Error::from(*kind))?.subscribe();
    // The sender is never dropped.
    let _ = asked.wait_for(|asked| *asked).await;
    Ok(())
}

fn listen() -> io::Result<watch::Sender<bool>> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let signals = {
        let _inside = runtime.enter();
        kinds.into_iter().map(signal).collect::<io::Result<Vec<Signal>>>()?
    };
    let (sender, _) = watch::channel(false);
    let asked = sender.clone();
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
                    _ = hang_up.recv() => {}
                }
                asked.send_replace(true);
            }
        });
    })?;
    Ok(sender)
}
