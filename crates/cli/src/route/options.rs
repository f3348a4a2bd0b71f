//! Options of `anabranch route`.

use super::profile::Profile;
use crate::configuration::ConfigurationOption;
use crate::secrets::{is_readable, read_key};
use crate::state_directory::state_directory;
use anabranch_policy::combination::{self, Combination};
use anabranch_policy::time::Duration;
use anabranch_proxy::Key;
use anabranch_router::{Family, MAIN_TABLE, MeshInterface, Question, RouteConfig, TABLE};
use anabranch_routing::bfd::BfdSettings;
use anabranch_routing::config::{Forecast, Manet};
use anabranch_routing::election::AdjConnectivity;
use anabranch_routing::lanes::{LanePolicy, PathMode};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::next_hops::{ForecastUse, SoftUse};
use anabranch_routing::{InterfaceKind, LinkCost};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity;
use anabranch_wire::ospf::authentication::{Algorithm, SecurityAssociation};
use anabranch_wire::ospf::{Compatibility, Prefix};
use clap::{Args, ValueEnum};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

/// Interval of forecast evaluations. A change is kept for several of them, 10 s, so that a fading link is not used
/// again at each Hello that still arrives.
const PERIOD: Duration = Duration::from_millis(250);
const HOLD: u32 = 40;

/// Queries to a running router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Show {
    /// The router as a whole: interfaces, counters
    Status,
    /// The neighbours and their states
    Neighbors,
    /// The link-state database
    Lsdb,
    /// The routes, and whether the kernel has them
    Routes,
    /// The forecasts of the links
    Forecast,
}

impl Show {
    pub const fn question(self) -> Question {
        match self {
            Self::Status => Question::Status,
            Self::Neighbors => Question::Neighbors,
            Self::Lsdb => Question::Database,
            Self::Routes => Question::Routes,
            Self::Forecast => Question::Forecast,
        }
    }
}

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FamilyOption {
    /// IPv6
    Ipv6,
    /// IPv4 (RFC 5838), beside IPv6 link-local addresses
    Ipv4,
}

/// What a link costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LinkCostOption {
    /// The cost of the interface
    Hops,
    /// By the Hellos that arrive
    Etx,
    /// By what the drivers of wireless interfaces tell; of others by the Hellos that arrive
    Airtime,
}

/// Which next hop a lane has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LaneOption {
    /// Spread adjacent lanes over all next hops
    Spread,
    /// In turn, as in appendix C of the paper
    Paper,
    /// Disjoint lanes, by a plan that all routers compute alike; for tens of routers
    Disjoint,
}

/// How to interoperate with an implementation that misplaces bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Dialect {
    /// As RFC 5614 has it
    Rfc,
    /// Accept misplaced bits and checksums too
    Accept,
    /// Read and write them
    Misplaced,
}

/// Cost of a link without loss where transmissions count: their parts are told apart.
const ETX_COST: u16 = 10;

/// Least interval of BFD.
const LEAST_BFD: Duration = Duration::from_millis(10);

/// How to route.
#[derive(Clone, Debug, Args)]
pub struct RouteOptions {
    /// Run OSPF-MDR on this interface, optionally with its own cost (repeatable)
    #[arg(long = "interface", short, value_name = "NAME[=COST]", value_parser = interface)]
    pub interfaces: Vec<(String, Option<u16>)>,
    /// Run OSPFv3 with the router at the other end of this point-to-point interface (repeatable)
    #[arg(long = "point-to-point", value_name = "NAME[=COST]", value_parser = interface)]
    pub point_to_point: Vec<(String, Option<u16>)>,
    /// Copy the routes of the first --interface to this one, on its own channel and without protocol traffic; the
    /// routers' addresses on it must share a network (repeatable)
    #[arg(long = "lane", value_name = "NAME", requires = "interfaces")]
    pub lanes: Vec<String>,
    /// Let lanes use all next hops of the first interface instead of one each
    #[arg(long, requires = "lanes")]
    pub full_path: bool,
    /// Choice of each lane's next hop [default: spread]
    #[arg(long, value_name = "POLICY", requires = "lanes")]
    pub lane_policy: Option<LaneOption>,
    /// Advertise this interface's networks without sending on it (repeatable)
    #[arg(long = "passive", value_name = "NAME")]
    pub passive: Vec<String>,
    /// Advertise this prefix too, e.g. 0.0.0.0/0 for a default route (repeatable)
    #[arg(long = "network", value_name = "PREFIX", value_parser = network)]
    pub networks: Vec<(IpAddr, u8)>,
    /// Be a gateway: while this host has a default route of its own, in the main table and not through the mesh, tell the mesh
    /// one, at this cost beyond this router
    #[arg(long, value_name = "COST", num_args = 0..=1, default_missing_value = "1", value_parser = gateway)]
    pub gateway: Option<u32>,
    /// Route only this address family (repeatable) [default: both]
    #[arg(long = "family", value_name = "FAMILY")]
    pub families: Vec<FamilyOption>,
    /// The Router ID, kept whatever happens [default: the highest IPv4 address of the loopback, else of the interfaces
    /// named here, else a random one; another random one if another router has it]
    #[arg(long, value_name = "A.B.C.D")]
    pub router_id: Option<Ipv4Addr>,
    /// Directory in which a random Router ID is kept for the next start [default: $STATE_DIRECTORY, /var/lib/anabranch]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Instance number within each family, the same at all routers of a mesh
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=31))]
    pub instance: u8,
    /// The kernel's routing table, a number or `main`; for a table other than `main`, two rules are added
    #[arg(long, value_name = "TABLE", default_value_t = TABLE, value_parser = table)]
    pub table: u32,
    /// Leave the kernel's settings (forwarding, reverse path filter, redirects) as they are
    #[arg(long)]
    pub keep_settings: bool,
    /// Directory for the journal that restores the settings after a crash [default: /run/anabranch]
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
    /// Show the state of the router running in this network namespace
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["interfaces", "point_to_point", "passive", "networks"])]
    pub show: Option<Show>,
    /// Print as JSON
    #[arg(long, requires = "show")]
    pub json: bool,
    #[command(flatten)]
    pub configuration: ConfigurationOption,
    #[command(flatten)]
    pub protocol: ProtocolOptions,
}

/// The protocol's parameters.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Protocol")]
pub struct ProtocolOptions {
    /// Defaults of the parameters
    #[arg(long, value_name = "NAME", default_value = "rfc")]
    pub profile: Profile,
    /// HelloInterval, whole seconds, e.g. "1 s" [default of RFC 5614: 2 s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub hello_interval: Option<Duration>,
    /// RouterDeadInterval, whole seconds [default of RFC 5614: 6 s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub dead_interval: Option<Duration>,
    /// One of N Hellos is full, the others are differential [default of RFC 5614: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub two_hop_refresh: Option<u16>,
    /// Detect neighbours that do not answer by BFD (RFC 5880), with a packet in each interval, from 10 ms on; the neighbour
    /// needs it too [default of TIME: 100 ms]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "100 ms", value_parser = time)]
    pub bfd: Option<Duration>,
    /// Missing packets of BFD after which a neighbour is lost
    #[arg(long, value_name = "N", default_value_t = 3, requires = "bfd", value_parser = clap::value_parser!(u8).range(1..))]
    pub bfd_multiplier: u8,
    /// What a link costs: `hops`, the cost of the interface; or `etx`, that cost (here 10 unless given) times the expected
    /// number of transmissions, by the Hellos that arrive; or `airtime`, the time that a frame takes on the air, by what the
    /// drivers of wireless interfaces tell. The same at all routers of a mesh
    #[arg(long, value_name = "METRIC", default_value = "hops")]
    pub link_cost: LinkCostOption,
    /// AdjConnectivity: adjacencies with all (0), connected (1), biconnected (2) [default of RFC 5614: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
    pub adjacency: Option<u8>,
    /// LSAFullness, from minimal (0) to full (4) [default of RFC 5614: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=4))]
    pub lsa_fullness: Option<u8>,
    /// MDRConstraint [default of RFC 5614: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..))]
    pub mdr_constraint: Option<u8>,
    /// RxmtInterval [default of RFC 5614: 7 s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub retransmit_interval: Option<Duration>,
    /// AckInterval [default of RFC 5614: 1 s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub ack_interval: Option<Duration>,
    /// BackupWaitInterval [default of RFC 5614: 500 ms]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub backup_wait: Option<Duration>,
    /// MinLSInterval [default of RFC 2328: 5 s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub min_ls_interval: Option<Duration>,
    /// Router Priority: a larger one makes a router more likely to become an MDR
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub priority: u8,
    /// Maximum number of equal-cost next hops of a route
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub maximum_paths: u16,
    /// Forecast links, and choose next hops by the forecasts: a name of `anabranch list`, with settings such as
    /// forward,forecaster.SETTING=VALUE
    #[arg(long, value_name = "NAME")]
    pub forecaster: Option<String>,
    /// The horizon of the forecasts [default: 2 s]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "forecaster")]
    pub horizon: Option<Duration>,
    /// Additional cost of a link while its forecast is bad, flooded in LSAs; 0: announced to neighbours only, and avoided by
    /// other next hops of equal cost and by neighbours that are as near
    #[arg(long, value_name = "N", default_value_t = 0, requires = "forecaster")]
    pub suspect_cost: u16,
    /// The dialect of the other routers
    #[arg(long, value_name = "DIALECT", default_value = "rfc")]
    pub dialect: Dialect,
    /// Authenticate packets with this key (RFC 7166, HMAC-SHA-256); all routers have the same file (see `anabranch key`)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The number of the key
    #[arg(long, value_name = "N", default_value_t = 1, requires = "key")]
    pub key_id: u16,
}

fn time(text: &str) -> Result<Duration, String> {
    quantity::parse(text)
}

/// RFC 5340, appendix A.4.7: 24 bits, of which the largest number means that there is no way.
fn gateway(text: &str) -> Result<u32, String> {
    let wrong = || format!("'{text}' is no cost from 1 to 16777214 (the interface of the default route is not named)");
    text.parse().ok().filter(|cost| (1..=0xff_fffe).contains(cost)).ok_or_else(wrong)
}

fn table(text: &str) -> Result<u32, String> {
    if text == "main" {
        return Ok(MAIN_TABLE);
    }
    // 255 is the kernel's local table, 253 the default table.
    let wrong = || format!("'{text}' is neither `main` nor a number of a table from 1 on but for 253 and 255");
    text.parse().ok().filter(|number| ![0, 253, 255].contains(number)).ok_or_else(wrong)
}

fn interface(text: &str) -> Result<(String, Option<u16>), String> {
    let Some((name, cost)) = text.split_once('=') else { return Ok((text.to_owned(), None)) };
    let cost: u16 = cost.parse().map_err(|_| format!("'{cost}' is no cost from 1 to 65535"))?;
    if cost == 0 { Err("a cost is at least 1".to_owned()) } else { Ok((name.to_owned(), Some(cost))) }
}

fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || format!("'{text}' is no network such as 10.1.0.0/16 or 2001:db8::/32");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let first = match address {
        IpAddr::V4(address) => Prefix::v4(address, length).and_then(Prefix::address_v4).map(IpAddr::V4),
        IpAddr::V6(address) => Prefix::v6(address, length).map(Prefix::address_v6).map(IpAddr::V6),
    };
    let first = first.ok_or_else(wrong)?;
    if first == address {
        return Ok((address, length));
    }
    Err(format!("'{text}' has bits set beyond its length: the network is {first}/{length}"))
}

impl RouteOptions {
    /// Checks that need neither privileges nor the network.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), Diagnostic> {
        self.settings()?;
        match &self.protocol.key {
            Some(path) if is_readable(path) => self.protocol.authentication().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Configuration of the router.
    pub fn config(&self) -> Result<RouteConfig, Diagnostic> {
        Ok(RouteConfig { authentication: self.protocol.authentication()?, ..self.settings()? })
    }

    /// The configuration without the key.
    fn settings(&self) -> Result<RouteConfig, Diagnostic> {
        let mut config = RouteConfig { table: self.table, ..RouteConfig::default() };
        let mesh = |point_to_point| {
            move |(name, cost): &(String, Option<u16>)| MeshInterface {
                name: name.clone(),
                point_to_point,
                cost: *cost,
            }
        };
        config.interfaces.extend(self.interfaces.iter().map(mesh(false)));
        config.interfaces.extend(self.point_to_point.iter().map(mesh(true)));
        config.lanes.clone_from(&self.lanes);
        config.passive.clone_from(&self.passive);
        config.networks.clone_from(&self.networks);
        if !self.families.is_empty() {
            config.families = self.families.iter().map(|family| family.family()).collect();
            config.families.sort_unstable();
            config.families.dedup();
        }
        config.gateway = self.gateway;
        config.router_id = self.router_id;
        config.state = Some(state_directory(self.state.as_deref()));
        config.instance = self.instance;
        config.keep_settings = self.keep_settings;
        config.journal.clone_from(&self.journal);
        self.protocol.apply(&mut config)?;
        if self.full_path {
            config.lane_settings.paths = PathMode::Full;
        }
        config.lane_settings.policy = match self.lane_policy {
            Some(LaneOption::Spread) => LanePolicy::Spread,
            Some(LaneOption::Paper) => LanePolicy::Paper,
            Some(LaneOption::Disjoint) => LanePolicy::Disjoint,
            None => config.lane_settings.policy,
        };
        config.check_alone().map_err(|error| Diagnostic::plain(error.to_string()))?;
        Ok(config)
    }
}

impl FamilyOption {
    const fn family(self) -> Family {
        match self {
            Self::Ipv6 => Family::Ipv6,
            Self::Ipv4 => Family::Ipv4,
        }
    }
}

impl Dialect {
    const fn compatibility(self) -> Compatibility {
        let (accept, send) = match self {
            Self::Rfc => (false, false),
            Self::Accept => (true, false),
            Self::Misplaced => (true, true),
        };
        Compatibility {
            accept_misplaced_mdr_bits: accept,
            send_misplaced_mdr_bits: send,
            accept_checksum_over_lls: accept,
            send_checksum_over_lls: send,
        }
    }
}

impl ProtocolOptions {
    fn apply(&self, config: &mut RouteConfig) -> Result<(), Diagnostic> {
        self.profile.apply(config)?;
        for interface in [&mut config.manet, &mut config.point_to_point] {
            interface.hello_interval = whole(self.hello_interval, interface.hello_interval, "--hello-interval")?;
            let dead = whole(self.dead_interval, interface.router_dead_interval, "--dead-interval")?;
            interface.router_dead_interval = dead;
            interface.rxmt_interval = self.retransmit_interval.unwrap_or(interface.rxmt_interval);
            interface.priority = self.priority;
            if self.link_cost != LinkCostOption::Hops {
                (interface.cost, interface.link_cost) = (ETX_COST, LinkCost::Etx);
            }
        }
        if let InterfaceKind::Manet(manet) = &mut config.manet.kind {
            self.apply_to_manet(manet);
        }
        config.router.min_ls_interval = self.min_ls_interval.unwrap_or(config.router.min_ls_interval);
        config.router.maximum_paths = self.maximum_paths.into();
        config.compatibility = self.dialect.compatibility();
        if let Some(text) = &self.forecaster {
            config.router.forecast = Some(self.forecast(text)?);
        }
        config.airtime = self.link_cost == LinkCostOption::Airtime;
        config.bfd = self.bfd.map(|interval| BfdSettings { interval, multiplier: self.bfd_multiplier });
        if self.bfd.is_some_and(|interval| interval < LEAST_BFD) {
            return Err(Diagnostic::option("--bfd", "an interval of BFD is at least 10 ms"));
        }
        Ok(())
    }

    fn authentication(&self) -> Result<Option<SecurityAssociation>, Diagnostic> {
        Ok(self.key.as_deref().map(read_key).transpose()?.map(|key| self.association(&key)))
    }

    fn apply_to_manet(&self, manet: &mut Manet) {
        manet.two_hop_refresh = self.two_hop_refresh.unwrap_or(manet.two_hop_refresh);
        manet.election.mdr_constraint = self.mdr_constraint.unwrap_or(manet.election.mdr_constraint);
        manet.ack_interval = self.ack_interval.unwrap_or(manet.ack_interval);
        manet.backup_wait_interval = self.backup_wait.unwrap_or(manet.backup_wait_interval);
        manet.election.adj_connectivity = match self.adjacency {
            Some(0) => AdjConnectivity::Full,
            Some(1) => AdjConnectivity::Uniconnected,
            Some(_) => AdjConnectivity::Biconnected,
            None => manet.election.adj_connectivity,
        };
        manet.lsa_fullness = match self.lsa_fullness {
            Some(0) => LsaFullness::Minimal,
            Some(1) => LsaFullness::MinCost,
            Some(2) => LsaFullness::MinCostRedundant,
            Some(3) => LsaFullness::MdrFull,
            Some(_) => LsaFullness::Full,
            None => manet.lsa_fullness,
        };
    }

    fn forecast(&self, text: &str) -> Result<Forecast, Diagnostic> {
        let wrong = |error: combination::CombinationError| {
            Diagnostic::option(&format!("--forecaster {text}"), error.to_string())
        };
        let combination: Combination = format!("forecaster={text}").parse().map_err(wrong)?;
        combination.build_forecaster().map_err(wrong)?;
        let build = Arc::new(move |_, _| combination.build_forecaster().expect("it was built a moment ago"));
        let usage = SoftUse { hold: HOLD, ..SoftUse::default() };
        Ok(Forecast {
            horizon: self.horizon.unwrap_or(Duration::from_secs(2)),
            usage: ForecastUse::Soft(usage),
            period: PERIOD,
            suspect_cost: self.suspect_cost,
            alternates: self.suspect_cost == 0,
            ..Forecast::new(build)
        })
    }

    fn association(&self, key: &Key) -> SecurityAssociation {
        SecurityAssociation::new(self.key_id, Algorithm::HmacSha256, key.bytes().to_vec())
    }
}

/// These protocol fields are whole seconds.
fn whole(given: Option<Duration>, otherwise: Duration, option: &str) -> Result<Duration, Diagnostic> {
    let Some(given) = given else { return Ok(otherwise) };
    let seconds = given.as_nanos() / 1_000_000_000;
    if Duration::from_secs(seconds) == given && (1..=65_535).contains(&seconds) {
        return Ok(given);
    }
    Err(Diagnostic::option(option, "the protocol has whole seconds from 1 to 65535 for it, e.g. \"2 s\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_networks_and_tables_are_read_and_nonsense_is_not() {
        assert_eq!(interface("wlan0"), Ok(("wlan0".to_owned(), None)));
        assert_eq!(interface("wlan0=10"), Ok(("wlan0".to_owned(), Some(10))));
        assert!(interface("wlan0=0").is_err() && interface("wlan0=far").is_err());
        assert_eq!(network("10.0.0.0/8"), Ok(("10.0.0.0".parse().expect("an address"), 8)));
        assert_eq!(network("::/0"), Ok(("::".parse().expect("an address"), 0)));
        assert!(network("10.0.0.0").is_err() && network("10.0.0.0/33").is_err() && network("x/8").is_err());
        let cut = |text: &str| network(text).expect_err("it is an address within a network");
        assert!(cut("10.200.0.1/8").ends_with("the network is 10.0.0.0/8"), "{}", cut("10.200.0.1/8"));
        assert!(cut("2001:db8::1/32").ends_with("the network is 2001:db8::/32"), "{}", cut("2001:db8::1/32"));
        assert!(cut("10.0.0.1/0").ends_with("the network is 0.0.0.0/0"), "{}", cut("10.0.0.1/0"));
        assert!(network("10.200.0.1/32").is_ok());
        assert_eq!((gateway("1"), gateway("16777214")), (Ok(1), Ok(16_777_214)));
        for text in ["0", "16777215", "eth0", ""] {
            assert!(gateway(text).is_err_and(|error| error.contains("no cost from 1 to 16777214")));
        }
        assert_eq!(table("main"), Ok(254));
        assert!(table("0").is_err() && table("255").is_err() && table("mine").is_err());
    }

    #[test]
    fn what_no_host_could_do_is_told_without_one() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: RouteOptions,
        }
        let checked = |words: &str| {
            let line =
                <Line as clap::Parser>::try_parse_from(format!("route --interface e0 {words}").split_whitespace());
            line.expect("the words are options").options.check().map_err(|error| error.whole())
        };
        assert_eq!(checked("--hello-interval 3s --dead-interval 9s --network 10.1.0.0/16"), Ok(()));
        for (words, told) in [
            ("--hello-interval 10s", "HelloInterval must lie below"),
            ("--network fe80::/64", "link-local addresses are in it"),
            ("--family ipv6 --network 10.1.0.0/16", "its address family is not routed"),
        ] {
            let said = checked(words).expect_err("it cannot be");
            assert!(said.contains(told), "{said}");
        }
    }

    #[test]
    fn intervals_are_whole_seconds() {
        let second = Duration::from_secs(1);
        assert_eq!(whole(Some(second), Duration::ZERO, "x").expect("whole"), second);
        assert!(whole(Some(Duration::from_millis(1_500)), second, "x").is_err());
        assert!(whole(Some(Duration::ZERO), second, "x").is_err());
    }
}
