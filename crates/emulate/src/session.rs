//! Programs in the two hosts: one in the client whose end ends the session, and optionally one in the server before it.

use super::hosts::Hosts;
use anabranch_system::{Namespace, command_in};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);
/// How long the server may take to open its port.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the server may take if no port is given.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);

/// The programs of a session.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program in the client, with its arguments.
    pub command: Vec<OsString>,
    /// A shell command that runs in the server first.
    pub server: Option<OsString>,
    /// The TCP or UDP port that the server must open before the program starts; by default any.
    pub port: Option<u16>,
    /// Time limit of the program.
    pub duration: Option<Duration>,
    /// Environment variables of both.
    pub environment: Vec<(String, String)>,
}

/// How the program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// By itself or by a signal.
    Ended(ExitStatus),
    /// The time limit was reached.
    TimeUp,
}

/// A session that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    /// How the program ended.
    pub ending: Ending,
    /// How the server's command failed before the program ended, if it did.
    pub server_failed: Option<ExitStatus>,
}

impl Session {
    /// A warning about the server, if it failed.
    pub fn warning(&self) -> Option<String> {
        self.server_failed.map(|status| format!("the server's command ended before the program: {status}"))
    }
}

impl Ending {
    /// The exit code of the session: that of the program, 128 plus the signal's number, or 124 after the time limit, as
    /// in timeout(1).
    pub fn code(self) -> u8 {
        match self {
            Self::TimeUp => 124,
            Self::Ended(status) => {
                let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
                u8::try_from(code).unwrap_or(u8::MAX)
            }
        }
    }
}

/// Why the programs did not run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The program does not exist or cannot be run.
    #[error("cannot run '{}': {}", .program.display(), reason(.error))]
    Program {
        program: OsString,
        /// The system's error.
        error: io::Error,
    },
    /// The server ended.
    #[error("the server's command ended before {waited_for} ({status}): see its output above")]
    ServerEnded {
        /// The port that it should open.
        waited_for: String,
        status: ExitStatus,
    },
    /// The server does not listen.
    #[error(
        "nothing listens on port {0} in the server after 10 seconds: start something that does, or leave --port out"
    )]
    NoListener(u16),
    /// Another error.
    #[error("{doing}: {error}")]
    System {
        /// The attempted action.
        doing: &'static str,
        error: io::Error,
    },
}

impl SessionError {
    /// The exit code of the session, as in shells: 127 for a missing program, 126 for one that cannot be run; 2 for
    /// other errors.
    pub fn code(&self) -> u8 {
        match self {
            Self::Program { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            _ => 2,
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied, it is not a program".to_owned(),
        _ => error.to_string(),
    }
}

fn system(doing: &'static str) -> impl Fn(io::Error) -> SessionError {
    move |error| SessionError::System { doing, error }
}

/// Runs the programs to their end, and ends all their processes. The calling thread must live as long: the programs end
/// when it does.
///
/// # Errors
/// If they could not be run.
pub fn run(hosts: &Hosts, programs: &Programs) -> Result<Session, SessionError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(system("the event loop could not be started"))?;
    let outcome = runtime.block_on(run_both(hosts, programs));
    hosts.end();
    outcome
}

async fn run_both(hosts: &Hosts, programs: &Programs) -> Result<Session, SessionError> {
    let doing = "signals cannot be waited for";
    // From here on these signals have no default action.
    let [mut interrupt, mut terminate, mut hang_up] = [
        signal(SignalKind::interrupt()).map_err(system(doing))?,
        signal(SignalKind::terminate()).map_err(system(doing))?,
        signal(SignalKind::hangup()).map_err(system(doing))?,
    ];
    let mut server = match &programs.server {
        Some(text) => Some(start_server(hosts, programs, text).await?),
        None => None,
    };
    let [program, arguments @ ..] = programs.command.as_slice() else {
        return Err(system("there is nothing to run")(io::ErrorKind::InvalidInput.into()));
    };
    let mut command = command_in(hosts.client(), program);
    command.args(arguments).envs(programs.environment.iter().cloned());
    let mut child = spawn(command, program)?;
    let until = programs.duration.map(|duration| Instant::now() + duration);
    let doing = "the program cannot be waited for";
    let ending = loop {
        tokio::select! {
            status = child.wait() => break Ending::Ended(status.map_err(system(doing))?),
            () = at(until) => {
                end(&mut child).await.map_err(system(doing))?;
                break Ending::TimeUp;
            }
            // The terminal signals all programs in the foreground, and this one may handle the signal itself.
            _ = interrupt.recv() => if !in_front_of_terminal() { send(&child, Signal::SIGINT) },
            _ = terminate.recv() => break Ending::Ended(end(&mut child).await.map_err(system(doing))?),
            _ = hang_up.recv() => break Ending::Ended(end(&mut child).await.map_err(system(doing))?),
        }
    };
    let mut server_failed = None;
    if let Some(server) = &mut server {
        let ended = server.try_wait().map_err(system("the server's command cannot be waited for"))?;
        server_failed = ended.filter(|status| !status.success());
        // It may have ended before.
        let _ = end(server).await;
    }
    Ok(Session { ending, server_failed })
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Whether the terminal's signals reach the program anyway.
fn in_front_of_terminal() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

fn send(child: &Child, signal: Signal) {
    if let Some(id) = child.id() {
        // It may already have ended.
        let _ = kill(Pid::from_raw(id as i32), signal);
    }
}

/// Sends SIGTERM, and after a while SIGKILL.
async fn end(child: &mut Child) -> io::Result<ExitStatus> {
    send(child, Signal::SIGTERM);
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    child.kill().await?;
    child.wait().await
}

fn spawn(command: Command, program: &OsStr) -> Result<Child, SessionError> {
    tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| SessionError::Program { program: program.to_owned(), error })
}

/// Starts the server's command and waits until it listens.
async fn start_server(hosts: &Hosts, programs: &Programs, text: &OsStr) -> Result<Child, SessionError> {
    let shell = OsStr::new("sh");
    let mut command = command_in(hosts.server(), shell);
    command.arg("-c").arg(text).envs(programs.environment.iter().cloned());
    // Its output must not mix with that of the program, and it must not read the program's input.
    let said: OwnedFd = io::stderr().as_fd().try_clone_to_owned().map_err(system("standard error cannot be shared"))?;
    command.stdin(Stdio::null()).stdout(said).process_group(0);
    let mut server = spawn(command, shell)?;
    let patience = if programs.port.is_some() { PATIENCE } else { SHORT_PATIENCE };
    let until = Instant::now() + patience;
    loop {
        let listens = listens(hosts.server(), programs.port).map_err(system("the server's ports cannot be read"))?;
        if listens {
            return Ok(server);
        }
        if let Some(status) = server.try_wait().map_err(system("the server's command cannot be waited for"))? {
            let waited_for =
                programs.port.map_or("it listened".to_owned(), |port| format!("it listened on port {port}"));
            return Err(SessionError::ServerEnded { waited_for, status });
        }
        if Instant::now() >= until {
            return programs.port.map_or(Ok(server), |port| Err(SessionError::NoListener(port)));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a port (or any) is open in a host: TCP listens, or UDP is bound.
fn listens(host: &Namespace, port: Option<u16>) -> io::Result<bool> {
    let tables = || {
        let read = |name| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        (["tcp", "tcp6"].map(read), ["udp", "udp6"].map(read))
    };
    let (tcp, udp) = host.run(tables)?;
    let open = |table: &String, state: &str| table.lines().skip(1).any(|line| is_open(line, state, port));
    Ok(tcp.iter().any(|table| open(table, "0A")) || udp.iter().any(|table| open(table, "07")))
}

/// Whether a line of `/proc/net/tcp` or `udp` is a socket in this state (hexadecimal) with this local port.
fn is_open(line: &str, state: &str, port: Option<u16>) -> bool {
    let mut columns = line.split_whitespace().skip(1);
    let (Some(local), Some(found)) = (columns.next(), columns.nth(1)) else { return false };
    let number = local.rsplit_once(':').and_then(|(_, number)| u16::from_str_radix(number, 16).ok());
    found == state && number.is_some_and(|number| port.is_none_or(|port| port == number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_its_port_and_state() {
        let listener = "   0: 0100007F:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 5 1";
        assert!(is_open(listener, "0A", Some(5_201)) && is_open(listener, "0A", None));
        assert!(!is_open(listener, "0A", Some(5_202)) && !is_open(listener, "07", Some(5_201)));
        assert!(!is_open("", "0A", None) && !is_open("0: 1 2", "0A", None));
    }
}
