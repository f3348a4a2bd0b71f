//! Options of `anabranch stream send` and `receive`.

use super::policy;
use crate::attachment::StackOptions;
use crate::perf::Kernel;
use crate::secrets::{read_key, read_keys};
use crate::values::port;
use anabranch_media::cut::Format;
use anabranch_policy::time::Duration;
use anabranch_proxy::Keys;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity;
use clap::{Args, ValueEnum};
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The format of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Input {
    /// Detect it from the first bytes
    Auto,
    /// MPEG transport stream
    Mpegts,
    /// H.264 as a byte stream (annex B)
    H264,
    /// MPEG-4 part 2 elementary stream
    Mpeg4,
}

impl Input {
    /// The format, if specified.
    pub const fn format(self) -> Option<Format> {
        match self {
            Self::Auto => None,
            Self::Mpegts => Some(Format::TransportStream),
            Self::H264 => Some(Format::H264),
            Self::Mpeg4 => Some(Format::Mpeg4),
        }
    }
}

/// Options of both ends.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("policy", |policy| policy.default_value(policy::DEFAULT)))]
pub struct EndOptions {
    /// Listen on this port for the other end
    #[arg(long, value_name = "PORT", value_parser = port)]
    pub listen: Option<u16>,
    /// Key shared with the other end (see `anabranch key`), for authentication and encryption; needed unless --unencrypted, --raw or --local is given
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw", "unencrypted"])]
    pub key: Option<PathBuf>,
    /// Instead of --key, with --listen: a file with a line NAME KEY per peer, KEY being the content of its key file
    #[arg(long, value_name = "FILE", requires = "listen", conflicts_with_all = ["key", "raw", "unencrypted"])]
    pub keys: Option<PathBuf>,
    /// No authentication or encryption: anybody on the path can read and change the stream, and anybody can connect to a --listen port
    #[arg(long)]
    pub unencrypted: bool,
    /// Deadline of a message beyond the delay of the fastest: missing data is abandoned by the receiver, late data
    /// dropped by the sender; give the same at both ends
    #[arg(long, value_name = "TIME", default_value = "300 ms", value_parser = latency)]
    pub latency: Duration,
    /// Send or receive a plain byte stream, unencrypted, for a peer other than `anabranch stream`, such as ffmpeg
    #[arg(long)]
    pub raw: bool,
    /// Use the kernel's sockets instead of the stack; this end then abandons nothing
    #[arg(long, value_name = "PROTOCOL", conflicts_with_all = ["uplinks", "backups", "local", "udp", "policy", "mtu", "buffer_memory", "dry_run", "journal"])]
    pub kernel: Option<Kernel>,
    /// Print a line of progress per second on standard error
    #[arg(long, conflicts_with = "json")]
    pub live: bool,
    /// Print only a JSON report, and errors, on standard error
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub stack: StackOptions,
}

/// How to send.
#[derive(Clone, Debug, Args)]
pub struct SendOptions {
    /// The receiver to connect to
    #[arg(value_name = "HOST:PORT", conflicts_with = "listen")]
    pub to: Option<String>,
    /// The format of standard input
    #[arg(long, value_enum, default_value_t = Input::Auto)]
    pub input: Input,
    #[command(flatten)]
    pub end: EndOptions,
}

/// How to receive.
#[derive(Clone, Debug, Args)]
pub struct ReceiveOptions {
    /// The sender to connect to
    #[arg(value_name = "HOST:PORT", conflicts_with = "listen")]
    pub from: Option<String>,
    #[command(flatten)]
    pub end: EndOptions,
}

/// Parses a time from 1 ms to 1 min.
pub fn latency(text: &str) -> Result<Duration, String> {
    let time: Duration = quantity::parse(text)?;
    let possible = Duration::from_millis(1)..=Duration::from_secs(60);
    if possible.contains(&time) { Ok(time) } else { Err(format!("'{text}' is not between 1 ms and 60 s")) }
}

impl EndOptions {
    pub fn latency(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.latency.as_nanos())
    }

    /// Keys accepted from the other end; none: no encryption.
    pub fn keys(&self) -> Result<Option<Keys>, Diagnostic> {
        match (&self.key, &self.keys) {
            (Some(path), _) => Ok(Some(Keys::one(read_key(path)?))),
            (None, Some(path)) => read_keys(path).map(Some),
            (None, None) if self.raw || self.unencrypted || self.stack.local.is_some() => Ok(None),
            (None, None) => {
                let message = "without --key others could read the stream or send one; make a key with `anabranch key FILE` and \
                               give it to both ends with --key FILE, or say --unencrypted at both";
                Err(Diagnostic::plain(message))
            }
        }
    }

    /// Stack options with the settings of its policies.
    pub fn stack(&self) -> Result<StackOptions, Diagnostic> {
        let policy = policy::complete(&self.stack.policy, self.latency())?;
        Ok(StackOptions { policy, ..self.stack.clone() })
    }
}

/// Resolves HOST:PORT.
pub fn address(text: &str) -> Result<SocketAddr, Diagnostic> {
    if text.contains("://") {
        return Err(Diagnostic::plain(format!(
            "'{text}' is a URL: write the host and the port alone, like 192.0.2.1:5004, [2001:db8::1]:5004 or host.example:5004"
        )));
    }
    // Colons inside brackets belong to an IPv6 address; without them it cannot be told whether its last part is a port.
    let portless = text.ends_with(']') || text.parse::<Ipv6Addr>().is_ok();
    let split = if portless { None } else { text.rsplit_once(':') };
    let (host, port) = split.unwrap_or((text, ""));
    if !host.is_empty() && !port.is_empty() && !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(Diagnostic::plain(format!("'{port}' in '{text}' is no port: one is a number from 1 to 65535")));
    }
    if port.is_empty() || host.is_empty() {
        return Err(Diagnostic::plain(format!(
            "'{text}' has no port: write it like 192.0.2.1:5004, [2001:db8::1]:5004 or host.example:5004"
        )));
    }
    let found = text.to_socket_addrs().map(|mut found| found.next());
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(Diagnostic::plain(format!("'{host}' has no address"))),
        Err(error) => Err(Diagnostic::plain(format!("no address of '{host}': {error}"))),
    }
}
