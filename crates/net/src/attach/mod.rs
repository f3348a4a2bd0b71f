//! The stack on a real host: what it is attached to, and that nothing of it is left behind.

mod ending;

pub use crate::host::HostError;
pub use ending::asked_to_end;

use crate::device::TunConfig;
use crate::host::netlink::Netlink;
use crate::host::{Layout, PathPlan, Plan, Step};
use crate::stack::{DeviceId, Driver};
use crate::{Device, Stack, StackConfig};
use anabranch_policy::ids::AddressId;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use tokio::task::JoinHandle;

/// What a stack is attached to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// The programs of this host (of this network namespace), and nobody else: nothing is forwarded.
    Local(Local),
    /// The interfaces of this host: what the stack sends leaves by them under their addresses.
    Uplinks(Uplinks),
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
    /// The stack's addresses, with their ids.
    pub addresses: Vec<(AddressId, IpAddr)>,
}

/// What will be done for an attachment, for those who want to see it first; nothing is changed, and no right is needed.
///
/// # Errors
/// [`HostError`], as [`attach`] would give.
pub fn plan(attachment: &Attachment) -> Result<Plan, HostError> {
    match attachment {
        Attachment::Local(local) => {
            Plan::local(Layout { instance: 0 }, local.paths, local.options.mtu.unwrap_or(1_500))
        }
        Attachment::Uplinks(_) => Err(HostError::NoUplink),
    }
}

/// A stack that is attached to this host. Ask it to [`Self::detach`] at the end; dropping it does so without a word to the
/// peers.
pub struct Attached {
    stack: Stack,
    driver: Option<JoinHandle<io::Result<()>>>,
    paths: Vec<AttachedPath>,
    netlink: Netlink,
    done: Vec<Step>,
}

/// Sets the host up, and starts the stack's event loop as a task. All belongs to the network namespace of the calling
/// thread. To be called within a runtime with one thread.
///
/// # Errors
/// [`HostError`]; the host is as it was then.
pub async fn attach(attachment: &Attachment, config: StackConfig) -> Result<Attached, HostError> {
    let plan = plan(attachment)?;
    let (stack, driver) = Stack::new(config).map_err(HostError::system("start the stack"))?;
    let mut attached = Attached {
        stack,
        driver: None,
        paths: Vec::new(),
        netlink: Netlink::open().map_err(HostError::system("talk to the kernel over rtnetlink"))?,
        done: Vec::new(),
    };
    attached.carry_out(&plan)?;
    attached.start(driver);
    Ok(attached)
}

impl Attached {
    /// The stack.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The paths now.
    pub fn paths(&self) -> Vec<AttachedPath> {
        self.paths.clone()
    }

    /// The largest packet that all paths carry, bytes of IP.
    pub fn mtu(&self) -> u16 {
        self.paths.iter().map(|path| path.mtu).min().unwrap_or(1_280)
    }

    /// The name of the path that has an address of the stack's.
    pub fn path_name(&self, address: IpAddr) -> Option<String> {
        let has = |path: &&AttachedPath| path.addresses.iter().any(|(_, known)| *known == address);
        self.paths.iter().find(has).map(|path| path.name.clone())
    }

    fn start(&mut self, driver: Driver) {
        self.driver = Some(tokio::spawn(driver));
    }

    fn carry_out(&mut self, plan: &Plan) -> Result<(), HostError> {
        for step in &plan.steps {
            if let Step::Device { name, mtu } = step {
                let path = plan.paths.iter().find(|path| path.device == *name);
                let device = Device::tun(&TunConfig::new(name, *mtu)).map_err(|error| no_device(step, error))?;
                self.paths.extend(path.map(|path| attached_path(path, self.stack.attach(device))));
            }
            step.carry_out(&mut self.netlink).map_err(|error| HostError::Step { command: step.to_string(), error })?;
            self.done.push(step.clone());
        }
        for (path, attached) in plan.paths.iter().zip(&mut self.paths) {
            let addresses = [
                (AddressId(2 * path.number + 1), IpAddr::from(plan.layout.stack_ipv4(path.number))),
                (AddressId(2 * path.number + 2), IpAddr::from(plan.layout.stack_ipv6(path.number))),
            ];
            for (id, address) in addresses {
                self.stack.address_up(attached.device, id, address).expect("the device was attached a moment ago");
                self.stack.name_address(id, &path.name);
                attached.addresses.push((id, address));
            }
        }
        Ok(())
    }

    /// Ends the stack, with a word to the peers, and removes from the host what was set up.
    ///
    /// # Errors
    /// [`HostError::Undo`] if something could not be removed.
    pub async fn detach(mut self) -> Result<(), HostError> {
        self.stack.shutdown();
        if let Some(driver) = self.driver.take() {
            // How it ended is of no concern to the host.
            let _ = driver.await;
        }
        self.undo()
    }

    fn undo(&mut self) -> Result<(), HostError> {
        let mut outcome = Ok(());
        while let Some(step) = self.done.pop() {
            if let Err(error) = step.undo(&mut self.netlink) {
                outcome = Err(HostError::Undo { command: step.to_string(), error });
            }
        }
        for path in self.paths.drain(..) {
            self.stack.detach(path.device);
        }
        outcome
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.stack.shutdown();
        if let Some(driver) = self.driver.take() {
            driver.abort();
        }
        // Nobody is left to be told.
        let _ = self.undo();
    }
}

fn attached_path(path: &PathPlan, device: DeviceId) -> AttachedPath {
    AttachedPath { name: path.name.clone(), device, mtu: path.mtu, addresses: Vec::new() }
}

fn no_device(step: &Step, error: io::Error) -> HostError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => HostError::NoPermission,
        io::ErrorKind::NotFound => HostError::NoTun,
        _ => HostError::Step { command: step.to_string(), error },
    }
}
