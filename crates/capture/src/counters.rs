//! What a capture counts.

use crate::flows::{FlowReport, Flows};
use anabranch_datagram::{Datagram, Kind};
use anabranch_mptcp::stats::EndpointCounters;
use anabranch_proxy::ProxyCounters;
use core::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Totals since the capture began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CaptureCounters {
    /// Connections: those that were carried, and how they ended.
    pub connections: ProxyCounters,
    /// SYNs that came again while their target was asked.
    pub repeated_syns: u64,
    /// SYNs dropped because too many waited for their target already, or there were too many connections.
    pub dropped_syns: u64,
    /// Connections that were answered with a reset, as by a target where nobody listens.
    pub refused: u64,
    /// Connections that were answered with an ICMP message, as by a router that does not reach the target.
    pub unreachable: u64,
    /// Datagrams of programs that were passed on: UDP, ICMP echo, questions for names.
    pub datagrams_out: u64,
    /// Datagrams of programs that could not be passed on: no session with the server, a full queue.
    pub datagrams_dropped: u64,
    /// Datagrams that came for programs.
    pub datagrams_in: u64,
    /// Datagrams of programs of which somebody said that they did not arrive: the program is told.
    pub unreachable_datagrams: u64,
    /// Packets that were answered with an ICMP message: another protocol, too big, or no way for datagrams.
    pub refused_packets: u64,
    /// Packets to many, or to this link, or ICMP messages that ask for nothing: dropped.
    pub ignored: u64,
    /// Packets that are malformed: dropped.
    pub malformed: u64,
    /// Datagrams that came in fragments and were put together.
    pub reassembled: u64,
    /// Datagrams of which some fragments did not come: dropped.
    pub unfinished: u64,
    /// Packets dropped because too many waited.
    pub overflowed: u64,
}

/// What all tasks of a capture count together.
#[derive(Default)]
pub(crate) struct Shared(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    counters: CaptureCounters,
    flows: Flows,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self, act: impl FnOnce(&mut CaptureCounters)) {
        act(&mut self.lock().counters);
    }

    /// A datagram of a program's was passed on, or could not be.
    pub(crate) fn went(&self, ends: (Kind, SocketAddr, SocketAddr), bytes: usize, sent: bool) {
        let mut counted = self.lock();
        counted.counters.datagrams_out += u64::from(sent);
        counted.counters.datagrams_dropped += u64::from(!sent);
        if sent {
            counted.flows.went(ends, bytes);
        }
    }

    /// A datagram came for a program.
    pub(crate) fn came(&self, datagram: &Datagram) {
        let mut counted = self.lock();
        counted.counters.datagrams_in += 1;
        counted.flows.came((datagram.kind, datagram.inside, datagram.outside), datagram.payload.len());
    }

    /// The flows with most bytes, and how many there are.
    pub(crate) fn flows(&self, limit: usize) -> (Vec<FlowReport>, usize) {
        self.lock().flows.report(limit)
    }

    /// All of it, with what the connections and the engine have counted.
    pub(crate) fn totals(
        &self,
        connections: ProxyCounters,
        engine: &EndpointCounters,
        overflowed: u64,
    ) -> CaptureCounters {
        CaptureCounters {
            connections,
            repeated_syns: engine.repeated_syns,
            dropped_syns: engine.refused_by_limit,
            overflowed,
            ..self.lock().counters
        }
    }
}
