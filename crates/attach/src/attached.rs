//! An attached stack, and its detachment.

use crate::attachment::AttachedPath;
use crate::barred::Barred;
use crate::lock::lock;
use crate::tunnels;
use crate::works::Works;
use anabranch_host::{HostError, Layout, ReservedPorts, ServerAddresses};
use anabranch_stack::Stack;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

/// A stack attached to this host. Call [`Self::detach`] at the end: dropping it cleans up too, but does not reset the
/// peers.
pub struct Attached {
    /// At least one.
    pub(crate) stacks: Vec<Stack>,
    pub(crate) drivers: Vec<JoinHandle<io::Result<()>>>,
    pub(crate) followers: Vec<JoinHandle<()>>,
    pub(crate) ground: Ground,
    pub(crate) barred: Barred,
}

/// Observes the paths of an attached stack; there are none once it is detached.
#[derive(Clone)]
pub struct PathObserver(Observed);

#[derive(Clone)]
enum Observed {
    Host(Arc<Mutex<Works>>, Layout),
    Tunnels(Option<Arc<Mutex<tunnels::Lanes>>>),
}

impl PathObserver {
    /// See [`Attached::paths`].
    pub fn paths(&self) -> Vec<AttachedPath> {
        match &self.0 {
            Observed::Host(works, layout) => lock(works).paths.iter().map(|lane| lane.show(*layout)).collect(),
            Observed::Tunnels(lanes) => lanes.as_ref().map(|lanes| lock(lanes).show()).unwrap_or_default(),
        }
    }
}

/// The host-side state of an attachment.
pub(crate) enum Ground {
    Host {
        works: Arc<Mutex<Works>>,
        layout: Layout,
        _ports: ReservedPorts,
    },
    /// One per stack.
    Tunnels(Vec<Arc<Mutex<tunnels::Lanes>>>),
}

impl Attached {
    /// The stack, or the first of several.
    pub fn stack(&self) -> &Stack {
        self.stacks.first().expect("there is at least one")
    }

    /// The stacks of all workers.
    pub fn stacks(&self) -> &[Stack] {
        &self.stacks
    }

    /// The current paths. With several stacks inside UDP these are the first stack's, since the others have the same.
    pub fn paths(&self) -> Vec<AttachedPath> {
        self.observer().paths()
    }

    /// An observer that can be used elsewhere.
    pub fn observer(&self) -> PathObserver {
        PathObserver(match &self.ground {
            Ground::Host { works, layout, .. } => Observed::Host(Arc::clone(works), *layout),
            Ground::Tunnels(lanes) => Observed::Tunnels(lanes.first().map(Arc::clone)),
        })
    }

    /// The largest packet that all paths carry, in bytes of IP.
    pub fn mtu(&self) -> u16 {
        self.paths().iter().map(|path| path.mtu).min().unwrap_or(1_280)
    }

    /// Sets the uplinks used only while no other works, and the uplinks not used; all others are used normally.
    /// Connections persist. If all present uplinks would be barred, those in use stay in use.
    pub fn set_uses(&self, backups: &[String], barred: &[String]) {
        let mut names: Vec<String> = self.paths().into_iter().map(|path| path.name).collect();
        names.extend(backups.iter().cloned());
        for name in names {
            self.stacks.iter().for_each(|stack| stack.set_backup(&name, backups.contains(&name)));
        }
        self.barred.set(barred);
    }

    /// From now on the tunnels lead to these addresses of the server. Connections persist, and continue if the same server
    /// is there. Other attachments have no such address.
    pub fn set_server(&self, server: impl Into<ServerAddresses>) {
        let server = server.into();
        let Ground::Tunnels(lanes) = &self.ground else { return };
        lanes.iter().for_each(|lanes| lock(lanes).set_server(server));
        self.barred.wake();
    }

    /// Ends the stack, resets the peers, and undoes all changes to the host.
    ///
    /// # Errors
    /// [`HostError::Undo`] if a change could not be undone.
    pub async fn detach(mut self) -> Result<(), HostError> {
        self.followers.drain(..).for_each(|follower| follower.abort());
        self.stacks.iter().for_each(Stack::shutdown);
        for driver in self.drivers.drain(..) {
            // The driver's result no longer matters.
            let _ = driver.await;
        }
        self.ground.undo()
    }
}

impl Ground {
    /// Undoes all changes to the host.
    fn undo(&self) -> Result<(), HostError> {
        match self {
            Self::Host { works, .. } => lock(works).undo(),
            Self::Tunnels(lanes) => {
                lanes.iter().for_each(|lanes| lock(lanes).undo());
                Ok(())
            }
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.stacks.iter().for_each(Stack::shutdown);
        self.followers.iter().for_each(JoinHandle::abort);
        self.drivers.iter().for_each(JoinHandle::abort);
        // A destructor cannot report errors.
        let _ = self.ground.undo();
    }
}
