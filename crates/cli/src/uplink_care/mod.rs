//! Uplinks that are not like the others: which cost, how much may pass them, and which lead to a portal.

mod counter;
mod govern;
mod options;
mod portal;
mod quota;

pub use govern::{Roles, govern};
pub use options::UplinkOptions;
