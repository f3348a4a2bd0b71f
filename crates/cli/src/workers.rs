//! The worker threads of `proxy` and `serve`, each with an event loop and a stack.

use anabranch_settings::diagnostic::Diagnostic;
use std::num::NonZero;
use std::thread::{self, JoinHandle};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// Maximum default number of threads: beyond it, something else is the limit. By default, one core is left to the
/// programs.
const MOST_BY_DEFAULT: u8 = 8;

/// Threads beside the calling one, each with an event loop; dropping it ends them.
pub struct Workers {
    over: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    runtimes: Vec<Handle>,
}

/// Default number of worker threads.
pub fn default_workers() -> u8 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    u8::try_from(cores.saturating_sub(1)).unwrap_or(MOST_BY_DEFAULT).clamp(1, MOST_BY_DEFAULT)
}

impl Workers {
    /// Starts `count - 1` threads; the calling one, which has a runtime, is the first worker. They share its network
    /// namespace.
    ///
    /// # Errors
    /// No thread or descriptor is available.
    pub fn start(count: u8) -> Result<Self, Diagnostic> {
        let (over, is_over) = watch::channel(false);
        let mut workers = Self { over, threads: Vec::new(), runtimes: vec![Handle::current()] };
        let cannot = |error: std::io::Error| {
            Diagnostic::option(&format!("--workers {count}"), format!("cannot start so many: {error}"))
        };
        for number in 1..count {
            let runtime = Builder::new_current_thread().enable_all().build().map_err(cannot)?;
            workers.runtimes.push(runtime.handle().clone());
            let mut is_over = is_over.clone();
            let run = move || {
                // The sender sends before it is dropped.
                let _ = runtime.block_on(is_over.wait_for(|over| *over));
            };
            let thread = thread::Builder::new().name(format!("worker {number}")).spawn(run).map_err(cannot)?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// The event loops, the calling thread's first.
    pub fn runtimes(&self) -> &[Handle] {
        &self.runtimes
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.over.send_replace(true);
        // A thread that panicked has reported it.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
