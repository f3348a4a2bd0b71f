//! Datagrams of programs: the server's listener, policies and allowed targets, and the client of `up` and `run`.

use crate::console::{event, print, remark};
use crate::uplink_names::resolvers;
use anabranch_datagram::{
    Client, ClientConfig, ClientKey, Direct, DirectConfig, LaneState, Limits, Server, ServerConfig, nameservers,
};
use anabranch_host::ServerAddresses;
use anabranch_policy::datagram::{DatagramPolicy, TABLE};
use anabranch_policy::table::{SettingError, Settings, build};
use anabranch_proxy::{AllowList, Destination, Key, Keys, ServerTerms};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_system::descriptor;
use clap::Args;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Path of the resolver configuration.
const RESOLVERS: &str = "/etc/resolv.conf";
/// Polling interval of uplink changes.
const LOOK: Duration = Duration::from_secs(1);
/// The default policy.
const POLICY: &str = "lowest_delay";

/// What can be said of datagrams.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Datagrams")]
pub struct DatagramOptions {
    /// With --socks, the UDP port for datagrams; 0 disables them [default: the one after --port]
    #[arg(long, value_name = "PORT")]
    datagram_port: Option<u16>,
    /// Datagram policy towards clients: NAME or NAME,SETTING=VALUE,... (see `docs/policies.md`)
    #[arg(long, value_name = "POLICY", default_value = POLICY, value_parser = chosen)]
    datagram_policy: Chosen,
}

/// A policy by name, with its settings.
#[derive(Clone, Debug)]
struct Chosen {
    name: String,
    settings: Settings,
}

impl Chosen {
    fn build(&self) -> Result<Box<dyn DatagramPolicy>, SettingError> {
        build(TABLE, &self.name, &self.settings)
    }
}

fn chosen(text: &str) -> Result<Chosen, String> {
    let mut words = text.split(',');
    let name = words.next().unwrap_or_default().to_owned();
    let mut chosen = Chosen { name, settings: Settings::new() };
    for word in words {
        let (setting, value) = word.split_once('=').ok_or_else(|| format!("'{word}' is not SETTING=VALUE"))?;
        chosen.settings.set(setting, value);
    }
    chosen.build().map(|_| chosen.clone()).map_err(|error| error.to_string())
}

/// A server to be bound, with its rules.
pub struct Planned {
    config: ServerConfig,
    allow: Arc<RwLock<AllowList>>,
}

/// Changes a server's keys and rules at runtime.
pub struct Change {
    allow: Arc<RwLock<AllowList>>,
    keys: Box<dyn Fn(Vec<ClientKey>) + Send + Sync>,
}

impl Change {
    /// Applies these terms. Without free choice of targets no session is accepted.
    pub fn set(&self, terms: &ServerTerms) {
        match (&terms.destination, &terms.keys) {
            (Destination::Named(allow), Some(keys)) => {
                *self.allow.write().unwrap_or_else(PoisonError::into_inner) = allow.clone();
                (self.keys)(bytes(keys));
            }
            _ => (self.keys)(Vec::new()),
        }
    }
}

fn bytes(keys: &Keys) -> Vec<ClientKey> {
    keys.iter().map(|(owner, key)| ClientKey { key: *key.bytes(), owner: owner.clone() }).collect()
}

impl DatagramOptions {
    /// Configuration of the server; none if it is disabled. Connections need `reserved` file descriptors.
    ///
    /// # Errors
    /// There is no port after that of streams.
    pub fn config(
        &self,
        port: u16,
        keys: &Keys,
        allow: &AllowList,
        reserved: u64,
    ) -> Result<Option<Planned>, Diagnostic> {
        let port = match self.datagram_port {
            Some(0) => return Ok(None),
            Some(port) => port,
            None => port.checked_add(1).ok_or_else(|| {
                Diagnostic::option("--port", "no port follows it for datagrams; say which with --datagram-port")
            })?,
        };
        let (allow, policy) = (Arc::new(RwLock::new(allow.clone())), self.datagram_policy.clone());
        let allowed = Arc::clone(&allow);
        let mut limits = Limits::default();
        // Each mapping needs a descriptor. If there are too few for all connections and all mappings, a quarter is for
        // mappings.
        let granted = descriptor::allow(reserved + limits.mappings as u64).unwrap_or(0);
        let room = granted.saturating_sub(reserved).max(granted / 4);
        limits.mappings = limits.mappings.min(room as usize);
        let config = ServerConfig {
            bind: SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
            keys: bytes(keys),
            allow: Arc::new(move |target| allowed.read().unwrap_or_else(PoisonError::into_inner).allows(target)),
            policy: Arc::new(move || policy.build().expect("it could be made when the options were read")),
            nameservers: nameservers(&std::fs::read_to_string(RESOLVERS).unwrap_or_default()),
            limits,
            journal: Some(Arc::new(event)),
        };
        Ok(Some(Planned { config, allow }))
    }

    /// Binds the server; none if a default port is in use.
    ///
    /// # Errors
    /// The requested address cannot be bound.
    pub fn bind(&self, planned: Planned) -> Result<Option<(Server, Change)>, Diagnostic> {
        let Planned { config, allow } = planned;
        let port = config.bind.port();
        match Server::bind(config) {
            Ok(server) => {
                print(&format!("listening on UDP port {port} for datagrams\n"));
                if allow.read().unwrap_or_else(PoisonError::into_inner).has_names() {
                    remark(
                        "note: datagrams have addresses and no names: rules of --allow with names let none pass, those with addresses do",
                    );
                }
                let change = Change { allow, keys: Box::new(server.key_changer()) };
                Ok(Some((server, change)))
            }
            Err(error) if self.datagram_port.is_none() && error.kind() == io::ErrorKind::AddrInUse => {
                remark(&format!(
                    "note: another program has UDP port {port}, so that no datagrams are carried; see --datagram-port"
                ));
                Ok(None)
            }
            Err(error) => {
                Err(Diagnostic::option("--datagram-port", format!("cannot listen on UDP port {port}: {error}")))
            }
        }
    }
}

/// Starts to carry non-TCP traffic to a server whose streams are at `server`, in the background. Without a `port`,
/// datagrams use the port after that of streams. Must be called within a runtime.
///
/// # Errors
/// The sockets cannot be opened.
pub fn start_client(
    server: ServerAddresses,
    port: Option<u16>,
    key: &Key,
    interfaces: &[String],
) -> Result<Client, Diagnostic> {
    let cannot = |error: io::Error| Diagnostic::plain(format!("cannot carry datagrams: {error}"));
    let (client, work) = client(server, port, key, interfaces).map_err(cannot)?;
    tokio::spawn(work);
    Ok(client)
}

/// The addresses of datagrams of a server whose streams are at `server`; see [`start_client`].
pub fn datagrams_at(server: ServerAddresses, port: Option<u16>) -> ServerAddresses {
    server.at_port(port.unwrap_or(server.first().port().wrapping_add(1).max(1)))
}

/// A client and its background task.
fn client(
    server: ServerAddresses,
    port: Option<u16>,
    key: &Key,
    interfaces: &[String],
) -> io::Result<(Client, impl Future<Output = io::Result<()>> + Send + 'static)> {
    let policy = build(TABLE, POLICY, &Settings::new()).map_err(io::Error::other)?;
    let server = datagrams_at(server, port);
    Client::start(ClientConfig { server, key: *key.bytes(), interfaces: interfaces.to_vec(), policy })
}

/// Time allowed to the addresses of a server's name for an answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of addresses tried per name.
const ADDRESSES: usize = 8;

/// The address of a server that answers first, over any uplink; the first one if none answers in time. Must be called
/// within a runtime.
pub async fn answering(
    addresses: &[SocketAddr],
    port: Option<u16>,
    key: &Key,
    interfaces: &[String],
) -> Option<SocketAddr> {
    let first = addresses.first().copied()?;
    if addresses.len() == 1 {
        return Some(first);
    }
    Some(timeout(PATIENCE, proving(addresses, port, key, interfaces)).await.unwrap_or(first))
}

/// The first of these addresses where the server proves the key, over any uplink; never completes if it does at none. Must be
/// called within a runtime.
pub async fn proving(addresses: &[SocketAddr], port: Option<u16>, key: &Key, interfaces: &[String]) -> SocketAddr {
    let mut questions = JoinSet::new();
    for address in addresses.iter().copied().take(ADDRESSES) {
        // An unreachable address does not answer.
        let Ok((client, work)) = client(address.into(), port, key, interfaces) else { continue };
        questions.spawn(async move {
            tokio::select! {
                () = client.connected() => {
                    client.close();
                    Some(address)
                }
                _ = work => None,
            }
        });
    }
    while let Some(answered) = questions.join_next().await {
        if let Ok(Some(address)) = answered {
            return address;
        }
    }
    std::future::pending().await
}

/// Starts to carry non-TCP traffic directly to its targets, over `interfaces` or all interfaces with a default route,
/// in the background. With `local`, a resolver on this host is used if there is no other. Must be called within a
/// runtime.
///
/// # Errors
/// An interface does not exist, or netlink failed.
pub fn start_direct(interfaces: &[String], local: bool) -> Result<Direct, Diagnostic> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => Diagnostic::option("--uplink", error.to_string()),
        _ => Diagnostic::plain(format!("cannot carry datagrams: {error}")),
    };
    let named = |address| SocketAddr::new(address, 53);
    let local = local.then(|| nameservers(&std::fs::read_to_string(RESOLVERS).unwrap_or_default()));
    let config = DirectConfig {
        interfaces: interfaces.to_vec(),
        nameservers: resolvers().into_iter().map(named).collect(),
        local_resolver: local.and_then(|resolvers| resolvers.into_iter().find(|resolver| resolver.ip().is_loopback())),
        limits: Limits::default(),
    };
    let (direct, work) = Direct::start(config).map_err(cannot)?;
    tokio::spawn(work);
    Ok(direct)
}

/// What is said of uplinks without a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Said {
    Nothing,
    /// Only that no resolver answers.
    Trouble,
    All,
}

/// Logs changes of uplinks, and that no resolver answers; follows changes of the host's resolvers.
pub async fn watch_uplinks(direct: &Direct, named: &[String], said: Said) -> Infallible {
    let mut known: Vec<(String, LaneState)> = Vec::new();
    let (first, mut no_resolver) = (direct.states(), false);
    let tell = said == Said::All;
    for name in named.iter().filter(|name| tell && !first.iter().any(|(other, _)| other == *name)) {
        event(&format!("uplink {name} cannot be used"));
    }
    loop {
        let now = direct.states();
        for (name, state) in &now {
            let before = known.iter().find(|(other, _)| other == name).map(|(_, state)| *state);
            if tell && before != Some(*state) {
                event(&format!("uplink {name} {}", words(*state)));
            }
        }
        known = now;
        let before = std::mem::replace(&mut no_resolver, direct.hears_no_resolver());
        if before != no_resolver && said >= Said::Trouble {
            event(if no_resolver { "no resolver answers: names are not known" } else { "a resolver answers again" });
        }
        direct.set_nameservers(resolvers().into_iter().map(|address| SocketAddr::new(address, 53)).collect());
        sleep(LOOK).await;
    }
}

fn words(state: LaneState) -> &'static str {
    match state {
        LaneState::Usable => "can be used",
        LaneState::Silent => "does not answer: others are used first",
        LaneState::Barred => "is not used: a portal answers",
        LaneState::Gone => "cannot be used any more",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_with_its_settings_and_refused_with_the_reason() {
        assert!(chosen("lowest_delay,patience=2,loss_time=0").is_ok());
        assert!(chosen("duplicate").is_ok());
        for (text, reason) in [
            ("best", "unknown policy 'best'"),
            ("duplicate,patience=2", "unknown setting 'patience'"),
            ("weighted,hold=300", "setting 'hold' is '300'"),
            ("weighted,hold", "'hold' is not SETTING=VALUE"),
        ] {
            let refused = chosen(text).expect_err("it is wrong");
            assert!(refused.starts_with(reason), "{refused}");
        }
    }
}
