//! What an attachment has set up on the host and in the stack.

use crate::lane::{Ids, Lane};
use anabranch_host::{HostError, PathPlan, Setup, Step};
use anabranch_stack::device::TunConfig;
use anabranch_stack::{Device, Stack};
use std::io;

/// What an attachment has on the host and in the stack.
pub(crate) struct Works {
    pub stack: Stack,
    pub setup: Setup,
    pub paths: Vec<Lane>,
    pub ids: Ids,
}

impl Works {
    pub fn carry_out(&mut self, step: &Step, paths: &[PathPlan]) -> Result<(), HostError> {
        if let Step::Device { name, mtu } = step {
            let device = Device::tun(&TunConfig::new(name, *mtu)).map_err(|error| no_device(step, error))?;
            let device = self.stack.attach(device);
            let plan = paths.iter().find(|path| path.device == *name);
            self.paths.extend(plan.map(|plan| Lane::new(plan.clone(), device)));
        }
        self.setup.carry_out(step)
    }

    /// Removes everything.
    pub fn undo(&mut self) -> Result<(), HostError> {
        for lane in self.paths.drain(..) {
            self.stack.detach(lane.device);
        }
        self.setup.undo()
    }
}

fn no_device(step: &Step, error: io::Error) -> HostError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => HostError::NoPermission,
        io::ErrorKind::NotFound => HostError::NoTun,
        _ => HostError::Step { command: step.to_string(), error },
    }
}
