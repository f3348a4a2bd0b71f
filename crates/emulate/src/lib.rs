//! The lab's links in real time: packets of real hosts on a scenario's paths.
//!
//! A [`Network`] is the sans-IO half: links, routes and cross traffic between ports, the same [`anabranch_sim::Link`]
//! machines as in the lab with the same luck per seed and name. A [`Relay`] is the thread that runs it: it stamps what it
//! reads from the ports' descriptors with the time of reading, and writes each packet out at the instant that the links
//! compute. It is late by as much as the machine is busy, says by how much ([`Lateness`]), and lateness does not add up: a
//! packet goes from link to link at the computed instants, however late they are noticed.

pub mod address;
mod air;
mod capture;
mod ether;
mod frame;
mod hosts;
mod lateness;
pub mod mesh;
mod network;
mod relay;
mod routers;
mod session;
#[cfg(test)]
mod tests;

pub use air::{Air, AirCounters, AntennaId, ChannelId, ChannelModel, Hardware, Landing};
pub use capture::Capture;
pub use ether::{AntennaReport, Ether, EtherReport};
pub use frame::Frame;
pub use hosts::{Hosts, HostsConfig, HostsError};
pub use lateness::Lateness;
pub use mesh::{Mesh, MeshConfig, Node};
pub use network::{Change, Delivery, Hop, LinkId, Network, NetworkCounters, PortId, Prefix, RoutesId};
pub use relay::{LinkReport, PortReport, Relay, Report};
pub use routers::Routers;
pub use session::{Ending, Programs, SessionError, run};
