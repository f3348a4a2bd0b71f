//! Adjusts stack and host to changes of the network.

use anabranch_host::{HostError, Watch};
use std::time::Duration;
use tokio::sync::watch::Receiver;

/// Least time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Delay before a retry after a failure, without a change of the network.
const RETRY: Duration = Duration::from_secs(1);

/// Calls `adjust` after each change of the network or of the barred uplinks, until aborted. The receiver of the latter is
/// made before the task that awaits this: a change before the task first runs is not missed.
pub(super) async fn follow(
    watch: Watch,
    mut barred: Receiver<Vec<String>>,
    mut adjust: impl FnMut() -> Result<(), HostError>,
) {
    let mut failed = false;
    loop {
        let heard = async {
            tokio::select! {
                heard = watch.changed() => heard,
                // If the sender is gone there are no more changes.
                Ok(()) = barred.changed() => Ok(()),
            }
        };
        let heard = if failed { tokio::time::timeout(RETRY, heard).await.unwrap_or(Ok(())) } else { heard.await };
        if heard.is_err() {
            return;
        }
        // Failures, for example because the interface has disappeared again, are retried.
        failed = adjust().is_err();
        tokio::time::sleep(PAUSE).await;
    }
}
