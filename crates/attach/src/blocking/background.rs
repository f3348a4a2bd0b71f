//! The thread with the event loop.

use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// The thread with the event loop.
pub(super) struct Background {
    pub stack: anabranch_stack::Stack,
    pub end: Option<oneshot::Sender<()>>,
    pub thread: Option<JoinHandle<()>>,
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stack.shutdown();
        // If it has ended by itself the receiver is gone.
        let _ = self.end.take().map(|end| end.send(()));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
