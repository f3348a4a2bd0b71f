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

/// EACCES, "permission denied": of files. Without a capability it is EPERM, "operation not permitted"; to `io` both are one.
const ACCESS: i32 = 13;

pub(crate) fn no_device(step: &Step, error: io::Error) -> HostError {
    match error.kind() {
        _ if error.raw_os_error() == Some(ACCESS) => HostError::ClosedTun,
        io::ErrorKind::PermissionDenied => HostError::NoPermission,
        io::ErrorKind::NotFound => HostError::NoTun,
        _ => HostError::Step { command: step.to_string(), error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_file_is_told_from_a_missing_capability() {
        let step = Step::Device { name: "ab0".to_owned(), mtu: 1_500 };
        // errno(3): EPERM is 1, ENOENT 2, EACCES 13.
        let of = |number| no_device(&step, io::Error::from_raw_os_error(number));
        assert!(matches!(of(1), HostError::NoPermission));
        assert!(matches!(of(2), HostError::NoTun));
        assert!(matches!(of(13), HostError::ClosedTun));
    }
}
