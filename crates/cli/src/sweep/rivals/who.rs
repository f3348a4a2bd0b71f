//! Participants of runs in real time.

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The engine on all paths.
    Ours,
    /// The kernel's MPTCP on all paths.
    Kernel,
    /// The same with BBR, to know what of a lead is the congestion control's.
    KernelBbr,
    /// The kernel's TCP on this path alone.
    Tcp(usize),
}
