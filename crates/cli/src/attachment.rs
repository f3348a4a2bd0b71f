//! Options shared by commands with a real stack, and its setup.

use crate::console::event;
use crate::ending;
use anabranch_attach::{Attached, AttachedPath, Attachment, HostError, HostOptions, Local, Tunnels, Uplinks, Worker};
use anabranch_host::ServerAddresses;
use anabranch_mptcp::{BufferMemory, BufferSize, ConnectionConfig, Policies};
use anabranch_proxy::{Key, Target};
use anabranch_settings::connection::ConnectionSettings;
use anabranch_settings::contender::{Contender, ON_NETWORKS, from_option};
use anabranch_settings::diagnostic::{Diagnostic, did_you_mean};
use anabranch_settings::quantity::{self, Size};
use anabranch_stack::StackConfig;
use anabranch_stack::device::MAX_TUNNEL_PACKET;
use anabranch_wire::encapsulation;
use clap::Args;
use std::cell::OnceCell;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Initial size in bytes of an automatic receive buffer.
const FIRST_BUFFER: u64 = 131_072;

/// MTU of Ethernet: a packet of [`MAX_TUNNEL_PACKET`] bytes reaches it inside UDP over IPv4.
const ETHERNET: u16 = 1_500;

/// What the stack is attached to, and how its connections behave.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Stack")]
pub struct StackOptions {
    /// Use this interface as an uplink, with its own addresses (repeatable) [default: all with a default route]
    #[arg(long = "uplink", value_name = "INTERFACE", conflicts_with = "local")]
    pub uplinks: Vec<String>,
    #[command(flatten)]
    pub roles: RoleOptions,
    /// Loopback operation for tests: PATHS paths, reachable from this host only
    #[arg(long, value_name = "PATHS", num_args = 0..=1, default_missing_value = "1", value_parser = paths)]
    pub local: Option<u8>,
    /// Encapsulate segments in UDP, on the server's port: works through NATs, without privileges or changes to the
    /// host; both ends need it
    #[arg(long, conflicts_with = "local")]
    pub udp: bool,
    /// Policies: `anabranch`, `plain`, `plain_tcp`, a member of any family, or a combination such as
    /// congestion=olia,scheduler=redundant,path_manager.PARAMETER=VALUE, which changes `plain` unless it names
    /// another, as in `anabranch,scheduler=linux`
    #[arg(long, value_name = "POLICY", default_value = ON_NETWORKS)]
    pub policy: String,
    /// Maximum IP packet size in bytes, including the encapsulation with --udp [default: the uplinks' MTU]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1280..))]
    pub mtu: Option<u16>,
    /// Maximum receive buffer of a connection per path, e.g. 4MiB; it grows as data is read [default: 32MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub receive_buffer: Option<u64>,
    /// Maximum send buffer of a connection per path, e.g. 4MiB; it grows with the congestion windows [default: 32MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub send_buffer: Option<u64>,
    /// Maximum memory of all buffers, e.g. 64MiB; each connection may exceed it by 192 KiB [default: 1/8 of the host's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub buffer_memory: Option<u64>,
    /// Print the commands that would set up this host, and exit
    #[arg(long)]
    pub dry_run: bool,
    /// Directory for the journal that undoes the set-up after a crash [default: /run/anabranch, or $XDG_RUNTIME_DIR/anabranch]
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
}

/// Which uplinks are not like the others.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Stack")]
pub struct RoleOptions {
    /// Use this uplink only while no other works (repeatable)
    #[arg(long = "backup", value_name = "INTERFACE", conflicts_with = "local")]
    pub backups: Vec<String>,
}

/// Parses the number of paths of `--local`. clap takes the next argument for it, even if it was meant as another one.
fn paths(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(paths @ 1..=32) => Ok(paths),
        Ok(_) => Err("there can be 1 to 32 paths".to_owned()),
        Err(_) => Err(format!(
            "after --local comes the number of paths, 1 to 32; if '{text}' is an address, write --local 1 {text}"
        )),
    }
}

fn size(text: &str) -> Result<u64, String> {
    quantity::parse::<Size>(text).map(|Size(bytes)| bytes)
}

/// Who opens connections.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'a> {
    /// Peers, to these ports.
    On(&'a [u16]),
    /// This host, to one Anabranch server.
    Server(ServerAddresses),
    /// This host, to any address.
    Anybody,
}

/// A running stack and the configuration of its connections.
pub struct Open {
    /// The stack; must be detached at the end.
    pub attached: Attached,
    /// Configuration of new connections with the chosen policies.
    pub connection: ConnectionConfig,
}

impl Open {
    /// Tells which of the named uplinks cannot be used at the beginning; later changes are told as they come.
    pub fn tell_unusable(&self, named: &[String]) {
        let paths = self.attached.paths();
        let usable = |name: &String| paths.iter().any(|path| path.name == *name && !path.addresses.is_empty());
        for name in named.iter().filter(|name| !usable(name)) {
            event(&format!("uplink {name} cannot be used: it has no address, or no route of a family that is needed"));
        }
    }
}

impl StackOptions {
    fn attachment(&self, reach: Reach<'_>) -> Result<Attachment, Diagnostic> {
        let options = HostOptions { mtu: self.mtu, journal: self.journal.clone() };
        let interfaces = self.interfaces()?;
        match (reach, self.local) {
            (Reach::On(ports), None) if self.udp => {
                let port = ports.first().copied().unwrap_or_default();
                Ok(Attachment::TunnelServer(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)))
            }
            (Reach::Server(server), None) if self.udp => Ok(Attachment::Tunnels(Tunnels { server, interfaces })),
            (Reach::Anybody, None) if self.udp => {
                let message = "segments inside UDP reach only a server of ours: say which with --server HOST:PORT";
                Err(Diagnostic::option("--udp", message))
            }
            (_, Some(paths)) => Ok(Attachment::Local(Local { paths, options })),
            (Reach::On(ports), None) => Ok(Attachment::Uplinks(Uplinks { interfaces, ports: ports.to_vec(), options })),
            (_, None) => Ok(Attachment::Uplinks(Uplinks { interfaces, ports: Vec::new(), options })),
        }
    }

    /// Address at which to connect to an Anabranch server. Inside UDP, it is a private address of the tunnel.
    pub fn inside(&self, server: SocketAddr) -> SocketAddr {
        if self.udp { SocketAddr::new(encapsulation::SERVER, server.port()) } else { server }
    }

    /// The same for each of its addresses. Inside UDP there is one.
    pub fn inside_of(&self, server: ServerAddresses) -> (Target, Option<SocketAddr>) {
        (self.inside(server.first()).into(), server.other().filter(|_| !self.udp))
    }

    /// Port of a stack for connections to `port` of this host. Inside UDP a peer names the port that it sends to, which may be another one
    /// where a router forwards it here: then it is 0, any.
    pub fn listening(&self, port: u16) -> u16 {
        if self.udp { 0 } else { port }
    }

    /// Where a server listens, in words: peers know the uplinks, and this host the addresses of the stack.
    pub fn place(&self, attached: Option<&Attached>, port: u16) -> String {
        let Some(attached) = attached else { return format!("port {port} of every address") };
        if self.udp {
            return format!("port {port} (UDP) of every address");
        }
        let of = |path: AttachedPath| match self.local {
            Some(_) => path.addresses.into_iter().map(|(_, address)| address.to_string()).collect(),
            None => vec![path.name],
        };
        let places: Vec<String> = attached.paths().into_iter().flat_map(of).collect();
        format!("port {port} of {}", places.join(", "))
    }

    /// Interfaces named by the options; empty: all.
    fn interfaces(&self) -> Result<Vec<String>, Diagnostic> {
        let stranger = self.roles.backups.iter().find(|name| !self.uplinks.contains(name));
        match stranger {
            Some(name) if !self.uplinks.is_empty() => {
                let message = format!("{name} is none of the uplinks that are named: add --uplink {name}");
                Err(Diagnostic::option(&format!("--backup {name}"), message))
            }
            _ => Ok(self.uplinks.clone()),
        }
    }

    fn contender(&self) -> Result<Contender, Diagnostic> {
        from_option(&self.policy).map_err(|error| Diagnostic::option(&format!("--policy {}", self.policy), error))
    }

    /// Checks that need no privileges: the policies exist, and a stack that opens connections has a peer.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self, has_peer: bool) -> Result<(), Diagnostic> {
        self.contender()?;
        self.interfaces()?;
        if has_peer { Ok(()) } else { self.attachment(Reach::Anybody).map(drop) }
    }

    /// The same options with these backup interfaces.
    #[must_use]
    pub fn with_backups(&self, backups: Vec<String>) -> Self {
        Self { roles: RoleOptions { backups }, ..self.clone() }
    }

    /// For `--dry-run`: the commands equivalent to [`Self::open`], one per line.
    ///
    /// # Errors
    /// An error of the options or the host.
    pub fn plan(&self, reach: Reach<'_>) -> Result<String, Diagnostic> {
        self.contender()?;
        let plan = anabranch_attach::plan(&self.attachment(reach)?).map_err(|error| diagnostic(&error))?;
        Ok(plan.steps.iter().map(|step| format!("{step}\n")).collect())
    }

    /// Attaches a stack. Must be called within a single-threaded runtime.
    ///
    /// # Errors
    /// An error of the options or the host, whose configuration is then restored.
    pub async fn open(&self, reach: Reach<'_>) -> Result<Open, Diagnostic> {
        self.open_on(reach, None, &[Handle::current()]).await
    }

    /// Like [`Self::open`], with one stack per runtime; each runtime has one thread. The key of the server makes sequence numbers go
    /// on in the next program ([`StackConfig::secret`]).
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub async fn open_on(&self, reach: Reach<'_>, key: Option<&Key>, runtimes: &[Handle]) -> Result<Open, Diagnostic> {
        let contender = self.contender()?;
        let wrong = |error: &dyn std::fmt::Display| Diagnostic::option("--policy", error.to_string());
        let memory = OnceCell::new();
        let worker = |runtime: &Handle| {
            let path_manager = contender.policies.build_path_manager().map_err(|error| wrong(&error))?;
            let (backups, secret) = (self.roles.backups.clone(), key.map(|key| *key.bytes()));
            let config = StackConfig { backups, secret, ..StackConfig::new(path_manager) };
            // All workers share one memory.
            let memory = memory.get_or_init(|| self.memory_of(&config));
            Ok(Worker { runtime: runtime.clone(), config: StackConfig { memory: Arc::clone(memory), ..config } })
        };
        let workers = runtimes.iter().map(worker).collect::<Result<_, Diagnostic>>()?;
        let policies = Policies::of(&contender.policies).map_err(|error| wrong(&error))?;
        // From here on a signal does not end the program before the host's configuration is restored.
        ending::listen()?;
        let attached = anabranch_attach::attach_workers(&self.attachment(reach)?, workers).await;
        let attached = attached.map_err(|error| diagnostic(&error))?;
        let mut connection = self.connection_of(&contender, policies);
        connection.tcp.mtu = match self.mtu {
            // Packets must also fit inside UDP.
            Some(mtu) if self.udp => attached.mtu().min(mtu.saturating_sub(ETHERNET - MAX_TUNNEL_PACKET)),
            _ => attached.mtu(),
        };
        Ok(Open { attached, connection })
    }

    /// Configuration of connections with the chosen policies.
    ///
    /// # Errors
    /// A policy does not exist.
    pub fn connection(&self) -> Result<ConnectionConfig, Diagnostic> {
        let contender = self.contender()?;
        let policies = Policies::of(&contender.policies);
        let policies = policies.map_err(|error| Diagnostic::option("--policy", error.to_string()))?;
        Ok(self.connection_of(&contender, policies))
    }

    fn connection_of(&self, contender: &Contender, policies: Policies) -> ConnectionConfig {
        let mut connection = ConnectionConfig::new(policies);
        connection.multipath = contender.multipath;
        connection.grow_buffers();
        contender.connection_in(&ConnectionSettings::default()).apply(&mut connection);
        connection.detect_dead_peer();
        if let Some(max) = self.receive_buffer {
            connection.receive_buffer = BufferSize::Auto { initial: max.min(FIRST_BUFFER), max };
        }
        if let Some(max) = self.send_buffer {
            connection.send_buffer = max.min(connection.send_buffer);
            connection.send_buffer_max = max;
        }
        connection
    }

    /// The memory of all connections.
    fn memory_of(&self, config: &StackConfig) -> Arc<BufferMemory> {
        match self.buffer_memory {
            Some(bytes) => Arc::new(BufferMemory::new(bytes)),
            None => Arc::clone(&config.memory),
        }
    }
}

pub fn diagnostic(error: &HostError) -> Diagnostic {
    match error {
        HostError::NoSuchInterface { name, known } => {
            let hint = did_you_mean(name, known.iter().map(String::as_str));
            Diagnostic::option("--uplink", format!("{error}{hint}"))
        }
        HostError::NotAnUplink { .. } => Diagnostic::option("--uplink", error.to_string()),
        HostError::NumberOfPaths => Diagnostic::option("--local", error.to_string()),
        _ => Diagnostic::plain(error.to_string()),
    }
}
