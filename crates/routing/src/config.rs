//! Configuration of a router and its interfaces: every parameter of RFC 5614, 5340 and 2328 with its default.

use core::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use anabranch_policy::combination::Choice;
use anabranch_policy::table::{self, SettingError};
use anabranch_policy::{Duration, LinkForecaster, forecast};
use anabranch_wire::ospf::lsa::MetricType;
use anabranch_wire::ospf::{AddressFamily, AreaId, InstanceId, InterfaceId, Options, Prefix, RouterId};

use crate::election::{AdjConnectivity, ElectionSettings};
use crate::lsa_fullness::LsaFullness;
use crate::next_hops::ForecastUse;

/// A router's configuration.
#[derive(Clone)]
pub struct Config {
    /// The router's name in the network; not zero.
    pub router_id: RouterId,
    /// The one area of all its interfaces.
    pub area: AreaId,
    /// Instance ID; it also chooses the address family (RFC 5838, 2.1): 0 to 31 IPv6 unicast, 64 to 95 IPv4 unicast.
    pub instance: InstanceId,
    /// Seed of all jitter.
    pub seed: u64,
    /// LSRefreshTime: interval at which an own LSA is originated again (RFC 2328, appendix B: 1800 s).
    pub ls_refresh_time: Duration,
    /// MinLSInterval: minimum time between two instances of an own LSA (RFC 2328, appendix B: 5 s).
    pub min_ls_interval: Duration,
    /// MinLSArrival: minimum time between two instances accepted by flooding (RFC 2328, appendix B: 1 s).
    pub min_ls_arrival: Duration,
    /// Delay of the first calculation of routes after a change, so that several changes share it.
    pub spf_delay: Duration,
    /// Minimum time between two calculations of routes, for a graph of up to 200 routers and networks. For a larger one it is
    /// longer in proportion, so that the share of processor time for calculations is bounded.
    pub spf_hold: Duration,
    /// Limit of the random delay of a flooded LSA, so that several share a packet (RFC 5614, 2.2: less than 100 ms).
    pub flood_delay: Duration,
    /// Limit of next hops of equal cost per route.
    pub maximum_paths: usize,
    /// Prefixes behind this router besides those of its interfaces, with their metrics.
    pub attached: Vec<(Prefix, u16)>,
    /// Whether it is a border router of the routing domain (bit E of its Router-LSA), which may tell of a way out of it.
    pub as_boundary: bool,
    /// The metric of the default route that it tells the others, if any; see [`crate::Router::set_default_route`].
    pub default_route: Option<ExternalMetric>,
    /// Limits of its memory.
    pub limits: Limits,
    /// Forecasts of links, used for the local choice among next hops only.
    pub forecast: Option<Forecast>,
}

impl Config {
    /// The RFCs' defaults for the router `router_id` in area 0 of the base IPv6 instance.
    pub fn new(router_id: RouterId) -> Self {
        Self {
            router_id,
            area: AreaId::BACKBONE,
            instance: InstanceId::IPV6,
            seed: 0,
            ls_refresh_time: Duration::from_secs(1800),
            min_ls_interval: Duration::from_secs(5),
            min_ls_arrival: Duration::from_secs(1),
            spf_delay: Duration::from_millis(10),
            spf_hold: Duration::from_millis(100),
            flood_delay: Duration::from_millis(50),
            maximum_paths: 16,
            attached: Vec::new(),
            as_boundary: false,
            default_route: None,
            limits: Limits::default(),
            forecast: None,
        }
    }

    /// Whether the instance is an IPv4 instance.
    pub(crate) fn is_ipv4(&self) -> bool {
        self.instance.address_family() == Some(AddressFamily::Ipv4Unicast)
    }

    /// The options in Hellos, Database Descriptions and LSAs (RFC 5340, A.2; RFC 5838, 2.2).
    pub(crate) fn options(&self) -> Options {
        let options = Options::V6 | Options::E | Options::R;
        if self.is_ipv4() { options | Options::AF } else { options }
    }

    /// Checks the configuration.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.router_id == RouterId::NONE {
            return Err(ConfigError::NoRouterId);
        }
        match self.instance.address_family() {
            Some(AddressFamily::Ipv6Unicast | AddressFamily::Ipv4Unicast) => Ok(()),
            Some(AddressFamily::Ipv6Multicast | AddressFamily::Ipv4Multicast) | None => {
                Err(ConfigError::UnknownInstance(self.instance))
            }
        }
    }
}

/// The metric of a route out of the routing domain (RFC 5340, A.4.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExternalMetric {
    /// How it is compared.
    pub kind: MetricType,
    /// 0 to 16,777,214: LSInfinity, one more, is unreachable.
    pub metric: u32,
}

/// Limits of a router's memory, whatever the network sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Neighbours per interface. A Hello lists at most 255 per list (RFC 5614, A.2.3).
    pub neighbors: usize,
    /// LSAs in the database, of all scopes.
    pub lsas: usize,
    /// Bytes of the LSAs in the database that are not the router's own.
    pub lsa_bytes: usize,
    /// LSAs waiting on one neighbour's retransmission list.
    pub retransmissions: usize,
    /// Acknowledgments stored per neighbour for LSAs not yet received (RFC 5614, 8.4), and queued on an interface.
    pub acked: usize,
    /// Events queued for the caller; above it the oldest is dropped.
    pub events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            neighbors: 255,
            lsas: 100_000,
            lsa_bytes: 64 << 20,
            retransmissions: 20_000,
            acked: 20_000,
            events: 1024,
        }
    }
}

/// Forecasts of links to neighbours: the forecasters and how they are used.
#[derive(Clone)]
pub struct Forecast {
    /// Makes the forecaster of one neighbour on one interface.
    pub build: Arc<dyn Fn(InterfaceId, RouterId) -> Box<dyn LinkForecaster> + Send + Sync>,
    /// Horizon of the forecasts.
    pub horizon: Duration,
    /// How the choice among next hops uses them.
    pub usage: ForecastUse,
    /// Interval at which the forecasts are evaluated.
    pub period: Duration,
    /// Additional cost of a link that is not trusted, which is flooded; 0 keeps forecasts out of LSAs. The choice among
    /// next hops of equal cost helps only where there are several. A cost makes all routers avoid the link, also on
    /// longer paths, and does not cause a lasting loop. It changes no more often than trust does, which
    /// [`crate::next_hops::SoftUse::hold`] limits.
    pub suspect_cost: u16,
    /// Whether a link that is not trusted gets no traffic at all if there is another next hop of equal cost or a
    /// loop-free alternate (RFC 5286). Suspect links are announced in Hellos only; nothing is flooded.
    pub alternates: bool,
}

impl Forecast {
    /// Queries these forecasters once per second with a horizon of two, for the choice among next hops only.
    pub fn new(build: Arc<dyn Fn(InterfaceId, RouterId) -> Box<dyn LinkForecaster> + Send + Sync>) -> Self {
        Self {
            build,
            horizon: Duration::from_secs(2),
            usage: ForecastUse::default(),
            period: Duration::from_secs(1),
            suspect_cost: 0,
            alternates: false,
        }
    }
    /// The same with the forecaster of a combination of policies.
    ///
    /// # Errors If the table has no such member, or it refuses a setting.
    pub fn chosen(choice: &Choice) -> Result<Self, SettingError> {
        let choice = choice.clone();
        let build = move || table::build(forecast::TABLE, &choice.name, &choice.settings);
        build()?;
        Ok(Self::new(Arc::new(move |_, _| build().expect("it was built before"))))
    }
}

impl fmt::Debug for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forecast")
            .field("horizon", &self.horizon)
            .field("usage", &self.usage)
            .field("period", &self.period)
            .field("suspect_cost", &self.suspect_cost)
            .field("alternates", &self.alternates)
            .finish_non_exhaustive()
    }
}

/// Least MTU of IPv6 in bytes (RFC 8200, 5).
pub(crate) const LEAST_MTU: u16 = 1280;

/// What a link to a neighbour costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkCost {
    /// The interface's cost.
    #[default]
    Interface,
    /// The interface's cost, which is that of a link without loss, by the expected number of transmissions (ETX), from 1 to 16.
    Etx,
}

/// The configuration of an interface.
#[derive(Clone, PartialEq, Debug)]
pub struct InterfaceConfig {
    /// Its number, unique among the interfaces of the router; not zero.
    pub id: InterfaceId,
    pub kind: InterfaceKind,
    /// Link-local address of the interface, the source of its packets.
    pub link_local: Ipv6Addr,
    /// Its addresses in the instance's family with their prefix lengths. Each is advertised as a host prefix with the
    /// LA bit (RFC 5340, A.4.1.1), so that every address of every interface is routed; a shorter prefix is advertised
    /// too if it belongs to one link (point-to-point, loopback).
    pub addresses: Vec<(IpAddr, u8)>,
    /// Interface output cost, 1 to 65535.
    pub cost: u16,
    /// What a link costs.
    pub link_cost: LinkCost,
    /// Router Priority: a larger one makes a router more likely to become MDR (RFC 5614, 3.1).
    pub priority: u8,
    /// HelloInterval.
    pub hello_interval: Duration,
    /// RouterDeadInterval.
    pub router_dead_interval: Duration,
    /// RxmtInterval.
    pub rxmt_interval: Duration,
    /// InfTransDelay: added to the age of an LSA, rounded up to whole seconds (RFC 2328: 1 s).
    pub inf_trans_delay: Duration,
    /// Part of HelloInterval by which a Hello may be early or late, so that neighbours do not synchronize.
    pub hello_jitter: f64,
    /// Largest packet in bytes, IPv6 header included.
    pub mtu: u16,
    /// Whether a Database Description with a larger MTU is accepted (RFC 2328, 10.6 says no).
    pub ignore_mtu: bool,
    /// LinkLSASuppression (RFC 5340, C.3): no Link-LSA is originated. In IPv6 the source of Hellos tells the next hop as
    /// well; in IPv4 the Link-LSA is needed.
    pub link_lsa_suppression: bool,
}

impl InterfaceConfig {
    /// A MANET interface with RFC 5614's defaults (3.2).
    pub fn manet(id: InterfaceId, link_local: Ipv6Addr) -> Self {
        Self {
            kind: InterfaceKind::Manet(Manet::default()),
            hello_interval: Duration::from_secs(2),
            router_dead_interval: Duration::from_secs(6),
            rxmt_interval: Duration::from_secs(7),
            hello_jitter: 0.05,
            ..Self::point_to_point(id, link_local)
        }
    }

    /// A point-to-point interface with RFC 2328's defaults (C.3).
    pub fn point_to_point(id: InterfaceId, link_local: Ipv6Addr) -> Self {
        Self {
            id,
            kind: InterfaceKind::PointToPoint,
            link_local,
            addresses: Vec::new(),
            cost: 1,
            link_cost: LinkCost::Interface,
            priority: 1,
            hello_interval: Duration::from_secs(10),
            router_dead_interval: Duration::from_secs(40),
            rxmt_interval: Duration::from_secs(5),
            inf_trans_delay: Duration::from_secs(1),
            hello_jitter: 0.0,
            mtu: 1500,
            ignore_mtu: false,
            link_lsa_suppression: false,
        }
    }

    /// Checks the configuration, for an instance of IPv4 or of IPv6.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub fn check(&self, ipv4: bool) -> Result<(), ConfigError> {
        if self.id == InterfaceId(0) {
            return Err(ConfigError::InterfaceId(self.id));
        }
        check_addresses(&self.addresses, ipv4)?;
        if self.cost == 0 {
            return Err(ConfigError::OutOfRange("cost"));
        }
        if self.hello_interval.is_zero() || self.hello_interval >= self.router_dead_interval {
            return Err(ConfigError::Intervals);
        }
        if self.mtu < LEAST_MTU {
            return Err(ConfigError::OutOfRange("mtu"));
        }
        let InterfaceKind::Manet(manet) = &self.kind else { return Ok(()) };
        if manet.ack_interval >= self.rxmt_interval {
            return Err(ConfigError::Intervals);
        }
        if manet.two_hop_refresh == 0 || manet.election.mdr_constraint < 2 {
            return Err(ConfigError::OutOfRange("2HopRefresh or MDRConstraint"));
        }
        if manet.acceptance.consecutive_hellos == 0 || manet.routable.hellos == 0 {
            return Err(ConfigError::OutOfRange("a number of Hellos"));
        }
        let reduced = matches!(manet.lsa_fullness, LsaFullness::Minimal | LsaFullness::MdrFull);
        if manet.election.adj_connectivity == AdjConnectivity::Full && reduced {
            return Err(ConfigError::AdjacencyAndFullness);
        }
        Ok(())
    }

    /// An interface on which no packet is sent; its addresses are advertised.
    pub fn loopback(id: InterfaceId) -> Self {
        Self { kind: InterfaceKind::Loopback, ..Self::point_to_point(id, Ipv6Addr::UNSPECIFIED) }
    }
}

/// Whether addresses are of the instance's family.
pub(crate) fn check_addresses(addresses: &[(IpAddr, u8)], ipv4: bool) -> Result<(), ConfigError> {
    let fits = |(address, length): &(IpAddr, u8)| address.is_ipv4() == ipv4 && *length <= if ipv4 { 32 } else { 128 };
    if addresses.iter().all(fits) { Ok(()) } else { Err(ConfigError::Address) }
}

/// The type of network of an interface.
#[derive(Clone, PartialEq, Debug)]
pub enum InterfaceKind {
    /// A wireless network in which not all nodes hear each other (RFC 5614).
    Manet(Manet),
    /// A single peer (RFC 2328, 1.2), which need not support RFC 5614.
    PointToPoint,
    Loopback,
}

/// The parameters of a MANET interface (RFC 5614, 3.2).
#[derive(Clone, PartialEq, Debug)]
pub struct Manet {
    /// AdjConnectivity, MDRConstraint and how MDRs are selected.
    pub election: ElectionSettings,
    /// BackupWaitInterval.
    pub backup_wait_interval: Duration,
    /// AckInterval, less than RxmtInterval.
    pub ack_interval: Duration,
    /// LSAFullness.
    pub lsa_fullness: LsaFullness,
    /// 2HopRefresh: one of this many Hellos is full.
    pub two_hop_refresh: u16,
    /// Not in RFC 5614: newcomers are answered by Hellos out of turn, and Waiting ends when all that are heard are known.
    pub prompt: bool,
    /// When a neighbour in state Down is accepted (RFC 5614, 4.3).
    pub acceptance: Acceptance,
    /// When a neighbour's link is good enough for its routes (RFC 5614, 9.1).
    pub routable: RoutableQuality,
}

/// HelloRepeatCount, which must be 3 (RFC 5614, 3.2).
pub const HELLO_REPEAT_COUNT: u16 = 3;

impl Default for Manet {
    fn default() -> Self {
        Self {
            election: ElectionSettings::default(),
            backup_wait_interval: Duration::from_millis(500),
            ack_interval: Duration::from_secs(1),
            lsa_fullness: LsaFullness::MinCost,
            two_hop_refresh: 1,
            prompt: true,
            acceptance: Acceptance::default(),
            routable: RoutableQuality::default(),
        }
    }
}

/// The neighbour acceptance condition (RFC 5614, 4.3). All parts must hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Acceptance {
    /// Number of consecutive Hellos, by their sequence numbers; 1 or more.
    pub consecutive_hellos: u16,
    /// Minimum signal of the Hello in dBm, if the radio reports it.
    pub signal_dbm: Option<f32>,
    /// Minimum probability of the link at the forecaster's horizon, if there is a forecaster.
    pub forecast: Option<f64>,
    /// Not for a while after an exchange of databases with it made no progress.
    pub finishing: bool,
}

impl Default for Acceptance {
    fn default() -> Self {
        Self { consecutive_hellos: 1, signal_dbm: None, forecast: None, finishing: true }
    }
}

/// The routable neighbour quality condition (RFC 5614, 9.1). All parts must hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RoutableQuality {
    /// Number of consecutive Hellos that showed, explicitly or implicitly, that the neighbour hears this router; 1 or
    /// more.
    pub hellos: u16,
    /// Minimum probability of the link at the forecaster's horizon, if there is a forecaster.
    pub forecast: Option<f64>,
}

impl Default for RoutableQuality {
    fn default() -> Self {
        Self { hellos: 1, forecast: None }
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// The router ID is zero.
    NoRouterId,
    /// The instance belongs to an address family that is not supported.
    UnknownInstance(InstanceId),
    /// The interface's number is zero or taken.
    InterfaceId(InterfaceId),
    /// No interface has this number.
    NoSuchInterface(InterfaceId),
    /// An address is not of the instance's family, or its prefix is longer than it.
    Address,
    /// MDRConstraint is below 2, or 2HopRefresh, a cost or a count is zero.
    OutOfRange(&'static str),
    /// AdjConnectivity 0 with LSAFullness 0 or 3 (RFC 5614, 9.3).
    AdjacencyAndFullness,
    /// AckInterval is not less than RxmtInterval (RFC 5614, 3.2), or HelloInterval not less than RouterDeadInterval.
    Intervals,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRouterId => f.write_str("the router ID is zero"),
            Self::UnknownInstance(instance) => write!(f, "instance {} is neither IPv6 nor IPv4 unicast", instance.0),
            Self::InterfaceId(id) => write!(f, "interface number {} is zero or taken", id.0),
            Self::NoSuchInterface(id) => write!(f, "there is no interface {}", id.0),
            Self::Address => f.write_str("an address does not belong to the instance's family"),
            Self::OutOfRange(what) => write!(f, "{what} is out of range"),
            Self::AdjacencyAndFullness => f.write_str("AdjConnectivity 0 needs LSAFullness 1, 2 or 4"),
            Self::Intervals => {
                f.write_str("AckInterval and HelloInterval must lie below RxmtInterval and dead interval")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of the check of an interface with changed MANET parameters.
    fn said(change: impl FnOnce(&mut InterfaceConfig, &mut Manet)) -> String {
        let mut config = InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::LOCALHOST);
        let mut manet = Manet::default();
        change(&mut config, &mut manet);
        config.kind = InterfaceKind::Manet(manet);
        config.check(false).map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn what_an_interface_cannot_be_is_refused_in_words() {
        let intervals = "AckInterval and HelloInterval must lie below RxmtInterval and dead interval";
        assert_eq!(said(|_, _| ()), "fine");
        assert_eq!(said(|config, _| config.id = InterfaceId(0)), "interface number 0 is zero or taken");
        assert_eq!(said(|config, _| config.cost = 0), "cost is out of range");
        assert_eq!(said(|config, _| config.mtu = 1279), "mtu is out of range");
        assert_eq!(said(|config, _| config.mtu = 1280), "fine");
        assert_eq!(said(|config, _| config.hello_interval = Duration::ZERO), intervals);
        assert_eq!(said(|config, _| config.hello_interval = config.router_dead_interval), intervals);
        assert_eq!(said(|config, manet| manet.ack_interval = config.rxmt_interval), intervals);
        assert_eq!(said(|_, manet| manet.two_hop_refresh = 0), "2HopRefresh or MDRConstraint is out of range");
        assert_eq!(said(|_, manet| manet.election.mdr_constraint = 1), "2HopRefresh or MDRConstraint is out of range");
        assert_eq!(said(|_, manet| manet.election.mdr_constraint = 2), "fine");
        assert_eq!(said(|_, manet| manet.acceptance.consecutive_hellos = 0), "a number of Hellos is out of range");
        assert_eq!(said(|_, manet| manet.routable.hellos = 0), "a number of Hellos is out of range");
        // RFC 5614, 9.3.
        for (fullness, refused) in
            [(LsaFullness::Minimal, true), (LsaFullness::MdrFull, true), (LsaFullness::MinCost, false)]
        {
            let said = said(|_, manet| {
                manet.election.adj_connectivity = AdjConnectivity::Full;
                manet.lsa_fullness = fullness;
            });
            assert_eq!(said == "AdjConnectivity 0 needs LSAFullness 1, 2 or 4", refused, "{fullness:?}: {said}");
        }
    }

    #[test]
    fn addresses_are_of_the_family_of_the_instance() {
        let v4 = |length| [("10.0.0.1".parse().unwrap(), length)];
        let v6 = |length| [("fd00::1".parse().unwrap(), length)];
        let wrong = Err(ConfigError::Address);
        assert_eq!([check_addresses(&v4(32), true), check_addresses(&v6(128), false)], [Ok(()), Ok(())]);
        assert_eq!([check_addresses(&v4(33), true), check_addresses(&v6(129), false)], [wrong, wrong]);
        assert_eq!([check_addresses(&v4(32), false), check_addresses(&v6(32), true)], [wrong, wrong]);
        assert_eq!(ConfigError::Address.to_string(), "an address does not belong to the instance's family");
    }

    #[test]
    fn a_router_has_a_number_and_an_instance_that_is_known() {
        let said = |router, instance| {
            let config = Config { instance: InstanceId(instance), ..Config::new(RouterId(router)) };
            config.check().map_or_else(|error| error.to_string(), |()| "fine".to_owned())
        };
        assert_eq!([said(1, 0), said(1, 64)], ["fine", "fine"]);
        assert_eq!(said(0, 0), "the router ID is zero");
        // IPv6 and IPv4 multicast (RFC 5838, 2.1), and none.
        for instance in [32, 96, 128] {
            assert_eq!(said(1, instance), format!("instance {instance} is neither IPv6 nor IPv4 unicast"));
        }
        assert_eq!(ConfigError::NoSuchInterface(InterfaceId(7)).to_string(), "there is no interface 7");
    }

    #[test]
    fn a_forecast_is_printed_without_its_forecaster() {
        let chosen = Forecast::chosen(&Choice { name: "trend".to_owned(), settings: table::Settings::new() }).unwrap();
        let text = format!("{chosen:?}");
        assert!(text.starts_with("Forecast { horizon: ") && text.ends_with(", .. }"), "{text}");
    }
}
