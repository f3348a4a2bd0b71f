//! `anabranch proxy`: carries connections of programs on this host over several paths.

use super::hang_up::{Taken, read_again};
use super::server_move::{moved, tell};
use super::server_watch::{Hint, Question, Tell, watch};
use crate::attachment::{Open, Reach, StackOptions, diagnostic};
use crate::configuration::{ConfigurationOption, ReadAgain};
use crate::console::print;
use crate::datagrams::answering;
use crate::ending::block_on;
use crate::live::Live;
use crate::secrets::{is_readable, read_key, secret};
use crate::server_name::{known_again, known_in_time};
use crate::service_manager;
use crate::serving::{LimitOptions, Verbosity, resolves, stops};
use crate::status::{Listeners, Serving, Source, StatusOptions};
use crate::uplink_care::{Roles, UplinkOptions, govern};
use crate::values::listener;
use anabranch_attach::Attached;
use anabranch_host::ServerAddresses;
use anabranch_mptcp::ConnectionConfig;
use anabranch_proxy::{
    Choose, Credentials, Forward, ListenerConfig, Priorities, PriorityRule, Proxy, ProxyConfig, ProxyCounters,
    ProxyListeners, ProxyTerms, Target, Via,
};
use anabranch_settings::diagnostic::Diagnostic;
use clap::Args;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Default listening address.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1080);

/// Keys that can change at runtime.
const TAKEN: [&str; 12] = [
    "backup",
    "credentials",
    "drain",
    "idle",
    "key",
    "max-connections",
    "metered",
    "priority",
    "probe",
    "probe-answer",
    "quota",
    "verbose",
];

/// Options of `proxy`.
#[derive(Clone, Debug, Args)]
pub struct ProxyOptions {
    /// Listen for SOCKS5 and HTTP CONNECT, both on one port; a port alone is of 127.0.0.1 (repeatable) [default:
    /// 127.0.0.1:1080, or nowhere with --forward]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = listener)]
    listen: Vec<SocketAddr>,
    /// Listen on LOCAL, a port or ADDRESS:PORT, and forward to HOST:PORT; without HOST:PORT, the server chooses the
    /// target (repeatable)
    #[arg(long, value_name = "LOCAL[=HOST:PORT]", value_parser = forward)]
    forward: Vec<ListenerConfig>,
    /// Connect through this `anabranch serve` [default: none, directly to each target]
    #[arg(long, value_name = "HOST:PORT", value_parser = target, requires = "key")]
    server: Option<Target>,
    /// The key shared with the server (see `anabranch key`)
    #[arg(long, value_name = "FILE", requires = "server")]
    key: Option<PathBuf>,
    /// Require clients of --listen to authenticate with the NAME:PASSWORD in this file
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Priority of connections to matching targets, 1 (highest) to 6, for policies that use it: a name, *.NAME, an
    /// address, a prefix such as 10.0.0.0/8, or *, optionally with :PORT (repeatable; the first match counts) [default: 1]
    #[arg(long, value_name = "PATTERN=N", value_parser = priority)]
    priority: Vec<PriorityRule>,
    /// Allow --listen and --forward addresses that other hosts can reach
    #[arg(long)]
    allow_remote: bool,
    #[command(flatten)]
    configuration: ConfigurationOption,
    #[command(flatten)]
    status: StatusOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    care: UplinkOptions,
    #[command(flatten)]
    stack: StackOptions,
}

/// Parses `HOST:PORT`.
pub fn target(text: &str) -> Result<Target, String> {
    text.parse().map_err(|error: anabranch_proxy::TargetError| error.to_string())
}

/// Parses `PATTERN=N`.
pub fn priority(text: &str) -> Result<PriorityRule, String> {
    text.parse().map_err(|error: anabranch_proxy::PriorityRuleError| error.to_string())
}

/// Parses `[ADDRESS:]PORT[=HOST:PORT]`.
fn forward(text: &str) -> Result<ListenerConfig, String> {
    let (local, to) = match text.split_once('=') {
        Some((local, to)) => (local, Some(target(to)?)),
        None => (text, None),
    };
    Ok(ListenerConfig { listen: listener(local)?, forward: to.map_or(Forward::ServerDefault, Forward::To) })
}

impl ProxyOptions {
    fn programs(&self) -> Result<Vec<ListenerConfig>, Diagnostic> {
        let mut listen = self.listen.clone();
        if listen.is_empty() && self.forward.is_empty() {
            listen.push(LISTEN);
        }
        let asking = listen.into_iter().map(|listen| ListenerConfig { listen, forward: Forward::Requested });
        let programs: Vec<ListenerConfig> = asking.chain(self.forward.iter().cloned()).collect();
        for ListenerConfig { listen, forward } in &programs {
            if !listen.ip().is_loopback() && !self.allow_remote {
                let message = format!(
                    "other hosts can reach {listen} and would use this proxy; say --allow-remote if they may, and \
                     --credentials FILE if it is to know them"
                );
                return Err(Diagnostic::plain(message));
            }
            match forward {
                Forward::ServerDefault if self.server.is_none() => {
                    let message =
                        format!("--forward {listen} does not say where to: add =HOST:PORT, or give a --server");
                    return Err(Diagnostic::plain(message));
                }
                _ => {}
            }
        }
        Ok(programs)
    }

    /// Checks that the names of fixed targets resolve.
    fn resolve_targets(&self) -> Result<(), Diagnostic> {
        let mut targets = self.forward.iter().filter_map(|configured| match &configured.forward {
            Forward::To(target) if self.server.is_none() => Some(target),
            _ => None,
        });
        targets.try_for_each(|target| resolves("--forward", target).map(drop))
    }

    /// Checks that need neither privileges nor the network.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), Diagnostic> {
        self.check_words()?;
        if let Some(path) = self.key.as_ref().filter(|path| is_readable(path)) {
            read_key(path)?;
        }
        if let Some(path) = self.credentials.as_ref().filter(|path| is_readable(path)) {
            read_credentials(path)?;
        }
        Ok(())
    }

    /// The checks that read no secret: a pipe gives one only once.
    fn check_words(&self) -> Result<(), Diagnostic> {
        self.programs()?;
        self.status.check()?;
        self.stack.check(self.server.is_some())?;
        self.care.check(&self.stack.uplinks, &self.stack.roles.backups)
    }

    /// The server, if any.
    async fn reach(&self) -> Result<Reach<'static>, Diagnostic> {
        match &self.server {
            // The address is needed at startup only for a socket.
            Some(server) if self.stack.udp && self.stack.dry_run => {
                Ok(Reach::Server(resolves("--server", server)?.into()))
            }
            Some(server) if self.stack.udp => {
                let addresses = known_in_time(server, &self.stack.uplinks).await;
                let key = self.key.as_deref().map(read_key).transpose()?;
                let answers = match &key {
                    // A server without datagrams does not answer: then it is the first.
                    Some(key) => answering(&addresses, None, key, &self.stack.uplinks).await,
                    None => None,
                };
                let address = answers.or(addresses.first().copied());
                let no_address = || Diagnostic::option("--server", format!("{server} has no address"));
                Ok(Reach::Server(ServerAddresses::new(address.ok_or_else(no_address)?, &addresses)))
            }
            _ => Ok(Reach::Anybody),
        }
    }

    fn via(&self, reach: Reach<'_>) -> Result<Via, Diagnostic> {
        match (&self.server, reach, &self.key) {
            (Some(_), Reach::Server(addresses), Some(key)) => {
                let (server, other) = self.stack.inside_of(addresses);
                Ok(Via::Server { server, other, key: read_key(key)? })
            }
            // The name may resolve later, and to other addresses over time.
            (Some(named), _, Some(key)) => Ok(Via::Server { server: named.clone(), other: None, key: read_key(key)? }),
            _ => Ok(Via::Direct),
        }
    }
}

fn read_credentials(path: &Path) -> Result<Credentials, Diagnostic> {
    Credentials::read(path).map_err(|error| secret(&format!("--credentials {}", path.display()), &error))
}

impl ProxyOptions {
    /// Settings that can change at runtime: keys and passwords, but not the server's address.
    fn terms_with(&self, via: &Via) -> Result<ProxyTerms, Diagnostic> {
        let via = match (via, &self.key) {
            (Via::Server { server, other, .. }, Some(path)) => {
                Via::Server { server: server.clone(), other: *other, key: read_key(path)? }
            }
            _ => via.clone(),
        };
        let credentials = self.credentials.as_deref().map(read_credentials).transpose()?;
        Ok(ProxyTerms { via, credentials: credentials.map(Arc::new) })
    }
}

/// Runs until it is told to end.
///
/// # Errors
/// An error of the options or the host.
pub fn proxy(options: &ProxyOptions) -> Result<(), Diagnostic> {
    options.limits.allow_descriptors();
    let programs = options.programs()?;
    options.care.check(&options.stack.uplinks, &options.stack.roles.backups)?;
    options.resolve_targets()?;
    block_on(async {
        let reach = options.reach().await?;
        let terms = options.terms_with(&options.via(reach)?)?;
        if options.stack.dry_run {
            print(&options.stack.plan(reach)?);
            return Ok(());
        }
        let kinds: Vec<String> = programs.iter().map(|configured| describe(&configured.forward)).collect();
        let programs = ProxyListeners::bind(programs).map_err(|error| cannot_listen(&error))?;
        let listeners = options.status.listen(options.stack.journal.as_deref(), "proxy").await?;
        // Dropped last, so that its threads outlive the rest.
        let workers = options.limits.start_workers()?;
        let roles = Roles::new(&options.care, &options.stack.roles.backups);
        let open =
            options.stack.with_backups(roles.reserve()).open_on(reach, terms.via.key(), workers.runtimes()).await?;
        open.tell_unusable(&options.stack.uplinks);
        for (address, kind) in programs.addresses().iter().zip(kinds) {
            print(&format!("listening on {address}: {kind}\n"));
        }
        if let Some(address) = listeners.http() {
            print(&format!("status at http://{address}/status\n"));
        }
        let live = options.limits.live(open.attached.stacks(), "anabranch proxy")?;
        let counters = carry(options, (&open, reach), programs, listeners, terms, (roles, live)).await?;
        print(&format!("{counters}\n"));
        open.attached.detach().await.map_err(|error| diagnostic(&error))
    })
}

/// Keeps the tunnels leading to the server when its name gets another address.
async fn follow_server(attached: &Attached, named: &Target, mut known: ServerAddresses, tells: bool) -> Infallible {
    let find = async || {
        let uplinks: Vec<String> = attached.paths().into_iter().map(|path| path.name).collect();
        known_again(named, &uplinks).await
    };
    loop {
        let now = moved(known, &find).await;
        if tells {
            tell(named, known, now);
        }
        known = now;
        attached.set_server(known);
    }
}

/// Serves programs until it is told to end.
async fn carry(
    options: &ProxyOptions,
    (open, reach): (&Open, Reach<'_>),
    programs: ProxyListeners,
    listeners: Listeners,
    terms: ProxyTerms,
    (roles, live): (Roles, Option<Live>),
) -> Result<ProxyCounters, Diagnostic> {
    let again = ReadAgain::new::<ProxyOptions>("proxy", &options.configuration)?;
    let priorities = Arc::new(RwLock::new(Priorities::new(options.priority.clone())));
    let verbosity = Verbosity::new(&options.limits);
    let via = terms.via.clone();
    let config = ProxyConfig {
        terms,
        choose: choose(open.connection.clone(), Arc::clone(&priorities)),
        limits: options.limits.limits(),
        journal: options.limits.journal(&verbosity),
    };
    let proxy = Proxy::new(programs, open.attached.stacks(), config);
    let control = proxy.control();
    let hint = Hint::Failures(Box::new(move || control.counters().failed + control.counters().unproven));
    let question = match (&via, &options.server) {
        (Via::Server { server, other, key }, Some(named)) if live.is_none() => {
            Some(Question::new(named, (server, *other), key, open.connection.clone(), hint))
        }
        _ => None,
    };
    let source = Source::new("proxy", open.attached.stacks(), proxy.control());
    let source = source.with_paths(open.attached.observer()).with_roles(roles.clone());
    let _serving = Serving::start(listeners, Some(source));
    service_manager::ready();
    let change = proxy.changer();
    let take = |new: &ProxyOptions| {
        new.check_words()?;
        let terms = new.terms_with(&via)?;
        if let (Via::Server { key, .. }, Some(question)) = (&terms.via, &question) {
            question.set_key(key);
        }
        change(terms, new.limits.limits());
        *priorities.write().unwrap_or_else(PoisonError::into_inner) = Priorities::new(new.priority.clone());
        roles.set(&new.care, &new.stack.roles.backups);
        verbosity.set(&new.limits);
        Ok(Vec::new())
    };
    let there = || open.attached.paths().into_iter().map(|path| path.name).collect();
    let governing = govern(&roles, there, |reserve, barred| open.attached.set_uses(reserve, barred));
    let asking = async {
        match &question {
            Some(question) => watch(&open.attached, question, Tell::All).await,
            None => std::future::pending().await,
        }
    };
    let (tells, stop) = (live.is_none(), stops(live, proxy.control()));
    let following = async {
        match (&options.server, reach) {
            (Some(named), Reach::Server(known)) => follow_server(&open.attached, named, known, tells).await,
            _ => std::future::pending().await,
        }
    };
    Ok(tokio::select! {
        counters = proxy.run(stop) => counters,
        never = following => match never {},
        never = asking => match never {},
        never = governing => match never {},
        never = read_again(again, Taken { keys: &TAKEN, counts: "for new connections" }, take) => match never {},
    })
}

/// Connection settings of a target; only the priority depends on it.
fn choose(connection: ConnectionConfig, priorities: Arc<RwLock<Priorities>>) -> Choose {
    Box::new(move |target: &Target| {
        let priority = priorities.read().unwrap_or_else(PoisonError::into_inner).of(target);
        ConnectionConfig { priority, ..connection.clone() }
    })
}

fn describe(forward: &Forward) -> String {
    match forward {
        Forward::Requested => "SOCKS5 and HTTP CONNECT".to_owned(),
        Forward::To(target) => format!("to {target}"),
        Forward::ServerDefault => "to the server's target".to_owned(),
    }
}

fn cannot_listen(error: &anabranch_proxy::BindError) -> Diagnostic {
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    let address = error.address;
    let what = match error.error.kind() {
        AddrInUse => "another program listens there; choose another port".to_owned(),
        AddrNotAvailable => "this host has no such address".to_owned(),
        PermissionDenied => "ports below 1024 need root or CAP_NET_BIND_SERVICE".to_owned(),
        _ => error.error.to_string(),
    };
    Diagnostic::plain(format!("cannot listen on {address}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forward_names_where_it_listens_and_where_it_leads() {
        let configured = forward("8080=example.org:80").expect("well formed");
        assert_eq!(configured.listen, SocketAddr::from(([127, 0, 0, 1], 8080)));
        assert_eq!(configured.forward, Forward::To("example.org:80".parse().expect("a target")));
        let configured = forward("[::1]:2222=[2001:db8::1]:22").expect("well formed");
        assert_eq!(configured.listen, "[::1]:2222".parse().expect("an address"));
        assert_eq!(forward("8080").expect("well formed").forward, Forward::ServerDefault);
        for wrong in ["", "x=example.org:80", "8080=example.org", "70000=example.org:80", "8080="] {
            assert!(forward(wrong).is_err(), "{wrong}");
        }
    }
}
