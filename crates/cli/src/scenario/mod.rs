//! Scenarios: experiments as data. Parses a TOML file into a [`Scenario`], or returns an error message with its
//! position.

pub mod baseline;
#[cfg(feature = "lab")]
pub mod beside;
mod choices;
pub mod connection;
#[cfg(feature = "lab")]
mod datagrams;
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
mod moving;
#[cfg(feature = "lab")]
mod network;
#[cfg(feature = "lab")]
mod policies;
pub mod quantity;
#[cfg(feature = "lab")]
mod read;
mod reader;
mod receive_buffer;
#[cfg(feature = "lab")]
mod references;
#[cfg(feature = "lab")]
mod results;
#[cfg(all(test, feature = "lab"))]
mod tests;
#[cfg(feature = "lab")]
mod transfer;
pub mod tree;
#[cfg(feature = "lab")]
mod video;
#[cfg(feature = "lab")]
mod walk;

#[cfg(feature = "lab")]
pub use document::Document;
#[cfg(feature = "lab")]
pub use model::Scenario;
#[cfg(feature = "lab")]
pub use references::check_route;
pub use tree::Source;
