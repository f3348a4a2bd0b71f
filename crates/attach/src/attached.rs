//! An attached stack, and its detachment.

use crate::attachment::AttachedPath;
use crate::lock::lock;
use crate::tunnels;
use crate::works::Works;
use anabranch_host::{HostError, Layout, ReservedPorts};
use anabranch_stack::Stack;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

/// A stack that is attached to this host. Ask it to [`Self::detach`] at the end; dropping it does so without a word to the
/// peers.
pub struct Attached {
    pub(crate) stack: Stack,
    pub(crate) driver: Option<JoinHandle<io::Result<()>>>,
    pub(crate) follower: Option<JoinHandle<()>>,
    pub(crate) ground: Ground,
}

/// What an attachment stands on.
pub(crate) enum Ground {
    Host { works: Arc<Mutex<Works>>, layout: Layout, _ports: ReservedPorts },
    Tunnels(Arc<Mutex<tunnels::Lanes>>),
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

impl Drop for Attached {
    fn drop(&mut self) {
        self.stack.shutdown();
        self.follower.iter().for_each(JoinHandle::abort);
        self.driver.iter().for_each(JoinHandle::abort);
        // Nobody is left to be told.
        let _ = self.ground.undo();
    }
}
