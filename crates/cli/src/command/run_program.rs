//! `run -- PROGRAM`: runs a program in its own network namespace, whose traffic uses all uplinks of this host; needs no
//! privileges.

use super::proxy::target;
use super::run_inside::{self, GO, READY};
use super::server_move::Lookout;
use super::server_watch::{Hint, Question, Tell, watch};
use crate::attachment::{Reach, RoleOptions, StackOptions, diagnostic};
use crate::console::event;
use crate::datagrams::{Said, answering, datagrams_at, start_client, start_direct, watch_uplinks};
use crate::ending::block_on;
use crate::secrets::read_key;
use crate::server_name::{known, known_again};
use crate::serving::HELD;
use crate::status::{Listeners, Serving, Source, StatusOptions};
use crate::uplink_care::{Roles, UplinkOptions, govern};
use crate::values::port;
use anabranch_capture::{Capture, CaptureConfig};
use anabranch_datagram::{Client, Way};
use anabranch_host::ServerAddresses;
use anabranch_mptcp::ConnectionConfig;
use anabranch_proxy::{BoundSockets, Exit, Journal, Key, Limits, Target, Via};
use anabranch_settings::contender::ON_NETWORKS;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_stack::Stack;
use anabranch_system::{Channel, Signals, Told, end_by, send_signal};
use clap::Args;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time for connections to deliver the rest of their data after the program has exited.
const DRAIN: Duration = Duration::from_secs(30);

/// Time that the program waits until datagrams are carried.
const PATIENCE: Duration = Duration::from_secs(1);

/// Delay of the message that they are not.
const LATE: Duration = Duration::from_secs(5);

/// Added to the number of the signal that killed a program, as shells do.
const BY_SIGNAL: u8 = 128;

/// What can be said to `run -- PROGRAM`.
#[derive(Clone, Debug, Args)]
pub struct RunProgramOptions {
    /// Server for the program's traffic, an `anabranch serve --socks --udp` [default: none, each connection directly
    /// to its target over the uplink that answers first]
    #[arg(long, value_name = "HOST:PORT", value_parser = target)]
    server: Option<Target>,
    /// The key shared with the server (see `anabranch key`)
    #[arg(long, value_name = "FILE", requires = "server")]
    key: Option<PathBuf>,
    /// The server's UDP port for datagrams: UDP, ICMP echo and DNS queries [default: the one after --server's]
    #[arg(long, value_name = "PORT", requires = "server", value_parser = port)]
    datagram_port: Option<u16>,
    /// Use this interface as an uplink (repeatable) [default: all with a default route]
    #[arg(long = "uplink", value_name = "INTERFACE")]
    uplinks: Vec<String>,
    /// Use this uplink only while no other works (repeatable)
    #[arg(long = "backup", value_name = "INTERFACE")]
    backups: Vec<String>,
    #[command(flatten)]
    care: UplinkOptions,
    /// The policies, as for `anabranch proxy`
    #[arg(long, value_name = "POLICY", default_value = ON_NETWORKS)]
    policy: String,
    #[command(flatten)]
    status: StatusOptions,
    /// Report changes of server and uplinks, and each connection that ends, on standard error
    #[arg(long, short)]
    verbose: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// End of the help of `run -- PROGRAM`.
pub const RUN_PROGRAM_NOTES: &str = "\
Needs no privileges: the program runs in a user and network namespace of its own, with a TUN device. With --server its TCP goes
over all uplinks to the server and on to its destination; without, each connection and each flow takes one uplink, and another if
that one is dead. The exit code is the program's. See docs/up.md.

Examples:
  anabranch run -- curl https://example.org/
  anabranch run --server vps.example:4433 --key tunnel.key -- curl https://example.org/";

impl RunProgramOptions {
    fn stack(&self) -> StackOptions {
        StackOptions {
            uplinks: self.uplinks.clone(),
            roles: RoleOptions { backups: self.backups.clone() },
            local: None,
            udp: true,
            policy: self.policy.clone(),
            mtu: None,
            receive_buffer: None,
            send_buffer: None,
            buffer_memory: None,
            dry_run: false,
            journal: None,
        }
    }

    fn config(&self, exit: Exit, connection: ConnectionConfig, way: Way) -> CaptureConfig {
        CaptureConfig {
            exit,
            connection,
            datagrams: Some(way),
            limits: Limits { drain: DRAIN, ..Limits::default() },
            held: HELD,
            journal: self.journal(),
        }
    }

    fn journal(&self) -> Option<Journal> {
        self.verbose.then(|| -> Journal { Arc::new(|_, _, line: &str| event(line)) })
    }
}

/// Runs until the program exits; returns its exit code.
///
/// # Errors
/// An error of the options or the host.
pub fn run_program(options: &RunProgramOptions) -> Result<u8, Diagnostic> {
    options.stack().check(true)?;
    options.care.check(&options.uplinks, &options.backups)?;
    let server = match (&options.server, &options.key) {
        (Some(server), Some(key)) => Some((server, read_key(key)?, block_on(known(server, &options.uplinks))?)),
        (Some(_), None) => {
            let message = "the server is to know who comes: say where the key that you share is";
            return Err(Diagnostic::option("--key", message));
        }
        (None, _) => None,
    };
    // Before a second thread exists but for a question to a silent resolver, which takes no signals; and before
    // `Signals::take` changes what children inherit.
    let mut inside = Inside::start(&options.program)?;
    let status = block_on(async {
        let signals = Signals::take().map_err(|error| cannot("listen to signals", &error))?;
        let listeners = options.status.listen_if_possible("run", options.verbose).await?;
        match server {
            Some((named, key, addresses)) => {
                let address = answering(&addresses, options.datagram_port, &key, &options.uplinks).await;
                let address = address.ok_or_else(|| Diagnostic::option("--server", "it has no address"))?;
                let mut server = Server { named, key, addresses: ServerAddresses::new(address, &addresses) };
                let serving = Serving::start(listeners, None);
                loop {
                    match through(options, &server, &mut inside, &signals, &serving).await? {
                        Carried::Ended(status) => break Ok(status),
                        Carried::Moved(moved) => {
                            event(&format!("the server {named} is at {} now", moved.first().ip()));
                            server.addresses = moved;
                        }
                    }
                }
            }
            None => straight(options, &mut inside, &signals, listeners).await,
        }
    })?;
    Ok(end_as(status))
}

/// The server and its addresses.
struct Server<'a> {
    named: &'a Target,
    key: Key,
    addresses: ServerAddresses,
}

/// Why traffic is not carried any more.
enum Carried {
    /// The program has ended.
    Ended(ExitStatus),
    /// The server's name has another address.
    Moved(ServerAddresses),
}

/// Carries all traffic through the server, until the program ends or the server has moved.
async fn through(
    options: &RunProgramOptions,
    server: &Server<'_>,
    inside: &mut Inside,
    signals: &Signals,
    serving: &Serving,
) -> Result<Carried, Diagnostic> {
    let roles = Roles::new(&options.care, &options.backups);
    let (stack, Server { named, key, addresses }) = (options.stack().with_backups(roles.reserve()), server);
    let open = stack.open_on(Reach::Server(*addresses), Some(key), &[Handle::current()]).await?;
    if options.verbose {
        open.tell_unusable(&options.uplinks);
    }
    let (target, other) = stack.inside_of(*addresses);
    let datagrams = start_client(*addresses, options.datagram_port, key, &options.uplinks)?;
    let question =
        Question::new(named, (&target, other), key, open.connection.clone(), Hint::Datagrams(datagrams.clone()));
    let way = Way::Server(datagrams.clone());
    let exit = Exit::Stacks(Via::Server { server: target, other, key: key.clone() });
    let config = options.config(exit, open.connection.clone(), way.clone());
    let capture = inside.capture(open.attached.stacks(), config)?;
    let source = Source::new("run", open.attached.stacks(), capture.observer().connections().clone());
    let source = source.with_paths(open.attached.observer()).with_datagrams(capture.observer(), way.clone());
    serving.set(source.with_roles(roles.clone()));
    // Most programs start with a DNS query, which would be retransmitted only after seconds.
    let known = timeout(PATIENCE, datagrams.connected()).await.is_ok();
    if !known {
        tokio::spawn(tell_of_no_datagrams(datagrams.clone(), question.proven(), named.to_string()));
    }
    inside.begin()?;
    let tell = if options.verbose { Tell::All } else { Tell::Trouble };
    let there = || open.attached.paths().into_iter().map(|path| path.name).collect();
    let governing = govern(&roles, there, |reserve, barred| {
        open.attached.set_uses(reserve, barred);
        way.set_uses(reserve, barred);
    });
    let uplinks = || open.attached.paths().into_iter().map(|path| path.name).collect();
    let (addresses, port) = (*addresses, options.datagram_port);
    let change = |now: ServerAddresses| {
        open.attached.set_server(now);
        datagrams.set_server(datagrams_at(now, port));
    };
    let lookout = Lookout { named, addresses, key, port, uplinks: &uplinks, datagrams: &datagrams, change: &change };
    let carried = tokio::select! {
        status = carry(capture, &mut inside.child, signals) => status.map(Carried::Ended),
        moved = lookout.moved(async || known_again(named, &options.uplinks).await) => Ok(Carried::Moved(moved)),
        never = governing => match never {},
        never = watch(&open.attached, &question, tell) => match never {},
    };
    way.close();
    // The host's configuration was not changed: there is nothing to log.
    open.attached.detach().await.map_err(|error| diagnostic(&error))?;
    carried.map_err(|error| cannot("wait for the program", &error))
}

/// Carries all traffic directly to its targets.
async fn straight(
    options: &RunProgramOptions,
    inside: &mut Inside,
    signals: &Signals,
    listeners: Listeners,
) -> Result<ExitStatus, Diagnostic> {
    let direct = start_direct(&options.uplinks, true)?;
    if direct.preferred().is_empty() {
        return Err(diagnostic(&anabranch_attach::HostError::NoUplink));
    }
    let interfaces = direct.clone();
    let exit = Exit::Sockets(BoundSockets::new(Arc::new(move || interfaces.preferred())));
    let way = Way::Direct(direct.clone());
    let config = options.config(exit, options.stack().connection()?, way.clone());
    let capture = inside.capture(&[], config)?;
    let source = Source::new("run", &[], capture.observer().connections().clone());
    let roles = Roles::new(&options.care, &options.backups);
    let source = source.with_datagrams(capture.observer(), way).with_roles(roles.clone());
    let _serving = Serving::start(listeners, Some(source));
    inside.begin()?;
    let said = if options.verbose { Said::All } else { Said::Trouble };
    let there = || direct.states().into_iter().map(|(name, _)| name).collect();
    let governing = govern(&roles, there, |reserve, barred| direct.set_uses(reserve, barred));
    let status = tokio::select! {
        status = carry(capture, &mut inside.child, signals) => status,
        never = governing => match never {},
        never = watch_uplinks(&direct, &options.uplinks, said) => match never {},
    };
    status.map_err(|error| cannot("wait for the program", &error))
}

/// Logs that the server carries streams but no datagrams; if it carries neither, that is logged elsewhere.
async fn tell_of_no_datagrams(datagrams: Client, proven: impl Future<Output = ()>, server: String) {
    tokio::select! {
        () = datagrams.connected() => return,
        () = proven => {}
    }
    if timeout(LATE, datagrams.connected()).await.is_err() {
        event(&format!(
            "the server {server} does not answer where it carries datagrams: the program has no UDP and no names; see --datagram-port"
        ));
    }
}

/// Carries traffic until the program has exited and its data is delivered.
async fn carry(capture: Capture, program: &mut Child, signals: &Signals) -> io::Result<ExitStatus> {
    let (over, is_over) = oneshot::channel();
    let mut capture = pin!(capture.run(async {
        // The sender is dropped only after it has sent.
        let _ = is_over.await;
    }));
    let mut carried = false;
    let status = {
        let mut ended = pin!(until_it_ends(program, signals));
        loop {
            tokio::select! {
                status = &mut ended => break status,
                // All processes have left the network namespace; the program exits by itself.
                _ = &mut capture, if !carried => carried = true,
            }
        }
    };
    let _ = over.send(());
    if !carried {
        tokio::select! {
            _ = capture => {}
            () = impatience(signals) => {}
        }
    }
    status
}

/// Completes when the program has exited; forwards its signals.
async fn until_it_ends(program: &mut Child, signals: &Signals) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = program.try_wait()? {
            return Ok(status);
        }
        match signals.next().await? {
            Told::End { signal, to_us: true } => send_signal(program.id(), signal)?,
            // The terminal has signalled the program too.
            Told::End { to_us: false, .. } | Told::Child => {}
        }
    }
}

/// Completes when the user wants to stop waiting.
async fn impatience(signals: &Signals) {
    while let Ok(told) = signals.next().await {
        if matches!(told, Told::End { .. }) {
            return;
        }
    }
}

/// The program's exit code.
fn end_as(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, signal) => {
            let signal = signal.unwrap_or_default();
            end_by(signal);
            BY_SIGNAL.saturating_add(u8::try_from(signal).unwrap_or_default())
        }
    }
}

fn cannot(what: &str, error: &io::Error) -> Diagnostic {
    Diagnostic::plain(format!("cannot {what}: {error}"))
}

/// The program's process, which waits in its namespaces for permission to start.
struct Inside {
    child: Child,
    channel: Channel,
    /// The TUN device of its traffic.
    device: Option<OwnedFd>,
    begun: bool,
}

impl Inside {
    /// Starts the process, which must have a single thread.
    fn start(program: &[OsString]) -> Result<Self, Diagnostic> {
        let begin = || {
            let (channel, theirs) = Channel::pair()?;
            let mut command = Command::new("/proc/self/exe");
            command.arg0("anabranch").args([run_inside::NAME, &theirs.leave_open()?.to_string(), "--"]).args(program);
            Ok((command.spawn()?, channel))
        };
        let (child, channel) = begin().map_err(|error| cannot("start a process for the program", &error))?;
        let mut inside = Self { child, channel, device: None, begun: false };
        let (message, device) =
            inside.channel.receive().map_err(|error| cannot("hear of the program's process", &error))?;
        inside.device = device;
        match message {
            ready if ready == READY && inside.device.is_some() => Ok(inside),
            silence if silence.is_empty() => {
                Err(Diagnostic::plain("the process for the program ended before it had its network; try again"))
            }
            sentence => Err(Diagnostic::plain(String::from_utf8_lossy(&sentence).into_owned())),
        }
    }

    /// Starts to capture the program's packets. The one before has ended.
    fn capture(&self, stacks: &[Stack], config: CaptureConfig) -> Result<Capture, Diagnostic> {
        let device = self.device.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
        let capture = device.and_then(OwnedFd::try_clone).and_then(|device| Capture::new(device, stacks, config));
        capture.map_err(|error| cannot("take the program's packets", &error))
    }

    /// Permits the program to start, if that has not been done.
    fn begin(&mut self) -> Result<(), Diagnostic> {
        if core::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        self.channel.send(GO, None).map_err(|error| cannot("start the program", &error))
    }
}

/// No process remains after an error.
impl Drop for Inside {
    fn drop(&mut self) {
        // It has exited unless there was an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
