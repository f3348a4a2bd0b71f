//! The counters of a capture.

use crate::flows::{FlowReport, Flows};
use anabranch_datagram::{Datagram, Kind};
use anabranch_mptcp::stats::EndpointCounters;
use anabranch_proxy::ProxyCounters;
use core::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Totals since the capture began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CaptureCounters {
    /// Connections carried, and how they ended.
    pub connections: ProxyCounters,
    /// SYNs retransmitted while their target was connected to.
    pub repeated_syns: u64,
    /// SYNs dropped at the limit of waiting SYNs or of connections.
    pub dropped_syns: u64,
    /// Connections reset, as by a target whose port is closed.
    pub refused: u64,
    /// Connections answered with an ICMP message, as by a router without a route to the target.
    pub unreachable: u64,
    /// Datagrams of programs forwarded: UDP, ICMP echo, DNS.
    pub datagrams_out: u64,
    /// Datagrams of programs dropped: no session with the server, or a full queue.
    pub datagrams_dropped: u64,
    /// Datagrams received for programs.
    pub datagrams_in: u64,
    /// Datagrams of programs reported as undelivered; the program is told.
    pub unreachable_datagrams: u64,
    /// Packets answered with an ICMP message: another protocol, too big, or no route for datagrams.
    pub refused_packets: u64,
    /// Packets dropped: multicast, link-local, or ICMP messages that ask for nothing.
    pub ignored: u64,
    /// Malformed packets dropped.
    pub malformed: u64,
    /// Datagrams reassembled from fragments.
    pub reassembled: u64,
    /// Datagrams dropped because some fragments did not arrive.
    pub unfinished: u64,
    /// Packets dropped because of a full queue.
    pub overflowed: u64,
}

/// What a capture has dropped of programs' packets other than TCP, so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drops {
    /// Datagrams dropped: no session with the server, or a full queue towards it.
    pub datagrams: u64,
    /// Packets dropped because of a full queue behind the device.
    pub overflowed: u64,
    /// Malformed packets.
    pub malformed: u64,
    /// Datagrams of which some fragments did not arrive.
    pub unfinished: u64,
}

/// The counters shared by all tasks of a capture.
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

    /// Counts a program's datagram, forwarded or dropped.
    pub(crate) fn went(&self, ends: (Kind, SocketAddr, SocketAddr), bytes: usize, sent: bool) {
        let mut counted = self.lock();
        counted.counters.datagrams_out += u64::from(sent);
        counted.counters.datagrams_dropped += u64::from(!sent);
        if sent {
            counted.flows.went(ends, bytes);
        }
    }

    /// Counts a datagram for a program.
    pub(crate) fn came(&self, datagram: &Datagram) {
        let mut counted = self.lock();
        counted.counters.datagrams_in += 1;
        counted.flows.came((datagram.kind, datagram.inside, datagram.outside), datagram.payload.len());
    }

    /// The flows with most bytes, and the number of all flows.
    pub(crate) fn flows(&self, limit: usize) -> (Vec<FlowReport>, usize) {
        self.lock().flows.report(limit)
    }

    /// What was dropped, including the packets at the device.
    pub(crate) fn drops(&self, overflowed: u64) -> Drops {
        let CaptureCounters { datagrams_dropped: datagrams, malformed, unfinished, .. } = self.lock().counters;
        Drops { datagrams, overflowed, malformed, unfinished }
    }

    /// The totals, including those of the connections and the engine.
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
