//! The scheduling priority of a thread.

use nix::libc;

/// What a thread got of what it asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// SCHED_FIFO: it runs as soon as it is due, before everything that is not real-time itself.
    RealTime,
    /// An ordinary thread: the machine's other work delays it.
    Ordinary,
}

/// The lowest of the real-time priorities: above all ordinary work, below what the system has of its own.
const LOWEST: libc::c_int = 1;

/// Asks for a real-time priority for the calling thread, and for timers as exact as the hardware's where that is refused.
pub fn raise() -> Priority {
    // An ordinary thread's timers may be 50 µs late unless it says otherwise; refused, they stay so.
    let _ = nix::sys::prctl::set_timerslack(1);
    // What is started from this thread, should there ever be anything, is ordinary again.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // The kernel's `sched_param` is this one number. The call is made directly because musl's function only fails.
    let parameters = LOWEST;
    // SAFETY: the number lives across the call, which reads it; 0 is the calling thread.
    #[allow(unsafe_code)]
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) };
    if outcome == 0 { Priority::RealTime } else { Priority::Ordinary }
}
