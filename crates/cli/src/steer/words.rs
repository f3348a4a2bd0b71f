//! Decisions in words.

use anabranch_policy::time::Duration;
use anabranch_steering::command::{Command, Outcome};
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
    let dead = |silence: Duration| format!("; dead: nothing acknowledged for {:.1} s", silence.as_secs_f64());
    format!(
        "{:?}; blocked: {:?}; busy {:.0} %; {:.2} Mbit/s{}",
        why.occasion,
        why.blocked,
        why.busy_share * 100.0,
        why.goodput * 8.0 / 1e6,
        why.silence.map(dead).unwrap_or_default()
    )
}

/// What is said of a command that a path manager does not have.
pub const CANNOT: &str = "its path manager cannot";

pub fn refused(errno: i32) -> String {
    format!("refused, errno {errno}")
}

/// Why a command was not carried out, in the kernel's words if it has some; none if it was.
pub fn refusal(outcome: Outcome, said: Option<&str>) -> Option<String> {
    let by_outcome = || match outcome {
        Outcome::Done => None,
        Outcome::Refused(errno) => Some(refused(errno)),
        Outcome::Unsupported => Some(CANNOT.to_owned()),
    };
    said.map(str::to_owned).or_else(by_outcome)
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
