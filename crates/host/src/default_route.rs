//! The host's default route, led into a device of ours: which packets go there, and which keep the host's own routes.
//!
//! The main table is not changed, and what is an exception takes the way that the host's own rules say. A table of ours has a default route by the device, and rules lead there what has nowhere better
//! to go. When the device goes, its routes go with it, the table is empty, and everything is as it was.

use super::error::HostError;
use super::filter;
use super::layout::Layout;
use super::path_plan::PathPlan;
use super::plan::{IPV6_METRIC, Plan, device_steps, forwarding, uplink_path};
use super::rule::{Instead, MAIN, Rule, Selector, Transport};
use super::setup::Prospect;
use super::snapshot::{Interface, Snapshot};
use super::step::{Route, Step, Target, anywhere, read_setting};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// Priorities of the rules, after those of the stack's own paths (198).
mod priority {
    /// To the server: never into what leads to it.
    pub const SERVER: u32 = 199;
    /// Of sockets that are bound to an uplink.
    pub const BOUND: u32 = 200;
    /// From an address of the host's own: connections that began before, and programs that chose it.
    pub const FROM: u32 = 201;
    /// To all on a link.
    pub const LINK: u32 = 202;
    /// DNS, wherever it is asked.
    pub const DNS: u32 = 203;
    /// By any of the host's routes but a default one.
    pub const SPECIFIC: u32 = 204;
    /// Everything else.
    pub const REST: u32 = 205;
    /// Where the host's own rules begin.
    pub const HOST: u32 = 206;
}

/// The port of DNS (RFC 1035, section 4.2).
const DNS: u16 = 53;

/// What becomes of IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ipv6 {
    /// It goes where IPv4 goes.
    Carried,
    /// The far end has none: whoever wants to send it is told at once that there is no route.
    Refused,
}

/// What is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefaultRoute {
    /// The uplinks; if none is named, all interfaces with a default route of their own.
    pub uplinks: Vec<String>,
    /// The server's addresses.
    pub servers: Vec<IpAddr>,
    /// Interfaces from which forwarded packets take the same way.
    pub gateways: Vec<String>,
    /// Without the device nothing leaves by a default route of the host's own.
    pub kill_switch: bool,
    /// Largest packet, bytes of IP.
    pub mtu: u16,
    /// What becomes of IPv6.
    pub ipv6: Ipv6,
}

/// Whether this kernel speaks IPv6 anywhere: then it must not go past us.
fn has_ipv6() -> bool {
    read_setting("net/ipv6/conf/all/disable_ipv6").is_some()
}

/// The last port before those that the kernel gives to who asks for none.
fn last_port_of_services() -> u16 {
    let range = read_setting("net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    first.unwrap_or(32_768_u16).saturating_sub(1).max(1)
}

/// The families that there are.
fn families() -> Vec<bool> {
    if has_ipv6() { vec![false, true] } else { vec![false] }
}

/// The host's address on the device.
fn host(layout: Layout, ipv6: bool) -> IpAddr {
    if ipv6 { layout.host_ipv6(0).into() } else { layout.host_ipv4(0).into() }
}

/// What keeps the host's own routes, and its own rules about them.
fn keeps(ipv6: bool, selector: Selector, priority: u32) -> Rule {
    Rule { priority, instead: Some(Instead::Goto(priority::HOST)), ..Rule::new(ipv6, selector, None) }
}

fn is_ours(interface: &Interface) -> bool {
    interface.loopback || Layout::of_device(&interface.name).is_some()
}

impl DefaultRoute {
    /// Whether the program `nft` is needed.
    pub fn needs_filter(&self) -> bool {
        !self.gateways.is_empty() || (self.ipv6 == Ipv6::Refused && has_ipv6())
    }

    /// All steps, in order: the exceptions are there before the rule that they are exceptions of.
    ///
    /// # Errors
    /// If a gateway's interface is not there, or is an uplink.
    pub fn plan(&self, prospect: &Prospect) -> Result<Plan, HostError> {
        let Prospect { layout, snapshot, others } = prospect;
        let device = layout.device(0);
        let path = PathPlan {
            number: 0,
            name: device.clone(),
            device: device.clone(),
            mtu: self.mtu,
            ipv6: has_ipv6(),
            closed: [false; 2],
        };
        let gateways = self.gateways(*layout, snapshot, others)?;
        let mut steps = Vec::new();
        if self.needs_filter() {
            let text = filter::default_route(*layout, &device, &gateways, self.ipv6 == Ipv6::Refused);
            steps.push(Step::Filter { table: layout.nft_table(), text });
        }
        steps.extend(device_steps(*layout, &path));
        if has_ipv6() && read_setting("net/ipv6/conf/default/disable_ipv6").as_deref() == Some("1") {
            // Before its address.
            let key = format!("net/ipv6/conf/{device}/disable_ipv6");
            let setting = Step::Setting { key, value: "0".to_owned(), before: None, unless: None };
            let at = steps.iter().position(|step| matches!(step, Step::Address { .. })).unwrap_or(steps.len());
            steps.insert(at, setting);
        }
        steps.extend(self.gateway_steps(&device, &gateways, others));
        steps.extend(self.routes(*layout, &device).into_iter().map(Step::Route));
        let end = |ipv6| {
            let rule = Rule::new(ipv6, Selector::All, None);
            Rule { priority: priority::HOST, instead: Some(Instead::Nothing), ..rule }
        };
        let rules = families().into_iter().map(end).chain(self.exceptions(snapshot)).chain(self.rules(*layout));
        steps.extend(rules.map(Step::Rule));
        Ok(Plan { layout: *layout, paths: vec![path], steps })
    }

    fn gateways(&self, layout: Layout, snapshot: &Snapshot, others: &[Step]) -> Result<Vec<PathPlan>, HostError> {
        let mut plans = Vec::new();
        for name in &self.gateways {
            let refused = |reason| HostError::NotAGateway { name: name.clone(), reason };
            let interface = snapshot.interface(name).ok_or_else(|| refused("there is no such interface"))?;
            if is_ours(interface) {
                return Err(refused("nobody else is behind it"));
            }
            if self.uplinks.contains(name) || (self.uplinks.is_empty() && interface.has_default_route()) {
                return Err(refused("it is an uplink: name the uplinks with --uplink"));
            }
            plans.push(uplink_path(layout, 0, interface, None, others));
        }
        Ok(plans)
    }

    /// What comes from a gateway's interface is forwarded to the device, and what comes from that back.
    fn gateway_steps(&self, device: &str, gateways: &[PathPlan], others: &[Step]) -> Vec<Step> {
        let Some(any) = gateways.first() else { return Vec::new() };
        let mut own = vec![format!("net/ipv4/conf/{device}/forwarding")];
        if any.ipv6 && read_setting("net/ipv6/conf/all/forwarding").as_deref() != Some("1") {
            own.push(format!("net/ipv6/conf/{device}/force_forwarding"));
        }
        let own = own.into_iter().map(|key| Step::Setting { key, value: "1".to_owned(), before: None, unless: None });
        own.chain(gateways.iter().flat_map(|path| forwarding(path, others))).collect()
    }

    /// The routes of our table.
    fn routes(&self, layout: Layout, device: &str) -> Vec<Route> {
        let mut routes = Vec::new();
        for ipv6 in families() {
            let (table, destination) = (layout.table(0), anywhere(ipv6));
            let to = |target, metric| Route { table, destination, length: 0, target, metric };
            if self.kill_switch {
                routes.push(to(Target::Unreachable, u32::MAX));
            }
            let (name, source) = (device.to_owned(), Some(host(layout, ipv6)));
            let device = Target::Device { name, gateway: None, onlink: false, source };
            routes.push(to(device, if ipv6 { IPV6_METRIC } else { 0 }));
        }
        routes
    }

    /// The rules that follow the host's interfaces and the server's addresses: what keeps the host's own routes.
    pub fn exceptions(&self, snapshot: &Snapshot) -> Vec<Rule> {
        let servers: BTreeSet<IpAddr> = self.servers.iter().copied().collect();
        let servers = servers.into_iter().filter(|server| !server.is_loopback());
        let mut rules: Vec<Rule> =
            servers.map(|server| keeps(server.is_ipv6(), Selector::To(server), priority::SERVER)).collect();
        let bound = |name: &String| {
            let name = name.clone();
            families().into_iter().map(move |ipv6| keeps(ipv6, Selector::Output(name.clone()), priority::BOUND))
        };
        rules.extend(self.names_of_uplinks(snapshot).iter().flat_map(bound));
        let interfaces = snapshot.interfaces.iter().filter(|interface| !is_ours(interface));
        let addresses: BTreeSet<IpAddr> = interfaces.flat_map(|interface| interface.held.iter().copied()).collect();
        for address in addresses {
            let mut from = |selector| rules.push(keeps(address.is_ipv6(), selector, priority::FROM));
            if address.is_ipv6() && self.kill_switch {
                // Where there is no route, IPv6 tries once more with an address that it chooses (`ip6_dst_lookup_tail`), as if it
                // had been bound to it: that must not be a way out. Who is answered from a port of a service has begun himself.
                let last = last_port_of_services();
                for transport in [Transport::Udp, Transport::Tcp] {
                    from(Selector::Served(address, transport, last));
                }
            } else {
                from(Selector::From(address));
            }
        }
        rules
    }

    fn names_of_uplinks(&self, snapshot: &Snapshot) -> Vec<String> {
        if !self.uplinks.is_empty() {
            return self.uplinks.clone();
        }
        let theirs = snapshot.interfaces.iter().filter(|interface| !is_ours(interface));
        theirs.filter(|interface| interface.has_default_route()).map(|interface| interface.name.clone()).collect()
    }

    /// The rules that stay the same.
    fn rules(&self, layout: Layout) -> Vec<Rule> {
        let table = layout.table(0);
        let to = |ipv6, selector, table, priority| Rule { priority, ..Rule::new(ipv6, selector, Some(table)) };
        // IPv6 has its multicast routes among the kernel's own addresses.
        let mut rules: Vec<Rule> = [(Ipv4Addr::new(224, 0, 0, 0), 4), (Ipv4Addr::BROADCAST, 32)]
            .map(|(all, length)| keeps(false, Selector::Network(all.into(), length), priority::LINK))
            .to_vec();
        let inputs: Vec<String> = std::iter::once("lo".to_owned()).chain(self.gateways.iter().cloned()).collect();
        for ipv6 in families() {
            for input in &inputs {
                for transport in [Transport::Udp, Transport::Tcp] {
                    rules.push(to(ipv6, Selector::Port(input.clone(), transport, DNS), table, priority::DNS));
                }
            }
            // Connections that have the device's address keep it while nothing new begins.
            rules.push(to(ipv6, Selector::From(host(layout, ipv6)), table, priority::FROM));
            rules.push(Rule { but_default: true, ..to(ipv6, Selector::All, MAIN, priority::SPECIFIC) });
            rules.extend(inputs.iter().map(|input| to(ipv6, Selector::Input(input.clone()), table, priority::REST)));
        }
        rules
    }
}

/// Whether a step leads packets that were not meant for it into a device of ours.
pub fn leads_the_default_route(step: &Step) -> bool {
    matches!(step, Step::Rule(Rule { priority: priority::REST | priority::DNS, .. }))
}
