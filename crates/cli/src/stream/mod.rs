//! `anabranch stream`: live streams over several paths, with an end to the waiting.

mod compare;

use crate::diagnostic::Diagnostic;
use clap::Subcommand;
use compare::CompareOptions;

/// What to do with a stream.
#[derive(Clone, Debug, Subcommand)]
pub enum StreamCommand {
    /// Carry the same made stream over emulated paths in real time with the kernel's TCP and MPTCP, SRT, RIST and our ends, and
    /// count the frames that are on time; as root
    Compare {
        #[command(flatten)]
        options: Box<CompareOptions>,
    },
}

/// Does it; gives whether it came to its end.
pub fn stream(command: &StreamCommand) -> Result<bool, Diagnostic> {
    match command {
        StreamCommand::Compare { options } => compare::compare(options),
    }
}
