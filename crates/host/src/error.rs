//! Errors of a host's setup. Each message says what to do.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// Why a host cannot be set up or restored.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Neither root nor CAP_NET_ADMIN.
    #[error("this needs CAP_NET_ADMIN to set up the network: run it as root, or see its commands with --dry-run")]
    NoPermission,
    /// No such interface.
    #[error("there is no network interface '{name}': there are {}", known.join(", "))]
    NoSuchInterface {
        /// The requested name.
        name: String,
        /// The existing interfaces.
        known: Vec<String>,
    },
    /// An interface that cannot be an uplink.
    #[error("'{name}' cannot be an uplink: {reason}")]
    NotAnUplink {
        /// The interface.
        name: String,
        reason: &'static str,
    },
    /// An interface that cannot be a gateway's.
    #[error("'{name}' cannot be a gateway's interface: {reason}")]
    NotAGateway {
        /// The interface.
        name: String,
        reason: &'static str,
    },
    #[error("another `anabranch up` has this host's default route: end that first")]
    AlreadyUp,
    /// A rule of ours that no journal in our directory has.
    #[error(
        "rules of an `anabranch` with another --journal are there (`ip rule show`, protocol 198): end that first; if none runs, see docs/host.md for how to clean up by hand"
    )]
    RulesOfAnother,
    #[error("no interface has a default route: connect one, or name the interfaces with --uplink")]
    NoUplink,
    /// No uplink has an address and a route of the family of the server.
    #[error(
        "no uplink has an address and a route of the kind that the server {0} has: connect one, or name a server that has the other kind"
    )]
    NoUplinkTo(IpAddr),
    /// The number of paths is out of range.
    #[error("at least one path is needed, and at most {MAX} are possible", MAX = super::MAX_PATHS)]
    NumberOfPaths,
    /// All instance numbers are in use.
    #[error(
        "all networks from 198.18.0.0/24 to 198.18.99.0/24 are in use on this host: end other instances, or free the range"
    )]
    TooManyInstances,
    /// A required program is missing.
    #[error("the program '{program}' is missing: install {package}")]
    MissingProgram {
        program: &'static str,
        /// The package that contains it.
        package: &'static str,
    },
    /// Another program uses the port.
    #[error(
        "port {0} is in use by another program on this host (`ss -tlnp` says which): end it, or choose another port"
    )]
    PortInUse(u16),
    /// Another program uses the UDP port.
    #[error(
        "UDP port {0} is in use by another program on this host (`ss -ulnp` says which): end it, or choose another port"
    )]
    UdpPortInUse(u16),
    /// TUN devices are not available.
    #[error("this kernel has no TUN devices (/dev/net/tun): load the module with `modprobe tun`")]
    NoTun,
    /// The permissions of the device's file, which udev lets everybody open; CAP_NET_ADMIN does not help there.
    #[error("this user may not open /dev/net/tun: allow it, as most hosts do, with `chmod 666 /dev/net/tun` as root")]
    ClosedTun,
    /// The journal of steps to undo cannot be written.
    #[error("cannot record in {} what is to be undone after a crash ({error}): make room there, or name another directory with --journal", path.display())]
    Journal {
        /// The directory or file.
        path: PathBuf,
        error: io::Error,
    },
    /// A step failed.
    #[error("`{command}` failed: {error}; what had been set up is undone")]
    Step {
        /// The equivalent command.
        command: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// What another program has removed could not be set again.
    #[error("`{command}` failed: {error}{hint}")]
    Restore {
        /// The command equivalent to the step.
        command: String,
        /// The kernel's error.
        error: io::Error,
        /// What may be the cause, behind a semicolon, or nothing.
        hint: &'static str,
    },
    /// A step could not be undone.
    #[error("could not undo `{command}`: {error}; see docs/host.md for how to clean up by hand")]
    Undo {
        /// The command equivalent to the step.
        command: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// A system call failed.
    #[error("cannot {doing}: {error}")]
    System {
        /// The attempted action.
        doing: &'static str,
        error: io::Error,
    },
}

impl HostError {
    /// Returns a conversion for an error of the operating system while `doing` something.
    pub fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { doing, error }
    }
}
