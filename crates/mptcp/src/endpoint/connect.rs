//! Opens connections, and orders the pairs of addresses for the attempts (RFC 8305).

use super::error::OperationError;
use super::state::{Endpoint, is_one_host};
use crate::config::{ConnectionConfig, InitialPath};
use crate::connection::{Candidate, Connection};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;
use std::sync::Arc;

/// Limit of attempts to open one connection.
const ATTEMPTS: usize = 8;

impl Endpoint {
    /// Opens a connection from `local`, or from the first address of the right family. With
    /// [`ConnectionConfig::initial_path`] set to race, attempts from other addresses follow until one is answered. All
    /// of them are one connection, and the first one answered becomes its initial subflow.
    ///
    /// # Errors [`OperationError::NoPeer`], [`OperationError::NoAddress`], [`OperationError::LimitReached`], or
    /// [`OperationError::PortInUse`] if no port is free.
    pub fn connect(
        &mut self,
        now: Instant,
        local: Option<IpAddr>,
        remote: SocketAddr,
        config: ConnectionConfig,
    ) -> Result<ConnectionId, OperationError> {
        self.connect_to_any(now, local, &[remote], config)
    }

    /// As [`Self::connect`], to a peer with several addresses in order of preference.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_to_any(
        &mut self,
        now: Instant,
        local: Option<IpAddr>,
        remotes: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Result<ConnectionId, OperationError> {
        if !remotes.iter().any(|remote| is_one_host(remote.ip())) {
            return Err(OperationError::NoPeer);
        }
        let mut candidates = self.candidates(now, local, remotes, &config);
        let first = candidates.pop_front().ok_or(OperationError::NoAddress)?;
        if self.connections.len() >= self.config.max_connections {
            return Err(OperationError::LimitReached);
        }
        let remote = first.remote;
        let (port, last) = self.free_port(now, first.local, remote).ok_or(OperationError::PortInUse)?;
        let local = SocketAddr::new(first.local, port);
        let opening = self.opening(now, Arc::new(config), local, remote, first.local_address, last);
        let mut connection = Connection::connect(now, opening);
        if !candidates.is_empty() {
            let wait = self.uplinks.patience_before(&first, candidates.front(), false);
            connection.race(candidates, now + wait);
        }
        let id = self.connections.insert(connection);
        self.connections.add_route(local, remote, id);
        self.settle(now, id);
        Ok(id)
    }

    /// From now on, attempts from this address come last, after a second without an answer to others, for 15 s, and
    /// twice as long each further time until [`Self::trust`]: what answered there was not the peer, as with a captive
    /// portal that accepts connections itself. Only the application can tell, by authentication. Returns whether there
    /// is another address of the family.
    pub fn distrust(&mut self, now: Instant, local: IpAddr) -> bool {
        let of_family = self.addresses.iter().filter(|known| known.address.is_ipv4() == local.is_ipv4());
        let mut others = false;
        for known in of_family {
            if known.address == local {
                self.uplinks.distrust(now, known.id);
            } else {
                others = true;
            }
        }
        others
    }

    /// The peer itself has answered from this address.
    pub fn trust(&mut self, local: IpAddr) {
        for known in self.addresses.iter().filter(|known| known.address == local) {
            self.uplinks.trust(known.id);
        }
    }

    /// The address pairs for a connection, in the order of attempts. Distrusted addresses come last, of them those
    /// first for which it is longest ago; before them those that failed to answer lately, before them backups, and
    /// before those, if `local` is none, addresses from which the peer was much further away than from another.
    /// Otherwise the first local address is paired with the first of the peer's, and neither is repeated while there
    /// are others.
    fn candidates(
        &self,
        now: Instant,
        local: Option<IpAddr>,
        remotes: &[SocketAddr],
        config: &ConnectionConfig,
    ) -> VecDeque<Candidate> {
        let races = config.initial_path == InitialPath::Race && config.multipath;
        let mut ranked = Vec::new();
        for (row, remote) in remotes.iter().filter(|remote| is_one_host(remote.ip())).enumerate() {
            let preferred = self.addresses.iter().filter(|known| Some(known.address) == local);
            let others =
                self.addresses.iter().filter(|known| local.is_none_or(|local| races && known.address != local));
            let fits = |address: IpAddr| address.is_ipv4() == remote.is_ipv4() || Some(address) == local;
            let usable = preferred.chain(others).filter(|known| fits(known.address));
            for (column, known) in usable.enumerate() {
                let distrusted = self.uplinks.distrusted_since(now, known.id).filter(|_| races);
                let candidate = Candidate {
                    local_address: known.id,
                    local: known.address,
                    remote: *remote,
                    distrusted: distrusted.is_some(),
                };
                let silent = races && self.uplinks.is_silent(now, known.id);
                let backup = self.uplinks.is_backup(known.id) && Some(known.address) != local;
                let far = races && local.is_none() && self.uplinks.is_far(known.id, remote.ip());
                ranked.push(((distrusted, silent, backup, far, row + column, row), candidate));
            }
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        let most = if races { ATTEMPTS } else { 1 };
        ranked.into_iter().map(|(_, candidate)| candidate).take(most).collect()
    }
}
