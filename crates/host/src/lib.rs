//! The changes that we make to a host, as data: each step can be printed as the equivalent command, carried out, and
//! undone.

mod default_route;
mod error;
mod filter;
mod inside;
mod journal;
mod layout;
mod netlink;
mod path_plan;
mod plan;
mod ports;
mod rule;
mod server_addresses;
mod setup;
mod snapshot;
mod step;
mod watch;
mod wireless;

pub use default_route::{DefaultRoute, Ipv6, leads_the_default_route};
pub use error::HostError;
pub use filter::chains_that_drop_forwarded;
pub use inside::{INSIDE_DEVICE, lead_out};
pub use journal::{Afterwards, Directory, runtime_directories};
pub use layout::{Layout, MAX_PATHS, PROTOCOL};
pub use netlink::Netlink;
pub use path_plan::PathPlan;
pub use plan::Plan;
pub use plan::{filter_step, forwarding, uplink_path, uplink_steps, ways_out};
pub use ports::ReservedPorts;
pub use rule::{Instead, Rule, Selector, Transport};
pub use server_addresses::ServerAddresses;
pub use setup::{Prospect, Restored, Setup, prospect, undo_what_stays};
pub use snapshot::{Interface, Snapshot, address_of};
pub use step::read_setting;
pub use step::{Route, Step, Target};
pub use watch::Watch;
pub use wireless::{Station, Wireless};
