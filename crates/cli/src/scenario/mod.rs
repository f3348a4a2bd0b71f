//! Scenarios: experiments as data. Reads a TOML file into a [`Scenario`] or into one message that says what is wrong where.

pub mod baseline;
mod choices;
pub mod connection;
#[cfg(feature = "lab")]
mod derived;
#[cfg(feature = "lab")]
mod document;
#[cfg(feature = "lab")]
mod generators;
#[cfg(feature = "lab")]
mod mesh;
#[cfg(feature = "lab")]
pub mod model;
#[cfg(feature = "lab")]
mod network;
#[cfg(feature = "lab")]
mod policies;
pub mod quantity;
mod reader;
mod receive_buffer;
#[cfg(feature = "lab")]
mod results;
#[cfg(all(test, feature = "lab"))]
mod tests;
#[cfg(feature = "lab")]
mod transfer;
mod tree;
#[cfg(feature = "lab")]
mod video;
#[cfg(feature = "lab")]
mod walk;

#[cfg(all(test, feature = "lab"))]
pub use document::tree_of;
#[cfg(feature = "lab")]
pub use document::{Document, check_route};
#[cfg(feature = "lab")]
pub use model::Scenario;
pub use tree::Source;

/// Files and tables are called after names.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
