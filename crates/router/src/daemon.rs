//! The router daemon: a loop between the network, the kernel's routing tables, and clients that query its state.

use super::RouteError;
use super::bfd::{Bfd, Peer};
use super::complaints::Complaints;
use super::config::{ConfigRead, Family, RouteConfig};
use super::control::{Asked, Control, Question, is_taken};
use super::gateway::{Gateway, uplink};
use super::ground::Ground;
use super::identity::Identity;
use super::instance::Instance;
use super::kernel::{Applied, KernelTable, PROTOCOL, tables};
use super::ports::{Port, ports};
use super::radio::Radio;
use super::settings;
use super::socket::OspfSocket;
use super::transport::{Refusal, Transport};
use anabranch_host::{Netlink, Setup, Watch};
use anabranch_policy::time::{Duration, Instant};
use anabranch_routing::NeighborState;
use anabranch_routing::bfd::BfdSettings;
use anabranch_system::Clock;
use anabranch_system::Timer;
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::io;
use std::net::Ipv4Addr;
use std::pin::pin;
use tokio::sync::mpsc::UnboundedReceiver;

/// Least time between two looks at the host's interfaces.
const PAUSE: Duration = Duration::from_millis(50);

/// How long an interface that is up may take to get a link-local address, during duplicate address detection.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(4);

/// Counters beside those of the routers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RouteCounters {
    /// Packets sent, and their IP bytes.
    pub sent: (u64, u64),
    /// Packets received on the mesh's interfaces, and their IP bytes.
    pub received: (u64, u64),
    /// Packets that could not be sent.
    pub not_sent: u64,
    /// Packets with another instance ID.
    pub other_instances: u64,
    pub refused: BTreeMap<Refusal, u64>,
    pub kernel: Applied,
    /// Settings of the kernel set again that another program had changed.
    pub settings_restored: u64,
    /// How often a neighbour with a bidirectional link was lost, and an interface of the mesh.
    pub lost: (u64, u64),
    /// Changes of the MTU of an interface of the mesh.
    pub mtu_changes: u64,
    /// Configurations taken, and refused, while it runs.
    pub configurations: (u64, u64),
}

pub(super) type Tell = Box<dyn FnMut(&str)>;

/// A router on this host. Dropping it removes its routes and restores settings.
pub struct RouteDaemon {
    pub(super) config: RouteConfig,
    pub(super) clock: Clock,
    timer: Timer,
    pub(super) socket: OspfSocket,
    /// None unless asked for.
    pub(super) bfd: Option<Bfd>,
    pub(super) transport: Transport,
    watch: Watch,
    pub(super) netlink: Netlink,
    control: Control,
    pub(super) kernel: KernelTable,
    pub(super) setup: Option<Setup>,
    pub(super) ground: Ground,
    pub(super) ports: Vec<Port>,
    pub(super) identity: Identity,
    pub(super) instances: Vec<Instance>,
    pub(super) counters: RouteCounters,
    pub(super) complaints: Complaints,
    /// Called with a sentence on each reported rejection.
    pub(super) tell: Option<Tell>,
    /// The host's interfaces have changed since the last look.
    pub(super) changed: bool,
    looked: Instant,
    /// When to update the kernel's table.
    pub(super) apply_at: Instant,
    pub(super) repair: Repair,
    /// None unless asked for.
    pub(super) gateway: Option<Gateway>,
    /// None unless asked for, or where nothing is wireless.
    pub(super) radio: Option<Radio>,
    /// Configurations that replace the present one.
    news: Option<UnboundedReceiver<ConfigRead>>,
}

/// The repair of routes, rules and settings that other programs change.
pub(super) struct Repair {
    watch: Watch,
    /// When to compare the kernel's tables with ours.
    pub(super) due: Instant,
    /// When the next report may be made.
    pub(super) tell_from: Instant,
    /// Settings that could not be set again, and were told.
    pub(super) refused: BTreeSet<String>,
}

impl Repair {
    fn watch(table: u32) -> Result<Self, RouteError> {
        let watch = Watch::routing(PROTOCOL, table).map_err(RouteError::system("watch the routing tables"))?;
        Ok(Self { watch, due: Instant::NEVER, tell_from: Instant::ZERO, refused: BTreeSet::new() })
    }
}

/// Why the loop woke up.
enum Wake {
    Time,
    Packets,
    Changed,
    Rerouted,
    Uplinks,
    Configured(Box<ConfigRead>),
    Asked(Asked),
    End,
}

impl RouteDaemon {
    /// Starts a router in the network namespace of the calling thread. Call this within a single-threaded runtime.
    ///
    /// # Errors
    /// [`RouteError`]; all changes are then undone, and leftovers of a killed predecessor are removed.
    pub async fn start(config: RouteConfig) -> Result<Self, RouteError> {
        if !std::path::Path::new("/proc/sys/net/ipv6").exists() {
            return Err(RouteError::NoIpv6);
        }
        let mut netlink = Netlink::open().map_err(RouteError::system("talk to the kernel over rtnetlink"))?;
        // The watch starts before the first look, so that no change is missed.
        let watch = Watch::interfaces().map_err(RouteError::system("watch the network over rtnetlink"))?;
        let repair = Repair::watch(config.table)?;
        let ground = settled(&config, &mut netlink).await?;
        let control = Control::open(config.table)?;
        let socket = OspfSocket::open().map_err(RouteError::system("open a raw socket"))?;
        let kernel = take_over(&mut netlink, &config)?;
        let ports = ports(&config, &ground, &[]);
        let setup = prepared(&mut netlink, &config, &ground, &ports)?;
        let identity = Identity::choose(&config, &ground)?;
        let instances = instances(&config, &identity, seed()?)?;
        let transport = Transport::new(config.compatibility, config.authentication.clone(), seconds_since_epoch());
        let bfd = config.bfd.map(detector).transpose()?;
        let gateway = config.gateway.map(Gateway::new).transpose()?;
        let radio = if config.looks_at_radios() { Radio::open()? } else { None };
        let clock = Clock::new();
        let timer = Timer::new().map_err(RouteError::system("make a timer"))?;
        let mut daemon = Self {
            config,
            clock,
            timer,
            socket,
            bfd,
            transport,
            watch,
            netlink,
            control,
            kernel,
            setup,
            ground: Ground::default(),
            ports,
            identity,
            instances,
            counters: RouteCounters::default(),
            complaints: Complaints::default(),
            tell: None,
            changed: false,
            looked: Instant::ZERO,
            apply_at: Instant::NEVER,
            repair,
            gateway,
            radio,
            news: None,
        };
        daemon.adjust(ground)?;
        Ok(daemon)
    }

    /// Reports rejected packets, a sentence each: every reason once per sender, and at most 65 in total.
    #[must_use]
    pub fn telling(mut self, mut tell: impl FnMut(&str) + 'static) -> Self {
        if self.config.airtime && self.radio.is_none() {
            tell("this kernel has no wireless interfaces (nl80211): links cost what their Hellos tell");
        }
        self.tell = Some(Box::new(tell));
        self
    }

    /// Takes the configurations that come by `news` in place of its own, as far as they can change while it runs, and tells and
    /// counts those that could not be read.
    #[must_use]
    pub fn following(mut self, news: UnboundedReceiver<ConfigRead>) -> Self {
        self.news = Some(news);
        self
    }

    /// A description on one line for the log.
    pub fn describe(&self) -> String {
        let names = self.config.interfaces.iter().map(|interface| interface.name.as_str());
        let families = self.config.families.iter().map(|family| family.name());
        let router = self.instances.first().map_or(Ipv4Addr::UNSPECIFIED, Instance::router_id);
        format!(
            "router {router} on {}: {}, routes in table {} with protocol {PROTOCOL}",
            names.collect::<Vec<_>>().join(", "),
            families.collect::<Vec<_>>().join(" and "),
            self.config.table
        )
    }

    /// Routes until `end` completes, then undoes all changes.
    ///
    /// # Errors
    /// An error that ended it, or a change that could not be undone.
    pub async fn run(mut self, end: impl Future<Output = ()>) -> Result<(), RouteError> {
        let mut end = pin!(end);
        if let Some(tell) = self.tell.as_mut().filter(|_| !self.config.keep_settings) {
            settings::barriers(&self.config).iter().for_each(|barrier| tell(barrier));
        }
        self.tell_of_the_mute();
        loop {
            self.turn()?;
            let Self { timer, socket, bfd, watch, control, repair, gateway, news, .. } = &mut self;
            let wake = tokio::select! {
                biased;
                () = &mut end => Ok(Wake::End),
                outcome = poll_fn(|context| timer.poll_expired(context)) => outcome.map(|()| Wake::Time),
                outcome = socket.readable() => outcome.map(|()| Wake::Packets),
                outcome = heard(bfd.as_ref()) => outcome.map(|()| Wake::Time),
                outcome = watch.changed() => outcome.map(|()| Wake::Changed),
                outcome = turned(gateway.as_ref()) => outcome.map(|()| Wake::Uplinks),
                outcome = repair.watch.changed() => outcome.map(|()| Wake::Rerouted),
                new = next(news.as_mut()) => Ok(Wake::Configured(Box::new(new))),
                asked = control.asked() => Ok(Wake::Asked(asked)),
            };
            match wake.map_err(RouteError::system("wait for packets"))? {
                Wake::Time => {}
                Wake::Packets => self.receive().map_err(RouteError::system("receive packets"))?,
                Wake::Changed => self.changed = true,
                Wake::Rerouted => self.rerouted(),
                Wake::Configured(new) => self.reconfigure(*new)?,
                Wake::Uplinks => self.uplinks_changed(),
                Wake::Asked(asked) => {
                    if asked.question() == Question::Routes {
                        // What the kernel has now, not what it was given.
                        self.repair(self.clock.now())?;
                    }
                    let text = self.answer(asked.question()).to_string();
                    asked.answer(text);
                }
                Wake::End => break,
            }
        }
        if let Some(bfd) = &self.bfd {
            bfd.leave(&self.ports);
        }
        self.leave().await;
        self.kernel.purge().map_err(RouteError::system("remove the routes"))?;
        match self.setup.as_mut().map(Setup::undo) {
            Some(outcome) => Ok(outcome?),
            None => Ok(()),
        }
    }

    /// Handles expired timers, and sets the next.
    fn turn(&mut self) -> Result<(), RouteError> {
        let now = self.clock.now();
        if self.changed && now >= self.looked + PAUSE {
            self.changed = false;
            self.looked = now;
            let ground = look(&mut self.netlink)?;
            if ground != self.ground {
                self.adjust(ground)?;
            }
        }
        self.settle_identity(now)?;
        self.detect(now).map_err(RouteError::system("receive packets of BFD"))?;
        for place in 0..self.instances.len() {
            if let Some(instance) = self.instances.get_mut(place)
                && instance.router.poll_timeout().is_some_and(|due| due <= now)
            {
                instance.router.handle_timeout(now);
            }
            self.drain(place);
        }
        self.look_for_uplinks(now)?;
        self.look_at_radios(now);
        if self.repair.due <= now {
            self.repair(now)?;
        }
        if self.apply_at <= now {
            self.apply(now, &BTreeSet::new());
        }
        let routers = self.instances.iter().filter_map(|instance| instance.router.poll_timeout()).min();
        let look = if self.changed { self.looked + PAUSE } else { Instant::NEVER };
        let due = routers.unwrap_or(Instant::NEVER).min(look).min(self.apply_at).min(self.repair.due);
        let due = due.min(self.bfd.as_ref().map_or(Instant::NEVER, Bfd::poll_timeout));
        let due = due.min(self.radio.as_ref().map_or(Instant::NEVER, |radio| radio.due));
        let due = due.min(self.gateway.as_ref().map_or(Instant::NEVER, |gateway| gateway.due));
        self.timer.set(&self.clock, due).map_err(RouteError::system("set a timer"))
    }

    /// BFD: neighbours that do not answer are lost.
    fn detect(&mut self, now: Instant) -> io::Result<()> {
        let Some(bfd) = &mut self.bfd else { return Ok(()) };
        if core::mem::take(&mut bfd.unsettled) {
            let neighbors = self.instances.iter().flat_map(|instance| instance.router.neighbors(now));
            let heard = neighbors.filter(|neighbor| neighbor.state >= NeighborState::TwoWay);
            let mut peers: Vec<Peer> =
                heard.map(|neighbor| Peer { port: neighbor.interface, address: neighbor.address }).collect();
            peers.sort_unstable();
            peers.dedup();
            bfd.follow(now, &peers);
        }
        for lost in bfd.turn(now, &self.ports)? {
            for instance in &mut self.instances {
                instance.router.handle_lost(now, lost.port, lost.address);
            }
        }
        Ok(())
    }

    /// Takes another Router ID if another router has this one. The routers start anew: what has the old ID is the other's.
    fn settle_identity(&mut self, now: Instant) -> Result<(), RouteError> {
        let patience = self.config.manet.router_dead_interval;
        let mut news = self.identity.complaint();
        if self.identity.must_change(now, patience) {
            news = Some(self.identity.change(now)?);
            self.instances = instances(&self.config, &self.identity, seed()?)?;
            self.forget_radios();
            self.adjust(self.ground.clone())?;
        }
        if let Some((news, tell)) = news.zip(self.tell.as_mut()) {
            tell(&news);
        }
        Ok(())
    }

    /// Updates all parts for the host's current interfaces.
    pub(super) fn adjust(&mut self, ground: Ground) -> Result<(), RouteError> {
        let now = self.clock.now();
        self.note_changes(&ground);
        for port in &mut self.ports {
            let device = port.device(&ground);
            let index = device.map(|device| device.index);
            if port.is_mesh() {
                let source = device.and_then(super::ground::Device::speaks);
                // Where the kernel has ended IPv6 on an interface, it has forgotten the membership, and the socket has not.
                let mute = port.source.is_some() && source.is_none();
                if let Some(before) = port.index.filter(|before| mute || Some(*before) != index) {
                    self.socket.leave(before);
                }
                if let Some(index) = index
                    && let Err(error) = self.socket.join(index)
                {
                    // The interface has disappeared, or has no IPv6 (its MTU is below 1,280): a notification tells when that
                    // is over.
                    if !matches!(error.raw_os_error(), Some(nix::libc::ENODEV | nix::libc::EINVAL)) {
                        return Err(RouteError::system("join the group of OSPF routers")(error));
                    }
                }
                port.source = source;
            }
            port.index = index;
        }
        self.ground = ground;
        // An interface that was made anew has the settings of any new one.
        self.restore_settings();
        for place in 0..self.instances.len() {
            if let Some(instance) = self.instances.get_mut(place) {
                instance.adjust(now, &self.config, &self.ports, &self.ground)?;
            }
            self.drain(place);
        }
        if let Some(gateway) = &mut self.gateway {
            gateway.due = Instant::ZERO;
        }
        // The kernel removes routes itself when an interface goes down.
        self.kernel.refresh().map_err(RouteError::system("read the routing tables"))?;
        self.apply_at = Instant::ZERO;
        Ok(())
    }
}

pub(super) fn detector(settings: BfdSettings) -> Result<Bfd, RouteError> {
    Bfd::open(settings, seed()?).map_err(RouteError::system("open sockets for BFD"))
}

/// Completes when a packet of BFD may be readable.
async fn heard(bfd: Option<&Bfd>) -> io::Result<()> {
    match bfd {
        Some(bfd) => bfd.readable().await,
        None => std::future::pending().await,
    }
}

/// The next configuration.
async fn next(news: Option<&mut UnboundedReceiver<ConfigRead>>) -> ConfigRead {
    let new = match news {
        Some(news) => news.recv().await,
        None => None,
    };
    match new {
        Some(new) => new,
        None => std::future::pending().await,
    }
}

/// Completes when a default route of the host has changed.
async fn turned(gateway: Option<&Gateway>) -> io::Result<()> {
    match gateway {
        Some(gateway) => gateway.changed().await,
        None => std::future::pending().await,
    }
}

/// A router for each address family.
fn instances(config: &RouteConfig, identity: &Identity, seed: u64) -> Result<Vec<Instance>, RouteError> {
    config.families.iter().map(|family| Instance::new(config, *family, identity.id, seed)).collect()
}

/// A random number for the routers' jitter.
fn seed() -> Result<u64, RouteError> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| RouteError::system("draw a random number")(io::Error::other(error)))?;
    Ok(u64::from_ne_bytes(seed))
}

/// 0 if the clock is before the epoch.
fn seconds_since_epoch() -> u32 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since_epoch.map_or(0, |time| time.as_secs() as u32)
}

pub(super) fn look(netlink: &mut Netlink) -> Result<Ground, RouteError> {
    Ground::take(netlink).map_err(RouteError::system("read the network's state over rtnetlink"))
}

/// The state of the host once its interfaces that are up can send.
async fn settled(config: &RouteConfig, netlink: &mut Netlink) -> Result<Ground, RouteError> {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let ground = look(netlink)?;
        config.check(&ground)?;
        let Some(mute) = config.mute(&ground) else { return Ok(ground) };
        if tokio::time::Instant::now() >= until {
            return Err(RouteError::NoLinkLocal { name: mute.name.clone() });
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Sets the rules that lead to the routing table.
fn set_rules(kernel: &mut KernelTable, families: &[Family]) -> Result<(), RouteError> {
    families.iter().try_for_each(|family| {
        let ipv6 = family.has(std::net::Ipv6Addr::UNSPECIFIED.into());
        kernel.set_rules(ipv6).map_err(RouteError::system("set rules that lead to the routing table"))
    })
}

/// The kernel's settings, with those of a gateway's uplinks first: a host that begins to forward IPv6 forgets the default
/// routes that were advertised to it.
fn prepared(
    netlink: &mut Netlink,
    config: &RouteConfig,
    ground: &Ground,
    ports: &[Port],
) -> Result<Option<Setup>, RouteError> {
    if config.keep_settings {
        return Ok(None);
    }
    let families = config.families.iter().filter(|_| config.gateway.is_some());
    let found = families.map(|family| uplink(netlink, *family, ground, ports));
    let found: io::Result<Vec<Option<String>>> = found.collect();
    let found = found.map_err(RouteError::system("read the default routes"))?;
    settings::prepare(config, found.into_iter().flatten()).map(Some)
}

/// Our routing table, without what killed routers left, and the rules that lead to it.
fn take_over(netlink: &mut Netlink, config: &RouteConfig) -> Result<KernelTable, RouteError> {
    clean(netlink, config.table)?;
    let own = Netlink::open().map_err(RouteError::system("talk to the kernel over rtnetlink"))?;
    let mut kernel = KernelTable::open(own, config.table).map_err(RouteError::system("read the routing tables"))?;
    set_rules(&mut kernel, &config.families)?;
    Ok(kernel)
}

/// Removes routes of killed routers in other tables.
fn clean(netlink: &mut Netlink, ours: u32) -> Result<(), RouteError> {
    let all = tables(netlink).map_err(RouteError::system("read the routing tables"))?;
    for table in all.into_iter().filter(|table| *table != ours && !is_taken(*table)) {
        let netlink = Netlink::open().map_err(RouteError::system("talk to the kernel over rtnetlink"))?;
        KernelTable::open(netlink, table).map_err(RouteError::system("remove what a killed router left"))?;
    }
    Ok(())
}
