//! Scenarios: experiments as data. Parses a TOML file into a [`Scenario`], or returns an error message with its
//! position.

pub mod beside;
mod datagrams;
mod derived;
mod description;
mod document;
mod files;
mod generators;
mod mesh;
pub mod model;
mod moving;
mod network;
mod policies;
mod read;
mod references;
mod results;
#[cfg(test)]
mod tests;
mod transfer;
mod video;
mod walk;

pub use document::Document;
pub use model::{About, Scenario};
pub use references::check_route;
