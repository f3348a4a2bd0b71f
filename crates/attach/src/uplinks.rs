//! Which interfaces are uplinks, and how stack and host are adjusted to what becomes of them.

use super::{HostError, Uplinks, Works};
use anabranch_host::{
    Interface, Layout, MAX_PATHS, Route, Setup, Snapshot, Step, Target, filter_step, forwarding, uplink_path,
    uplink_steps, ways_out,
};

/// What is followed.
pub(super) struct Following {
    pub uplinks: Uplinks,
    pub layout: Layout,
}

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

/// An interface that is used unasked.
fn is_obvious(interface: &Interface) -> bool {
    unfit(interface).is_none() && interface.has_default_route()
}

/// The interfaces of these names, or the obvious ones.
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
    // One that is down may come up later; but there must be something to begin with, and some never will.
    let never = chosen.iter().find(|interface| interface.loopback || Layout::of_device(&interface.name).is_some());
    let none = if chosen.iter().any(|interface| unfit(interface).is_none()) { None } else { chosen.first() };
    match never.or(none).and_then(|interface| Some((interface, unfit(interface)?))) {
        Some((interface, reason)) => Err(HostError::NotAnUplink { name: interface.name.clone(), reason }),
        None => Ok(chosen),
    }
}

impl Following {
    /// Brings stack and host in line with what the network looks like now.
    pub(super) fn adjust(&self, works: &mut Works) -> Result<(), HostError> {
        let snapshot = works.setup.look()?;
        if self.uplinks.interfaces.is_empty() {
            self.adopt(works, &snapshot)?;
        }
        let Works { stack, setup, paths, ids } = works;
        for lane in paths {
            let interface = snapshot.interface(&lane.plan.name);
            let index = interface.map(|interface| interface.index);
            let made_anew = index.is_some() && lane.index.is_some() && index != lane.index;
            let public = [false, true].map(|ipv6| {
                let usable = interface.filter(|_| !ipv6 || lane.plan.ipv6);
                usable.and_then(|interface| interface.public(ipv6))
            });
            // What cannot be used any more goes first, what can be used comes last: between them there is no way out.
            for (ipv6, (known, public)) in [false, true].into_iter().zip(lane.public().into_iter().zip(public)) {
                if public != known || made_anew {
                    lane.down(stack, ipv6, ids);
                }
            }
            if made_anew {
                // A new interface has the kernel's settings, not ours.
                forwarding(&lane.plan, &setup.others()).iter().try_for_each(|step| setup.carry_out(step))?;
            }
            lane.index = index.or(lane.index);
            let wanted = interface.map(|interface| ways_out(self.layout, &lane.plan, interface)).unwrap_or_default();
            replace_routes(setup, self.layout.table(lane.plan.number), &snapshot, &wanted)?;
            for (ipv6, (known, public)) in [false, true].into_iter().zip(lane.public().into_iter().zip(public)) {
                if let Some(public) = public.filter(|public| known != Some(*public)) {
                    lane.up(stack, self.layout, ipv6, public, ids);
                }
            }
        }
        Ok(())
    }

    /// Uses an interface that has a default route now.
    fn adopt(&self, works: &mut Works, snapshot: &Snapshot) -> Result<(), HostError> {
        let known = |works: &Works, name: &str| works.paths.iter().any(|lane| lane.plan.name == name);
        let new = snapshot.interfaces.iter().filter(|interface| is_obvious(interface));
        let new: Vec<&Interface> = new.filter(|interface| !known(works, &interface.name)).collect();
        for interface in new {
            let Some(number) = (0..MAX_PATHS).find(|n| works.paths.iter().all(|lane| lane.plan.number != *n)) else {
                break;
            };
            let others = works.setup.others();
            let plan = uplink_path(self.layout, number, interface, self.uplinks.options.mtu, &others);
            let mut all: Vec<_> = works.paths.iter().map(|lane| lane.plan.clone()).collect();
            all.push(plan.clone());
            works.setup.replace_filter(&filter_step(self.layout, &all, &self.uplinks.ports))?;
            for step in uplink_steps(self.layout, &plan, interface, &others) {
                works.carry_out(&step, std::slice::from_ref(&plan))?;
            }
        }
        Ok(())
    }
}

/// Makes the routes that lead out by an uplink those that are wanted, and leaves the others in the table alone.
fn replace_routes(setup: &mut Setup, table: u32, snapshot: &Snapshot, wanted: &[Route]) -> Result<(), HostError> {
    let leads_out = |route: &&Route| match &route.target {
        Target::Device { name, .. } => Layout::of_device(name).is_none(),
        Target::Unreachable => false,
    };
    let there: Vec<&Route> = snapshot.ours.iter().filter(|route| route.table == table).filter(leads_out).collect();
    there.iter().filter(|route| !wanted.contains(route)).try_for_each(|route| setup.remove(route))?;
    let new = wanted.iter().filter(|route| !there.contains(route));
    new.map(|route| Step::Route(route.clone())).try_for_each(|step| setup.carry_out(&step))
}
