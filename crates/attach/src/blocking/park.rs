//! Blocks the calling thread on a future that another thread's event loop completes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until `future` is ready; returns `None` after `timeout`.
pub(super) fn run<T>(timeout: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    // A timeout beyond the clock's range means no timeout.
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
            return Some(outcome);
        }
        match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return None,
            Some(left) => thread::park_timeout(left),
            None => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ready_in_time_is_returned_and_what_is_not_is_left() {
        assert_eq!(run(None, async { 7 }), Some(7));
        assert_eq!(run(Some(Duration::from_millis(5)), std::future::pending::<()>()), None);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = thread::spawn(move || sender.send(8));
        assert_eq!(run(Some(Duration::MAX), receiver), Some(Ok(8)));
        assert_eq!(other.join().unwrap(), Ok(()));
    }
}
