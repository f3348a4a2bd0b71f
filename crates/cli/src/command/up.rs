//! `anabranch up`: carries all traffic of this host over several uplinks, to an Anabranch server or directly to its
//! targets.

use super::hang_up::{Taken, read_again};
use super::proxy::target;
use super::server_move::Lookout;
use super::server_watch::{Hint, Question, Tell, watch};
use crate::attachment::{Open, Reach, StackOptions, diagnostic};
use crate::configuration::{ConfigurationOption, ReadAgain};
use crate::console::{event, print};
use crate::datagrams::{Said, answering, datagrams_at, start_client, start_direct, watch_uplinks};
use crate::ending::block_on;
use crate::live::{asked_or_quit, hurry_when_asked_again};
use crate::secrets::{is_readable, read_key};
use crate::server_name::known;
use crate::service_manager;
use crate::serving::{HELD, LimitOptions, Verbosity};
use crate::status::{Serving, Source, StatusOptions};
use crate::uplink_care::{Roles, UplinkOptions, govern};
use crate::uplink_names::addresses;
use crate::values::port;
use crate::workers::Workers;
use anabranch_attach::{DefaultRoute, Ipv6, LedRoute, Restorations, end_kill_switch, plan_default_route};
use anabranch_capture::{Capture, CaptureConfig, CaptureCounters, MTU, open_device};
use anabranch_datagram::{Client, Way};
use anabranch_host::{Netlink, ServerAddresses, Snapshot};
use anabranch_proxy::{Exit, Key, Target, Via};
use anabranch_settings::diagnostic::Diagnostic;
use clap::Args;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Keys that can change at runtime.
const TAKEN: [&str; 6] = ["backup", "metered", "probe", "probe-answer", "quota", "verbose"];

/// What can be said to `up`.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("local", |local| local.hide(true)))]
pub struct UpOptions {
    /// Server to send all traffic through, an `anabranch serve --socks` [default: none, directly to each target]
    #[arg(long, value_name = "HOST:PORT", value_parser = target, requires = "key")]
    server: Option<Target>,
    /// The key shared with the server (see `anabranch key`)
    #[arg(long, value_name = "FILE", requires = "server")]
    key: Option<PathBuf>,
    /// The server's UDP port for datagrams: UDP, ICMP echo and DNS queries [default: the one after --server's]
    #[arg(long, value_name = "PORT", requires = "server", value_parser = port)]
    datagram_port: Option<u16>,
    /// Also take traffic forwarded from this interface, such as a local network or hotspot (repeatable)
    #[arg(long = "gateway", value_name = "INTERFACE")]
    gateways: Vec<String>,
    /// Block the default route while `up` is not running, until --down or a start without this option
    #[arg(long)]
    kill_switch: bool,
    /// Refuse IPv6 immediately, if the server or the uplinks have none
    #[arg(long)]
    no_ipv6: bool,
    /// Remove a kill switch, and exit
    #[arg(long, conflicts_with_all = ["server", "key", "gateways", "kill_switch", "no_ipv6"])]
    down: bool,
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

/// The server and its present addresses.
struct Server {
    named: Target,
    addresses: ServerAddresses,
    key: Key,
}

impl UpOptions {
    /// Checks that need neither privileges nor the network.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), Diagnostic> {
        self.check_words()?;
        if let Some(path) = self.key.as_ref().filter(|path| is_readable(path)) {
            read_key(path)?;
        }
        Ok(())
    }

    /// The checks that read no secret: a pipe gives one only once.
    fn check_words(&self) -> Result<(), Diagnostic> {
        self.status.check()?;
        self.care.check(&self.stack.uplinks, &self.stack.roles.backups)?;
        self.stack.check(self.server.is_some())?;
        self.refuse_local()
    }

    /// A stack for local programs (`--local`) has no uplinks.
    fn refuse_local(&self) -> Result<(), Diagnostic> {
        if self.stack.local.is_some() {
            let message = "all traffic of a host leaves by its uplinks: name them with --uplink";
            return Err(Diagnostic::option("--local", message));
        }
        Ok(())
    }

    fn route(&self, server: Option<ServerAddresses>) -> DefaultRoute {
        DefaultRoute {
            uplinks: self.stack.uplinks.clone(),
            servers: server.iter().flat_map(ServerAddresses::iter).map(|address| address.ip()).collect(),
            gateways: self.gateways.clone(),
            kill_switch: self.kill_switch,
            mtu: MTU,
            ipv6: if self.no_ipv6 { Ipv6::Refused } else { Ipv6::Carried },
        }
    }

    fn reach(&self, server: Option<ServerAddresses>) -> Reach<'static> {
        server.filter(|_| self.stack.udp).map_or(Reach::Anybody, Reach::Server)
    }

    /// The equivalent commands, one per line.
    fn plan(&self, server: Option<ServerAddresses>) -> Result<String, Diagnostic> {
        let mut text = self.stack.plan(self.reach(server))?;
        // Inside UDP, uplinks need no configuration.
        let after = !text.is_empty();
        let plan = plan_default_route(&self.route(server), self.stack.journal.as_deref(), after);
        let plan = plan.map_err(|error| diagnostic(&error))?;
        text.extend(plan.steps.iter().map(|step| format!("{step}\n")));
        Ok(text)
    }
}

/// Runs until it is told to end.
///
/// # Errors
/// An error of the options or the host.
pub fn up(options: &UpOptions) -> Result<(), Diagnostic> {
    if options.down {
        return down(options);
    }
    options.limits.allow_descriptors();
    options.refuse_local()?;
    options.care.check(&options.stack.uplinks, &options.stack.roles.backups)?;
    // Without a server there is no peer for UDP.
    options.stack.check(options.server.is_some())?;
    let key = options.key.as_deref().map(read_key).transpose()?;
    block_on(async {
        let server = match (&options.server, key) {
            (Some(named), Some(key)) => Some(find(options, named, key).await?),
            _ => None,
        };
        if options.stack.dry_run {
            print(&options.plan(server.map(|server| server.addresses))?);
            return Ok(());
        }
        run(options, server).await
    })
}

/// Finds the server's addresses.
async fn find(options: &UpOptions, named: &Target, key: Key) -> Result<Server, Diagnostic> {
    // Before anything is set up.
    let addresses = known(named, &options.stack.uplinks).await?;
    let own = own_addresses();
    if addresses.iter().all(|address| address.ip().is_loopback() || own.contains(&address.ip())) {
        let message = "the server is this host: what leads there leads nowhere else";
        return Err(Diagnostic::option("--server", message));
    }
    let address = if options.stack.dry_run {
        None
    } else {
        answering(&addresses, options.datagram_port, &key, &options.stack.uplinks).await
    };
    let address = address.or(addresses.first().copied());
    let address = address.ok_or_else(|| Diagnostic::option("--server", format!("{named} has no address")))?;
    Ok(Server { named: named.clone(), addresses: ServerAddresses::new(address, &addresses), key })
}

/// The addresses of this host's interfaces; none if the kernel does not tell.
fn own_addresses() -> Vec<IpAddr> {
    let taken = Netlink::open().and_then(|mut netlink| Snapshot::take(&mut netlink));
    taken.map(|taken| taken.interfaces.into_iter().flat_map(|interface| interface.held).collect()).unwrap_or_default()
}

fn down(options: &UpOptions) -> Result<(), Diagnostic> {
    let any = end_kill_switch(options.stack.journal.as_deref()).map_err(|error| diagnostic(&error))?;
    print(if any { "the kill switch is off\n" } else { "there is no kill switch, or what set it up still runs\n" });
    Ok(())
}

/// Configures the host, carries traffic, and restores the host.
async fn run(options: &UpOptions, mut server: Option<Server>) -> Result<(), Diagnostic> {
    let listeners = options.status.listen(options.stack.journal.as_deref(), "up").await?;
    // Dropped last, so that its threads outlive the rest.
    let workers = options.limits.start_workers()?;
    let roles = Roles::new(&options.care, &options.stack.roles.backups);
    let mut open = open(options, server.as_ref(), &roles, &workers).await?;
    if server.is_some() {
        // Otherwise those that carry datagrams are told of.
        open.tell_unusable(&options.stack.uplinks);
    }
    let addresses = server.as_ref().map(|server| server.addresses);
    let led = LedRoute::begin(options.route(addresses), options.stack.journal.as_deref(), open_device);
    let (led, device) = match led {
        Ok(led) => led,
        Err(error) => {
            open.attached.detach().await.map_err(|error| diagnostic(&error))?;
            return Err(diagnostic(&error));
        }
    };
    tell_beginning(options, server.as_ref(), &led);
    if let Some(address) = listeners.http() {
        print(&format!("status at http://{address}/status\n"));
    }
    let carrying = Carrying {
        serving: Serving::start(listeners, None),
        roles: roles.clone(),
        verbosity: Verbosity::new(&options.limits),
        options,
        led: &led,
        device: &device,
    };
    let mut totals = CaptureCounters::default();
    let ended = loop {
        let end = match carrying.carry(server.as_ref(), &open).await {
            Ok(end) => end,
            Err(error) => break Err(error),
        };
        totals = end.counters;
        if end.gone {
            let message =
                format!("another program has removed the device {}: what this host sends is not carried", led.device());
            break Err(Diagnostic::plain(message));
        }
        let (Some(moved), Some(server)) = (end.moved, &mut server) else { break Ok(()) };
        event(&format!("the server {} is at {} now", server.named, moved.first().ip()));
        server.addresses = moved;
        let again = async {
            led.set_servers(moved.iter().map(|address| address.ip()).collect()).map_err(|error| diagnostic(&error))?;
            open.attached.detach().await.map_err(|error| diagnostic(&error))?;
            self::open(options, Some(server), &roles, &workers).await
        };
        open = match again.await {
            Ok(open) => open,
            // The stack is already detached.
            Err(error) => {
                led.end().map_err(|error| diagnostic(&error))?;
                return Err(error);
            }
        };
    };
    drop(carrying);
    let undone = led.end().map_err(|error| diagnostic(&error));
    drop(device);
    let detached = open.attached.detach().await.map_err(|error| diagnostic(&error));
    print(&format!("{}\n", sum(&totals)));
    if options.kill_switch {
        event(
            "the kill switch stays: nothing leaves by a default route until `anabranch up --down`, or the next start",
        );
    }
    ended.and(undone).and(detached)
}

/// Totals of the traffic, in one line.
fn sum(totals: &CaptureCounters) -> String {
    let CaptureCounters { connections, datagrams_out, datagrams_in, refused, unreachable, .. } = totals;
    let dropped = totals.datagrams_dropped + totals.overflowed;
    format!(
        "{connections}; {datagrams_out} datagrams out, {datagrams_in} in, {dropped} dropped; of connections {refused} were refused, {unreachable} unreachable"
    )
}

async fn open(
    options: &UpOptions,
    server: Option<&Server>,
    roles: &Roles,
    workers: &Workers,
) -> Result<Open, Diagnostic> {
    let addresses = server.map(|server| server.addresses);
    let key = server.map(|server| &server.key);
    options.stack.with_backups(roles.reserve()).open_on(options.reach(addresses), key, workers.runtimes()).await
}

fn tell_beginning(options: &UpOptions, server: Option<&Server>, led: &LedRoute) {
    let gateways: Vec<String> = options.gateways.iter().map(|name| format!(", and of who is behind {name},")).collect();
    let way = match server {
        Some(server) => format!("through {}", server.named),
        None => "over all uplinks straight to its targets".to_owned(),
    };
    event(&format!("all traffic of this host{} goes {way} now (device {})", gateways.concat(), led.device()));
    if options.no_ipv6 {
        event("IPv6 is refused");
    }
    service_manager::ready();
}

/// Why carrying ended.
struct End {
    counters: CaptureCounters,
    /// Another program has removed the device.
    gone: bool,
    /// The server's new addresses, if it moved.
    moved: Option<ServerAddresses>,
}

/// State that is independent of the server's address.
struct Carrying<'a> {
    options: &'a UpOptions,
    serving: Serving,
    roles: Roles,
    verbosity: Verbosity,
    led: &'a LedRoute,
    device: &'a OwnedFd,
}

impl Carrying<'_> {
    /// Carries until it is told to end or the server moves.
    async fn carry(&self, server: Option<&Server>, open: &Open) -> Result<End, Diagnostic> {
        let options = self.options;
        let way = way(options, server)?;
        let question = match (server, &way) {
            (Some(server), Way::Server(datagrams)) => Some(server.question(options, open, datagrams)),
            _ => None,
        };
        let capture = self.capture(server, open, &way)?;
        let source = Source::new("up", open.attached.stacks(), capture.observer().connections().clone());
        let source = source.with_paths(open.attached.observer()).with_roles(self.roles.clone());
        self.serving.set(source.with_datagrams(capture.observer(), way.clone()));
        let live = options.limits.live(open.attached.stacks(), "anabranch up")?;
        let tells = live.is_none();
        let (over, is_over) = oneshot::channel();
        let (control, mut impatience) = (capture.observer().connections().clone(), JoinSet::new());
        let asked = async {
            let moved = tokio::select! {
                () = asked_or_quit(live) => None,
                moved = self.moves(server, open, &way) => Some(moved),
            };
            if moved.is_none() {
                service_manager::stopping(control.drain());
                if let Err(error) = self.led.retire() {
                    event(&error.to_string());
                }
            }
            // It ends with the carrying.
            impatience.spawn(hurry_when_asked_again(control));
            let _ = over.send(moved);
        };
        let told = async {
            match (&question, &way) {
                (Some(question), _) if tells => watch(&open.attached, question, Tell::All).await,
                (_, Way::Direct(direct)) => {
                    let said = if tells { Said::All } else { Said::Nothing };
                    watch_uplinks(direct, &options.stack.uplinks, said).await
                }
                _ => std::future::pending().await,
            }
        };
        let there = || open.attached.paths().into_iter().map(|path| path.name).collect();
        let governing = govern(&self.roles, there, |reserve, barred| {
            open.attached.set_uses(reserve, barred);
            way.set_uses(reserve, barred);
        });
        let restored = async { if tells { tell_restorations(self.led).await } else { std::future::pending().await } };
        let again = ReadAgain::new::<UpOptions>("up", &options.configuration)?;
        let again = read_again(again, Taken { keys: &TAKEN, counts: "from now on" }, |new| self.take(new, server));
        let counters = tokio::select! {
            counters = capture.run(asked) => counters,
            never = told => match never {},
            never = restored => match never {},
            never = governing => match never {},
            never = again => match never {},
        };
        way.close();
        let moved = is_over.await.ok();
        Ok(End { counters, gone: moved.is_none(), moved: moved.flatten() })
    }

    /// Completes when the server's name resolves to another address.
    async fn moves(&self, server: Option<&Server>, open: &Open, way: &Way) -> ServerAddresses {
        let (Some(Server { named, addresses: known, key }), Way::Server(datagrams)) = (server, way) else {
            return std::future::pending().await;
        };
        let uplinks = || -> Vec<String> { open.attached.paths().into_iter().map(|path| path.name).collect() };
        let port = self.options.datagram_port;
        let change = |now: ServerAddresses| {
            if let Err(error) = self.led.set_servers(now.iter().map(|address| address.ip()).collect()) {
                event(&error.to_string());
            }
            open.attached.set_server(now);
            datagrams.set_server(datagrams_at(now, port));
        };
        let lookout = Lookout { named, addresses: *known, key, port, uplinks: &uplinks, datagrams, change: &change };
        lookout.moved(async || addresses(named, &uplinks()).await).await
    }

    fn capture(&self, server: Option<&Server>, open: &Open, way: &Way) -> Result<Capture, Diagnostic> {
        let options = self.options;
        let via = match server {
            Some(server) => {
                let (inside, other) = server.inside(options);
                Via::Server { server: inside, other, key: server.key.clone() }
            }
            None => Via::Direct,
        };
        let config = CaptureConfig {
            datagrams: Some(way.clone()),
            exit: Exit::Stacks(via),
            connection: open.connection.clone(),
            limits: options.limits.limits(),
            held: HELD,
            journal: options.limits.journal(&self.verbosity),
        };
        let cannot = |error: std::io::Error| Diagnostic::plain(format!("cannot take this host's packets: {error}"));
        let device = self.device.try_clone().map_err(cannot)?;
        Capture::new(device, open.attached.stacks(), config).map_err(cannot)
    }

    /// Applies options that can change at runtime. Returns the key if its file has another one now.
    fn take(&self, new: &UpOptions, server: Option<&Server>) -> Result<Vec<String>, Diagnostic> {
        new.check_words()?;
        // If another file is named, the changed name says so.
        let path = new.key.as_ref().filter(|path| self.options.key.as_ref() == Some(*path));
        let key = path.map(|path| read_key(path)).transpose()?;
        let renewed = key.is_some_and(|key| server.is_some_and(|server| server.key != key));
        // From here on nothing fails: a configuration is taken as a whole or not.
        self.roles.set(&new.care, &new.stack.roles.backups);
        self.verbosity.set(&new.limits);
        Ok(renewed.then(|| "key".to_owned()).into_iter().collect())
    }
}

impl Server {
    /// The server's addresses as the stack connects to them.
    fn inside(&self, options: &UpOptions) -> (Target, Option<SocketAddr>) {
        options.stack.inside_of(self.addresses)
    }

    fn question(&self, options: &UpOptions, open: &Open, datagrams: &Client) -> Question {
        let hint = Hint::Datagrams(datagrams.clone());
        let (inside, other) = self.inside(options);
        Question::new(&self.named, (&inside, other), &self.key, open.connection.clone(), hint)
    }
}

/// Where non-TCP traffic is carried.
fn way(options: &UpOptions, server: Option<&Server>) -> Result<Way, Diagnostic> {
    let uplinks = &options.stack.uplinks;
    Ok(match server {
        Some(server) => Way::Server(start_client(server.addresses, options.datagram_port, &server.key, uplinks)?),
        None => Way::Direct(start_direct(uplinks, false)?),
    })
}

/// A line each time that rules and routes which another program removed were set again, and when they cannot be.
async fn tell_restorations(led: &LedRoute) -> Infallible {
    let (mut changes, mut known) = (led.restorations(), Restorations::default());
    loop {
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
        let now = changes.borrow_and_update().clone();
        if now.rivals != known.rivals {
            event(&match now.rivals.is_empty() {
                true => "no other route takes much of what this host sends any more".to_owned(),
                false => format!(
                    "other routes take what they lead elsewhere, which is not carried: {}",
                    now.rivals.join(", ")
                ),
            });
        }
        let count = now.steps - known.steps;
        if count > 0 {
            event(&format!("another program removed rules or routes of the default route: {count} are set again"));
        }
        match &now.failure {
            failure if *failure == known.failure => {}
            Some(failure) => {
                event(&format!("the default route is not complete, which is tried again each second: {failure}"))
            }
            None => event("the default route is complete again"),
        }
        known = now;
    }
}
