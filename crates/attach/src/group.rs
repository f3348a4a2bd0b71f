//! The stacks of an attachment: one, or one for each worker.

use anabranch_policy::ids::AddressId;
use anabranch_stack::{AttachError, Device, DeviceId, Stack};
use std::net::IpAddr;

/// Stacks that have the same addresses and devices, of each device a queue. What is done to one is done to all, in the same order,
/// so that devices have the same ids.
#[derive(Clone)]
pub(crate) struct Group(Vec<Stack>);

impl Group {
    /// One host of stacks, at least one.
    pub(crate) fn new(stacks: Vec<Stack>) -> Self {
        Stack::unite(&stacks);
        Self(stacks)
    }

    pub(crate) fn stacks(&self) -> &[Stack] {
        &self.0
    }

    /// A device, of which each stack gets a queue.
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
