//! All steps of an attachment, in order.

use super::HostError;
use super::filter;
use super::layout::{Layout, MAX_PATHS, PRIORITY_BETWEEN};
use super::path_plan::PathPlan;
use super::rule::{Rule, Selector};
use super::snapshot::Interface;
use super::step::{Route, Step, Target, anywhere, read_setting};
use std::net::IpAddr;

/// The kernel's default metric of IPv6 routes.
pub(crate) const IPV6_METRIC: u32 = 1_024;

/// The steps to set up an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The names and numbers of the instance.
    pub layout: Layout,
    pub paths: Vec<PathPlan>,
    /// The steps, in order; they are undone in reverse.
    pub steps: Vec<Step>,
}

impl Plan {
    /// A plan without steps.
    pub fn nothing(layout: Layout) -> Self {
        Self { layout, paths: Vec::new(), steps: Vec::new() }
    }
}

/// Whether new devices have IPv6.
pub fn has_ipv6() -> bool {
    read_setting("net/ipv6/conf/default/disable_ipv6").as_deref() == Some("0")
}

/// Whether IPv6 can be forwarded on single interfaces. Otherwise the whole host becomes a router, which ignores router
/// advertisements.
fn can_forward_ipv6() -> bool {
    has_ipv6()
        && (read_setting("net/ipv6/conf/all/forwarding").as_deref() == Some("1")
            || read_setting("net/ipv6/conf/default/force_forwarding").is_some())
}

/// The stack's and the host's address on a path, for each of its families.
fn address_pairs(layout: Layout, path: &PathPlan) -> Vec<(IpAddr, IpAddr)> {
    let number = path.number;
    let mut pairs = vec![(layout.stack_ipv4(number).into(), layout.host_ipv4(number).into())];
    if path.ipv6 {
        pairs.push((layout.stack_ipv6(number).into(), layout.host_ipv6(number).into()));
    }
    pairs
}

/// The route to the stack.
fn to_stack(table: u32, stack: IpAddr, device: &str, source: Option<IpAddr>) -> Route {
    let (length, metric) = if stack.is_ipv6() { (128, IPV6_METRIC) } else { (32, 0) };
    let target = Target::Device { name: device.to_owned(), gateway: None, onlink: false, source };
    Route { table, destination: stack, length, target, metric }
}

/// Creates a path's device, adds the host's addresses, and brings it up.
pub(crate) fn device_steps(layout: Layout, path: &PathPlan) -> Vec<Step> {
    let device = &path.device;
    let mut steps = vec![Step::Device { name: device.clone(), mtu: path.mtu }];
    for (_, host) in address_pairs(layout, path) {
        steps.push(Step::Address { device: device.clone(), address: host });
    }
    steps.push(Step::Up { device: device.clone() });
    steps
}

impl Plan {
    /// Paths between the stack and programs of this host only.
    pub fn local(layout: Layout, paths: u8, mtu: u16) -> Result<Self, HostError> {
        if paths == 0 || paths > MAX_PATHS {
            return Err(HostError::NumberOfPaths);
        }
        let mut plan = Self { layout, paths: Vec::new(), steps: Vec::new() };
        for number in 0..paths {
            let device = layout.device(number);
            let path = PathPlan { number, name: device.clone(), device, mtu, ipv6: has_ipv6(), closed: [false; 2] };
            plan.steps.extend(device_steps(layout, &path));
            plan.steps.extend(own_forwarding(&path));
            for (stack, host) in address_pairs(layout, &path) {
                let (network, length) = Layout::network(stack);
                let ipv6 = stack.is_ipv6();
                let table = layout.table(number);
                plan.steps.push(Step::Route(to_stack(table, stack, &path.device, Some(host))));
                let into = Rule::new(ipv6, Selector::LocalTo(stack), Some(table));
                // Other packets from the stack are dropped, even if the host is a router.
                let out = Rule::new(ipv6, Selector::Input(path.device.clone()), None);
                let between =
                    Rule::new(ipv6, Selector::Between(network, length, stack), Some(table)).at(PRIORITY_BETWEEN);
                plan.steps.extend([Step::Rule(into), Step::Rule(between), Step::Rule(out)]);
            }
            plan.paths.push(path);
        }
        Ok(plan)
    }

    /// A path through each of these interfaces. Other hosts reach the stack on `ports` at the interfaces' addresses.
    pub fn uplinks(
        layout: Layout,
        interfaces: &[&Interface],
        ports: &[u16],
        mtu: Option<u16>,
        others: &[Step],
    ) -> Result<Self, HostError> {
        if interfaces.is_empty() || interfaces.len() > usize::from(MAX_PATHS) {
            return Err(HostError::NumberOfPaths);
        }
        let mut plan = Self { layout, paths: Vec::new(), steps: Vec::new() };
        for (number, interface) in (0..MAX_PATHS).zip(interfaces) {
            plan.paths.push(uplink_path(layout, number, interface, mtu, others));
        }
        // The filter is first, so that it applies as soon as the host forwards.
        plan.steps.push(filter_step(layout, &plan.paths, ports));
        for (path, interface) in plan.paths.iter().zip(interfaces) {
            plan.steps.extend(uplink_steps(layout, path, interface, others));
        }
        Ok(plan)
    }
}

/// The path through an uplink; `others` are steps of running instances.
pub fn uplink_path(layout: Layout, number: u8, interface: &Interface, mtu: Option<u16>, others: &[Step]) -> PathPlan {
    let name = interface.name.clone();
    let key = format!("net/ipv4/conf/{name}/forwarding");
    // Another instance may have enabled it just before.
    let shared = others.iter().any(|other| other.sets(&key));
    let closed = [
        shared || read_setting(&key).as_deref() == Some("0"),
        read_setting("net/ipv6/conf/all/forwarding").as_deref() == Some("0"),
    ];
    PathPlan {
        number,
        name,
        device: layout.device(number),
        mtu: mtu.unwrap_or_else(|| interface.mtu.clamp(1_280, 65_535) as u16),
        ipv6: can_forward_ipv6(),
        closed,
    }
}

/// The nftables table for these paths.
pub fn filter_step(layout: Layout, paths: &[PathPlan], ports: &[u16]) -> Step {
    Step::Filter { table: layout.nft_table(), text: filter::text(layout, paths, ports) }
}

/// Enables forwarding of the stack's packets. On a host that does not forward IPv6 this needs Linux 6.17.
fn own_forwarding(path: &PathPlan) -> Vec<Step> {
    let mut keys = vec![format!("net/ipv4/conf/{}/forwarding", path.device)];
    if path.ipv6 && can_forward_ipv6() && read_setting("net/ipv6/conf/all/forwarding").as_deref() != Some("1") {
        keys.push(format!("net/ipv6/conf/{}/force_forwarding", path.device));
    }
    let set = |key| Step::Setting { key, value: "1".to_owned(), before: None, unless: None };
    keys.into_iter().map(set).collect()
}

/// All steps for a path through an uplink, without the filter.
pub fn uplink_steps(layout: Layout, path: &PathPlan, interface: &Interface, others: &[Step]) -> Vec<Step> {
    let mut steps = device_steps(layout, path);
    let table = layout.table(path.number);
    steps.extend(own_forwarding(path));
    steps.extend(forwarding(path, others));
    steps.extend(
        address_pairs(layout, path)
            .into_iter()
            .map(|(stack, _)| Step::Route(to_stack(table, stack, &path.device, None))),
    );
    steps.extend(ways_out(layout, path, interface).into_iter().map(Step::Route));
    for (stack, _) in address_pairs(layout, path) {
        let ipv6 = stack.is_ipv6();
        // If the uplink has no route, a packet must not leave through another.
        let (destination, target) = (anywhere(ipv6), Target::Unreachable);
        steps.push(Step::Route(Route { table, destination, length: 0, target, metric: u32::MAX }));
        for selector in [Selector::From(stack), Selector::To(stack)] {
            steps.push(Step::Rule(Rule::new(ipv6, selector, Some(table))));
        }
    }
    steps
}

/// The settings that forward packets from an uplink to the stack, unless already set.
pub fn forwarding(path: &PathPlan, others: &[Step]) -> Vec<Step> {
    let mut wanted = vec![("net/ipv4/conf/all/forwarding", format!("net/ipv4/conf/{}/forwarding", path.name))];
    if path.ipv6 && read_setting("net/ipv6/conf/all/forwarding").as_deref() != Some("1") {
        wanted.push(("net/ipv6/conf/all/forwarding", format!("net/ipv6/conf/{}/force_forwarding", path.name)));
    }
    let mut steps = Vec::new();
    for (all, key) in wanted {
        let shared = others.iter().find(|other| other.sets(&key));
        let off = read_setting(&key).as_deref() == Some("0");
        match shared {
            // Another instance needs it too: the last one restores it.
            Some(step) => steps.push(step.clone()),
            None if off => {
                let unless = (read_setting(all).as_deref() != Some("1")).then(|| all.to_owned());
                steps.push(Step::Setting { key, value: "1".to_owned(), before: Some("0".to_owned()), unless });
            }
            None => {}
        }
    }
    steps
}

/// The main table's routes through an uplink, copied to the path's table. On-link routes come first, since the others
/// depend on them.
pub fn ways_out(layout: Layout, path: &PathPlan, interface: &Interface) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for found in &interface.routes {
        let Target::Device { name, gateway, onlink, .. } = &found.target else { continue };
        if found.destination.is_ipv6() && !path.ipv6 {
            continue;
        }
        let target = Target::Device { name: name.clone(), gateway: *gateway, onlink: *onlink, source: None };
        let route = Route { table: layout.table(path.number), target, ..found.clone() };
        let same = |known: &Route| {
            (known.destination, known.length, known.metric) == (route.destination, route.length, route.metric)
        };
        if !routes.iter().any(same) {
            routes.push(route);
        }
    }
    routes.sort_by_key(|route| matches!(route.target, Target::Device { gateway: Some(_), .. }));
    routes
}
