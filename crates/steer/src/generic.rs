//! Generic netlink (linux/genetlink.h): families are found by name.

use crate::attributes::{Attributes, attribute, attributes, u16_at, u32_at};
use crate::netlink::{RequestError, Requests};
use netlink_sys::protocols::NETLINK_GENERIC;
use std::io;

/// The family that knows the others, its command, and attributes.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const OPERATIONS: u16 = 6;
const OPERATION_ID: u16 = 1;
const GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;

/// Length of the header of a message: command, version, reserved.
pub const HEADER: usize = 4;

/// A family as the running kernel has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Family {
    pub id: u16,
    /// Numbers of its commands.
    operations: Vec<u32>,
    /// Names and numbers of its multicast groups.
    groups: Vec<(String, u32)>,
}

impl Family {
    /// Finds a family.
    ///
    /// # Errors
    /// The kernel does not have it: [`RequestError::Refused`] with ENOENT.
    pub fn find(requests: &mut Requests, name: &str) -> Result<Self, RequestError> {
        let mut wanted = Attributes::default();
        wanted.put(FAMILY_NAME, &[name.as_bytes(), &[0]].concat());
        let mut family = Self::default();
        requests.get(CONTROLLER, &message(GET_FAMILY, &wanted), |answer| family = Self::read(answer))?;
        if family.id == 0 { Err(io::Error::from(io::ErrorKind::InvalidData).into()) } else { Ok(family) }
    }

    fn read(answer: &[u8]) -> Self {
        let content = answer.get(HEADER..).unwrap_or_default();
        let numbers = |kind| attribute(content, kind).into_iter().flat_map(attributes);
        let group = |(_, group)| {
            let name = String::from_utf8_lossy(attribute(group, GROUP_NAME)?).trim_end_matches('\0').to_owned();
            Some((name, u32_at(attribute(group, GROUP_ID)?, 0)?))
        };
        Self {
            id: attribute(content, FAMILY_ID).and_then(|value| u16_at(value, 0)).unwrap_or_default(),
            operations: numbers(OPERATIONS)
                .filter_map(|(_, operation)| u32_at(attribute(operation, OPERATION_ID)?, 0))
                .collect(),
            groups: numbers(GROUPS).filter_map(group).collect(),
        }
    }

    /// Whether it has a command.
    pub fn has(&self, command: u8) -> bool {
        self.operations.contains(&u32::from(command))
    }

    pub fn group(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|(other, _)| other == name).map(|(_, id)| *id)
    }
}

/// The content of a request.
pub fn message(command: u8, attributes: &Attributes) -> Vec<u8> {
    // Version 1 is that of all families used here.
    [&[command, 1, 0, 0], attributes.bytes()].concat()
}

/// A socket for requests to families.
///
/// # Errors
/// The kernel does not have generic netlink.
pub fn open() -> io::Result<Requests> {
    Requests::open(NETLINK_GENERIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_found_by_its_name() {
        let mut requests = open().expect("every Linux has generic netlink");
        let family = Family::find(&mut requests, "nlctrl").expect("it knows itself");
        assert_eq!(family.id, CONTROLLER);
        assert!(family.has(GET_FAMILY) && !family.has(200));
        assert!(family.group("notify").is_some() && family.group("no such group").is_none());
    }

    #[test]
    fn a_family_that_is_not_there_is_refused() {
        let mut requests = open().expect("every Linux has generic netlink");
        let outcome = Family::find(&mut requests, "no_such_family");
        assert!(matches!(outcome, Err(RequestError::Refused { errno: nix::libc::ENOENT, .. })), "{outcome:?}");
    }
}
