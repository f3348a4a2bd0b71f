//! A host: its addresses, listeners and connections, and which of them a segment belongs to.

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
