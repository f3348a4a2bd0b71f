//! A host: its addresses, listeners and connections, and the routing of segments to them.

mod addresses;
mod application;
mod arrivals;
mod attempts;
mod connect;
mod connections;
mod drive;
mod error;
mod held;
mod info;
mod paths;
mod random;
mod state;
#[cfg(test)]
mod tests;
mod time_wait_table;
mod uplinks;

pub use error::OperationError;
pub use state::Endpoint;
