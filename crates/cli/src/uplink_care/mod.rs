//! Uplinks with special roles: metered uplinks, their quotas, and captive portals.

mod counter;
mod govern;
mod options;
mod portal;
mod quota;

pub use counter::traffic;
pub use govern::{Roles, absent, govern};
pub use options::UplinkOptions;
