//! Measurements of an experiment: goodput and duration, segments and delays per interface, packets forwarded by each
//! node.
//!
//! Segments are counted at the interfaces of the two hosts, where the paper had its captures, but each once. An
//! interface is a lane of the destination, since packets are routed by destination. A segment is "sent again" if all
//! its bytes were sent before on its subflow; it is "received again" if another one with the same first byte was
//! received. A node's capture contains every packet that passed one of its radios, acknowledgements included.

use super::case::Case;
use super::network::EndHost;
use crate::address::InterfaceId;
use crate::histogram::Histogram;
use crate::identifiers::LinkId;
use crate::link::Drops;
use crate::mesh::results::{Captured, NodeResult};
use crate::network::Tapped;
use crate::recorder::SubflowSeries;
use crate::world::World;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::Packet;
use anabranch_wire::seq::SeqNumber;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Measurements of one interface.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaneMeasured {
    /// Data segments first sent by M1.
    pub sent: u64,
    /// Data segments retransmitted by M1.
    pub sent_again: u64,
    /// Data segments first received by M8.
    pub received: u64,
    /// Data segments received again by M8.
    pub received_again: u64,
    /// Bytes of payload received by M8, duplicates included.
    pub received_bytes: u64,
    /// From the first transmission of a segment by M1 to its first arrival at M8.
    pub delay: Histogram,
    /// From the first transmission of a segment by M1 to the first acknowledgement of all of it there.
    pub answer: Delays,
    /// Mean of the smoothed round-trip times of the subflows to this interface, at the end of each sample, in seconds;
    /// 0 without subflows.
    pub round_trip: f64,
    /// Mean of their retransmission timeouts without back-off, likewise.
    pub timeout: f64,
}

/// Mean and deviation of delays.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Delays {
    count: u64,
    /// In seconds.
    sum: f64,
    squares: f64,
}

impl Delays {
    pub fn add(&mut self, delay: Duration) {
        let seconds = delay.as_secs_f64();
        self.count += 1;
        self.sum += seconds;
        self.squares += seconds * seconds;
    }
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum + other.sum, squares: self.squares + other.squares }
    }
    /// In seconds; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
    /// Standard deviation in seconds.
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        Some((self.squares / self.count as f64 - mean * mean).max(0.0).sqrt())
    }
}

/// A segment that was acknowledged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SingleDelay {
    /// Its destination interface of M8.
    pub lane: usize,
    /// First transmission, since the start of the transfer.
    pub sent: Duration,
    /// From then until all of it was acknowledged.
    pub delay: Duration,
}

/// Results of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Bytes of payload per second read by the application at M8, over the whole transfer.
    pub goodput: f64,
    /// Bytes read.
    pub bytes: u64,
    /// Duration of a file transfer; `None`: not a file, or not completed.
    pub duration: Option<Duration>,
    /// Bytes sent at data level: new, retransmitted, reinjected, deliberately duplicated.
    pub bytes_sent_as: [u64; 4],
    /// By lane.
    pub lanes: Vec<LaneMeasured>,
    /// Packets forwarded by each node, from M1.
    pub forwarded: Vec<u64>,
    /// Packets that passed the radios of each node, from M1.
    pub captured: Vec<Vec<Captured>>,
    /// Delays of single segments, in the order of acknowledgement, if the case asks for them.
    pub single_delays: Vec<SingleDelay>,
    /// Packets dropped by nodes and hosts, by cause.
    pub drops: Drops,
    /// Bytes of routing, IPv6 header included, per node and second, from the start of the routers; 0 without routers.
    pub control: f64,
    /// Most out-of-order bytes in the receive buffer at the end of a second.
    pub most_out_of_order: u64,
    pub trace_hash: u64,
}

/// A subflow in one direction: source, destination, ports.
type Direction = (InterfaceId, InterfaceId, u32);

#[derive(Debug, Default)]
struct Sent {
    /// The byte after the highest.
    end: Option<SeqNumber>,
    /// First transmission of segments, by the number of their first byte.
    at: BTreeMap<u32, Instant>,
    /// Unacknowledged segments: the number after a segment's last byte, and its first transmission.
    unacknowledged: VecDeque<(SeqNumber, Instant)>,
}

#[derive(Debug, Default)]
struct Seen {
    lanes: Vec<LaneMeasured>,
    sent: BTreeMap<Direction, Sent>,
    received: BTreeMap<Direction, std::collections::BTreeSet<u32>>,
    /// Recorded only if single delays are kept.
    acknowledged: Option<Vec<(usize, Instant, Instant)>>,
}

/// Observes the packets at the interfaces of both hosts.
pub struct Observer {
    seen: Rc<RefCell<Seen>>,
}

impl Observer {
    /// Puts an observer on the interfaces, optionally keeping single delays; a world has at most one.
    pub fn install(world: &mut World, server: &EndHost, client: &EndHost, single_delays: bool) -> Self {
        let lanes = vec![LaneMeasured::default(); client.lanes.len()];
        let seen = Seen { lanes, acknowledged: single_delays.then(Vec::new), ..Seen::default() };
        let seen = Rc::new(RefCell::new(seen));
        let links = |end: &EndHost| -> (Vec<LinkId>, Vec<LinkId>) {
            end.lanes.iter().filter_map(|lane| world.node_links(*lane)).unzip()
        };
        let ((out, back), (_, into)) = (links(server), links(client));
        let all: Vec<LinkId> = out.iter().chain(&into).chain(&back).copied().collect();
        let (shared, lanes) = (Rc::clone(&seen), client.lanes.clone());
        let tap = move |now: Instant, link: LinkId, packet: Tapped| {
            let Tapped::Tcp(packet) = packet else { return };
            let Some(direction) = direction(&packet) else { return };
            let lane_of = |end: InterfaceId| lanes.iter().position(|lane| *lane == end);
            let mut seen = shared.borrow_mut();
            if back.contains(&link) {
                if let Some(lane) = lane_of(direction.0) {
                    seen.on_acknowledged(now, lane, direction, &packet);
                }
                return;
            }
            let Some(lane) = lane_of(direction.1).filter(|_| !packet.segment.payload.is_empty()) else { return };
            if out.contains(&link) {
                seen.on_sent(now, lane, direction, &packet);
            } else {
                seen.on_received(now, lane, direction, &packet);
            }
        };
        world.tap(&all, Box::new(tap));
        Self { seen }
    }
    /// The results of the experiment so far; its world has one flow.
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
            let subflows = measurements.map_or(&[][..], |all| &all.subflows);
            measured.round_trip = mean_over_time(lane, subflows, |series| &series.smoothed_rtt);
            measured.timeout = mean_over_time(lane, subflows, |series| &series.rto);
        }
        let single = self.seen.borrow().acknowledged.clone().unwrap_or_default();
        let single = single.into_iter().map(|(lane, sent, until)| SingleDelay {
            lane,
            sent: sent.since(start),
            delay: until.since(sent),
        });
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
            captured: nodes.iter().zip(before).map(|(after, before)| captured_since(after, before)).collect(),
            single_delays: single.collect(),
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

/// Packets that passed each radio of a node after `before`.
fn captured_since(after: &NodeResult, before: &NodeResult) -> Vec<Captured> {
    let since = |(after, before): (&Captured, &Captured)| Captured {
        sent: after.sent - before.sent,
        received: after.received - before.received,
    };
    after.radios.iter().zip(&before.radios).map(since).collect()
}

/// The mean over the samples of all subflows to a lane of the receiver, from their first round-trip time on. The lane's
/// address has the identifier lane + 1, or 0 for the first subflow, which goes to lane 0.
fn mean_over_time(lane: usize, subflows: &[SubflowSeries], series: fn(&SubflowSeries) -> &Vec<f64>) -> f64 {
    let of_lane = |series: &&SubflowSeries| usize::from(series.remote_address.0.max(1)) == lane + 1;
    let samples = subflows.iter().filter(of_lane).flat_map(|subflow| subflow.smoothed_rtt.iter().zip(series(subflow)));
    let measured = samples.filter(|(rtt, _)| **rtt > 0.0).map(|(_, value)| value);
    let (sum, count) = measured.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
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
        sent.unacknowledged.push_back((end, now));
        measured.sent += 1;
    }
    /// M1 has received an acknowledgement from an interface of M8.
    fn on_acknowledged(&mut self, now: Instant, lane: usize, (from, to, ports): Direction, packet: &Packet) {
        let Some(sent) = self.sent.get_mut(&(to, from, ports.rotate_left(16))) else { return };
        while let Some((end, at)) = sent.unacknowledged.front().copied() {
            if !end.at_or_before(packet.segment.ack) {
                break;
            }
            sent.unacknowledged.pop_front();
            self.lanes[lane].answer.add(now - at);
            if let Some(kept) = &mut self.acknowledged {
                kept.push((lane, at, now));
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Segment;
    use anabranch_wire::ip::{Ecn, IpHeader};
    use bytes::Bytes;

    const SERVER: InterfaceId = InterfaceId(0);
    const CLIENT: InterfaceId = InterfaceId(7);

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
    fn packet(seq: u32, bytes: usize, ack: u32) -> Packet {
        let segment = Segment {
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            payload: Bytes::from(vec![0; bytes]),
            ..Segment::default()
        };
        let (source, destination) = (SERVER.ipv4(), CLIENT.ipv4());
        Packet { ip: IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 }, segment }
    }
    fn seen() -> Seen {
        Seen { lanes: vec![LaneMeasured::default()], acknowledged: Some(Vec::new()), ..Seen::default() }
    }

    #[test]
    fn an_acknowledgement_ends_the_delay_of_each_segment_that_it_covers_and_of_no_other() {
        let (mut seen, data, back) = (seen(), (SERVER, CLIENT, 1 << 16 | 2), (CLIENT, SERVER, 2 << 16 | 1));
        for (at, seq) in [(0, 100), (5, 200), (10, 300)] {
            seen.on_sent(ms(at), 0, data, &packet(seq, 100, 0));
        }
        // The second is retransmitted; its delay still counts from the first transmission.
        seen.on_sent(ms(15), 0, data, &packet(200, 100, 0));
        seen.on_acknowledged(ms(20), 0, back, &packet(0, 0, 200));
        seen.on_acknowledged(ms(30), 0, back, &packet(0, 0, 399));
        seen.on_acknowledged(ms(40), 0, back, &packet(0, 0, 400));
        seen.on_acknowledged(ms(50), 0, back, &packet(0, 0, 400));
        let kept = [(0, ms(0), ms(20)), (0, ms(5), ms(30)), (0, ms(10), ms(40))];
        assert_eq!(seen.acknowledged.as_deref(), Some(&kept[..]));
        // 20, 25 and 30 ms: mean 25, deviation the square root of (25 + 0 + 25) / 3.
        let answer = seen.lanes[0].answer;
        assert!((answer.mean().unwrap() - 0.025).abs() < 1e-12, "{answer:?}");
        assert!((answer.deviation().unwrap() - (50e-6f64 / 3.0).sqrt()).abs() < 1e-9, "{answer:?}");
        assert_eq!((seen.lanes[0].sent, seen.lanes[0].sent_again), (3, 1));
    }

    #[test]
    fn delays_of_several_interfaces_add_up() {
        let mut parts = [Delays::default(); 2];
        for (part, millis) in [(0, 10), (1, 20), (1, 60)] {
            parts[part].add(Duration::from_millis(millis));
        }
        let all = parts[0].and(parts[1]);
        // 10, 20 and 60 ms: mean 30, squares of the differences 400, 100 and 900.
        assert!(
            (all.mean().unwrap() - 0.030).abs() < 1e-12
                && (all.deviation().unwrap() - 1400e-6f64.sqrt() / 3f64.sqrt()).abs() < 1e-9
        );
        assert_eq!((Delays::default().mean(), Delays::default().deviation()), (None, None));
    }

    #[test]
    fn a_timeout_counts_from_the_first_round_trip_of_its_subflow_on() {
        use anabranch_policy::ids::AddressId;
        let subflow = |remote: u8, smoothed_rtt: &[f64], rto: &[f64]| {
            let mut series = SubflowSeries::default();
            series.remote_address = AddressId(remote);
            (series.smoothed_rtt, series.rto) = (smoothed_rtt.to_vec(), rto.to_vec());
            series
        };
        let all =
            [subflow(0, &[0.0, 0.1], &[1.0, 0.3]), subflow(1, &[0.2, 0.3], &[0.4, 0.8]), subflow(2, &[0.5], &[0.7])];
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-12, "{value} {expected}");
        near(mean_over_time(0, &all, |series| &series.smoothed_rtt), 0.2);
        near(mean_over_time(0, &all, |series| &series.rto), 0.5);
        near(mean_over_time(1, &all, |series| &series.rto), 0.7);
        near(mean_over_time(2, &all, |series| &series.rto), 0.0);
    }
}
