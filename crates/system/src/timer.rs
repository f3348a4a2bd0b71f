//! A timer of the event loop with the clock's resolution: the runtime's timers round to a millisecond, which is many
//! segments on a fast path.

use crate::clock::Clock;
use crate::descriptor::watch;
use anabranch_policy::time::Instant;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;

/// A timer that can be reset at any time.
pub struct Timer {
    timer: TimerFd,
    expiry: AsyncFd<OwnedFd>,
    armed: Instant,
}

impl Timer {
    /// A timer that is not set. Call this within a runtime.
    ///
    /// # Errors
    /// If the operating system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let expiry = watch(timer.as_fd().try_clone_to_owned()?)?;
        Ok(Self { timer, expiry, armed: Instant::NEVER })
    }

    /// Sets the timer to `at`, in `clock`'s time; [`Instant::NEVER`] stops it. Makes a system call only if `at`
    /// differs.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn set(&mut self, clock: &Clock, at: Instant) -> io::Result<()> {
        if at == self.armed {
            return Ok(());
        }
        self.armed = at;
        if at == Instant::NEVER {
            return Ok(self.timer.unset()?);
        }
        // Zero would stop it.
        let wait = at.since(clock.now()).as_nanos().max(1);
        let wait = TimeSpec::from(std::time::Duration::from_nanos(wait));
        Ok(self.timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty())?)
    }

    /// Ready once the timer has expired; it is then no longer set.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.expiry.poll_read_ready(context))?;
            let mut expirations = [0; 8];
            let read = guard.try_io(|descriptor| Ok(nix::unistd::read(descriptor.get_ref(), &mut expirations)?));
            match read {
                Ok(outcome) => {
                    self.armed = Instant::NEVER;
                    return Poll::Ready(outcome.map(|_| ()));
                }
                Err(_would_block) => {}
            }
        }
    }
}
