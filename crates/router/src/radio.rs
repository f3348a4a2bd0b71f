//! What the drivers of wireless interfaces tell of neighbours, once a second: the signal and lost frames for forecasters, and
//! the airtime of a frame for the costs of links.

use super::RouteError;
use anabranch_host::{Netlink, Station, Wireless};
use anabranch_policy::time::{Duration, Instant};
use anabranch_routing::airtime::{Airtime, RadioLink};
use anabranch_wire::ospf::{InterfaceId, RouterId};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv6Addr;

/// Time between two looks.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// Age of a signal that is no longer that of a packet.
const FRESH: Duration = Duration::from_millis(2_500);

type Mac = [u8; 6];

/// A neighbour of a router.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Neighbor {
    pub port: InterfaceId,
    pub address: Ipv6Addr,
    pub router: RouterId,
}

/// What a look tells of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct News {
    pub neighbor: Neighbor,
    /// A new cost of the link, or that it has none any more.
    pub cost: Option<Option<u16>>,
    /// Whether the frames since the last look arrived, if there were any.
    pub delivered: Option<bool>,
}

/// The links that radios tell of.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: BTreeMap<Neighbor, (Airtime, Option<i8>)>,
    looked: Option<Instant>,
}

impl Links {
    /// The signal of the neighbour with this address in dBm, if it is fresh.
    fn signal(&self, now: Instant, port: InterfaceId, address: Ipv6Addr) -> Option<f32> {
        self.looked.filter(|looked| now.since(*looked) < FRESH)?;
        let found = self.links.iter().find(|(neighbor, _)| neighbor.port == port && neighbor.address == address);
        found.and_then(|(_, (_, signal))| *signal).map(f32::from)
    }

    /// A look at all neighbours, of each of which the station is given if there is one. What is known of others is forgotten.
    pub(super) fn look(&mut self, now: Instant, stations: &[(Neighbor, Station)]) -> Vec<News> {
        let present: BTreeSet<Neighbor> = stations.iter().map(|(neighbor, _)| *neighbor).collect();
        let gone = self.links.keys().filter(|neighbor| !present.contains(neighbor));
        let gone: Vec<News> =
            gone.map(|neighbor| News { neighbor: *neighbor, cost: Some(None), delivered: None }).collect();
        self.links.retain(|neighbor, _| present.contains(neighbor));
        self.looked = Some(now);
        let news = stations.iter().map(|(neighbor, station)| {
            let (airtime, signal) = self.links.entry(*neighbor).or_default();
            *signal = station.signal;
            let interval = airtime.update(RadioLink {
                rate: station.rate,
                expected_throughput: station.expected_throughput,
                sent: station.sent,
                retries: station.retries,
                failed: station.failed,
            });
            let cost = interval.changed.then_some(airtime.cost());
            News { neighbor: *neighbor, cost, delivered: interval.delivered }
        });
        let news = news.filter(|news| news.cost.is_some() || news.delivered.is_some());
        gone.into_iter().chain(news).collect()
    }
}

/// The hardware address from which a link-local address was made (RFC 4291, appendix A).
fn embedded(address: Ipv6Addr) -> Option<Mac> {
    let [.., a, b, c, 0xff, 0xfe, d, e, f] = address.octets() else { return None };
    Some([a ^ 2, b, c, d, e, f])
}

/// Reads what the kernel knows of wireless neighbours.
pub(super) struct Radio {
    wireless: Wireless,
    pub(super) links: Links,
    pub(super) due: Instant,
}

impl Radio {
    /// None if the kernel has no wireless interfaces.
    pub(super) fn open() -> Result<Option<Self>, RouteError> {
        let wireless = Wireless::open().map_err(RouteError::system("talk to the kernel over nl80211"))?;
        Ok(wireless.map(|wireless| Self { wireless, links: Links::default(), due: Instant::ZERO }))
    }

    /// The signal of a packet from this address in dBm, if a driver tells it.
    pub(super) fn signal(&self, now: Instant, port: InterfaceId, source: Ipv6Addr) -> Option<f32> {
        self.links.signal(now, port, source)
    }

    /// The station of each neighbour, by interface of the host.
    pub(super) fn stations(
        &mut self,
        netlink: &mut Netlink,
        neighbors: &[(u32, Neighbor)],
    ) -> io::Result<Vec<(Neighbor, Station)>> {
        let interfaces: BTreeSet<u32> = neighbors.iter().map(|(index, _)| *index).collect();
        let mut found = Vec::new();
        for index in interfaces {
            let stations = self.wireless.stations(index)?;
            if stations.is_empty() {
                continue;
            }
            let known = hardware_addresses(netlink, index)?;
            let here = neighbors.iter().filter(|(at, _)| *at == index).map(|(_, neighbor)| *neighbor);
            found.extend(here.filter_map(|neighbor| {
                let mac = known.get(&neighbor.address).copied().or_else(|| embedded(neighbor.address))?;
                let station = stations.iter().find(|station| station.mac == mac)?;
                Some((neighbor, *station))
            }));
        }
        Ok(found)
    }
}

/// The kernel's neighbour table of an interface.
fn hardware_addresses(netlink: &mut Netlink, index: u32) -> io::Result<BTreeMap<Ipv6Addr, Mac>> {
    let mut request = NeighbourMessage::default();
    request.header.family = AddressFamily::Inet6;
    let answers = netlink.list(&RouteNetlinkMessage::GetNeighbour(request))?;
    let entry = |answer| {
        let RouteNetlinkMessage::NewNeighbour(message) = answer else { return None };
        let (mut address, mut mac) = (None, None);
        for attribute in message.attributes {
            match attribute {
                NeighbourAttribute::Destination(NeighbourAddress::Inet6(destination)) => address = Some(destination),
                NeighbourAttribute::LinkLayerAddress(bytes) => mac = Mac::try_from(bytes).ok(),
                _ => {}
            }
        }
        address.zip(mac).filter(|_| message.header.ifindex == index)
    };
    Ok(answers.into_iter().filter_map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Neighbor = Neighbor { port: InterfaceId(1), address: Ipv6Addr::LOCALHOST, router: RouterId(9) };

    fn second(second: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(second)
    }

    fn station(rate: u32, sent: u32, failed: u32) -> Station {
        Station { signal: Some(-61), rate: Some(rate), sent, failed, ..Station::default() }
    }

    #[test]
    fn a_link_costs_what_its_radio_tells_and_frames_given_up_are_losses() {
        let mut links = Links::default();
        let at_first = links.look(second(1), &[(AT, station(65_000, 10, 0))]);
        assert_eq!(at_first, [News { neighbor: AT, cost: Some(Some(33)), delivered: None }]);
        assert_eq!(links.look(second(2), &[(AT, station(65_000, 10, 0))]), []);
        let lost = links.look(second(3), &[(AT, station(65_000, 12, 1))]);
        assert_eq!(lost, [News { neighbor: AT, cost: None, delivered: Some(false) }]);
        // A tenth of the rate is felt at once.
        let slow = links.look(second(4), &[(AT, station(6_500, 14, 1))]);
        assert!(slow[0].cost > Some(Some(130)) && slow[0].delivered == Some(true), "{slow:?}");
    }

    #[test]
    fn a_signal_is_that_of_the_last_look_and_grows_old() {
        let mut links = Links::default();
        links.look(second(1), &[(AT, station(65_000, 0, 0))]);
        assert_eq!(links.signal(second(2), AT.port, AT.address), Some(-61.0));
        assert_eq!(links.signal(second(4), AT.port, AT.address), None);
        assert_eq!(links.signal(second(2), InterfaceId(2), AT.address), None);
    }

    #[test]
    fn a_neighbour_that_is_gone_is_forgotten() {
        let mut links = Links::default();
        links.look(second(1), &[(AT, station(65_000, 0, 0))]);
        assert_eq!(links.look(second(2), &[]), [News { neighbor: AT, cost: Some(None), delivered: None }]);
        let again = links.look(second(3), &[(AT, station(1_000, 0, 0))]);
        assert_eq!(again[0].cost, Some(Some(839)), "without hysteresis");
    }

    #[test]
    fn rfc4291_a_an_address_may_contain_the_hardware_address() {
        let address = "fe80::ff:fe00:9".parse().unwrap();
        assert_eq!(embedded(address), Some([2, 0, 0, 0, 0, 9]));
        assert_eq!(embedded("fe80::1".parse().unwrap()), None);
    }
}
