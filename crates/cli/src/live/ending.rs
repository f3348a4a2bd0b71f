//! The end of commands that may have a live view.

use super::Live;
use crate::ending::asked_to_end;

/// Completes when the program is told to end, by a signal or in the live view; then restores the terminal.
pub async fn asked_or_quit(live: Option<Live>) {
    wish_to_end(live.as_ref()).await;
}

/// Completes when the program is told to end, by a signal or in the live view.
pub async fn wish_to_end(live: Option<&Live>) {
    match live {
        Some(live) => live.quit().await,
        None => asked_to_end().await,
    }
}
