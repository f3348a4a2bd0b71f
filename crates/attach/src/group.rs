//! The stacks of an attachment: one, or one per worker.

use anabranch_policy::ids::AddressId;
use anabranch_stack::{AttachError, Device, DeviceId, Stack};
use std::net::IpAddr;

/// Stacks with the same addresses and devices, each with its own queue of every device. All operations apply to all
/// stacks in the same order, so that device IDs are equal.
#[derive(Clone)]
pub(crate) struct Group(Vec<Stack>);

impl Group {
    /// Groups stacks, at least one.
    pub(crate) fn new(stacks: Vec<Stack>) -> Self {
        Stack::unite(&stacks);
        Self(stacks)
    }

    pub(crate) fn stacks(&self) -> &[Stack] {
        &self.0
    }

    /// Attaches a device; each stack gets a queue.
    pub(crate) fn attach(&self, queues: Vec<Device>) -> Option<DeviceId> {
        self.0.iter().zip(queues).map(|(stack, queue)| stack.attach(queue)).last()
    }

    pub(crate) fn detach(&self, device: DeviceId) {
        self.0.iter().for_each(|stack| stack.detach(device));
    }

    pub(crate) fn address_up(
        &self,
        device: DeviceId,
        id: AddressId,
        address_and_public: [IpAddr; 2],
        name: &str,
    ) -> Result<(), AttachError> {
        self.0.iter().try_for_each(|stack| stack.address_up_named(device, id, address_and_public, name))
    }

    pub(crate) fn address_down(&self, id: AddressId) {
        self.0.iter().for_each(|stack| stack.address_down(id));
    }
}
