//! Runs while Python waits: without its lock, with progress, and until it is interrupted.

use anabranch_lab::progress::Progress;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Pause between looks at signals and at progress.
const PAUSE: Duration = Duration::from_millis(50);

/// How far it is.
#[derive(Debug, Default)]
pub struct Told {
    done: AtomicU64,
    all: AtomicU64,
    name: Mutex<String>,
}

impl Progress for Told {
    fn begin(&self, name: &str, units: u64) {
        self.all.fetch_add(units, Ordering::Relaxed);
        name.clone_into(&mut self.name.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn done(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    fn remark(&self, _: &str) {}
}

/// Calls `work` on another thread without Python's lock; `stop` is set when Python is interrupted or `progress` raises.
/// `progress` is called with units done, all units, and the name of what runs.
///
/// # Errors
/// The interruption, or what `progress` raised; the work has ended then.
pub fn wait<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Told) -> T + Send,
) -> PyResult<T> {
    wait_and_look(py, stop, progress, |_| Ok(()), work)
}

/// The same, and `look` is called at each pause.
///
/// # Errors
/// Those of [`wait`], or what `look` raised.
pub fn wait_and_look<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    progress: Option<&Bound<'_, PyAny>>,
    look: impl Fn(Python<'_>) -> PyResult<()>,
    work: impl FnOnce(&Told) -> T + Send,
) -> PyResult<T> {
    let told = Told::default();
    thread::scope(|scope| {
        let (ends, ended) = channel();
        // It is used by this thread alone, which has to be shown where Python's lock is released.
        let ended = Mutex::new(ended);
        let told = &told;
        let worker = scope.spawn(move || {
            // Dropped at the end, also by a panic.
            let _ends: Sender<()> = ends;
            work(told)
        });
        let mut failure = None;
        loop {
            let ended = py.detach(|| ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PAUSE))
                == Err(RecvTimeoutError::Disconnected);
            let looked = py.check_signals().and_then(|()| tell(told, progress));
            if let Err(error) = looked {
                stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
            if let Err(error) = look(py) {
                stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
            if ended {
                break;
            }
        }
        let result = py.detach(|| worker.join());
        match (failure, result) {
            (Some(error), _) => Err(error),
            (None, Ok(result)) => Ok(result),
            (None, Err(_)) => Err(crate::failure::plain("the program has a fault, see above")),
        }
    })
}

fn tell(told: &Told, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let name = told.name.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (done, all) = (told.done.load(Ordering::Relaxed), told.all.load(Ordering::Relaxed));
    progress.call1((done, all, name)).map(drop)
}
