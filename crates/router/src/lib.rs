//! The OSPF-MDR router on a real host: its interfaces, its routes in the kernel, and a control socket.
//!
//! [`RouteDaemon`] drives an [`anabranch_routing::Router`] for each address family. Its routes and rules have their own
//! protocol number. They are removed at its end, or after a kill by the next start. [`ask`] queries a running router.

mod bfd;
mod complaints;
mod config;
mod control;
mod daemon;
mod error;
mod gateway;
mod ground;
mod identity;
mod instance;
mod kept;
mod kernel;
mod lanes;
mod link_costs;
mod packets;
mod ports;
mod radio;
mod reconfiguration;
mod settings;
mod show;
mod socket;
mod transport;
mod upkeep;

pub use config::{ConfigRead, Family, MeshInterface, NewConfig, RouteConfig};
pub use control::{Question, ask};
pub use daemon::RouteDaemon;
pub use error::RouteError;
pub use kernel::{MAIN_TABLE, PROTOCOL, TABLE};
pub use transport::Refusal;
