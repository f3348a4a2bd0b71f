//! What a scenario says of others: TCP connections over the links of a path, beside those that are measured.

use super::network::Draw;
use super::traffic::Heading;
use crate::scenario::connection::ConnectionSettings;
use crate::scenario::quantity::Size;
use anabranch_policy::combination::Choice;
use anabranch_policy::time::Duration;

/// TCP connections alike, each over one path.
#[derive(Clone, PartialEq, Debug)]
pub struct Beside {
    /// Their name.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Their congestion control.
    pub congestion: Choice,
    /// Over which path, by its place.
    pub path: usize,
    /// Which way their data goes.
    pub heading: Heading,
    /// What they send; none: as much as fits.
    pub bursts: Option<Bursts>,
    /// When each begins.
    pub start: Draw<Duration>,
    /// What is said of their ends.
    pub connection: ConnectionSettings,
}

/// Messages at random times (a Poisson process).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bursts {
    /// Bytes of each.
    pub size: Size,
    /// Mean time from one to the next.
    pub interval: Duration,
}
