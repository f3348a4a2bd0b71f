//! A run in real time: settings, results, and the addresses and links between its ends.

use crate::calibrate::cases::{Case, Span, Stack};
use crate::calibrate::meter::Reading;
use crate::emulation;
use anabranch_emulate::{Relay, Report, address};
use anabranch_lab::scenario::Scenario;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// The server's port.
pub const PORT: u16 = 5001;
/// A run to execute.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    pub case: &'a Case,
    pub stack: Stack,
    /// Seed of the links' random streams.
    pub seed: u64,
    pub span: Span,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Done {
    /// Goodput at the receiver.
    pub reading: Reading,
    /// Report of the links.
    pub report: Report,
    /// Segments that Linux acknowledged on their subflow and then dropped as beyond the connection's receive window.
    pub discarded: u64,
}

/// Formats an error with what failed.
pub fn failed<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("cannot {what}: {error}")
}

/// Starts the lab's links between one descriptor per path at the client and one at the server.
pub fn start_links(scenario: &Scenario, seed: u64, clients: Vec<OwnedFd>, server: OwnedFd) -> Result<Relay, String> {
    let paths: Vec<usize> = (0..scenario.paths.len()).collect();
    start_some_links(scenario, &paths, seed, clients, server)
}

/// The same for the given path indices.
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

/// The client's address on each path.
pub fn client_addresses(paths: usize) -> Vec<IpAddr> {
    (1..).take(paths).map(|path| address::client(path)[0]).collect()
}

/// The server's address, as in the lab.
pub fn server_address() -> IpAddr {
    address::server()[0]
}
