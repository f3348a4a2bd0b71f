//! What a stack can be attached to.

use anabranch_policy::ids::AddressId;
use anabranch_stack::{DeviceId, StackConfig};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// What a stack is attached to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// The programs of this host (of this network namespace) only: nothing is forwarded.
    Local(Local),
    /// The interfaces of this host: what the stack sends leaves by them under their addresses.
    Uplinks(Uplinks),
    /// A server of ours, inside UDP: nothing is set up and no privilege is needed.
    Tunnels(Tunnels),
    /// All clients whose UDP reaches this address.
    TunnelServer(SocketAddr),
}

/// Paths to the programs of this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Local {
    /// How many, 1 to 32: path `n` has addresses of its own at both ends.
    pub paths: u8,
    /// What all attachments have.
    pub options: HostOptions,
}

/// Paths by the interfaces of this host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Uplinks {
    /// The interfaces; if none is named, all with a default route, also those that get one later.
    pub interfaces: Vec<String>,
    /// The ports on which others reach the stack at the interfaces' own addresses.
    pub ports: Vec<u16>,
    /// What all attachments have.
    pub options: HostOptions,
}

/// Paths to one server of ours, inside UDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tunnels {
    /// Where its socket is; its stack has [`Self::SERVER`].
    pub server: SocketAddr,
    /// The interfaces; if none is named, all with a default route, also those that get one later. If the server is on
    /// this host, wherever the routes lead.
    pub interfaces: Vec<String>,
}

/// What can be chosen about how a host is set up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostOptions {
    /// Largest packet, bytes of IP; by default the uplink's, or 1500.
    pub mtu: Option<u16>,
    /// Directory of the journal of what is to be undone after a crash; by default `/run/anabranch`, or
    /// `$XDG_RUNTIME_DIR/anabranch` where that cannot be written.
    pub journal: Option<PathBuf>,
}

/// Where a stack of an attachment with several works.
pub struct Worker {
    /// The runtime of its event loop.
    pub runtime: Handle,
    /// What was chosen about the stack; its share is set.
    pub config: StackConfig,
}

/// A path of the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachedPath {
    /// The uplink's name, or the device's own.
    pub name: String,
    /// The device in the stack.
    pub device: DeviceId,
    /// Largest packet, bytes of IP.
    pub mtu: u16,
    /// The stack's addresses that can be used now, with their ids. None if the uplink is down.
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

    /// Whether packets are translated on their way.
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
