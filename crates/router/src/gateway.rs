//! The way out of the mesh: the default routes that this host has of its own, which `--gateway` tells the mesh.

use super::RouteError;
use super::config::Family;
use super::ground::Ground;
use super::kernel::{MAIN_TABLE, PROTOCOL, table_of};
use super::ports::{Port, Role};
use anabranch_host::{Netlink, Watch};
use anabranch_policy::time::{Duration, Instant};
use anabranch_routing::config::ExternalMetric;
use anabranch_wire::ospf::lsa::MetricType;
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteProtocol, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::collections::BTreeMap;
use std::io;

/// Changes that are told at once, and the pause after which one more is. A default route that comes and goes would fill
/// the log.
const AT_ONCE: u64 = 8;
const AGAIN: Duration = Duration::from_secs(600);

/// The uplinks by which this host is a gateway.
pub(super) struct Gateway {
    watch: Watch,
    metric: u32,
    /// The interface of each family's default route, once there was a look.
    pub uplinks: BTreeMap<Family, Option<String>>,
    /// When to look again.
    pub due: Instant,
    /// How often a default route was told or withdrawn.
    pub changes: u64,
    /// What was last said of each family.
    said: BTreeMap<Family, Option<String>>,
    /// Changes since then of which nothing was said, and when [`AT_ONCE`] ones may be told again.
    unsaid: u64,
    full_at: Instant,
}

impl Gateway {
    /// A gateway that adds `metric` to the way to it.
    pub(super) fn new(metric: u32) -> Result<Self, RouteError> {
        let watch = Watch::default_routes(PROTOCOL).map_err(RouteError::system("watch the default routes"))?;
        Ok(Self {
            watch,
            metric,
            uplinks: BTreeMap::new(),
            due: Instant::ZERO,
            changes: 0,
            said: BTreeMap::new(),
            unsaid: 0,
            full_at: Instant::ZERO,
        })
    }

    /// Completes when a default route has changed.
    pub(super) async fn changed(&self) -> io::Result<()> {
        self.watch.changed().await
    }

    /// The metric of a family's default route, if the host has one. Of type 1, so that the nearest of several gateways is
    /// taken.
    pub(super) fn metric(&self, family: Family) -> Option<ExternalMetric> {
        let uplink = self.uplinks.get(&family)?;
        uplink.is_some().then_some(ExternalMetric { kind: MetricType::One, metric: self.metric })
    }

    /// Records a family's uplink. Returns whether it is another one.
    pub(super) fn note(&mut self, family: Family, uplink: Option<String>) -> bool {
        let before = self.uplinks.insert(family, uplink.clone());
        let is_new = before.as_ref() != Some(&uplink);
        self.changes += u64::from(uplink.is_some() != before.flatten().is_some());
        self.unsaid += u64::from(is_new);
        is_new
    }

    /// A sentence on a family's uplink, if it is not the one that was last told of. If too much was told, there is another
    /// look later.
    pub(super) fn news(&mut self, now: Instant, family: Family) -> Option<String> {
        let uplink = self.uplinks.get(&family).filter(|uplink| self.said.get(&family) != Some(uplink))?.clone();
        let from = self.full_at - AGAIN * (AT_ONCE - 1);
        if now < from {
            self.due = self.due.min(from);
            return None;
        }
        self.full_at = self.full_at.max(now) + AGAIN;
        let before = self.said.insert(family, uplink.clone()).map(Option::unwrap_or_default);
        let (family, unsaid) = (family.name(), core::mem::take(&mut self.unsaid));
        let sentence = match (uplink, before) {
            (Some(name), _) => format!("the way out by {family} is {name}: the mesh is told a default route"),
            (None, Some(name)) => {
                format!("the way out by {family}, {name}, is gone: the default route is withdrawn from the mesh")
            }
            (None, None) => format!("this host has no way out by {family} yet: the mesh is told no default route"),
        };
        let further = if unsaid > 2 { format!("; it is change {unsaid} since the last line") } else { String::new() };
        Some(sentence + &further)
    }
}

/// The interface of the preferred default route of a family in the main table which neither comes from the mesh nor leads
/// into it, if that interface works.
pub(super) fn uplink(
    netlink: &mut Netlink,
    family: Family,
    ground: &Ground,
    ports: &[Port],
) -> io::Result<Option<String>> {
    let mut request = RouteMessage::default();
    request.header.address_family = match family {
        Family::Ipv6 => AddressFamily::Inet6,
        Family::Ipv4 => AddressFamily::Inet,
    };
    let inward = |name: &str| {
        let port = ports.iter().find(|port| port.name == name);
        port.is_some_and(|port| matches!(port.role, Role::Mesh { .. } | Role::Lane | Role::Loopback))
    };
    let works = |index: u32| {
        let device = ground.devices.values().find(|device| device.index == index)?;
        (device.running && !device.loopback && !inward(&device.name)).then(|| device.name.clone())
    };
    let mut found: Option<(u32, String)> = None;
    for message in netlink.list(&RouteNetlinkMessage::GetRoute(request))? {
        let RouteNetlinkMessage::NewRoute(route) = message else { continue };
        if !is_own_default(&route) {
            continue;
        }
        let name = interfaces(&route).into_iter().find_map(works);
        let known = found.as_ref().map_or(u32::MAX, |(metric, _)| *metric);
        if let Some(name) = name.filter(|_| found.is_none() || metric(&route) < known) {
            found = Some((metric(&route), name));
        }
    }
    Ok(found.map(|(_, name)| name))
}

/// Whether a route is a default route of the main table that is not ours.
fn is_own_default(route: &RouteMessage) -> bool {
    let header = &route.header;
    header.destination_prefix_length == 0
        && header.kind == RouteType::Unicast
        && header.protocol != RouteProtocol::Other(PROTOCOL)
        && table_of(route) == MAIN_TABLE
}

fn metric(route: &RouteMessage) -> u32 {
    let priority = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Priority(priority) => Some(*priority),
        _ => None,
    });
    priority.unwrap_or_default()
}

/// The kernel's indices of a route's interfaces.
fn interfaces(route: &RouteMessage) -> Vec<u32> {
    let mut all = Vec::new();
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(index) => all.push(*index),
            RouteAttribute::MultiPath(hops) => all.extend(hops.iter().map(|hop| hop.interface_index)),
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_out_is_told_when_it_changes_and_not_each_time_it_is_looked_at() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        let mut gateway = Gateway::new(3).expect("rtnetlink");
        let said = |gateway: &mut Gateway, uplink: Option<&str>| {
            gateway.note(Family::Ipv4, uplink.map(str::to_owned));
            gateway.news(Instant::ZERO, Family::Ipv4)
        };
        assert!(said(&mut gateway, None).is_some_and(|text| text.contains("no way out by ipv4 yet")));
        assert_eq!((said(&mut gateway, None), gateway.metric(Family::Ipv4)), (None, None));
        assert!(said(&mut gateway, Some("eth0")).is_some_and(|text| text.contains("is eth0")));
        assert_eq!(gateway.metric(Family::Ipv4), Some(ExternalMetric { kind: MetricType::One, metric: 3 }));
        // Another uplink is told, and nothing changes for the mesh.
        assert!(said(&mut gateway, Some("usb0")).is_some_and(|text| text.contains("is usb0")));
        assert_eq!(gateway.changes, 1);
        assert!(said(&mut gateway, None).is_some_and(|text| text.contains("by ipv4, usb0, is gone")));
        assert_eq!((gateway.changes, gateway.metric(Family::Ipv4), gateway.metric(Family::Ipv6)), (2, None, None));
    }

    #[test]
    fn a_way_out_that_comes_and_goes_is_told_seldom_and_in_the_end_rightly() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        let mut gateway = Gateway::new(3).expect("rtnetlink");
        let mut told = Vec::new();
        // Ten changes a second for a minute.
        for turn in 0..600_u64 {
            let now = Instant::ZERO + Duration::from_millis(turn * 100);
            gateway.note(Family::Ipv4, (turn % 2 == 0).then(|| "eth0".to_owned()));
            told.extend(gateway.news(now, Family::Ipv4));
        }
        assert_eq!((told.len() as u64, gateway.changes), (AT_ONCE, 600));
        assert!(told.last().is_some_and(|text| text.contains("is gone")), "the last but one");
        gateway.note(Family::Ipv4, Some("eth0".to_owned()));
        gateway.due = Instant::NEVER;
        assert_eq!(gateway.news(Instant::ZERO + Duration::from_secs(61), Family::Ipv4), None);
        // It asks for another look, at which what lasts is told.
        let text = gateway.news(gateway.due, Family::Ipv4).expect("it is told");
        assert!(text.contains("is eth0") && text.contains("change 593 since"), "{text}");
        assert_eq!(gateway.news(gateway.due + AGAIN, Family::Ipv4), None);
    }
}
