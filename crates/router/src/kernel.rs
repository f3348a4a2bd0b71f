//! Synchronises the kernel's routing table with the router's: multipath routes with weights, and the rules for the
//! table. All have our protocol number, by which leftovers are found.

use super::ground::Network;
use anabranch_host::Netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteNextHop, RouteNextHopFlags, RouteProtocol,
    RouteScope, RouteType, RouteVia,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The protocol number of our routes and rules (`ip route show proto 199`).
pub const PROTOCOL: u8 = 199;

/// The default routing table.
pub const TABLE: u32 = 199;

/// The kernel's main table.
pub const MAIN_TABLE: u32 = RouteHeader::RT_TABLE_MAIN as u32;

/// The metric of our routes in every table.
pub(super) const METRIC: u32 = 199;

/// Priority of the rule for all but default routes. It precedes the main table: otherwise the main table's route to a
/// network of the mesh would hide our route to a host in it.
const SPECIFIC_PRIORITY: u32 = 199;

/// Priority of the rule for default routes. It follows the main table (32766), so that the host's own default route is
/// preferred to one of the mesh.
const DEFAULT_PRIORITY: u32 = 32_768;

/// Most next hops of a route.
const MAX_NEXT_HOPS: usize = 64;

/// A next hop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Way {
    /// The kernel's index of the interface.
    pub interface: u32,
    /// The neighbour: its link-local address, or for IPv4 perhaps one of its IPv4 addresses.
    pub gateway: IpAddr,
    /// Its share of the flows relative to the other next hops, 1 to 256.
    pub weight: u16,
}

/// The next hops to each network; none: the kernel goes on to the next table.
pub(super) type Table = BTreeMap<Network, BTreeSet<Way>>;

/// The result of an update of the kernel's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Applied {
    pub set: u64,
    pub removed: u64,
    /// Changes that the kernel refused; the next update repeats them.
    pub refused: u64,
    /// Routes and rules set again that another program had removed or changed.
    pub restored: u64,
}

/// Our routes in one of the kernel's tables.
pub(super) struct KernelTable {
    netlink: Netlink,
    table: u32,
    installed: Table,
    /// The families whose rules were set: whether it is IPv6.
    ruled: BTreeSet<bool>,
}

impl KernelTable {
    /// Takes over a table, and removes routes of a killed predecessor.
    pub(super) fn open(netlink: Netlink, table: u32) -> io::Result<Self> {
        let mut kernel = Self { netlink, table, installed: Table::new(), ruled: BTreeSet::new() };
        kernel.purge()?;
        Ok(kernel)
    }

    /// Adds the rules for the table; the main table needs none.
    pub(super) fn set_rules(&mut self, ipv6: bool) -> io::Result<()> {
        if self.table == MAIN_TABLE {
            return Ok(());
        }
        for message in rules(self.table, ipv6) {
            self.netlink.change(RouteNetlinkMessage::NewRule(message), NLM_F_CREATE | NLM_F_EXCL)?;
        }
        self.ruled.insert(ipv6);
        Ok(())
    }

    /// Sets the rules again that another program has removed. Returns their number.
    pub(super) fn repair_rules(&mut self) -> io::Result<u64> {
        let found: Vec<(AddressFamily, u32)> = self.list_rules()?.iter().filter_map(place_of).collect();
        let wanted = self.ruled.iter().flat_map(|ipv6| rules(self.table, *ipv6));
        let missing: Vec<_> = wanted.filter(|rule| place_of(rule).is_some_and(|at| !found.contains(&at))).collect();
        for message in &missing {
            self.netlink.change(RouteNetlinkMessage::NewRule(message.clone()), NLM_F_CREATE)?;
        }
        Ok(missing.len() as u64)
    }

    /// Updates the kernel's routes, of which `lost` were removed or changed by others. Refused changes are counted, and not
    /// recorded as installed.
    pub(super) fn apply(&mut self, wanted: &Table, lost: &BTreeSet<Network>) -> Applied {
        let mut applied = Applied::default();
        let gone: Vec<Network> =
            self.installed.keys().filter(|network| !wanted.contains_key(*network)).copied().collect();
        for network in gone {
            if let Some(ways) = self.installed.remove(&network) {
                let message = self.message(network, &ways);
                match self.netlink.change(RouteNetlinkMessage::DelRoute(message), 0) {
                    Err(error) if !is_gone(&error) => applied.refused += 1,
                    _ => applied.removed += 1,
                }
            }
        }
        for (network, ways) in wanted {
            let ways = &as_shown(ways);
            if self.installed.get(network) == Some(ways) {
                continue;
            }
            let message = self.message(*network, ways);
            match self.netlink.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE) {
                Ok(()) => {
                    applied.set += 1;
                    applied.restored += u64::from(lost.contains(network));
                    self.installed.insert(*network, ways.clone());
                }
                Err(_) => applied.refused += 1,
            }
        }
        applied
    }

    /// The installed routes.
    pub(super) fn installed(&self) -> &Table {
        &self.installed
    }

    /// Reads which of our routes the kernel has. It silently removes those of an interface that goes down, and other
    /// programs remove or replace them. Returns those that are no longer as they were set.
    pub(super) fn refresh(&mut self) -> io::Result<BTreeSet<Network>> {
        let routes = self.list_routes()?;
        let found: Table = routes.iter().filter_map(|route| Some((network_of(route)?, ways_of(route)))).collect();
        let before = core::mem::replace(&mut self.installed, found);
        let as_before = |(network, ways): &(Network, BTreeSet<Way>)| self.installed.get(network) == Some(ways);
        Ok(before.into_iter().filter(|route| !as_before(route)).map(|(network, _)| network).collect())
    }

    /// Removes all routes and rules of ours for this table.
    pub(super) fn purge(&mut self) -> io::Result<()> {
        for message in self.list_rules()? {
            ignore_gone(self.netlink.change(RouteNetlinkMessage::DelRule(message), 0))?;
        }
        for message in self.list_routes()? {
            ignore_gone(self.netlink.change(RouteNetlinkMessage::DelRoute(message), 0))?;
        }
        self.installed.clear();
        Ok(())
    }

    fn list_routes(&mut self) -> io::Result<Vec<RouteMessage>> {
        let mut found = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut request = RouteMessage::default();
            request.header.address_family = family;
            for message in self.netlink.list(&RouteNetlinkMessage::GetRoute(request))? {
                if let RouteNetlinkMessage::NewRoute(message) = message
                    && message.header.protocol == RouteProtocol::Other(PROTOCOL)
                    && table_of(&message) == self.table
                {
                    found.push(message);
                }
            }
        }
        Ok(found)
    }

    fn list_rules(&mut self) -> io::Result<Vec<RuleMessage>> {
        let mut found = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut request = RuleMessage::default();
            request.header.family = family;
            for message in self.netlink.list(&RouteNetlinkMessage::GetRule(request))? {
                if let RouteNetlinkMessage::NewRule(message) = message {
                    let ours = RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL));
                    let here = RuleAttribute::Table(self.table);
                    if message.attributes.contains(&ours) && message.attributes.contains(&here) {
                        found.push(message);
                    }
                }
            }
        }
        Ok(found)
    }

    fn message(&self, network: Network, ways: &BTreeSet<Way>) -> RouteMessage {
        let ipv6 = network.address.is_ipv6();
        let mut message = RouteMessage::default();
        message.header.address_family = family(ipv6);
        message.header.destination_prefix_length = network.length;
        message.header.protocol = RouteProtocol::Other(PROTOCOL);
        message.header.kind = RouteType::Unicast;
        message.header.scope = RouteScope::Universe;
        let attributes = &mut message.attributes;
        attributes.push(RouteAttribute::Table(self.table));
        attributes.push(RouteAttribute::Priority(METRIC));
        if network.length > 0 {
            attributes.push(RouteAttribute::Destination(network.address.into()));
        }
        let hops: Vec<RouteNextHop> = ways.iter().take(MAX_NEXT_HOPS).map(|way| hop(*way, ipv6)).collect();
        match hops.as_slice() {
            [] => message.header.kind = RouteType::Throw,
            [only] => {
                attributes.push(RouteAttribute::Oif(only.interface_index));
                attributes.extend(only.attributes.iter().cloned());
                message.header.flags |= netlink_packet_route::route::RouteFlags::Onlink;
            }
            _ => attributes.push(RouteAttribute::MultiPath(hops)),
        }
        message
    }
}

impl Drop for KernelTable {
    fn drop(&mut self) {
        // A destructor cannot report errors.
        let _ = self.purge();
    }
}

/// On-link, since the neighbour is on the link whatever the host's own networks are.
fn hop(way: Way, ipv6: bool) -> RouteNextHop {
    let mut hop = RouteNextHop::default();
    hop.interface_index = way.interface;
    hop.hops = u8::try_from(way.weight.clamp(1, 256) - 1).unwrap_or(u8::MAX);
    hop.flags = RouteNextHopFlags::Onlink;
    hop.attributes.push(match way.gateway {
        IpAddr::V6(gateway) if !ipv6 => RouteAttribute::Via(RouteVia::Inet6(gateway)),
        gateway => RouteAttribute::Gateway(gateway.into()),
    });
    hop
}

/// All tables with our routes or rules in this namespace, including those of an earlier instance.
pub(super) fn tables(netlink: &mut Netlink) -> io::Result<BTreeSet<u32>> {
    let mut tables = BTreeSet::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut routes = RouteMessage::default();
        routes.header.address_family = family;
        let mut rules = RuleMessage::default();
        rules.header.family = family;
        let requests = [RouteNetlinkMessage::GetRoute(routes), RouteNetlinkMessage::GetRule(rules)];
        for request in requests {
            tables.extend(netlink.list(&request)?.iter().filter_map(|message| match message {
                RouteNetlinkMessage::NewRoute(message) => {
                    (message.header.protocol == RouteProtocol::Other(PROTOCOL)).then(|| table_of(message))
                }
                RouteNetlinkMessage::NewRule(message) => {
                    let ours = RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL));
                    let table = |attribute: &RuleAttribute| match attribute {
                        RuleAttribute::Table(table) => Some(*table),
                        _ => None,
                    };
                    message.attributes.contains(&ours).then(|| message.attributes.iter().find_map(table)).flatten()
                }
                _ => None,
            }));
        }
    }
    Ok(tables)
}

fn rules(table: u32, ipv6: bool) -> [RuleMessage; 2] {
    let rule = |priority| {
        let mut message = RuleMessage::default();
        message.header.family = family(ipv6);
        message.header.action = RuleAction::ToTable;
        message.attributes.push(RuleAttribute::Priority(priority));
        message.attributes.push(RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)));
        message.attributes.push(RuleAttribute::Table(table));
        message
    };
    let mut specific = rule(SPECIFIC_PRIORITY);
    specific.attributes.push(RuleAttribute::SuppressPrefixLen(0));
    [specific, rule(DEFAULT_PRIORITY)]
}

fn family(ipv6: bool) -> AddressFamily {
    if ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

pub(super) fn table_of(message: &RouteMessage) -> u32 {
    let attribute = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    attribute.unwrap_or(u32::from(message.header.table))
}

fn network_of(message: &RouteMessage) -> Option<Network> {
    let length = message.header.destination_prefix_length;
    let destination = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    let anywhere = match message.header.address_family {
        AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    Some(Network { address: destination.unwrap_or(anywhere), length })
}

/// The family and priority of a rule.
fn place_of(rule: &RuleMessage) -> Option<(AddressFamily, u32)> {
    rule.attributes.iter().find_map(|attribute| match attribute {
        RuleAttribute::Priority(priority) => Some((rule.header.family, *priority)),
        _ => None,
    })
}

/// Next hops as the kernel shows them: a single one has no weight, and there is a limit.
fn as_shown(ways: &BTreeSet<Way>) -> BTreeSet<Way> {
    let weight = |way: &Way| if ways.len() == 1 { 1 } else { way.weight.clamp(1, 256) };
    ways.iter().take(MAX_NEXT_HOPS).map(|way| Way { weight: weight(way), ..*way }).collect()
}

/// The next hops of a route.
fn ways_of(message: &RouteMessage) -> BTreeSet<Way> {
    let gateway = |attributes: &[RouteAttribute]| {
        attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Gateway(RouteAddress::Inet(address)) => Some(IpAddr::V4(*address)),
            RouteAttribute::Gateway(RouteAddress::Inet6(address)) | RouteAttribute::Via(RouteVia::Inet6(address)) => {
                Some(IpAddr::V6(*address))
            }
            _ => None,
        })
    };
    let mut ways = BTreeSet::new();
    let mut device = None;
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => device = Some(*index),
            RouteAttribute::MultiPath(hops) => ways.extend(hops.iter().filter_map(|hop| {
                let (interface, weight) = (hop.interface_index, u16::from(hop.hops) + 1);
                Some(Way { interface, gateway: gateway(&hop.attributes)?, weight })
            })),
            _ => {}
        }
    }
    let single = device.zip(gateway(&message.attributes));
    ways.extend(single.map(|(interface, gateway)| Way { interface, gateway, weight: 1 }));
    ways
}

/// Whether the error means that the route or rule no longer exists.
fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::ESRCH, Errno::ENOENT, Errno::ENODEV];
    error.raw_os_error().is_some_and(|number| gone.contains(&Errno::from_raw(number)))
}

fn ignore_gone(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if is_gone(&error) => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_system::Namespace;
    use std::process::Command;

    fn ip(words: &str) -> String {
        let output = Command::new("ip").args(words.split_whitespace()).output().expect("ip runs");
        assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Runs `test` in a namespace with two links whose far ends are unused, with their indices. Skipped without the
    /// privilege.
    fn with_two_links(test: impl FnOnce(u32, u32) + Send) {
        let Ok(namespace) = Namespace::new() else { return };
        let inside = || {
            let index = |name: &str| nix::net::if_::if_nametoindex(name).expect("it was made");
            for name in ["one", "two"] {
                ip(&format!("link add {name} type veth peer name far-{name}"));
                ip(&format!("link set far-{name} up"));
                ip(&format!("link set {name} up"));
            }
            ip("address add 10.9.9.1/24 dev one");
            test(index("one"), index("two"));
        };
        namespace.run(inside).expect("it can be entered");
    }

    fn network(text: &str, length: u8) -> Network {
        Network { address: text.parse().expect("an address"), length }
    }

    fn way(interface: u32, gateway: &str, weight: u16) -> Way {
        Way { interface, gateway: gateway.parse().expect("an address"), weight }
    }

    fn none() -> BTreeSet<Network> {
        BTreeSet::new()
    }

    fn open(table: u32) -> KernelTable {
        KernelTable::open(Netlink::open().expect("rtnetlink"), table).expect("the tables can be read")
    }

    #[test]
    fn ways_of_both_families_are_set_replaced_and_removed() {
        with_two_links(|one, two| {
            let mut kernel = open(TABLE);
            let (v4, v6) = (network("192.0.2.7", 32), network("2001:db8::", 32));
            let mut wanted = Table::new();
            wanted.insert(v4, [way(one, "10.9.9.2", 1), way(two, "fe80::2", 3)].into());
            wanted.insert(v6, [way(one, "fe80::3", 2), way(two, "fe80::2", 1)].into());
            assert_eq!(kernel.apply(&wanted, &none()), Applied { set: 2, removed: 0, refused: 0, restored: 0 });
            let shown = ip("route show table 199 proto 199");
            assert!(shown.contains("nexthop via 10.9.9.2 dev one weight 1 onlink"), "{shown}");
            assert!(shown.contains("nexthop via inet6 fe80::2 dev two weight 3 onlink"), "{shown}");
            let shown = ip("-6 route show table 199 proto 199");
            assert!(shown.contains("nexthop via fe80::3 dev one weight 2"), "{shown}");
            // No change.
            assert_eq!(kernel.apply(&wanted, &none()), Applied::default());
            wanted.insert(v6, [way(two, "fe80::9", 1)].into());
            wanted.remove(&v4);
            assert_eq!(kernel.apply(&wanted, &none()), Applied { set: 1, removed: 1, refused: 0, restored: 0 });
            let shown = ip("-6 route show table 199 proto 199");
            assert!(shown.starts_with("2001:db8::/32 via fe80::9 dev two metric 199"), "{shown}");
            assert!(!shown.contains("fe80::3"), "{shown}");
            assert_eq!(ip("route show table 199"), "");
        });
    }

    #[test]
    fn what_was_left_behind_is_found_by_its_number_and_what_is_not_ours_stays() {
        with_two_links(|one, _| {
            let mut killed = open(TABLE);
            let mut wanted = Table::new();
            wanted.insert(network("192.0.2.0", 24), [way(one, "10.9.9.2", 1)].into());
            wanted.insert(network("2001:db8::1", 128), [way(one, "fe80::2", 1)].into());
            killed.apply(&wanted, &none());
            killed.set_rules(true).expect("rules can be set");
            killed.set_rules(false).expect("rules can be set");
            std::mem::forget(killed);
            ip("route add 198.51.100.0/24 dev one table 199");
            assert_eq!(tables(&mut Netlink::open().expect("rtnetlink")).expect("readable"), BTreeSet::from([TABLE]));
            drop(open(TABLE));
            assert_eq!(ip("route show table 199"), "198.51.100.0/24 dev one scope link");
            assert_eq!(ip("-6 route show table all proto 199"), "");
            assert!(!ip("rule").contains("199") && !ip("-6 rule").contains("199"));
        });
    }

    #[test]
    fn routes_that_the_kernel_dropped_with_their_link_are_set_again() {
        with_two_links(|one, _| {
            let mut kernel = open(TABLE);
            let mut wanted = Table::new();
            wanted.insert(network("2001:db8::1", 128), [way(one, "fe80::2", 1)].into());
            kernel.apply(&wanted, &none());
            ip("link set one down");
            kernel.refresh().expect("readable");
            assert_eq!(kernel.apply(&wanted, &none()).refused, 1);
            ip("link set one up");
            assert_eq!(kernel.apply(&wanted, &none()), Applied { set: 1, removed: 0, refused: 0, restored: 0 });
            assert!(ip("-6 route show table 199").starts_with("2001:db8::1 via fe80::2 dev one"));
        });
    }

    #[test]
    fn routes_and_rules_that_another_program_removed_or_changed_are_found_and_set_again() {
        with_two_links(|one, two| {
            let mut kernel = open(TABLE);
            let mut wanted = Table::new();
            wanted.insert(network("192.0.2.7", 32), [way(one, "10.9.9.2", 1), way(two, "fe80::2", 3)].into());
            wanted.insert(network("192.0.2.8", 32), [way(one, "10.9.9.2", 5)].into());
            wanted.insert(network("192.0.2.9", 32), [way(one, "10.9.9.2", 1)].into());
            wanted.insert(network("2001:db8::", 32), [way(one, "fe80::3", 2), way(two, "fe80::2", 1)].into());
            wanted.insert(network("2001:db8::1", 128), [way(one, "fe80::2", 1)].into());
            kernel.apply(&wanted, &none());
            kernel.set_rules(true).expect("rules can be set");
            kernel.set_rules(false).expect("rules can be set");
            // Nothing is found where nothing was done.
            assert_eq!((kernel.refresh().expect("readable"), kernel.repair_rules().expect("readable")), (none(), 0));
            ip("route del 192.0.2.7 table 199");
            ip("route replace 192.0.2.8 via 10.9.9.3 dev one table 199 metric 199 proto 199");
            ip("route replace 192.0.2.9 via 10.9.9.3 dev one table 199 metric 199 proto static");
            ip("-6 route flush table 199");
            ip("rule del priority 199");
            ip("-6 rule flush");
            let lost = kernel.refresh().expect("readable");
            assert_eq!(lost.len(), 5);
            assert_eq!(kernel.apply(&wanted, &lost), Applied { set: 5, removed: 0, refused: 0, restored: 5 });
            assert_eq!(kernel.repair_rules().expect("readable"), 3);
            assert_eq!((kernel.refresh().expect("readable"), kernel.repair_rules().expect("readable")), (none(), 0));
        });
    }
}
