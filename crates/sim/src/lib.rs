//! The lab: a deterministic network in virtual time.
//!
//! A [`World`] has hosts, each with one [`anabranch_mptcp::Endpoint`], routers, and unidirectional links between them.
//! Flows, UDP sources and changes are added to it; [`World::run_until`] advances time; [`World::results`] returns the
//! measurements. Results depend only on the seed and on what was added in which order: events are processed in the
//! order of (time, sequence number), and every component draws from its own random stream ([`random`]). So the same run
//! has the same [`trace_hash`] on every machine.

pub mod address;
pub mod application;
pub mod background;
pub mod datagrams;
pub mod event_queue;
pub mod exploration;
pub mod flow;
pub mod forecast_score;
pub mod generator;
pub mod histogram;
pub mod identifiers;
pub mod link;
pub mod mesh;
pub mod mobility;
pub mod network;
mod pool;
pub mod radio;
pub mod random;
pub mod recorder;
pub mod reference;
pub mod results;
pub mod share;
pub mod supervisor;
pub mod topology;
pub mod trace_hash;
pub mod udp;
pub mod walk;
pub mod world;

pub use address::InterfaceId;
pub use application::Application;
pub use background::BackgroundLoad;
pub use flow::{FlowConfig, FlowId, FlowResult, Side};
pub use generator::Generator;
pub use identifiers::{HostId, LinkId, RouterId};
pub use link::{Link, LinkConfig, LinkMtu};
pub use network::End;
pub use results::RunResult;
pub use supervisor::Supervisor;
pub use udp::{UdpConfig, UdpSource};
pub use world::{Change, World, WorldConfig};
