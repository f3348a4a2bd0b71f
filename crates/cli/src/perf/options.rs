//! Options of `anabranch perf`.

use crate::attachment::StackOptions;
use crate::values::port;
use anabranch_perf::{Direction, Host, KernelProtocol, KernelSockets, Length, PORT, Plan};
use anabranch_proxy::Target;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity::{self, Size};
use clap::{Args, ValueEnum};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Which of the kernel's protocols.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kernel {
    /// Multipath TCP
    Mptcp,
    /// Plain TCP
    Tcp,
}

/// Which end sends, if not only the client.
#[derive(Clone, Copy, Debug, Args)]
pub struct Ways {
    /// The server sends, the client receives
    #[arg(long, short = 'R', conflicts_with = "bidirectional")]
    pub reverse: bool,
    /// Both ends send at the same time
    #[arg(long)]
    pub bidirectional: bool,
}

/// How to measure.
#[derive(Clone, Debug, Args)]
pub struct PerfOptions {
    /// The server, by name or address: HOST or HOST:PORT
    #[arg(required_unless_present_any = ["server", "dry_run"], conflicts_with = "server")]
    pub remote: Option<String>,
    /// Run the server
    #[arg(long, conflicts_with_all = ["reverse", "bidirectional", "parallel", "time", "bytes", "omit", "sink"])]
    pub server: bool,
    /// Port of the server
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = port)]
    pub port: u16,
    /// Exit after one test
    #[arg(long, requires = "server")]
    pub one_off: bool,
    /// Maximum number of simultaneous tests; further clients are refused
    #[arg(long, value_name = "N", default_value_t = 16, requires = "server", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub max_tests: u16,
    #[command(flatten)]
    pub ways: Ways,
    /// Parallel connections
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1)]
    pub parallel: u32,
    /// Duration, seconds
    #[arg(long, short, value_name = "SECONDS", default_value_t = 10.0, conflicts_with = "bytes")]
    pub time: f64,
    /// Transfer this much in each direction instead of for a time, e.g. 1GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bytes: Option<u64>,
    /// Omit the first seconds from the results
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub omit: f64,
    /// Seconds between reports
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub interval: f64,
    /// The server is a discard service (or, with --reverse, a source of data), not `anabranch perf`; only this end measures
    #[arg(long)]
    pub sink: bool,
    /// Use the kernel's sockets instead of the stack, for comparison
    #[arg(long, value_name = "PROTOCOL", conflicts_with_all = ["uplinks", "backups", "local", "udp", "policy", "mtu", "buffer_memory", "dry_run", "journal", "live", "from"])]
    pub kernel: Option<Kernel>,
    /// The kernel's congestion control
    #[arg(long, value_name = "NAME", requires = "kernel")]
    pub congestion: Option<String>,
    /// Open the connection from this address of the stack
    #[arg(long, value_name = "ADDRESS", conflicts_with = "server")]
    pub from: Option<IpAddr>,
    /// Show connections and paths on the terminal
    #[arg(long, conflicts_with = "json")]
    pub live: bool,
    /// Print only a JSON report on standard output; a server prints a line per test
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub stack: StackOptions,
}

fn size(text: &str) -> Result<u64, String> {
    quantity::parse::<Size>(text).map(|Size(bytes)| bytes)
}

impl PerfOptions {
    /// The test to run.
    pub fn plan(&self) -> Result<Plan, Diagnostic> {
        let direction = match (self.ways.reverse, self.ways.bidirectional) {
            (_, true) => Direction::Both,
            (true, false) => Direction::Down,
            (false, false) => Direction::Up,
        };
        let length = self.bytes.map_or(Length::Seconds(self.time), Length::Bytes);
        let plan = Plan {
            direction,
            length,
            omit: self.omit,
            streams: self.parallel,
            interval: self.interval,
            ..Plan::default()
        };
        plan.check().map_err(Diagnostic::plain)?;
        Ok(plan)
    }

    /// The kernel's sockets, if requested.
    pub fn kernel_host(&self) -> Option<Host> {
        let protocol = match self.kernel? {
            Kernel::Mptcp => KernelProtocol::Mptcp,
            Kernel::Tcp => KernelProtocol::Tcp,
        };
        let bytes = |size: Option<u64>| size.and_then(|size| usize::try_from(size).ok());
        Some(Host::Kernel(KernelSockets {
            protocol,
            congestion: self.congestion.clone(),
            send_buffer: bytes(self.stack.send_buffer),
            receive_buffer: bytes(self.stack.receive_buffer),
        }))
    }

    /// The server's address, with the port of `--port` unless it has its own; the first of the family of `from`, if given.
    pub fn remote(&self) -> Result<SocketAddr, Diagnostic> {
        let name = self.remote.as_deref().unwrap_or_default();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        // The colons of an IPv6 address without brackets are before no port.
        let has_port = bare.parse::<IpAddr>().is_err() && name.contains(':');
        let found = if has_port {
            let target = name.parse::<Target>().map_err(|error| Diagnostic::plain(format!("'{name}': {error}")))?;
            target.to_string().to_socket_addrs()
        } else {
            (bare, self.port).to_socket_addrs()
        };
        let mut found = found.map_err(|error| Diagnostic::plain(format!("no address of '{name}': {error}")))?;
        let fits = |address: &SocketAddr| self.from.is_none_or(|from| from.is_ipv4() == address.is_ipv4());
        found.find(fits).ok_or_else(|| Diagnostic::plain(format!("no address of '{name}' of that family")))
    }
}
