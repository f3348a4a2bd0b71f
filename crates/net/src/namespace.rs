//! Network namespaces of our own: hosts without a machine. One lives as long as somebody holds it open, so that nothing
//! is left behind, however the program ends.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

/// A network namespace. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Namespace {
    handle: Arc<File>,
}

impl Namespace {
    /// A new namespace with nothing in it but a loopback interface that is down. Needs CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// What the kernel says, e.g. [`io::ErrorKind::PermissionDenied`].
    pub fn new() -> io::Result<Self> {
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Self::current()
        })?
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// If `/proc` is not there.
    pub fn current() -> io::Result<Self> {
        Ok(Self { handle: Arc::new(File::open("/proc/thread-self/ns/net")?) })
    }

    /// Runs `work` inside, on a thread of its own: sockets, devices and child processes that it makes belong to the
    /// namespace for good.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_a_thread(|| {
            setns(self.handle.as_fd(), CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        })?
    }

    /// The open file that stands for it, e.g. for `nsenter --net=/proc/PID/fd/N`.
    pub fn file(&self) -> &File {
        &self.handle
    }
}

/// Runs `work` on a thread that nobody else uses, and passes a panic on.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("namespace".to_owned()).spawn_scoped(scope, work)?;
        Ok(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
