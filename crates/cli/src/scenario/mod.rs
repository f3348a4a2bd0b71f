//! Scenarios: experiments as data. Reads a TOML file into a [`Scenario`] or into one message that says what is wrong where.

pub mod baseline;
mod choices;
pub mod connection;
mod derived;
mod document;
mod generators;
mod mesh;
pub mod model;
mod moving;
mod network;
mod policies;
pub mod quantity;
mod read;
mod reader;
mod references;
mod results;
#[cfg(test)]
mod tests;
mod transfer;
mod tree;
mod video;
mod walk;

pub use document::Document;
pub use model::Scenario;
pub use references::check_route;
pub use tree::Source;
