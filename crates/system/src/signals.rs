//! Signals as messages with their origin, for a process that forwards them to another program.

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

/// The signals that ask a program to end.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Receives signals.
pub struct Signals {
    source: SignalFd,
    watched: AsyncFd<OwnedFd>,
}

/// Blocks all signals in the calling thread, so that they reach those threads of the process that expect them.
pub fn leave_signals_to_others() {
    // It fails only for a wrong argument.
    let _ = SigSet::all().thread_block();
}

/// A received signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// A child changed state.
    Child,
    /// A request to end.
    End {
        /// The signal's number.
        signal: i32,
        /// From a process, sent only to us; otherwise from the terminal, sent to its whole foreground group.
        to_us: bool,
    },
}

impl Signals {
    /// Receives the signals that ask to end, and SIGCHLD, for the calling thread and those it starts. Call this within
    /// a runtime that has no other thread yet.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn take() -> io::Result<Self> {
        let mut set = SigSet::empty();
        ENDING.iter().for_each(|signal| set.add(*signal));
        set.add(Signal::SIGCHLD);
        set.thread_block()?;
        let source = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let watched = watch(source.as_fd().try_clone_to_owned()?)?;
        Ok(Self { source, watched })
    }

    /// The next signal.
    ///
    /// # Errors
    /// An error of the kernel.
    pub async fn next(&self) -> io::Result<Told> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&self, context: &mut Context<'_>) -> Poll<io::Result<Told>> {
        loop {
            let mut guard = ready!(self.watched.poll_read_ready(context))?;
            match self.source.read_signal()? {
                Some(info) if info.ssi_signo == Signal::SIGCHLD as u32 => return Poll::Ready(Ok(Told::Child)),
                Some(info) => {
                    // Codes above zero are from the kernel (sigaction(2)): SI_KERNEL for keys of a terminal.
                    let (signal, to_us) = (info.ssi_signo as i32, info.ssi_code <= 0);
                    return Poll::Ready(Ok(Told::End { signal, to_us }));
                }
                None => guard.clear_ready(),
            }
        }
    }
}

/// Sends a signal to a process. Succeeds if the process no longer exists.
///
/// # Errors
/// An error of the kernel.
pub fn send_signal(process: u32, signal: i32) -> io::Result<()> {
    let process = i32::try_from(process).map_err(io::Error::other)?;
    match kill(Pid::from_raw(process), Signal::try_from(signal)?) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Ends this process by the signal that ended another, without a core dump. Returns if the signal's default action does
/// not end a process.
pub fn end_by(signal: i32) {
    let Ok(signal) = Signal::try_from(signal) else { return };
    // On failure the caller ends in another way.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action runs none of our code.
    #[allow(unsafe_code)]
    let _ = unsafe { sigaction(signal, &default) };
    let _ = raise(signal);
    let mut set = SigSet::empty();
    set.add(signal);
    let _ = set.thread_unblock();
}
