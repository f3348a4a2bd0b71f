//! An attached stack, and its detachment.

use crate::attachment::AttachedPath;
use crate::barred::Barred;
use crate::lock::lock;
use crate::tunnels;
use crate::works::Works;
use anabranch_host::{HostError, Layout, ReservedPorts};
use anabranch_stack::Stack;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

/// A stack that is attached to this host. Ask it to [`Self::detach`] at the end; dropping it does so without resetting the
/// peers.
pub struct Attached {
    /// At least one.
    pub(crate) stacks: Vec<Stack>,
    pub(crate) drivers: Vec<JoinHandle<io::Result<()>>>,
    pub(crate) followers: Vec<JoinHandle<()>>,
    pub(crate) ground: Ground,
    pub(crate) barred: Barred,
}

/// Sees the paths of an attached stack; there are none once it is detached.
#[derive(Clone)]
pub struct PathObserver(Observed);

#[derive(Clone)]
enum Observed {
    Host(Arc<Mutex<Works>>, Layout),
    Tunnels(Option<Arc<Mutex<tunnels::Lanes>>>),
}

impl PathObserver {
    /// As [`Attached::paths`].
    pub fn paths(&self) -> Vec<AttachedPath> {
        match &self.0 {
            Observed::Host(works, layout) => lock(works).paths.iter().map(|lane| lane.show(*layout)).collect(),
            Observed::Tunnels(lanes) => lanes.as_ref().map(|lanes| lock(lanes).show()).unwrap_or_default(),
        }
    }
}

/// What an attachment uses.
pub(crate) enum Ground {
    Host {
        works: Arc<Mutex<Works>>,
        layout: Layout,
        _ports: ReservedPorts,
    },
    /// For each stack its own.
    Tunnels(Vec<Arc<Mutex<tunnels::Lanes>>>),
}

impl Attached {
    /// The stack; of several the first.
    pub fn stack(&self) -> &Stack {
        self.stacks.first().expect("there is at least one")
    }

    /// The stacks of all workers.
    pub fn stacks(&self) -> &[Stack] {
        &self.stacks
    }

    /// The paths now; of several stacks inside UDP those of the first, as the others have the same.
    pub fn paths(&self) -> Vec<AttachedPath> {
        self.observer().paths()
    }

    /// To see the paths while somebody else has this.
    pub fn observer(&self) -> PathObserver {
        PathObserver(match &self.ground {
            Ground::Host { works, layout, .. } => Observed::Host(Arc::clone(works), *layout),
            Ground::Tunnels(lanes) => Observed::Tunnels(lanes.first().map(Arc::clone)),
        })
    }

    /// The largest packet that all paths carry, bytes of IP.
    pub fn mtu(&self) -> u16 {
        self.paths().iter().map(|path| path.mtu).min().unwrap_or(1_280)
    }

    /// Has these uplinks be used only while no other works, and `barred` ones not at all, and no others so. Connections stay; if all
    /// that there are would be barred, those in use stay in use.
    pub fn set_uses(&self, backups: &[String], barred: &[String]) {
        let mut names: Vec<String> = self.paths().into_iter().map(|path| path.name).collect();
        names.extend(backups.iter().cloned());
        for name in names {
            self.stacks.iter().for_each(|stack| stack.set_backup(&name, backups.contains(&name)));
        }
        self.barred.set(barred);
    }

    /// Ends the stack, resets the peers, and removes from the host what was set up.
    ///
    /// # Errors
    /// [`HostError::Undo`] if something could not be removed.
    pub async fn detach(mut self) -> Result<(), HostError> {
        self.followers.drain(..).for_each(|follower| follower.abort());
        self.stacks.iter().for_each(Stack::shutdown);
        for driver in self.drivers.drain(..) {
            // How it ended does not matter here.
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
        // No caller is left to report to.
        let _ = self.ground.undo();
    }
}
