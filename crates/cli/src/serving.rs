//! Shared parts of `proxy` and `serve`: limits and name resolution.

use crate::connection_log::connection_log;
use crate::console::{event, remark};
use crate::live::{Live, asked_or_quit_then_hurry};
use crate::service_manager;
use crate::values::seconds;
use crate::workers::{Workers, default_workers};
use anabranch_proxy::{Control, Journal, Limits, Target};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_stack::Stack;
use anabranch_system::descriptor;
use clap::Args;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// File descriptors besides those of connections: devices, timers, listeners, standard streams.
const OTHER_DESCRIPTORS: u64 = 64;

/// Time after which a name that is still asked for is told of: a resolver that is dead is silent for much longer.
pub const SLOW: Duration = Duration::from_secs(2);

/// Maximum number of pending SYNs of programs whose targets are not connected yet.
pub const HELD: usize = 4_096;

/// Limits on what clients use.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// Maximum number of connections; further ones are closed and counted
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections as u64, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    max_connections: u64,
    /// Reset connections idle for this long, e.g. 600 or "10 min"
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().idle.as_secs(), value_parser = |text: &str| seconds(text, 1..=31_536_000))]
    idle: u64,
    /// Time for connections to end after SIGTERM or SIGINT; another of them ends them at once
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().drain.as_secs(), value_parser = |text: &str| seconds(text, 0..=86_400))]
    drain: u64,
    /// Number of threads, each with its own stack [default: one less than there are cores,
    /// 1 to 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: Option<u8>,
    /// Print a line for each connection that ends
    #[arg(long, short)]
    verbose: bool,
    /// Show connections and paths on the terminal
    #[cfg(feature = "screen")]
    #[arg(long, conflicts_with = "verbose")]
    live: bool,
}

/// Whether each connection is logged; can change at runtime. Clones share the value.
#[derive(Clone)]
pub struct Verbosity(Arc<AtomicBool>);

impl Verbosity {
    pub fn new(options: &LimitOptions) -> Self {
        Self(Arc::new(AtomicBool::new(options.verbose)))
    }

    /// Applies new options.
    pub fn set(&self, options: &LimitOptions) {
        self.0.store(options.verbose, Ordering::Relaxed);
    }

    fn is_high(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl LimitOptions {
    /// File descriptors that the process needs with the maximum number of connections.
    pub fn descriptors(&self) -> u64 {
        self.max_connections + OTHER_DESCRIPTORS
    }

    /// Raises the limit of file descriptors, so that they suffice for what is set up too; whether they do for connections is told by
    /// [`Self::limits`].
    pub fn allow_descriptors(&self) {
        let _ = descriptor::allow(self.descriptors());
    }

    /// Limits of connections. Raises the limit of file descriptors accordingly.
    pub fn limits(&self) -> Limits {
        let wanted = self.descriptors();
        let descriptors = descriptor::allow(wanted).unwrap_or(0);
        let limits = Limits {
            connections: usize::try_from(self.max_connections).unwrap_or(usize::MAX),
            idle: Duration::from_secs(self.idle),
            drain: Duration::from_secs(self.drain),
            ..Limits::default()
        };
        let room = descriptors.saturating_sub(OTHER_DESCRIPTORS);
        if descriptors < wanted {
            remark(&format!(
                "note: this process may open {descriptors} files, which is enough for {room} connections and not for {}; \
                 raise the limit (ulimit -n) or lower --max-connections",
                self.max_connections
            ));
        }
        limits
    }

    /// The live view, if requested; nothing may be printed while it runs.
    #[cfg(feature = "screen")]
    pub fn live(&self, stacks: &[Stack], title: &str) -> Result<Option<Live>, Diagnostic> {
        self.is_live().then(|| Live::of_stacks(stacks.to_vec(), title)).transpose()
    }

    #[cfg(not(feature = "screen"))]
    pub fn live(&self, _: &[Stack], _: &str) -> Result<Option<Live>, Diagnostic> {
        Ok(None)
    }

    fn is_live(&self) -> bool {
        #[cfg(feature = "screen")]
        return self.live;
        #[cfg(not(feature = "screen"))]
        false
    }

    /// Starts the worker threads. Must be called within a runtime, before the host's configuration changes.
    ///
    /// # Errors
    /// The threads cannot be started, or there is no terminal for the live view.
    pub fn start_workers(&self) -> Result<Workers, Diagnostic> {
        #[cfg(feature = "screen")]
        if self.live {
            Live::check()?;
        }
        Workers::start(self.workers.unwrap_or_else(default_workers))
    }

    /// The log of connections: of all with --verbose.
    pub fn journal(&self, verbosity: &Verbosity) -> Option<Journal> {
        let verbosity = verbosity.clone();
        Some(connection_log(move || verbosity.is_high(), self.is_live()))
    }
}

/// Completes when a proxy or server is told to end; a service manager knows then how long that may take, and a further signal ends at
/// once what is let finish.
pub async fn stops(live: Option<Live>, control: Control) {
    asked_or_quit_then_hurry(live, control.clone()).await;
    service_manager::stopping(control.drain());
}

/// Resolves a name before anything is set up.
pub fn resolves(option: &str, target: &Target) -> Result<SocketAddr, Diagnostic> {
    let late = || event(&format!("waiting for the address of {target}: no resolver of this host answers"));
    let found = patiently(|| target.to_string().to_socket_addrs().map(|mut found| found.next()), late);
    let found = found.map_err(|error| unknown(option, target, &error.to_string()))?;
    found.ok_or_else(|| unknown(option, target, "it has no address"))
}

/// The outcome of `find`; calls `late` if that takes long.
fn patiently<T: Send>(find: impl FnOnce() -> T + Send, late: impl FnOnce()) -> T {
    std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let finding = scope.spawn(move || {
            // Dropped when it has been found.
            let _done = done;
            find()
        });
        if is_done.recv_timeout(SLOW) == Err(mpsc::RecvTimeoutError::Timeout) {
            late();
        }
        finding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What is said of a name without an address.
pub fn unknown(option: &str, target: &Target, reason: &str) -> Diagnostic {
    let message = format!("the host of {target} is not known here ({reason}); check its name, or give its address");
    Diagnostic::option(option, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_told_of_while_it_is_waited_for() {
        let (told, is_told) = mpsc::channel();
        assert_eq!(patiently(move || is_told.recv(), || told.send("late").expect("it is waited for")), Ok("late"));
        assert_eq!(patiently(|| 1, || panic!("it is there at once")), 1);
    }
}
