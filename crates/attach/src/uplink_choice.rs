//! Selects the uplinks among the interfaces.

use anabranch_host::{HostError, Interface, Layout, Snapshot};

/// Why an interface cannot be an uplink now, if so.
fn unfit(interface: &Interface) -> Option<&'static str> {
    if interface.loopback {
        Some("it is the loopback interface")
    } else if Layout::of_device(&interface.name).is_some() {
        Some("it is a device of this program's own")
    } else if !interface.running {
        Some("it is down, or has no carrier")
    } else if interface.addresses.is_empty() {
        Some("it has no address")
    } else if interface.routes.is_empty() {
        Some("no route leads out of it")
    } else {
        None
    }
}

/// Whether an interface is used by default.
pub(super) fn is_obvious(interface: &Interface) -> bool {
    unfit(interface).is_none() && interface.has_default_route()
}

/// The interfaces of these names, or those with a default route.
pub(super) fn choose<'a>(names: &[String], snapshot: &'a Snapshot) -> Result<Vec<&'a Interface>, HostError> {
    if names.is_empty() {
        let obvious: Vec<_> = snapshot.interfaces.iter().filter(|interface| is_obvious(interface)).collect();
        return if obvious.is_empty() { Err(HostError::NoUplink) } else { Ok(obvious) };
    }
    let mut chosen: Vec<&Interface> = Vec::new();
    for name in names {
        let interface = snapshot.interface(name).ok_or_else(|| HostError::NoSuchInterface {
            name: name.clone(),
            known: snapshot.interfaces.iter().map(|interface| interface.name.clone()).collect(),
        })?;
        if !chosen.iter().any(|known| known.index == interface.index) {
            chosen.push(interface);
        }
    }
    // An interface that is down may come up later. At least one must be usable now, and some never are.
    let never = chosen.iter().find(|interface| interface.loopback || Layout::of_device(&interface.name).is_some());
    let none = if chosen.iter().any(|interface| unfit(interface).is_none()) { None } else { chosen.first() };
    match never.or(none).and_then(|interface| Some((interface, unfit(interface)?))) {
        Some((interface, reason)) => Err(HostError::NotAnUplink { name: interface.name.clone(), reason }),
        None => Ok(chosen),
    }
}
