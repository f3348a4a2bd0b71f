//! Calls of policies in Python that are under way, so that one that takes too long can be interrupted.

use crate::failure::{number, plain};
use crate::fault::Fault;
use pyo3::exceptions::{PyKeyboardInterrupt, PyTimeoutError};
use pyo3::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Calls of one object until now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    calls: u64,
    /// Wall time in them.
    time: Duration,
}

impl Spent {
    /// The time counts, but not as calls: it was for making the object.
    pub fn uncounted(self) -> Self {
        Self { calls: 0, ..self }
    }
}

/// A call under way.
#[derive(Debug)]
struct UnderWay {
    policy: Arc<str>,
    since: Instant,
    before: Spent,
    /// It was found to take too long before it ended.
    judged: bool,
}

/// Calls under way, by thread as Python numbers them. Only who holds Python's lock uses it.
#[derive(Debug, Default)]
pub struct Calls {
    /// Wall time that the calls of one object may take together.
    limit: Option<Duration>,
    under_way: Mutex<BTreeMap<u64, UnderWay>>,
}

thread_local! {
    /// Number of this thread in Python; 0 until it is known.
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

fn thread(py: Python<'_>) -> PyResult<u64> {
    THREAD.with(|known| {
        if known.get() == 0 {
            known.set(py.import("threading")?.call_method0("get_ident")?.extract()?);
        }
        Ok(known.get())
    })
}

impl Calls {
    /// With a limit in seconds, or none.
    ///
    /// # Errors
    /// The limit is not above 0, or longer than any time.
    pub fn new(limit: Option<f64>) -> PyResult<Self> {
        let time = |seconds: f64| {
            let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
            time.ok_or_else(|| {
                plain(format!("policy_timeout is a time above 0, in seconds, and not {}", number(seconds)))
            })
        };
        Ok(Self { limit: limit.map(time).transpose()?, under_way: Mutex::default() })
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<u64, UnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, and adds it to what the object has spent.
    ///
    /// # Errors
    /// What the call raised, or `TimeoutError` if the object has now spent more than the limit.
    pub fn make<T>(
        &self,
        py: Python<'_>,
        policy: &Arc<str>,
        spent: &Cell<Spent>,
        fault: &Fault,
        call: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<T> {
        let (thread, since, before) = (thread(py)?, Instant::now(), spent.get());
        self.under_way().insert(thread, UnderWay { policy: Arc::clone(policy), since, before, judged: false });
        let result = call();
        let judged = self.under_way().remove(&thread).is_some_and(|call| call.judged);
        let after = Spent { calls: before.calls + 1, time: before.time + since.elapsed() };
        spent.set(after);
        if let Some(limit) = self.limit.filter(|_| judged) {
            // Only now it is known how long it took.
            fault.replace(too_slow(policy, after, limit));
        }
        match self.limit.filter(|limit| after.time > *limit) {
            Some(limit) => Err(too_slow(policy, after, limit)),
            None => result,
        }
    }

    /// Looks at the calls under way: what has spent more than the limit is a fault, and if runs are to end, whatever
    /// the reason, calls are interrupted as far as Python can do that: not in code of another language.
    ///
    /// # Errors
    /// Python cannot interrupt threads.
    pub fn look(&self, py: Python<'_>, fault: &Fault) -> PyResult<()> {
        // Python may give its lock to another thread while it executes something, so the other lock is not held then.
        let threads: Vec<u64> = {
            let mut under_way = self.under_way();
            for call in under_way.values_mut() {
                self.judge(call, fault);
            }
            under_way.keys().copied().collect()
        };
        if !fault.over() {
            return Ok(());
        }
        threads.into_iter().try_for_each(|thread| interrupt(py, thread))
    }

    fn judge(&self, call: &mut UnderWay, fault: &Fault) {
        let now = Spent { calls: call.before.calls + 1, time: call.before.time + call.since.elapsed() };
        if let Some(limit) = self.limit.filter(|limit| now.time > *limit) {
            call.judged |= fault.set(too_slow(&call.policy, now, limit));
        }
    }
}

/// Raises `KeyboardInterrupt` in a thread, at its next step in Python.
fn interrupt(py: Python<'_>, thread: u64) -> PyResult<()> {
    let ctypes = py.import("ctypes")?;
    let thread = ctypes.call_method1("c_ulong", (thread,))?;
    let raised = ctypes.call_method1("py_object", (py.get_type::<PyKeyboardInterrupt>(),))?;
    ctypes.getattr("pythonapi")?.call_method1("PyThreadState_SetAsyncExc", (thread, raised)).map(drop)
}

fn too_slow(policy: &str, Spent { calls, time }: Spent, limit: Duration) -> PyErr {
    let (seconds, limit) = (time.as_secs_f64(), limit.as_secs_f64());
    let rate = calls as f64 / seconds;
    let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
    PyTimeoutError::new_err(format!(
        "{policy} is too slow: {calls} in a run took {seconds:.3} s of wall time, more than policy_timeout={limit} s: \
         {rate:.1} calls per second"
    ))
}
