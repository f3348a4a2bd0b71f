//! What we set up on a host, as data: each step can be printed as the command that does the same, carried out, and undone.

mod error;
mod layout;
pub(crate) mod netlink;
mod plan;
mod step;

pub use error::HostError;
pub use layout::{Layout, MAX_INSTANCES, MAX_PATHS, PRIORITY, PROTOCOL};
pub use plan::{PathPlan, Plan};
pub use step::{Route, Rule, Selector, Step, Target};
