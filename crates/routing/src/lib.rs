//! A sans-IO router for ad-hoc networks: OSPF-MDR (RFC 5614, on RFC 5340) with routes over several interfaces.
//!
//! Its inputs are methods `handle_*` (a packet, an interface, the result of a transmission, a timeout); its outputs are
//! `poll_*` (transmit, event, timeout), drained in that order after every input. Time is an argument. The output
//! depends only on the seed and the inputs.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic))]

pub mod airtime;
pub mod config;
pub mod counters;
pub mod election;
pub mod footprint;
pub mod graph;
pub mod lane_plan;
pub mod lanes;
pub mod lsa_fullness;
pub mod neighborhood;
pub mod next_hops;
pub mod router;
pub mod routing_table;
pub mod show;
pub mod spf;
mod steady_cost;

mod adjacency;
pub mod bfd;
mod bit_matrix;
mod calculation;
mod conversation;
mod database;
mod flooding;
mod forecasts;
mod handles;
mod hello;
mod interface;
mod interfaces;
mod mdr_selection;
mod neighbor;
mod origination;
mod output;
mod random;
mod timers;
mod verbs;

pub use config::{Config, ConfigError, InterfaceConfig, InterfaceKind, LinkCost};
pub use interface::InterfaceState;
pub use neighbor::NeighborState;
pub use router::Router;
pub use routing_table::{NextHop, Route, RoutingTable};
pub use verbs::{Destination, Event, InterfaceChange, Outgoing, Reception, Restart};
