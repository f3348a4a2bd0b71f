//! Attempts to open a connection from several addresses, one after the other; the first that is answered becomes the
//! initial subflow (RFC 8305, section 5).
//!
//! Each attempt is a subflow in SYN-SENT that may become subflow 0. Before an answer, nothing of the peer is known,
//! neither its key nor its sequence number, so an attempt that fails leaves nothing but an entry in the routing table.

use super::output::{Attempt, Notice};
use super::packets::packet;
use super::race::{Candidate, Race};
use super::state::Connection;
use super::subflows::Handle;
use super::timer_table::Timer;
use crate::config::InitialPath;
use crate::subflow::{Identity, State, Subflow};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::{Flags, Segment, SeqNumber, Unreachable};
use core::net::SocketAddr;
use std::collections::VecDeque;

/// Time left for the other attempts when one was refused and no candidate is left: enough for a path that lost a SYN to
/// retransmit it once (RFC 6298, section 2.1: 1 s).
const GRACE: Duration = Duration::from_millis(1_500);

impl Connection {
    /// Allows further attempts after the first, from `next` on.
    pub fn race(&mut self, candidates: VecDeque<Candidate>, next: Instant) {
        self.race = Some(Box::new(Race { waiting: candidates, failed: None }));
        self.await_answer(next);
    }

    /// The next address pair to try.
    pub fn next_candidate(&mut self) -> Option<Candidate> {
        self.race.as_mut()?.waiting.pop_front()
    }

    /// The one after it.
    pub fn following_candidate(&self) -> Option<&Candidate> {
        self.race.as_ref()?.waiting.front()
    }

    /// Sets when the next attempt begins unless this one is answered.
    pub fn await_answer(&mut self, until: Instant) {
        if self.has_candidates() {
            self.timers.set(Timer::Race, until);
        }
    }

    /// Starts another attempt: its SYN waits in [`Connection::poll_transmit`].
    pub fn attempt(&mut self, now: Instant, local: SocketAddr, candidate: &Candidate, initial: SeqNumber) {
        let identity = Identity {
            id: SubflowId(0),
            local,
            remote: candidate.remote,
            local_address: candidate.local_address,
            remote_address: AddressId(0),
        };
        self.subflows.push(Subflow::new(identity, State::SynSent, initial, now));
        self.output.pending = true;
        if self.has_candidates() {
            return;
        }
        // The time of the attempt before does not bound the last one; that after a refusal does.
        if self.race.as_ref().is_some_and(|race| race.failed == Some(Unreachable::Port)) {
            self.timers.set(Timer::Race, now + GRACE);
        } else {
            self.timers.stop(Timer::Race);
        }
    }

    /// Whether an attempt waits for its answer.
    pub fn has_attempts(&self) -> bool {
        self.subflows.iter().any(is_attempt)
    }

    pub(super) fn has_candidates(&self) -> bool {
        self.race.as_ref().is_some_and(|race| !race.waiting.is_empty())
    }

    /// Removes an attempt if there are others, or candidates left; only the endpoint is notified. Returns whether it
    /// did.
    pub(super) fn forget_attempt(&mut self, handle: Handle) -> bool {
        let attempt = &self.subflows[handle];
        let identity = attempt.identity;
        if !is_attempt(attempt) {
            return false;
        }
        let comes = self.has_candidates();
        if !comes && self.other_attempt(handle).is_none() {
            return false;
        }
        self.subflows.remove(handle);
        self.output.tell(Notice::Attempt(Attempt::Over(identity)));
        if comes {
            self.output.tell(Notice::Attempt(Attempt::Due));
        }
        true
    }

    fn other_attempt(&self, handle: Handle) -> Option<Handle> {
        let other = |(at, subflow): &(Handle, &Subflow)| *at != handle && is_attempt(subflow);
        self.subflows.entries().find(other).map(|(at, _)| at)
    }

    /// An attempt has failed and was removed. Returns what failed attempts have shown. After a refusal, if no candidate
    /// is left, limits the time of the others; a path that does not reach the peer says nothing of other paths.
    pub(super) fn record_failed_attempt(&mut self, now: Instant, what: Unreachable) -> Unreachable {
        let last = !self.has_candidates();
        let Some(race) = self.race.as_mut() else { return what };
        let known = race.failed.map_or(what, |known| known.max(what));
        race.failed = Some(known);
        if last && what == Unreachable::Port {
            self.timers.set_by(Timer::Race, now + GRACE);
        }
        known
    }

    /// An attempt was answered: resets the others, and makes it the first subflow.
    pub(super) fn decide_race(&mut self, now: Instant, winner: Handle) {
        if self.race.take().is_none() {
            return;
        }
        self.timers.stop(Timer::Race);
        while let Some(loser) = self.other_attempt(winner) {
            let subflow = &self.subflows[loser];
            let (identity, waited) = (subflow.identity, now.since(subflow.liveness.handshake_sent));
            // The peer may have state for a SYN that arrived; its SYN/ACK may still be in flight.
            let reset = Segment {
                source_port: identity.local.port(),
                destination_port: identity.remote.port(),
                seq: subflow.send.nxt,
                flags: Flags::RST,
                ..Segment::default()
            };
            self.output.packets.push_back(packet(identity.local, identity.remote, reset));
            self.subflows.remove(loser);
            self.output.tell(Notice::Attempt(Attempt::Over(identity)));
            self.output.tell(Notice::Attempt(Attempt::Unanswered(identity, waited)));
        }
        let identity = self.subflows[winner].identity;
        self.identity.initial_address = identity.local_address;
        self.identity.initial_local = identity.local.ip();
        self.identity.initial_remote = identity.remote;
    }

    /// Reports to the endpoint that an address was answered, and its round-trip time.
    pub(super) fn report_answer(&mut self, handle: Handle) {
        if self.identity.role == Role::Client && self.config.initial_path == InitialPath::Race {
            let subflow = &self.subflows[handle];
            let round_trip = Some(subflow.rtt.smoothed()).filter(|time| !time.is_zero());
            self.output.tell(Notice::Attempt(Attempt::Answered(subflow.identity, round_trip)));
        }
    }
}

fn is_attempt(subflow: &Subflow) -> bool {
    subflow.state == State::SynSent && subflow.id() == SubflowId(0)
}
