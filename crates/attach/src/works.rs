//! State that an attachment sets up on the host and in the stack.

use crate::group::Group;
use crate::lane::{Ids, Lane};
use anabranch_host::{HostError, PathPlan, Setup, Step};
use anabranch_stack::Device;
use anabranch_stack::device::TunConfig;
use std::io;
use tokio::runtime::Handle;

/// The state that an attachment has set up on the host and in the stack.
pub(crate) struct Works {
    pub stack: Group,
    pub setup: Setup,
    pub paths: Vec<Lane>,
    pub ids: Ids,
}

impl Works {
    pub fn carry_out(&mut self, step: &Step, paths: &[PathPlan]) -> Result<(), HostError> {
        if let Step::Device { name, mtu } = step {
            let runtimes: Vec<Handle> = self.stack.stacks().iter().map(|stack| stack.runtime().clone()).collect();
            let queues = Device::tun_queues(&TunConfig::new(name, *mtu), &runtimes);
            let device = self.stack.attach(queues.map_err(|error| no_device(step, error))?);
            let plan = paths.iter().find(|path| path.device == *name);
            self.paths.extend(plan.zip(device).map(|(plan, device)| Lane::new(plan.clone(), device)));
        }
        self.setup.carry_out(step)
    }

    /// Undoes all changes.
    pub fn undo(&mut self) -> Result<(), HostError> {
        for lane in self.paths.drain(..) {
            self.stack.detach(lane.device);
        }
        self.setup.undo()
    }
}

pub(crate) fn no_device(step: &Step, error: io::Error) -> HostError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => HostError::NoPermission,
        io::ErrorKind::NotFound => HostError::NoTun,
        _ => HostError::Step { command: step.to_string(), error },
    }
}
