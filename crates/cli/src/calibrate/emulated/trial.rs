//! A run in real time: its settings, its results, and the addresses and links between its ends.

use crate::calibrate::cases::{Case, Span, Stack};
use crate::calibrate::meter::Reading;
use crate::emulation;
use crate::scenario::Scenario;
use anabranch_emulate::{Relay, Report, address};
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// The server listens here.
pub const PORT: u16 = 5001;
/// A run to be done.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The case.
    pub case: &'a Case,
    /// Who sends and receives.
    pub stack: Stack,
    /// The luck of the links.
    pub seed: u64,
    /// How long.
    pub span: Span,
}

/// A run that was done.
#[derive(Clone, Debug)]
pub struct Done {
    /// What the receiver got.
    pub reading: Reading,
    /// What the links did, and how late they were.
    pub report: Report,
    /// Segments that Linux had acknowledged on their subflow and then dropped as beyond the connection's window.
    pub discarded: u64,
}

/// Says what could not be done, and why.
pub fn failed<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("cannot {what}: {error}")
}

/// The lab's links between a descriptor per path at the client and one at the server.
pub fn start_links(scenario: &Scenario, seed: u64, clients: Vec<OwnedFd>, server: OwnedFd) -> Result<Relay, String> {
    let paths: Vec<usize> = (0..scenario.paths.len()).collect();
    start_some_links(scenario, &paths, seed, clients, server)
}

/// The same of those `paths`, by their places.
pub fn start_some_links(
    scenario: &Scenario,
    paths: &[usize],
    seed: u64,
    mut clients: Vec<OwnedFd>,
    server: OwnedFd,
) -> Result<Relay, String> {
    let network = emulation::build(scenario, paths, seed).map_err(|error| error.to_string())?;
    clients.push(server);
    Relay::start(network, clients, None).map_err(failed("start the links"))
}

/// The client's address on each of so many paths.
pub fn client_addresses(paths: usize) -> Vec<IpAddr> {
    (1..).take(paths).map(|path| address::client(path)[0]).collect()
}

/// The server's one address, as in the lab.
pub fn server_address() -> IpAddr {
    address::server()[0]
}
