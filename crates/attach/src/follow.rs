//! Adjusts stack and host to changes of the network.

use crate::barred::Barred;
use anabranch_host::{HostError, Watch};
use std::time::Duration;

/// Least time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Delay before a retry after a failure, without a change of the network.
const RETRY: Duration = Duration::from_secs(1);

/// Calls `adjust` after each change of the network or of the barred uplinks, until aborted.
pub(super) async fn follow(watch: Watch, barred: &Barred, mut adjust: impl FnMut() -> Result<(), HostError>) {
    let (mut failed, mut barred) = (false, barred.listen());
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
