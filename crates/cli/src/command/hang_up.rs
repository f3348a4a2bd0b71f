//! SIGHUP for `proxy`, `serve` and `up`: reloads the configuration file and applies settings that can change at
//! runtime.

use crate::configuration::ReadAgain;
use crate::console::event;
use anabranch_settings::diagnostic::Diagnostic;
use clap::{Args, FromArgMatches};
use std::convert::Infallible;

/// What of a configuration that is read again is taken.
#[derive(Clone, Copy)]
pub struct Taken<'a> {
    /// Keys that need no restart.
    pub keys: &'a [&'a str],
    /// Since when they count, as a sentence says it.
    pub counts: &'a str,
}

/// Calls `take` with the new options after each SIGHUP; it returns keys that need a restart though they are the same, because what
/// they name has changed. Errors are logged and change nothing. Without a file this does nothing, and SIGHUP ends the program.
pub async fn read_again<T: Args + FromArgMatches>(
    again: Option<ReadAgain>,
    taken: Taken<'_>,
    take: impl Fn(&T) -> Result<Vec<String>, Diagnostic>,
) -> Infallible {
    let heard = again.map(|again| anabranch_attach::listen_for_hang_ups().map(|hang_ups| (again, hang_ups)));
    let Some(Ok((again, mut hang_ups))) = heard else { return std::future::pending().await };
    loop {
        hang_ups.next().await;
        let read = again.options::<T>().and_then(|(options, changed)| take(&options).map(|left| (changed, left)));
        match read {
            Ok((changed, left)) => {
                let changed = changed.into_iter().filter(|key| !taken.keys.contains(&key.as_str()));
                let waiting: Vec<String> = changed.chain(left).collect();
                let rest = if waiting.is_empty() {
                    String::new()
                } else {
                    format!("; a restart is needed for {}", waiting.join(", "))
                };
                event(&format!("the configuration was read again and counts {}{rest}", taken.counts));
            }
            Err(wrong) => event(&format!("the configuration stays as it was: {}", wrong.whole())),
        }
    }
}
