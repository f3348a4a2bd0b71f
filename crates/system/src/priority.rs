//! The scheduling priority of a thread.

use nix::libc;

/// The priority that a thread got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// SCHED_FIFO: runs before all threads that are not real-time.
    RealTime,
    /// An ordinary thread, delayed by other load.
    Ordinary,
}

/// The lowest real-time priority: above all ordinary work, below the system's own threads.
const LOWEST: libc::c_int = 1;

/// Requests a real-time priority for the calling thread. If refused, requests exact timers instead.
pub fn raise() -> Priority {
    // Timers of ordinary threads may be 50 µs late by default; if this fails, they stay so.
    let _ = nix::sys::prctl::set_timerslack(1);
    // Children of this thread are ordinary again.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // The kernel's `sched_param` is this one number. The system call is made directly since musl's function always
    // fails.
    let parameters = LOWEST;
    // SAFETY: the number outlives the call, which only reads it; 0 is the calling thread.
    #[allow(unsafe_code)]
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) };
    if outcome == 0 { Priority::RealTime } else { Priority::Ordinary }
}
