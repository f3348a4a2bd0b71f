//! The lab's links in real time, for packets of real hosts on a scenario's paths.
//!
//! A [`Network`] is the sans-IO half: links, routes and cross traffic between ports, the same [`anabranch_sim::Link`]
//! machines as in the lab, with the same random numbers for a seed and name. A [`Relay`] is the thread that runs it: it
//! stamps packets with the time of reading from the ports' descriptors, and writes each packet at the time that the
//! links compute. On a busy machine it is late, and measures that ([`Lateness`]). Lateness does not accumulate: a
//! packet moves from link to link at the computed times, however late the thread is.

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
pub use capture::{Capture, Captured};
pub use ether::{AntennaReport, Ether, EtherReport};
pub use frame::Frame;
pub use hosts::{Hosts, HostsConfig, HostsError};
pub use lateness::Lateness;
pub use mesh::{Mesh, MeshConfig, Node};
pub use network::{Change, Delivery, Hop, LinkId, Network, NetworkCounters, PortId, Prefix, RoutesId};
pub use relay::{LinkReport, PortReport, Relay, Report};
pub use routers::Routers;
pub use session::{Ending, Programs, Session, SessionError, run};
