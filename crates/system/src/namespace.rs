//! Network namespaces of our own: hosts without a machine. One lives as long as somebody holds it open, so that nothing
//! is left behind, however the program ends.

use nix::libc;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
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

/// A program that will run in a host, and end when the thread that starts it does.
pub fn command_in(host: &Namespace, program: &OsStr) -> Command {
    let mut command = Command::new(program);
    let namespace = host.file().as_raw_fd();
    let parent = Pid::this();
    let enter = move || {
        // SAFETY: the descriptor is that of the namespace's file, which the caller holds while it starts the program.
        #[allow(unsafe_code)]
        let namespace = unsafe { BorrowedFd::borrow_raw(namespace) };
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        set_pdeathsig(Signal::SIGKILL)?;
        // Who is gone already sends no signal.
        if Pid::parent() == parent { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
    };
    // SAFETY: between fork and exec there are three system calls, and no memory is allocated.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(enter);
    }
    command
}

/// SO_NETNS_COOKIE of `asm-generic/socket.h`.
const SO_NETNS_COOKIE: libc::c_int = 71;

#[derive(Clone, Copy)]
struct NamespaceCookie;

#[allow(unsafe_code)]
mod option {
    use super::{NamespaceCookie, SO_NETNS_COOKIE, libc};
    use nix::sys::socket::sockopt::GetStruct;
    // SAFETY (of what the macro makes): the kernel writes eight bytes, and any eight bytes are a number.
    nix::getsockopt_impl!(NamespaceCookie, libc::SOL_SOCKET, SO_NETNS_COOKIE, u64, GetStruct<u64>);
}

/// The number of the calling thread's network namespace, which no other has until the machine restarts.
///
/// # Errors
/// What the kernel says.
pub fn namespace_cookie() -> io::Result<u64> {
    let probe = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    Ok(getsockopt(&probe, NamespaceCookie)?)
}

/// Runs `work` on a thread that nobody else uses, and passes a panic on.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("namespace".to_owned()).spawn_scoped(scope, work)?;
        Ok(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
