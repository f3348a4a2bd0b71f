//! Errors of a host's set-up: each a sentence that says what to do.

use std::io;
use std::path::PathBuf;

/// Why a host cannot be set up, or not be put back as it was.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Neither root nor CAP_NET_ADMIN.
    #[error("this needs CAP_NET_ADMIN to set up the network: run it as root, or see its commands with --dry-run")]
    NoPermission,
    /// No such interface.
    #[error("there is no network interface '{name}': there are {}", known.join(", "))]
    NoSuchInterface {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// An interface that cannot be an uplink.
    #[error("'{name}' cannot be an uplink: {reason}")]
    NotAnUplink {
        /// The interface.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// An interface that cannot be a gateway's.
    #[error("'{name}' cannot be a gateway's interface: {reason}")]
    NotAGateway {
        /// The interface.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// There are two.
    #[error("another `anabranch up` has this host's default route: end that first")]
    AlreadyUp,
    /// There is no uplink.
    #[error("no interface has a default route: connect one, or name the interfaces with --uplink")]
    NoUplink,
    /// There is no number, and so no paths.
    #[error("at least one path is needed, and at most {MAX} are possible", MAX = super::MAX_PATHS)]
    NumberOfPaths,
    /// All numbers are taken.
    #[error(
        "all networks from 198.18.0.0/24 to 198.18.99.0/24 are in use on this host: end other instances, or free the range"
    )]
    TooManyInstances,
    /// A program is needed that is not there.
    #[error("the program '{program}' is missing: install {package}")]
    MissingProgram {
        /// Its name.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// Another program has the port.
    #[error(
        "port {0} is in use by another program on this host (`ss -tlnp` says which): end it, or choose another port"
    )]
    PortInUse(u16),
    /// There are no TUN devices.
    #[error("this kernel has no TUN devices (/dev/net/tun): load the module with `modprobe tun`")]
    NoTun,
    /// What must be undone cannot be recorded.
    #[error("cannot record in {} what is to be undone after a crash ({error}): make room there, or name another directory with --journal", path.display())]
    Journal {
        /// The directory or file.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// A step failed.
    #[error("`{command}` failed: {error}; what had been set up is undone")]
    Step {
        /// The command that does the same.
        command: String,
        /// What the kernel says.
        error: io::Error,
    },
    /// What has been set up could not be removed.
    #[error("could not undo `{command}`: {error}; see docs/host.md for how to clean up by hand")]
    Undo {
        /// The command that set it up.
        command: String,
        /// What the kernel says.
        error: io::Error,
    },
    /// The operating system does not let us look or work.
    #[error("cannot {doing}: {error}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the operating system says.
        error: io::Error,
    },
}

impl HostError {
    /// An error of the operating system while `doing` something.
    pub fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { doing, error }
    }
}
