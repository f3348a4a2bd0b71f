//! The threads of `proxy` and `serve`: each has an event loop and a stack.

use crate::diagnostic::Diagnostic;
use std::num::NonZero;
use std::thread::{self, JoinHandle};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// If nothing else is said, one core is left to the programs whose connections these are, and there are no more than this: by then
/// something else is the limit.
const MOST_BY_DEFAULT: u8 = 8;

/// Threads beside the calling one, each with an event loop; dropping it ends them.
pub struct Workers {
    over: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    runtimes: Vec<Handle>,
}

/// How many workers there are if nothing is said.
pub fn default_workers() -> u8 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    u8::try_from(cores.saturating_sub(1)).unwrap_or(MOST_BY_DEFAULT).clamp(1, MOST_BY_DEFAULT)
}

impl Workers {
    /// Starts threads until there are `count` with the calling one, which has a runtime. They are in its network namespace.
    ///
    /// # Errors
    /// If there is no thread or no descriptor left.
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
                // The sender tells before it goes.
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
        // One that panicked has said so.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
