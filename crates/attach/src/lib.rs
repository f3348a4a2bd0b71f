//! The stack on a real host: what it is attached to, and that nothing of it is left behind.

pub mod blocking;
mod ending;
mod follow;
mod lane;
mod tunnels;
mod uplinks;

pub use anabranch_host::{HostError, Plan};
pub use ending::{asked_to_end, listen_for_the_end};

use anabranch_host::{Layout, PathPlan, Prospect, ReservedPorts, Setup, Step, Watch, prospect};
use anabranch_policy::ids::AddressId;
use anabranch_stack::DeviceId;
use anabranch_stack::device::TunConfig;
use anabranch_stack::{Device, Stack, StackConfig};
use lane::{Ids, Lane};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinHandle;
use uplinks::Following;

/// What a stack is attached to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// The programs of this host (of this network namespace), and nobody else: nothing is forwarded.
    Local(Local),
    /// The interfaces of this host: what the stack sends leaves by them under their addresses.
    Uplinks(Uplinks),
    /// A server of ours, inside UDP: nothing is set up and no right is needed.
    Tunnels(Tunnels),
    /// All clients that come with UDP to this address.
    TunnelServer(SocketAddr),
}

/// Paths to the programs of this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Local {
    /// How many, 1 to 32: path `n` has addresses of its own at both ends.
    pub paths: u8,
    /// What all attachments have.
    pub options: HostOptions,
}

/// Paths by the interfaces of this host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Uplinks {
    /// The interfaces; if none is named, all with a default route, those too that get one later.
    pub interfaces: Vec<String>,
    /// The ports on which others reach the stack at the interfaces' own addresses.
    pub ports: Vec<u16>,
    /// What all attachments have.
    pub options: HostOptions,
}

/// Paths to one server of ours, inside UDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tunnels {
    /// Where its socket is; its stack has [`anabranch_wire::encapsulation::SERVER`].
    pub server: SocketAddr,
    /// The interfaces; if none is named, all with a default route, those too that get one later. If the server is on
    /// this host, wherever the routes lead.
    pub interfaces: Vec<String>,
}

/// What can be chosen about how a host is set up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostOptions {
    /// Largest packet, bytes of IP; if not given the uplink's, or 1500.
    pub mtu: Option<u16>,
    /// Directory in which is noted what is to be undone after a crash; if not given `/run/anabranch`, or
    /// `$XDG_RUNTIME_DIR/anabranch` where that cannot be written.
    pub journal: Option<PathBuf>,
}

/// A path of the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachedPath {
    /// The uplink's name, or the device's own.
    pub name: String,
    /// The device in the stack.
    pub device: DeviceId,
    /// Largest packet, bytes of IP.
    pub mtu: u16,
    /// The stack's addresses that can be used now, with their ids. None if the uplink is down.
    pub addresses: Vec<(AddressId, IpAddr)>,
}

impl Attachment {
    fn root(&self) -> Option<&Path> {
        match self {
            Self::Local(Local { options, .. }) | Self::Uplinks(Uplinks { options, .. }) => options.journal.as_deref(),
            Self::Tunnels(_) | Self::TunnelServer(_) => None,
        }
    }

    /// Whether packets are translated on their way.
    fn needs_filter(&self) -> bool {
        matches!(self, Self::Uplinks(_))
    }

    fn ports(&self) -> &[u16] {
        match self {
            Self::Local(_) | Self::Tunnels(_) | Self::TunnelServer(_) => &[],
            Self::Uplinks(uplinks) => &uplinks.ports,
        }
    }

    fn plan(&self, prospect: &Prospect) -> Result<Plan, HostError> {
        match self {
            Self::Local(local) => Plan::local(prospect.layout, local.paths, local.options.mtu.unwrap_or(1_500)),
            Self::Uplinks(uplinks) => {
                let interfaces = uplinks::choose(&uplinks.interfaces, &prospect.snapshot)?;
                let mtu = uplinks.options.mtu;
                Plan::uplinks(prospect.layout, &interfaces, &uplinks.ports, mtu, &prospect.others)
            }
            Self::Tunnels(_) | Self::TunnelServer(_) => Ok(Plan::nothing(prospect.layout)),
        }
    }
}

/// What will be done for an attachment, for those who want to see it first; nothing is changed, and no right is needed.
///
/// # Errors
/// [`HostError`], as [`attach`] would give.
pub fn plan(attachment: &Attachment) -> Result<Plan, HostError> {
    ReservedPorts::take(attachment.ports())?;
    attachment.plan(&prospect(attachment.root(), attachment.needs_filter())?)
}

/// A stack that is attached to this host. Ask it to [`Self::detach`] at the end; dropping it does so without a word to the
/// peers.
pub struct Attached {
    stack: Stack,
    driver: Option<JoinHandle<io::Result<()>>>,
    follower: Option<JoinHandle<()>>,
    ground: Ground,
}

/// What an attachment stands on.
enum Ground {
    Host { works: Arc<Mutex<Works>>, layout: Layout, _ports: ReservedPorts },
    Tunnels(Arc<Mutex<tunnels::Lanes>>),
}

/// What an attachment has on the host and in the stack.
struct Works {
    stack: Stack,
    setup: Setup,
    paths: Vec<Lane>,
    ids: Ids,
}

/// Sets the host up, and starts the stack's event loop as a task. All belongs to the network namespace of the calling
/// thread. To be called within a runtime with one thread.
///
/// # Errors
/// [`HostError`]; the host is as it was then.
pub async fn attach(attachment: &Attachment, config: StackConfig) -> Result<Attached, HostError> {
    match attachment {
        Attachment::Local(_) | Attachment::Uplinks(_) => attach_to_host(attachment, config),
        Attachment::Tunnels(tunnels) => tunnels::attach(tunnels, config),
        Attachment::TunnelServer(bind) => tunnels::attach_server(*bind, config),
    }
}

fn attach_to_host(attachment: &Attachment, config: StackConfig) -> Result<Attached, HostError> {
    let ports = ReservedPorts::take(attachment.ports())?;
    let (setup, directory, prospect) = Setup::begin(attachment.root(), attachment.needs_filter())?;
    // From here on what was noted is undone when `works` goes, which must not wait for our own lock.
    let (stack, driver) = Stack::new(config).map_err(HostError::system("start the stack"))?;
    let mut works = Works { stack: stack.clone(), setup, paths: Vec::new(), ids: Ids::default() };
    let outcome = attachment.plan(&prospect).and_then(|plan| {
        plan.steps.iter().try_for_each(|step| works.carry_out(step, &plan.paths))?;
        Ok(plan)
    });
    drop(directory);
    let plan = outcome?;
    let following = match attachment {
        Attachment::Uplinks(uplinks) => {
            let following = Following { uplinks: uplinks.clone(), layout: plan.layout };
            // The watch begins before the last look, so that nothing is missed.
            let watch = Watch::open().map_err(HostError::system("watch the network over rtnetlink"))?;
            following.adjust(&mut works)?;
            Some((following, watch))
        }
        _ => {
            let Works { paths, ids, .. } = &mut works;
            paths.iter_mut().for_each(|lane| lane.open_to_the_host(&stack, plan.layout, ids));
            None
        }
    };
    let works = Arc::new(Mutex::new(works));
    let follower = following.map(|(following, watch)| {
        let works = Arc::clone(&works);
        tokio::spawn(follow::follow(watch, move || following.adjust(&mut lock(&works))))
    });
    let ground = Ground::Host { works, layout: plan.layout, _ports: ports };
    Ok(Attached { stack, driver: Some(tokio::spawn(driver)), follower, ground })
}

impl Works {
    fn carry_out(&mut self, step: &Step, paths: &[PathPlan]) -> Result<(), HostError> {
        if let Step::Device { name, mtu } = step {
            let device = Device::tun(&TunConfig::new(name, *mtu)).map_err(|error| no_device(step, error))?;
            let device = self.stack.attach(device);
            let plan = paths.iter().find(|path| path.device == *name);
            self.paths.extend(plan.map(|plan| Lane::new(plan.clone(), device)));
        }
        self.setup.carry_out(step)
    }

    /// Removes everything.
    fn undo(&mut self) -> Result<(), HostError> {
        for lane in self.paths.drain(..) {
            self.stack.detach(lane.device);
        }
        self.setup.undo()
    }
}

impl Attached {
    /// The stack.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The paths now.
    pub fn paths(&self) -> Vec<AttachedPath> {
        match &self.ground {
            Ground::Host { works, layout, .. } => lock(works).paths.iter().map(|lane| lane.show(*layout)).collect(),
            Ground::Tunnels(lanes) => lock(lanes).show(),
        }
    }

    /// The largest packet that all paths carry, bytes of IP.
    pub fn mtu(&self) -> u16 {
        self.paths().iter().map(|path| path.mtu).min().unwrap_or(1_280)
    }

    /// Ends the stack, with a word to the peers, and removes from the host what was set up.
    ///
    /// # Errors
    /// [`HostError::Undo`] if something could not be removed.
    pub async fn detach(mut self) -> Result<(), HostError> {
        if let Some(follower) = self.follower.take() {
            follower.abort();
        }
        self.stack.shutdown();
        if let Some(driver) = self.driver.take() {
            // How it ended is of no concern to the host.
            let _ = driver.await;
        }
        self.ground.undo()
    }
}

impl Ground {
    /// Removes everything.
    fn undo(&self) -> Result<(), HostError> {
        match self {
            Self::Host { works, .. } => lock(works).undo(),
            Self::Tunnels(lanes) => {
                lock(lanes).undo();
                Ok(())
            }
        }
    }
}

/// What is behind the lock; each holder leaves it consistent.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.stack.shutdown();
        self.follower.iter().for_each(JoinHandle::abort);
        self.driver.iter().for_each(JoinHandle::abort);
        // Nobody is left to be told.
        let _ = self.ground.undo();
    }
}

fn no_device(step: &Step, error: io::Error) -> HostError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => HostError::NoPermission,
        io::ErrorKind::NotFound => HostError::NoTun,
        _ => HostError::Step { command: step.to_string(), error },
    }
}
