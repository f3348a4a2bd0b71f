//! The end of commands that may have a live view.

use super::Live;
use crate::ending::asked_to_end;
use anabranch_proxy::Control;

/// Completes when the program is told to end, by a signal or in the live view; then restores the terminal.
pub async fn asked_or_quit(live: Option<Live>) {
    wish_to_end(live.as_ref()).await;
}

/// As [`asked_or_quit`]; a signal after that ends at once what is let finish.
pub async fn asked_or_quit_then_hurry(live: Option<Live>, control: Control) {
    asked_or_quit(live).await;
    // Nothing waits for it: it ends with the program.
    tokio::spawn(hurry_when_asked_again(control));
}

/// Ends at once what a proxy or server lets finish, when a signal tells the program again to end.
pub async fn hurry_when_asked_again(control: Control) {
    // Without the signals it takes its time.
    if anabranch_attach::asked_again().await.is_ok() {
        control.hurry();
    }
}

/// Completes when the program is told to end, by a signal or in the live view.
pub async fn wish_to_end(live: Option<&Live>) {
    match live {
        Some(live) => live.quit().await,
        None => asked_to_end().await,
    }
}
