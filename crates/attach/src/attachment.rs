//! The kinds of attachments of a stack.

use anabranch_host::ServerAddresses;
use anabranch_policy::ids::AddressId;
use anabranch_stack::{DeviceId, StackConfig};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// What a stack is attached to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// Only the programs of this host (this network namespace): nothing is forwarded.
    Local(Local),
    /// The interfaces of this host: packets of the stack leave through them with their addresses.
    Uplinks(Uplinks),
    /// A tunnel server, over UDP: nothing is set up and no privilege is needed.
    Tunnels(Tunnels),
    /// All tunnel clients that send UDP to this address.
    TunnelServer(SocketAddr),
}

/// Paths to the programs of this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Local {
    /// The number of paths, 1 to 32. Path `n` has its own addresses at both ends.
    pub paths: u8,
    /// Options of all attachments.
    pub options: HostOptions,
}

/// Paths over the interfaces of this host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Uplinks {
    /// The interfaces; if empty, all with a default route, including those that get one later.
    pub interfaces: Vec<String>,
    /// The ports on which other hosts reach the stack at the interfaces' own addresses.
    pub ports: Vec<u16>,
    /// Options of all attachments.
    pub options: HostOptions,
}

/// Paths to a tunnel server, over UDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tunnels {
    /// The addresses of its socket. Its stack's address is [`Self::SERVER`].
    pub server: ServerAddresses,
    /// The interfaces; if empty, all with a default route, including those that get one later. For a server on this
    /// host, the routes decide.
    pub interfaces: Vec<String>,
}

/// Options of a host's setup.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostOptions {
    /// MTU in bytes of IP; by default that of the uplink, or 1500.
    pub mtu: Option<u16>,
    /// Directory of the journal of changes to undo after a crash; by default `/run/anabranch`, or
    /// `$XDG_RUNTIME_DIR/anabranch` if that is not writable.
    pub journal: Option<PathBuf>,
}

/// A worker: the place of one of several stacks.
pub struct Worker {
    /// The runtime of its event loop.
    pub runtime: Handle,
    /// Settings of the stack; the share is set.
    pub config: StackConfig,
}

/// A path of the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachedPath {
    /// The name of the uplink, or else of the device.
    pub name: String,
    /// The device of the stack.
    pub device: DeviceId,
    /// MTU in bytes of IP.
    pub mtu: u16,
    /// The stack's usable addresses with their IDs. Empty if the uplink is down.
    pub addresses: Vec<(AddressId, IpAddr)>,
}

impl Tunnels {
    /// The address of the server's stack, to which clients connect.
    pub const SERVER: IpAddr = anabranch_wire::encapsulation::SERVER;
}

impl Default for Attachment {
    /// All interfaces with a default route.
    fn default() -> Self {
        Self::Uplinks(Uplinks::default())
    }
}

impl Attachment {
    pub(crate) fn root(&self) -> Option<&Path> {
        match self {
            Self::Local(Local { options, .. }) | Self::Uplinks(Uplinks { options, .. }) => options.journal.as_deref(),
            Self::Tunnels(_) | Self::TunnelServer(_) => None,
        }
    }

    /// Whether packets are translated by the host (NAT).
    pub(crate) fn needs_filter(&self) -> bool {
        matches!(self, Self::Uplinks(_))
    }

    pub(crate) fn ports(&self) -> &[u16] {
        match self {
            Self::Local(_) | Self::Tunnels(_) | Self::TunnelServer(_) => &[],
            Self::Uplinks(uplinks) => &uplinks.ports,
        }
    }
}
