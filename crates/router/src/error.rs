//! Errors of a router on a host: each a sentence that says what to do.

use anabranch_host::HostError;
use std::io;

/// Why a host cannot route, or not be put back as it was.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// Neither root nor the capabilities.
    #[error("this needs CAP_NET_RAW and CAP_NET_ADMIN for a raw socket and routes: run it as root")]
    NoPermission,
    /// Nothing to route on.
    #[error("name at least one interface with --interface: there are {}", known.join(", "))]
    NoInterface {
        /// What there is.
        known: Vec<String>,
    },
    /// No such interface.
    #[error("there is no network interface '{name}': there are {}", known.join(", "))]
    NoSuchInterface {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// An interface that cannot carry the protocol.
    #[error("'{name}' cannot be an interface of the mesh: {reason}")]
    NotForMesh {
        /// The interface.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// A link-local address is needed.
    #[error(
        "'{name}' has no link-local IPv6 address, which the protocol needs (RFC 5340, 2.5): give it one with \
         `ip address add fe80::N/64 dev {name}`, or let the kernel do so with `sysctl -w net.ipv6.conf.{name}.disable_ipv6=0 \
         net.ipv6.conf.{name}.addr_gen_mode=0` before it is switched on"
    )]
    NoLinkLocal {
        /// The interface.
        name: String,
    },
    /// There is no IPv6 at all.
    #[error("this kernel has no IPv6, which OSPFv3 needs for IPv4 too: boot it without ipv6.disable=1")]
    NoIpv6,
    /// No address to make a router id from.
    #[error("no router id can be made from the addresses of this host: name one with --router-id A.B.C.D")]
    NoRouterId,
    /// Somebody is at work.
    #[error(
        "a router is at work in this network namespace with table {table}: end it, or choose another table with --table"
    )]
    AlreadyRuns {
        /// The table.
        table: u32,
    },
    /// Nobody is at work.
    #[error(
        "no router is at work in this network namespace with table {table}: start one with `anabranch route --interface NAME`"
    )]
    NotRunning {
        /// The table.
        table: u32,
    },
    /// The router's answer was not understood.
    #[error("the running router is of another version: {0}")]
    NotUnderstood(String),
    /// A setting of the protocol is out of its range.
    #[error("{0}")]
    Setting(String),
    /// The host could not be set up or put back.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The operating system does not let us look or work.
    #[error("cannot {doing}: {error}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the operating system says.
        error: io::Error,
    },
}

impl RouteError {
    /// An error of the operating system while `doing` something.
    pub fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NoPermission,
            _ => Self::System { doing, error },
        }
    }
}
