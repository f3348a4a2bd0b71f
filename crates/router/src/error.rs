//! Errors of a router on a host. Each message says what to do.

use anabranch_host::HostError;
use std::io;

/// Why a host cannot route or be restored.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// Neither root nor the capabilities.
    #[error("this needs CAP_NET_RAW and CAP_NET_ADMIN for a raw socket and routes: run it as root")]
    NoPermission,
    /// No interface to route on.
    #[error("name at least one interface with --interface: there are {}", known.join(", "))]
    NoInterface {
        /// The existing interfaces.
        known: Vec<String>,
    },
    /// No such interface.
    #[error("there is no network interface '{name}': there are {}", known.join(", "))]
    NoSuchInterface {
        /// The requested name.
        name: String,
        /// The existing interfaces.
        known: Vec<String>,
    },
    /// An interface with two purposes, or twice the same.
    #[error("'{name}' is named twice: an interface is --interface, --point-to-point, --lane or --passive, and once")]
    NamedTwice {
        /// The interface.
        name: String,
    },
    /// An interface that cannot run OSPF.
    #[error("'{name}' cannot be an interface of the mesh: {reason}")]
    NotForMesh {
        /// The interface.
        name: String,
        reason: &'static str,
    },
    /// A network that cannot be advertised.
    #[error("--network {network} cannot be advertised: {reason}")]
    NotANetwork { network: String, reason: &'static str },
    /// They do not fit in an LSA.
    #[error(
        "the networks of {family} are too many: an LSA has room for 7500 of IPv4 and 3000 of IPv6; advertise shorter prefixes that contain them"
    )]
    TooManyNetworks { family: &'static str },
    /// The interface has no link-local address.
    #[error(
        "'{name}' has no link-local IPv6 address, which the protocol needs (RFC 5340, 2.5): give it one with \
         `ip address add fe80::N/64 dev {name}`, or let the kernel do so with `sysctl -w net.ipv6.conf.{name}.disable_ipv6=0 \
         net.ipv6.conf.{name}.addr_gen_mode=0` before it is switched on"
    )]
    NoLinkLocal {
        /// The interface.
        name: String,
    },
    /// The kernel has no IPv6.
    #[error("this kernel has no IPv6, which OSPFv3 needs for IPv4 too: boot it without ipv6.disable=1")]
    NoIpv6,
    /// A router with this table is already running.
    #[error(
        "a router is at work in this network namespace with table {table}: end it, or choose another table with --table"
    )]
    AlreadyRuns {
        /// The routing table.
        table: u32,
    },
    /// No router with this table is running.
    #[error(
        "no router is at work in this network namespace with table {table}: start one with `anabranch route --interface NAME`"
    )]
    NotRunning {
        /// The routing table.
        table: u32,
    },
    /// The router's answer could not be parsed.
    #[error("the running router is of another version: {0}")]
    NotUnderstood(String),
    /// A protocol setting is out of range.
    #[error("{0}")]
    Setting(String),
    /// The host could not be set up or restored.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system call failed.
    #[error("cannot {doing}: {error}")]
    System {
        /// The attempted action.
        doing: &'static str,
        error: io::Error,
    },
}

impl RouteError {
    /// Returns a conversion for an error of the operating system while `doing` something.
    pub fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NoPermission,
            _ => Self::System { doing, error },
        }
    }
}
