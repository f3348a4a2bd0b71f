//! Network namespaces, used as hosts without a machine. A namespace exists while a descriptor is open, so that nothing
//! is left however the program ends.

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

/// A network namespace. Clones refer to the same one.
#[derive(Clone, Debug)]
pub struct Namespace {
    handle: Arc<File>,
}

impl Namespace {
    /// A new namespace, which only has a loopback interface that is down. Needs CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// An error of the kernel, for example [`io::ErrorKind::PermissionDenied`].
    pub fn new() -> io::Result<Self> {
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Self::current()
        })?
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// If `/proc` is missing.
    pub fn current() -> io::Result<Self> {
        Ok(Self { handle: Arc::new(File::open("/proc/thread-self/ns/net")?) })
    }

    /// Runs `work` in the namespace, on a new thread. Sockets, devices and child processes that it creates stay in the
    /// namespace.
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

    /// The open file of the namespace, for example for `nsenter --net=/proc/PID/fd/N`.
    pub fn file(&self) -> &File {
        &self.handle
    }
}

/// A command that runs in a host, and is killed when the thread that starts it ends.
pub fn command_in(host: &Namespace, program: &OsStr) -> Command {
    let mut command = Command::new(program);
    let namespace = host.file().as_raw_fd();
    let parent = Pid::this();
    let enter = move || {
        // SAFETY: it is the descriptor of the namespace's file, which the caller keeps open while it starts the
        // program.
        #[allow(unsafe_code)]
        let namespace = unsafe { BorrowedFd::borrow_raw(namespace) };
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        set_pdeathsig(Signal::SIGKILL)?;
        // A parent that is already dead sends no signal.
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
    // SAFETY (of the macro's code): the kernel writes eight bytes, and any eight bytes are a number.
    nix::getsockopt_impl!(NamespaceCookie, libc::SOL_SOCKET, SO_NETNS_COOKIE, u64, GetStruct<u64>);
}

/// The cookie of the calling thread's network namespace, unique until the machine restarts.
///
/// # Errors
/// An error of the kernel.
pub fn namespace_cookie() -> io::Result<u64> {
    let probe = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    Ok(getsockopt(&probe, NamespaceCookie)?)
}

/// Runs `work` on a new thread, and propagates a panic.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("namespace".to_owned()).spawn_scoped(scope, work)?;
        Ok(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
