//! Adjusts stack and host to changes of the network.

use crate::barred::Barred;
use anabranch_host::{HostError, Watch};
use std::time::Duration;

/// Least time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// When to retry what failed, without a change of the network.
const RETRY: Duration = Duration::from_secs(1);

/// Has `adjust` called after each change of the network, or of what is barred, until it is aborted.
pub(super) async fn follow(watch: Watch, barred: &Barred, mut adjust: impl FnMut() -> Result<(), HostError>) {
    let (mut failed, mut barred) = (false, barred.listen());
    loop {
        let heard = async {
            tokio::select! {
                heard = watch.changed() => heard,
                // Whoever changes it may be gone: then nothing changes any more.
                Ok(()) = barred.changed() => Ok(()),
            }
        };
        let heard = if failed { tokio::time::timeout(RETRY, heard).await.unwrap_or(Ok(())) } else { heard.await };
        if heard.is_err() {
            return;
        }
        // What cannot be done now, e.g. because the interface is gone again, is tried again.
        failed = adjust().is_err();
        tokio::time::sleep(PAUSE).await;
    }
}
