//! Signals as messages: for who passes them on to another program, and must know where each came from.

use crate::descriptor::watch;
use nix::errno::Errno;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;

/// Those that ask a program to end.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Signals that come in from now on.
pub struct Signals {
    source: SignalFd,
    watched: AsyncFd<OwnedFd>,
}

/// What came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// A child has changed.
    Child,
    /// Somebody asks this process to end.
    End {
        /// The signal's number.
        signal: i32,
        /// It came from a process, to us alone; else from the terminal, to all programs in its foreground.
        to_us: bool,
    },
}

impl Signals {
    /// Takes those that ask to end, and SIGCHLD, from the calling thread and those that it starts. To be called within a runtime that has
    /// no other thread yet.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn take() -> io::Result<Self> {
        let mut set = SigSet::empty();
        ENDING.iter().for_each(|signal| set.add(*signal));
        set.add(Signal::SIGCHLD);
        set.thread_block()?;
        let source = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let watched = watch(source.as_fd().try_clone_to_owned()?)?;
        Ok(Self { source, watched })
    }

    /// The next one.
    ///
    /// # Errors
    /// What the kernel says.
    pub async fn next(&self) -> io::Result<Told> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&self, context: &mut Context<'_>) -> Poll<io::Result<Told>> {
        loop {
            let mut guard = ready!(self.watched.poll_read_ready(context))?;
            match self.source.read_signal()? {
                Some(info) if info.ssi_signo == Signal::SIGCHLD as u32 => return Poll::Ready(Ok(Told::Child)),
                Some(info) => {
                    // Codes of the kernel's own are positive (sigaction(2)): SI_KERNEL for the keys of a terminal.
                    let (signal, to_us) = (info.ssi_signo as i32, info.ssi_code <= 0);
                    return Poll::Ready(Ok(Told::End { signal, to_us }));
                }
                None => guard.clear_ready(),
            }
        }
    }
}

/// Sends a signal to a process. One that is gone needs none.
///
/// # Errors
/// What the kernel says.
pub fn send_signal(process: u32, signal: i32) -> io::Result<()> {
    let process = i32::try_from(process).map_err(io::Error::other)?;
    match kill(Pid::from_raw(process), Signal::try_from(signal)?) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Ends this process by a signal, as another was ended by it, but without a picture of its memory. Returns if that signal ends nobody.
pub fn end_by(signal: i32) {
    let Ok(signal) = Signal::try_from(signal) else { return };
    // If any of this fails the caller has another way to end.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action runs no code of ours.
    #[allow(unsafe_code)]
    let _ = unsafe { sigaction(signal, &default) };
    let _ = raise(signal);
    let mut set = SigSet::empty();
    set.add(signal);
    let _ = set.thread_unblock();
}
