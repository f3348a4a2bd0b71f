//! Capabilities of the calling thread (capabilities(7)).

use nix::libc;
use nix::sys::prctl::set_no_new_privs;
use std::io;

/// A capability, by its number in `linux/capability.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capability(u32);

impl Capability {
    /// Changes to the network's set-up.
    pub const NET_ADMIN: Self = Self(12);

    fn bit(self) -> u64 {
        1 << self.0
    }

    /// Whether the calling thread has it.
    pub fn is_held(self) -> bool {
        held() & self.bit() != 0
    }
}

/// The effective set.
fn held() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or_default()
}

/// Drops all capabilities of the calling thread but one, also for threads and programs that it starts later.
///
/// # Errors
/// EPERM if the thread does not have it.
pub fn keep_only(capability: Capability) -> io::Result<()> {
    set_no_new_privs()?;
    set(capability.bit())
}

/// Drops all capabilities, also for programs executed later: those with file capabilities run without them.
///
/// # Errors
/// An error of the kernel.
pub fn drop_all() -> io::Result<()> {
    set_no_new_privs()?;
    set(0)
}

fn set(kept: u64) -> io::Result<()> {
    let header = Header { version: VERSION_3, process: 0 };
    let half = |bits: u64| Sets { effective: bits as u32, permitted: bits as u32, inheritable: 0 };
    let sets = [half(kept), half(kept >> 32)];
    // SAFETY: the header has version 3, for which the kernel reads two sets; both outlive the call.
    #[allow(unsafe_code)]
    let outcome = unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// _LINUX_CAPABILITY_VERSION_3 of `linux/capability.h`.
const VERSION_3: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    /// 0 for the calling thread.
    process: i32,
}

/// `struct __user_cap_data_struct`: half of the capabilities.
#[repr(C)]
#[derive(Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a thread of its own, since the set is the thread's.
    fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(work).join().expect("the thread does not panic"))
    }

    #[test]
    fn one_capability_is_kept_or_could_not_be() {
        let had = Capability::NET_ADMIN.is_held();
        let (outcome, kept) = on_a_thread(|| (keep_only(Capability::NET_ADMIN), held()));
        assert_eq!(outcome.is_ok(), had);
        if had {
            assert_eq!(kept, Capability::NET_ADMIN.bit());
        }
    }

    #[test]
    fn none_is_kept() {
        assert_eq!(on_a_thread(|| drop_all().map(|()| held())).expect("nobody needs a right for that"), 0);
    }
}
