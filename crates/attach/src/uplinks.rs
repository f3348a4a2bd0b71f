//! Updates stack and host after changes of uplinks.

use crate::attachment::Uplinks;
use crate::barred::Barred;
use crate::lane::Lane;
use crate::uplink_choice::is_obvious;
use crate::works::Works;
use anabranch_host::{
    HostError, Interface, Layout, MAX_PATHS, Route, Setup, Snapshot, Step, Target, filter_step, forwarding,
    uplink_path, uplink_steps, ways_out,
};
use std::net::IpAddr;

/// The parameters of the task that tracks uplinks.
pub(super) struct Following {
    pub uplinks: Uplinks,
    pub layout: Layout,
    pub barred: Barred,
}

impl Following {
    /// Updates stack and host for the current state of the network.
    pub(super) fn adjust(&self, works: &mut Works) -> Result<(), HostError> {
        let snapshot = works.setup.look()?;
        let_go(works, &snapshot)?;
        if self.uplinks.interfaces.is_empty() {
            self.adopt(works, &snapshot)?;
        }
        let Works { stack, setup, paths, ids } = works;
        // If all uplinks are down they are kept: connections wait until one returns, or get a subflow on another.
        let now = |lane: &Lane| if self.barred.has(&lane.plan.name) { [None; 2] } else { public(lane, &snapshot) };
        let cut_off = paths.iter().all(|lane| now(lane) == [None; 2]);
        let mut restored = Ok(());
        for lane in paths {
            let interface = snapshot.interface(&lane.plan.name);
            let index = interface.map(|interface| interface.index);
            let made_anew = index.is_some() && lane.index.is_some() && index != lane.index;
            let public = if cut_off { lane.public() } else { now(lane) };
            // Addresses of uplinks that went down are removed before routes change, and new ones added after.
            for (ipv6, (known, public)) in [false, true].into_iter().zip(lane.public().into_iter().zip(public)) {
                if public != known || made_anew {
                    lane.down(stack, ipv6, ids);
                }
            }
            if made_anew {
                // A recreated interface has the kernel's default settings.
                forwarding(&lane.plan, &setup.others()).iter().try_for_each(|step| setup.carry_out(step))?;
            }
            lane.index = index.or(lane.index);
            let wanted = interface.map(|interface| ways_out(self.layout, &lane.plan, interface)).unwrap_or_default();
            replace_routes(setup, self.layout.table(lane.plan.number), &snapshot, &wanted)?;
            if let Some(interface) = interface {
                // Where that fails, as with IPv6 that was switched off, uplinks are followed nevertheless.
                restored = restored.and(restore(setup, &uplink_steps(self.layout, &lane.plan, interface, &[])));
            }
            for (ipv6, (known, public)) in [false, true].into_iter().zip(lane.public().into_iter().zip(public)) {
                if let Some(public) = public.filter(|public| known != Some(*public)) {
                    lane.up(stack, self.layout, ipv6, public, ids);
                }
            }
        }
        restored
    }

    /// Adds a path for an interface that has a default route now.
    fn adopt(&self, works: &mut Works, snapshot: &Snapshot) -> Result<(), HostError> {
        let known = |works: &Works, name: &str| works.paths.iter().any(|lane| lane.plan.name == name);
        let new = snapshot.interfaces.iter().filter(|interface| is_obvious(interface));
        let new: Vec<&Interface> = new.filter(|interface| !known(works, &interface.name)).collect();
        for interface in new {
            let Some(number) = (0..MAX_PATHS).find(|n| works.paths.iter().all(|lane| lane.plan.number != *n)) else {
                self.take_over(works, snapshot, interface)?;
                continue;
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

impl Following {
    /// Gives an interface the path of one that is gone, if there is one. Its routes and addresses follow.
    fn take_over(&self, works: &mut Works, snapshot: &Snapshot, interface: &Interface) -> Result<(), HostError> {
        let is_gone = |lane: &&mut Lane| snapshot.interface(&lane.plan.name).is_none();
        let Works { stack, setup, paths, ids } = works;
        let Some(lane) = paths.iter_mut().find(is_gone) else { return Ok(()) };
        [false, true].into_iter().for_each(|ipv6| lane.down(stack, ipv6, ids));
        let others = setup.others();
        // The device stays as it is.
        lane.plan = uplink_path(self.layout, lane.plan.number, interface, Some(lane.plan.mtu), &others);
        lane.index = None;
        let plan = lane.plan.clone();
        let all: Vec<_> = paths.iter().map(|lane| lane.plan.clone()).collect();
        setup.replace_filter(&filter_step(self.layout, &all, &self.uplinks.ports))?;
        forwarding(&plan, &others).iter().try_for_each(|step| setup.carry_out(step))
    }
}

/// No interface has this index.
const NONE: u32 = 0;

/// Interfaces that were renamed do not forward for us any more. They may be adopted as others.
fn let_go(works: &mut Works, snapshot: &Snapshot) -> Result<(), HostError> {
    for lane in &mut works.paths {
        let now = snapshot.interfaces.iter().find(|interface| Some(interface.index) == lane.index);
        if let Some(now) = now.filter(|now| now.name != lane.plan.name) {
            works.setup.follow_rename(&lane.plan.name, &now.name)?;
            // If the name comes back, its interface is made ready again.
            lane.index = Some(NONE);
        }
    }
    Ok(())
}

/// The public addresses of a path, IPv4 and IPv6; `None` if unusable.
fn public(lane: &Lane, snapshot: &Snapshot) -> [Option<IpAddr>; 2] {
    let interface = snapshot.interface(&lane.plan.name);
    [false, true].map(|ipv6| {
        let usable = interface.filter(|_| !ipv6 || lane.plan.ipv6);
        usable.and_then(|interface| interface.public(ipv6))
    })
}

/// Restores what does not depend on an uplink's state, if another program has removed it.
fn restore(setup: &mut Setup, steps: &[Step]) -> Result<(), HostError> {
    setup.restore(steps.iter().filter(|step| !matches!(step, Step::Route(route) if leads_out(route)))).outcome
}

/// Whether a route leads through an interface that is not ours.
fn leads_out(route: &Route) -> bool {
    match &route.target {
        Target::Device { name, .. } => Layout::of_device(name).is_none(),
        Target::Unreachable => false,
    }
}

/// Replaces the routes through an uplink. Other routes in the table stay.
fn replace_routes(setup: &mut Setup, table: u32, snapshot: &Snapshot, wanted: &[Route]) -> Result<(), HostError> {
    let there = snapshot.ours.iter().filter(|route| route.table == table);
    let there: Vec<&Route> = there.filter(|route| leads_out(route)).collect();
    there
        .iter()
        .filter(|route| !wanted.contains(route))
        .try_for_each(|route| setup.remove(&Step::Route((*route).clone())))?;
    let new = wanted.iter().filter(|route| !there.contains(route));
    new.map(|route| Step::Route(route.clone())).try_for_each(|step| setup.carry_out(&step))
}
