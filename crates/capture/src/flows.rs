//! Counters of each flow of datagrams.

use anabranch_datagram::Kind;
use core::net::SocketAddr;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Most flows; a new one replaces the least recently used.
const MOST: usize = 1_024;

/// Lifetime of an idle flow, the same as that of its mapping at the server.
const IDLE: Duration = Duration::from_secs(120);

/// The counters of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowReport {
    /// The kind of its datagrams.
    pub kind: Kind,
    /// The program's address.
    pub inside: SocketAddr,
    /// The peer's address.
    pub outside: SocketAddr,
    /// Datagrams forwarded.
    pub datagrams_out: u64,
    /// Payload bytes forwarded.
    pub bytes_out: u64,
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Payload bytes received.
    pub bytes_in: u64,
}

type Ends = (Kind, SocketAddr, SocketAddr);

#[derive(Default)]
pub(crate) struct Flows(HashMap<Ends, (FlowReport, Instant)>);

impl Flows {
    pub(crate) fn went(&mut self, ends: Ends, bytes: usize) {
        let flow = self.flow(ends, Instant::now());
        flow.datagrams_out += 1;
        flow.bytes_out += bytes as u64;
    }

    pub(crate) fn came(&mut self, ends: Ends, bytes: usize) {
        let flow = self.flow(ends, Instant::now());
        flow.datagrams_in += 1;
        flow.bytes_in += bytes as u64;
    }

    fn flow(&mut self, ends: Ends, now: Instant) -> &mut FlowReport {
        if self.0.len() >= MOST && !self.0.contains_key(&ends) {
            self.0.retain(|_, (_, used)| now.duration_since(*used) < IDLE);
        }
        if self.0.len() >= MOST && !self.0.contains_key(&ends) {
            let oldest = self.0.iter().min_by_key(|(_, (_, used))| *used).map(|(ends, _)| *ends);
            oldest.into_iter().for_each(|ends| _ = self.0.remove(&ends));
        }
        let (kind, inside, outside) = ends;
        let new = FlowReport { kind, inside, outside, datagrams_out: 0, bytes_out: 0, datagrams_in: 0, bytes_in: 0 };
        let (flow, used) = self.0.entry(ends).or_insert((new, now));
        *used = now;
        flow
    }

    /// At most `limit` flows, those with most bytes first, and the number of all flows.
    pub(crate) fn report(&mut self, limit: usize) -> (Vec<FlowReport>, usize) {
        let now = Instant::now();
        self.0.retain(|_, (_, used)| now.duration_since(*used) < IDLE);
        let mut flows: Vec<FlowReport> = self.0.values().map(|(flow, _)| *flow).collect();
        let count = flows.len();
        flows.sort_by_key(|flow| (std::cmp::Reverse(flow.bytes_out + flow.bytes_in), flow.inside, flow.outside));
        flows.truncate(limit);
        (flows, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(port: u16) -> Ends {
        (Kind::Udp, SocketAddr::from(([198, 18, 0, 1], port)), SocketAddr::from(([192, 0, 2, 1], 443)))
    }

    #[test]
    fn a_flow_has_what_went_and_what_came_and_the_largest_is_first() {
        let mut flows = Flows::default();
        flows.went(ends(1), 10);
        flows.went(ends(2), 100);
        flows.came(ends(2), 1_000);
        let (shown, count) = flows.report(1);
        assert_eq!((count, shown.len()), (2, 1));
        let flow = shown[0];
        assert_eq!((flow.inside.port(), flow.datagrams_out, flow.bytes_out), (2, 1, 100));
        assert_eq!((flow.datagrams_in, flow.bytes_in), (1, 1_000));
    }

    #[test]
    fn of_too_many_the_one_that_was_not_used_for_longest_is_left_out() {
        let mut flows = Flows::default();
        for port in 0..=MOST as u16 {
            flows.went(ends(port), 1);
        }
        let (shown, count) = flows.report(usize::MAX);
        assert_eq!(count, MOST);
        assert!(shown.iter().all(|flow| flow.inside.port() != 0));
    }
}
