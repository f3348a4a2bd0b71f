//! Routes the host's default traffic into a device of ours, with exceptions that keep the host's own routes.
//!
//! The main table is not changed, and exceptions follow the host's own rules. Our table has a default route through the
//! device, and our rules send the remaining traffic to it. When the device disappears, its routes do too; the table is
//! then empty and has no effect.

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
    /// To the server: never into the device whose traffic goes to it.
    pub const SERVER: u32 = 199;
    /// From sockets bound to an uplink.
    pub const BOUND: u32 = 200;
    /// From the host's own addresses: older connections, and programs that chose the address.
    pub const FROM: u32 = 201;
    /// To multicast and broadcast destinations.
    pub const LINK: u32 = 202;
    /// DNS over IPv6 from the ports of services, with a kill switch.
    pub const DNS_OF_SERVICES: u32 = 202;
    /// DNS, whatever the resolver.
    pub const DNS: u32 = 203;
    /// By the host's routes other than default routes.
    pub const SPECIFIC: u32 = 204;
    /// Everything else.
    pub const REST: u32 = 205;
    /// Where the host's own rules begin.
    pub const HOST: u32 = 206;
}

/// The path whose device, addresses and table belong to the sink of a kill switch.
const SINK: u8 = 1;

/// The DNS port (RFC 1035, section 4.2).
const DNS: u16 = 53;

/// How IPv6 is handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ipv6 {
    /// Routed like IPv4.
    Carried,
    /// The server has no IPv6: senders at once get an error that there is no route.
    Refused,
}

/// Settings of the default route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefaultRoute {
    /// The uplinks; if empty, all interfaces with a default route of their own.
    pub uplinks: Vec<String>,
    /// The server's addresses.
    pub servers: Vec<IpAddr>,
    /// Interfaces whose forwarded packets use the same route.
    pub gateways: Vec<String>,
    /// Without the device, nothing leaves by the host's own default routes.
    pub kill_switch: bool,
    /// MTU in bytes of IP.
    pub mtu: u16,
    pub ipv6: Ipv6,
}

/// Whether the kernel has IPv6 at all: then IPv6 must not bypass the device.
fn has_ipv6() -> bool {
    read_setting("net/ipv6/conf/all/disable_ipv6").is_some()
}

/// The last port below the kernel's ephemeral ports.
fn last_port_of_services() -> u16 {
    let range = read_setting("net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    first.unwrap_or(32_768_u16).saturating_sub(1).max(1)
}

/// The address families of the kernel; true is IPv6.
fn families() -> Vec<bool> {
    if has_ipv6() { vec![false, true] } else { vec![false] }
}

/// The host's address on the device.
fn host(layout: Layout, ipv6: bool) -> IpAddr {
    if ipv6 { layout.host_ipv6(0).into() } else { layout.host_ipv4(0).into() }
}

/// A rule that sends packets to the host's own rules.
fn keeps(ipv6: bool, selector: Selector, priority: u32) -> Rule {
    Rule { priority, instead: Some(Instead::Goto(priority::HOST)), ..Rule::new(ipv6, selector, None) }
}

fn is_ours(interface: &Interface) -> bool {
    interface.loopback || Layout::of_device(&interface.name).is_some()
}

impl DefaultRoute {
    pub fn needs_filter(&self) -> bool {
        !self.gateways.is_empty() || (self.ipv6 == Ipv6::Refused && has_ipv6())
    }

    /// All steps, in order: exceptions are set up before the rule for everything else.
    ///
    /// # Errors
    /// If a gateway's interface does not exist, or is an uplink.
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
        if self.needs_sink() {
            let sink = layout.device(SINK);
            steps.push(Step::Sink { name: sink.clone() });
            steps.push(Step::Address { device: sink.clone(), address: layout.host_ipv6(SINK).into() });
            steps.push(Step::Up { device: sink });
        }
        if has_ipv6() && read_setting("net/ipv6/conf/default/disable_ipv6").as_deref() == Some("1") {
            for name in [&device, &layout.device(SINK)] {
                // Must be set before the device has an address.
                let first = |step: &Step| matches!(step, Step::Address { device, .. } if device == name);
                let Some(at) = steps.iter().position(first) else { continue };
                let key = format!("net/ipv6/conf/{name}/disable_ipv6");
                steps.insert(at, Step::Setting { key, value: "0".to_owned(), before: None, unless: None });
            }
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

    /// Forwards packets from a gateway's interface to the device, and those from the device back.
    fn gateway_steps(&self, device: &str, gateways: &[PathPlan], others: &[Step]) -> Vec<Step> {
        let Some(any) = gateways.first() else { return Vec::new() };
        let mut own = vec![format!("net/ipv4/conf/{device}/forwarding")];
        if any.ipv6 && read_setting("net/ipv6/conf/all/forwarding").as_deref() != Some("1") {
            own.push(format!("net/ipv6/conf/{device}/force_forwarding"));
        }
        let own = own.into_iter().map(|key| Step::Setting { key, value: "1".to_owned(), before: None, unless: None });
        own.chain(gateways.iter().flat_map(|path| forwarding(path, others))).collect()
    }

    /// Whether what is sent over IPv6 from the ports of services must have a route when the device is gone: without one, the
    /// kernel retries with an address of the host's own, from which those ports keep the host's routes.
    fn needs_sink(&self) -> bool {
        self.kill_switch && has_ipv6()
    }

    /// The routes of our tables.
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
            routes.push(to(device.clone(), if ipv6 { IPV6_METRIC } else { 0 }));
            if ipv6 && self.needs_sink() {
                let table = layout.table(SINK);
                let by = |target, metric| Route { table, destination, length: 0, target, metric };
                let (name, source) = (layout.device(SINK), Some(layout.host_ipv6(SINK).into()));
                let sink = Target::Device { name, gateway: None, onlink: false, source };
                routes.extend([by(sink, u32::MAX), by(device, IPV6_METRIC)]);
            }
        }
        routes
    }

    /// The rules for exceptions, which depend on the host's interfaces and the server's addresses.
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
                // Without a route, IPv6 retries with a source address that it chooses (`ip6_dst_lookup_tail`), as if
                // the socket were bound to it: such packets must not leave. Packets from the port of a service answer a
                // connection from outside.
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
            // One may be named twice.
            return self.uplinks.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
        }
        let theirs = snapshot.interfaces.iter().filter(|interface| !is_ours(interface));
        theirs.filter(|interface| interface.has_default_route()).map(|interface| interface.name.clone()).collect()
    }

    /// The rules that do not depend on interfaces or addresses.
    fn rules(&self, layout: Layout) -> Vec<Rule> {
        let table = layout.table(0);
        let to = |ipv6, selector, table, priority| Rule { priority, ..Rule::new(ipv6, selector, Some(table)) };
        // The kernel keeps its IPv6 multicast routes in the local table.
        let mut rules: Vec<Rule> = [(Ipv4Addr::new(224, 0, 0, 0), 4), (Ipv4Addr::BROADCAST, 32)]
            .map(|(all, length)| keeps(false, Selector::Network(all.into(), length), priority::LINK))
            .to_vec();
        let inputs: Vec<String> = std::iter::once("lo".to_owned()).chain(self.gateways.iter().cloned()).collect();
        for ipv6 in families() {
            if ipv6 && self.needs_sink() {
                // Before the rules for all ports.
                let last = last_port_of_services();
                let low = |transport, to| Selector::LowPort("lo".to_owned(), transport, last, to);
                for transport in [Transport::Udp, Transport::Tcp] {
                    let sink = layout.table(SINK);
                    rules.push(to(ipv6, low(transport, Some(DNS)), sink, priority::DNS_OF_SERVICES));
                    rules.push(to(ipv6, low(transport, None), sink, priority::REST));
                }
            }
            for input in &inputs {
                for transport in [Transport::Udp, Transport::Tcp] {
                    rules.push(to(ipv6, Selector::Port(input.clone(), transport, DNS), table, priority::DNS));
                }
            }
            // Connections from the device's address keep using it while new ones avoid it.
            rules.push(to(ipv6, Selector::From(host(layout, ipv6)), table, priority::FROM));
            rules.push(Rule { but_default: true, ..to(ipv6, Selector::All, MAIN, priority::SPECIFIC) });
            rules.extend(inputs.iter().map(|input| to(ipv6, Selector::Input(input.clone()), table, priority::REST)));
        }
        rules
    }
}

/// Whether a step routes packets to other destinations into a device of ours.
pub fn leads_the_default_route(step: &Step) -> bool {
    matches!(step, Step::Rule(Rule { priority: priority::REST | priority::DNS, .. }))
}
