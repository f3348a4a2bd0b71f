//! Selects the uplinks among the interfaces.

use anabranch_host::{HostError, Interface, Layout, Snapshot};

/// Why an interface can never be an uplink, if so.
fn unfit_always(interface: &Interface) -> Option<&'static str> {
    if interface.loopback {
        Some("it is the loopback interface")
    } else if Layout::of_device(&interface.name).is_some() {
        Some("it is a device of this program's own")
    } else if interface.name.contains(['"', '*']) {
        Some("its name has a character that means something else to nft")
    } else {
        None
    }
}

/// Why an interface cannot be an uplink now, if so.
fn unfit(interface: &Interface) -> Option<&'static str> {
    if let Some(reason) = unfit_always(interface) {
        Some(reason)
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
    let never = chosen.iter().find(|interface| unfit_always(interface).is_some());
    let none = if chosen.iter().any(|interface| unfit(interface).is_none()) { None } else { chosen.first() };
    match never.or(none).and_then(|interface| Some((interface, unfit(interface)?))) {
        Some((interface, reason)) => Err(HostError::NotAnUplink { name: interface.name.clone(), reason }),
        None => Ok(chosen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_host::{Route, Target};

    fn interface(name: &str) -> Interface {
        let target = Target::Device { name: name.to_owned(), gateway: None, onlink: false, source: None };
        let any = "0.0.0.0".parse().expect("an address");
        Interface {
            index: 2,
            name: name.to_owned(),
            mtu: 1_500,
            loopback: false,
            running: true,
            addresses: vec!["192.0.2.1".parse().expect("an address")],
            held: Vec::new(),
            routes: vec![Route { table: 254, destination: any, length: 0, target, metric: 0 }],
        }
    }

    #[test]
    fn an_interface_whose_name_nft_reads_otherwise_is_refused_and_keeps_no_other_from_being_used() {
        // nft(8): a string in quotation marks cannot contain one, and a star at its end stands for anything.
        for strange in ["a\"b", "wlan*"] {
            let interfaces = vec![interface(strange), interface("wlan0.7")];
            let snapshot = Snapshot { interfaces, ..Snapshot::default() };
            let chosen = choose(&[], &snapshot).expect("there is one");
            assert_eq!(chosen.iter().map(|interface| interface.name.as_str()).collect::<Vec<_>>(), ["wlan0.7"]);
            let refused = choose(&[strange.to_owned()], &snapshot).expect_err("it cannot be used");
            assert!(refused.to_string().contains("means something else to nft"), "{refused}");
        }
    }
}
