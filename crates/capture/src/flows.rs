//! Counters of each flow of datagrams.

use anabranch_datagram::Kind;
use core::net::SocketAddr;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Most flows, as many as a server has mappings. New ones replace the least recently used.
const MOST: usize = 16_384;

/// Flows that make room at a time, so that not every new flow costs a search.
const PLACES: usize = MOST / 16;

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

/// What passed in a direction.
#[derive(Clone, Copy, Default)]
struct Passed {
    datagrams: u64,
    bytes: u64,
}

impl Passed {
    fn count(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }
}

struct Flow {
    out: Passed,
    back: Passed,
    used: Instant,
}

#[derive(Default)]
pub(crate) struct Flows(HashMap<Ends, Flow>);

impl Flows {
    pub(crate) fn went(&mut self, ends: Ends, bytes: usize) {
        self.flow(ends, Instant::now()).out.count(bytes);
    }

    pub(crate) fn came(&mut self, ends: Ends, bytes: usize) {
        self.flow(ends, Instant::now()).back.count(bytes);
    }

    fn flow(&mut self, ends: Ends, now: Instant) -> &mut Flow {
        if self.0.len() >= MOST && !self.0.contains_key(&ends) {
            self.make_room();
        }
        let (out, back) = Default::default();
        let flow = self.0.entry(ends).or_insert(Flow { out, back, used: now });
        flow.used = now;
        flow
    }

    /// Removes those that were not used for longest.
    fn make_room(&mut self) {
        let mut times: Vec<Instant> = self.0.values().map(|flow| flow.used).collect();
        let (_, last, _) = times.select_nth_unstable(PLACES);
        let last = *last;
        self.0.retain(|_, flow| flow.used > last);
    }

    /// At most `limit` flows, those with most bytes first, and the number of all flows.
    pub(crate) fn report(&mut self, limit: usize) -> (Vec<FlowReport>, usize) {
        let now = Instant::now();
        self.0.retain(|_, flow| now.duration_since(flow.used) < IDLE);
        let report = |(&(kind, inside, outside), flow): (&Ends, &Flow)| FlowReport {
            kind,
            inside,
            outside,
            datagrams_out: flow.out.datagrams,
            bytes_out: flow.out.bytes,
            datagrams_in: flow.back.datagrams,
            bytes_in: flow.back.bytes,
        };
        let mut flows: Vec<FlowReport> = self.0.iter().map(report).collect();
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
    fn of_too_many_those_that_were_not_used_for_longest_are_left_out() {
        let mut flows = Flows::default();
        let begin = Instant::now();
        for port in 0..=MOST as u16 {
            flows.flow(ends(port), begin + Duration::from_micros(port.into()));
        }
        let (shown, count) = flows.report(usize::MAX);
        // One of 16,384 beside those that made room, a sixteenth and the one at the border.
        assert_eq!(count, 16_384 - 1_025 + 1);
        assert!(shown.iter().all(|flow| flow.inside.port() > 1_024));
    }
}
