//! Connections are opened: from where, in which order, and from where next (RFC 8305).

use super::error::OperationError;
use super::state::{Endpoint, is_one_host};
use crate::config::{ConnectionConfig, InitialPath};
use crate::connection::{Attempt, Candidate, Connection};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;
use std::sync::Arc;

/// Most attempts to open one connection.
const ATTEMPTS: usize = 8;

impl Endpoint {
    /// Opens a connection, from `local` or from the first address of the right family. Where
    /// [`ConnectionConfig::initial_path`] says so, further attempts from others follow, as long as none is answered; all of them
    /// are one connection, and the first that is answered is its first subflow.
    ///
    /// # Errors
    /// [`OperationError::NoPeer`], [`OperationError::NoAddress`], [`OperationError::LimitReached`], or [`OperationError::PortInUse`] if all ports are.
    pub fn connect(
        &mut self,
        now: Instant,
        local: Option<IpAddr>,
        remote: SocketAddr,
        config: ConnectionConfig,
    ) -> Result<ConnectionId, OperationError> {
        self.connect_to_any(now, local, &[remote], config)
    }

    /// As [`Self::connect`], to a peer with several addresses, in the order in which they are to be tried.
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
            connection.race(candidates, now + self.uplinks.patience(first.local_address, remote.ip()));
        }
        let id = self.connections.insert(connection);
        self.connections.add_route(local, remote, id);
        self.settle(now, id);
        Ok(id)
    }

    /// From where to where a connection can be opened, in the order of attempts: what was silent lately comes last; else the first
    /// of the local addresses with the first of the peer's begins, and neither is repeated while there are others.
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
                let candidate = Candidate { local_address: known.id, local: known.address, remote: *remote };
                ranked.push(((races && self.uplinks.is_silent(now, known.id), row + column, row), candidate));
            }
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        let most = if races { ATTEMPTS } else { 1 };
        ranked.into_iter().map(|(_, candidate)| candidate).take(most).collect()
    }

    /// What became of an attempt, or that another is due.
    pub(super) fn handle_attempt(&mut self, now: Instant, id: ConnectionId, attempt: Attempt) {
        match attempt {
            Attempt::Due => self.next_attempt(now, id),
            Attempt::Over(identity) => self.connections.remove_route(identity.local, identity.remote),
            Attempt::Unanswered(identity, waited) => {
                let (local, remote) = (identity.local_address, identity.remote.ip());
                if waited >= self.uplinks.patience(local, remote) {
                    self.uplinks.unanswered(now, local);
                }
            }
            Attempt::Answered(identity, round_trip) => {
                self.uplinks.answered(identity.local_address, identity.remote.ip(), round_trip);
            }
        }
    }

    fn next_attempt(&mut self, now: Instant, id: ConnectionId) {
        while let Some(candidate) = self.connections.get_mut(id).and_then(Connection::next_candidate) {
            if self.begin_attempt(now, id, &candidate) {
                let until = now + self.uplinks.patience(candidate.local_address, candidate.remote.ip());
                self.connections.get_mut(id).into_iter().for_each(|connection| connection.await_answer(until));
                return;
            }
        }
        self.connections.get_mut(id).into_iter().for_each(|connection| connection.give_up_race(now));
    }

    fn begin_attempt(&mut self, now: Instant, id: ConnectionId, candidate: &Candidate) -> bool {
        // The address may have gone meanwhile.
        if !self.addresses.iter().any(|known| known.id == candidate.local_address && known.address == candidate.local) {
            return false;
        }
        let remote = candidate.remote;
        let Some((port, last)) = self.free_port(now, candidate.local, remote) else { return false };
        let local = SocketAddr::new(candidate.local, port);
        let initial = self.initial_sequence(now, local, remote, last);
        let Some(connection) = self.connections.get_mut(id) else { return false };
        connection.attempt(now, local, candidate, initial);
        self.connections.add_route(local, remote, id);
        true
    }
}
