//! Decisions in words.

use anabranch_steering::command::Command;
use anabranch_steering::sample::{Endpoints, Token};
use anabranch_steering::status::Why;

/// A connection's token, as the kernel's tools print it.
pub fn name(token: Token) -> String {
    format!("{:08x}", token.0)
}

fn path(endpoints: Endpoints) -> String {
    format!("{} to {}", endpoints.local, endpoints.remote)
}

/// What led to a decision.
pub fn reason(why: &Why) -> String {
    format!(
        "{:?}; blocked: {:?}; busy {:.0} %; {:.2} Mbit/s",
        why.occasion,
        why.blocked,
        why.busy_share * 100.0,
        why.goodput * 8.0 / 1e6
    )
}

/// A command, with its connection.
pub fn command(command: &Command) -> String {
    match *command {
        Command::Announce { token, address, .. } => format!("{}: announce {address}", name(token)),
        Command::Remove { token, local_id } => format!("{}: withdraw address {local_id}", name(token)),
        Command::CreateSubflow { token, local, remote, backup, .. } => {
            let backup = if backup { ", as a backup" } else { "" };
            format!("{}: open {local} to {remote}{backup}", name(token))
        }
        Command::DestroySubflow { token, endpoints } => format!("{}: close {}", name(token), path(endpoints)),
        Command::SetBackup { token, endpoints, backup: true } => format!("{}: demote {}", name(token), path(endpoints)),
        Command::SetBackup { token, endpoints, .. } => format!("{}: promote {}", name(token), path(endpoints)),
    }
}

/// A command's kind in a word.
pub fn kind(command: &Command) -> &'static str {
    match command {
        Command::Announce { .. } => "announce",
        Command::Remove { .. } => "withdraw",
        Command::CreateSubflow { .. } => "open",
        Command::DestroySubflow { .. } => "close",
        Command::SetBackup { backup: true, .. } => "demote",
        Command::SetBackup { .. } => "promote",
    }
}
