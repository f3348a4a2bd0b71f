//! SIGHUP for `proxy`, `serve` and `up`: reloads the configuration file and applies settings that can change at
//! runtime.

use crate::configuration::ReadAgain;
use crate::console::event;
use anabranch_settings::diagnostic::Diagnostic;
use clap::{Args, FromArgMatches};
use std::convert::Infallible;

/// Calls `take` with the new options after each SIGHUP. Keys other than `taken_keys` need a restart. Errors are logged and change
/// nothing. Without a file this does nothing, and SIGHUP ends the program.
pub async fn read_again<T: Args + FromArgMatches>(
    again: Option<ReadAgain>,
    taken_keys: &[&str],
    take: impl Fn(&T) -> Result<(), Diagnostic>,
) -> Infallible {
    let heard = again.map(|again| anabranch_attach::listen_for_hang_ups().map(|hang_ups| (again, hang_ups)));
    let Some(Ok((again, mut hang_ups))) = heard else { return std::future::pending().await };
    loop {
        hang_ups.next().await;
        let taken = again.options::<T>().and_then(|(options, changed)| take(&options).map(|()| changed));
        match taken {
            Ok(changed) => {
                let waiting: Vec<&str> =
                    changed.iter().map(String::as_str).filter(|key| !taken_keys.contains(key)).collect();
                let rest = if waiting.is_empty() {
                    String::new()
                } else {
                    format!("; a restart is needed for {}", waiting.join(", "))
                };
                event(&format!("the configuration was read again and counts for new connections{rest}"));
            }
            Err(wrong) => event(&format!("the configuration stays as it was: {}", wrong.whole())),
        }
    }
}
