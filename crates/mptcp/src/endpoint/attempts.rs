//! Attempts to open a connection: their results, and the next attempt (RFC 8305, section 5).

use super::state::Endpoint;
use crate::connection::{Attempt, Candidate, Connection};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;
use core::net::SocketAddr;

impl Endpoint {
    /// Handles the result of an attempt, or starts the next one.
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
        let others_wait = self.connections.get(id).is_some_and(Connection::has_attempts);
        while let Some(candidate) = self.connections.get_mut(id).and_then(Connection::next_candidate) {
            if self.begin_attempt(now, id, &candidate) {
                let next = self.connections.get(id).and_then(Connection::following_candidate);
                let until = now + self.uplinks.patience_before(&candidate, next, others_wait);
                self.connections.get_mut(id).into_iter().for_each(|connection| connection.await_answer(until));
                return;
            }
        }
        self.connections.get_mut(id).into_iter().for_each(|connection| connection.fail_race(now));
    }

    fn begin_attempt(&mut self, now: Instant, id: ConnectionId, candidate: &Candidate) -> bool {
        // The address may be down by now.
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
