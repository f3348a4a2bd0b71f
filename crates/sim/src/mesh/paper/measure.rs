//! What is seen of an experiment: goodput and duration, segments and delays per interface, what each node forwarded.
//!
//! Segments are counted where the paper had its captures, at the interfaces of the two hosts, but each once. An interface is
//! a lane of the destination, since that is what packets are routed by. "Sent again" is a segment with no byte that was
//! not sent before on its subflow; "received again" is one that begins where another one began.

use super::Case;
use super::network::EndHost;
use crate::address::InterfaceId;
use crate::histogram::Histogram;
use crate::identifiers::LinkId;
use crate::link::Drops;
use crate::mesh::results::NodeResult;
use crate::network::Tapped;
use crate::recorder::SubflowSeries;
use crate::world::World;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::Packet;
use anabranch_wire::seq::SeqNumber;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What was seen on one interface.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaneMeasured {
    /// Segments with data that M1 sent for the first time.
    pub sent: u64,
    /// Segments with data that it sent again.
    pub sent_again: u64,
    /// Segments with data that M8 received for the first time.
    pub received: u64,
    /// Segments with data that it had received before.
    pub received_again: u64,
    /// Bytes of payload that M8 received, repetitions included.
    pub received_bytes: u64,
    /// From the first transmission of a segment at M1 to its first arrival at M8.
    pub delay: Histogram,
    /// Mean of the smoothed round-trip times of the subflows to this interface, once a second, seconds; 0: there were none.
    pub round_trip: f64,
}

/// What was seen of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Bytes of payload per second that the application at M8 read, over the whole transfer.
    pub goodput: f64,
    /// Bytes that it read.
    pub bytes: u64,
    /// How long a file took; none: it was no file, or was not there in time.
    pub duration: Option<Duration>,
    /// Bytes sent at data level: new, again on the same subflow, again on another, twice on purpose.
    pub bytes_sent_as: [u64; 4],
    /// The interfaces, by lane.
    pub lanes: Vec<LaneMeasured>,
    /// Packets that each node forwarded, from M1.
    pub forwarded: Vec<u64>,
    /// Packets that nodes and hosts dropped, by cause.
    pub drops: Drops,
    /// Bytes of routing, IPv6 header included, per node and second, from the start of the routers; 0 without.
    pub control: f64,
    /// Bytes out of order in the receive buffer, the most that was seen at the end of a second.
    pub most_out_of_order: u64,
    /// The trace hash.
    pub trace_hash: u64,
}

/// A subflow in one direction: source, destination, ports.
type Direction = (InterfaceId, InterfaceId, u32);

#[derive(Debug, Default)]
struct Sent {
    /// Behind the highest byte.
    end: Option<SeqNumber>,
    /// When segments were sent first, by the number of their first byte.
    at: BTreeMap<u32, Instant>,
}

#[derive(Debug, Default)]
struct Seen {
    lanes: Vec<LaneMeasured>,
    sent: BTreeMap<Direction, Sent>,
    received: BTreeMap<Direction, std::collections::BTreeSet<u32>>,
}

/// Looks at what passes the interfaces of both hosts.
pub struct Observer {
    seen: Rc<RefCell<Seen>>,
}

impl Observer {
    /// Puts an observer on the interfaces; a world has one at most.
    pub fn install(world: &mut World, server: &EndHost, client: &EndHost) -> Self {
        let seen =
            Rc::new(RefCell::new(Seen { lanes: vec![LaneMeasured::default(); client.lanes.len()], ..Seen::default() }));
        let out: Vec<LinkId> =
            server.lanes.iter().filter_map(|lane| world.node_links(*lane)).map(|(out, _)| out).collect();
        let into: Vec<LinkId> =
            client.lanes.iter().filter_map(|lane| world.node_links(*lane)).map(|(_, into)| into).collect();
        let both: Vec<LinkId> = out.iter().chain(&into).copied().collect();
        let (shared, lanes) = (Rc::clone(&seen), client.lanes.clone());
        let tap = move |now: Instant, link: LinkId, packet: Tapped| {
            let Tapped::Tcp(packet) = packet else { return };
            if packet.segment.payload.is_empty() {
                return;
            }
            let Some(direction) = direction(&packet) else { return };
            let Some(lane) = lanes.iter().position(|lane| *lane == direction.1) else { return };
            let mut seen = shared.borrow_mut();
            if out.contains(&link) {
                seen.on_sent(now, lane, direction, &packet);
            } else {
                seen.on_received(now, lane, direction, &packet);
            }
        };
        world.tap(&both, Box::new(tap));
        Self { seen }
    }
    /// What has been seen of the experiment, whose world has one flow.
    pub fn measure(&self, world: &mut World, case: &Case, start: Instant, before: &[NodeResult]) -> Measured {
        let result = world.results();
        let end = world.now();
        let flow = result.flows.first();
        let bytes = flow.map_or(0, |flow| flow.client.read);
        let file = flow.and_then(crate::flow::FlowResult::completion);
        let span = file.unwrap_or(end - start).as_secs_f64();
        let measurements = flow.and_then(|flow| flow.measurements.as_deref());
        let mut lanes = self.seen.borrow().lanes.clone();
        for (lane, measured) in lanes.iter_mut().enumerate() {
            measured.round_trip = round_trip(lane, measurements.map_or(&[], |all| &all.subflows));
        }
        let nodes = world.node_results();
        let control: u64 = nodes.iter().map(|node| node.counters.control.bytes.iter().sum::<u64>()).sum();
        let is_file = matches!(case.transfer, super::Transfer::Bytes(_));
        Measured {
            goodput: if span > 0.0 { bytes as f64 / span } else { 0.0 },
            bytes,
            duration: file.filter(|_| is_file),
            bytes_sent_as: measurements.map_or([0; 4], |all| all.bytes_sent_as),
            lanes,
            forwarded: nodes
                .iter()
                .zip(before)
                .map(|(after, before)| after.counters.forwarded - before.counters.forwarded)
                .collect(),
            drops: result.drops(),
            control: control as f64 / nodes.len().max(1) as f64 / (end - Instant::ZERO).as_secs_f64().max(1e-9),
            most_out_of_order: measurements
                .and_then(|all| all.series.receive_out_of_order.iter().max().copied())
                .unwrap_or(0),
            trace_hash: result.trace_hash,
        }
    }
}

fn direction(packet: &Packet) -> Option<Direction> {
    let ports = u32::from(packet.segment.source_port) << 16 | u32::from(packet.segment.destination_port);
    Some((InterfaceId::of(packet.ip.source)?, InterfaceId::of(packet.ip.destination)?, ports))
}

/// The mean over the subflows to a lane of the receiver: its address has the identifier lane + 1, or 0 as that of the first
/// subflow, which goes to lane 0.
fn round_trip(lane: usize, subflows: &[SubflowSeries]) -> f64 {
    let of_lane = |series: &&SubflowSeries| usize::from(series.remote_address.0.max(1)) == lane + 1;
    let samples = subflows.iter().filter(of_lane).flat_map(|series| series.smoothed_rtt.iter().copied());
    let (sum, count) = samples.filter(|rtt| *rtt > 0.0).fold((0.0, 0u32), |(sum, count), rtt| (sum + rtt, count + 1));
    if count > 0 { sum / f64::from(count) } else { 0.0 }
}

impl Seen {
    fn on_sent(&mut self, now: Instant, lane: usize, direction: Direction, packet: &Packet) {
        let sent = self.sent.entry(direction).or_default();
        let end = packet.segment.seq + packet.segment.payload.len() as u32;
        let measured = &mut self.lanes[lane];
        if sent.end.is_some_and(|highest| end.at_or_before(highest)) {
            measured.sent_again += 1;
            return;
        }
        sent.end = Some(end);
        sent.at.insert(packet.segment.seq.0, now);
        measured.sent += 1;
    }
    fn on_received(&mut self, now: Instant, lane: usize, direction: Direction, packet: &Packet) {
        let first = packet.segment.seq.0;
        let measured = &mut self.lanes[lane];
        measured.received_bytes += packet.segment.payload.len() as u64;
        if !self.received.entry(direction).or_default().insert(first) {
            measured.received_again += 1;
            return;
        }
        measured.received += 1;
        let sent = self.sent.get_mut(&direction).and_then(|sent| sent.at.remove(&first));
        if let Some(sent) = sent {
            measured.delay.add(now - sent);
        }
    }
}
