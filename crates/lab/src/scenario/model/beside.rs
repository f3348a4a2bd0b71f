//! Competing TCP connections of a scenario, over the links of a path.

use super::network::Draw;
use super::traffic::Heading;
use anabranch_policy::combination::Choice;
use anabranch_policy::time::Duration;
use anabranch_settings::connection::ConnectionSettings;
use anabranch_settings::quantity::Size;

/// TCP connections of one kind over one path.
#[derive(Clone, PartialEq, Debug)]
pub struct Beside {
    pub name: String,
    /// Number of connections.
    pub count: u32,
    pub congestion: Choice,
    /// Index of the path.
    pub path: usize,
    /// Direction of data.
    pub heading: Heading,
    /// Messages to send; none: bulk transfer.
    pub bursts: Option<Bursts>,
    /// Start time of each connection.
    pub start: Draw<Duration>,
    /// Settings of both ends.
    pub connection: ConnectionSettings,
}

/// Messages at random times (a Poisson process).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bursts {
    /// Bytes of a message.
    pub size: Size,
    /// Mean interval.
    pub interval: Duration,
}
