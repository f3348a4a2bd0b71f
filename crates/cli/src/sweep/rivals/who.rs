//! Senders of runs in real time.

/// The sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// Anabranch on all paths.
    Ours,
    /// The kernel's MPTCP on all paths.
    Kernel,
    /// The same with BBR, to separate the effect of the congestion control.
    KernelBbr,
    /// The kernel's TCP on this path only.
    Tcp(usize),
}
