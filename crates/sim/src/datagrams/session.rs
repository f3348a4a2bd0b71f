//! The programs of a client and a server, and the carriers of their datagrams, driven by the world.

use super::carrier::Carrier;
use super::flow::{DatagramFlow, LEAST_PAYLOAD, Pattern, Source};
use super::score::FlowScore;
use crate::address::InterfaceId;
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct DatagramsConfig {
    /// The client's interfaces, one per path.
    pub client: Vec<InterfaceId>,
    pub server: InterfaceId,
    pub flows: Vec<DatagramFlow>,
    /// Interval of the octet counters of paths.
    pub sample: Duration,
}

/// Octets sent over a path in one interval, as whole packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathOctets {
    pub from_client: u64,
    pub from_server: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DatagramsResult {
    /// Each flow, in each direction in which it sends.
    pub scores: Vec<FlowScore>,
    /// By path and interval, without trailing intervals in which nothing was sent.
    pub octets: Vec<Vec<PathOctets>>,
    /// Datagrams that the carriers refused.
    pub refused: u64,
}

/// One end of a session.
struct End {
    carrier: Box<dyn Carrier>,
    /// By flow.
    sources: Vec<Source>,
    /// Index of the score of what its programs send, by flow.
    scores: Vec<Option<usize>>,
    /// Its earliest event in the queue.
    armed: Instant,
    last_timeout: Instant,
    /// Consecutive timeouts at the same time.
    timeouts_at_once: u32,
}

pub(crate) struct Session {
    config: DatagramsConfig,
    ends: [End; 2],
    pub(crate) result: DatagramsResult,
    /// Packets sent; makes packets distinct in the trace hash.
    pub(crate) packets: u64,
    lengths: Vec<u32>,
}

pub(crate) struct Transmit {
    pub(crate) from: InterfaceId,
    pub(crate) to: InterfaceId,
    pub(crate) payload: Bytes,
}

/// Limit of consecutive timeouts at the same time: panics instead of an endless loop.
const STALLED: u32 = 100_000;

impl Session {
    pub(crate) fn new(config: DatagramsConfig, carriers: [Box<dyn Carrier>; 2], seed: u64) -> Self {
        let mut scores = Vec::new();
        let mut number = 0;
        let ends = carriers.map(|carrier| {
            let side = number;
            number += 1;
            let place = |(at, flow): (usize, &DatagramFlow)| {
                flow.begins(side).then(|| {
                    let to_client = side == 1 || matches!(flow.pattern, Pattern::Requests { .. });
                    scores.push(FlowScore::new(at, to_client));
                    scores.len() - 1
                })
            };
            End {
                scores: config.flows.iter().enumerate().map(place).collect(),
                sources: config.flows.iter().map(|flow| Source::new(flow, side, seed)).collect(),
                carrier,
                armed: Instant::NEVER,
                last_timeout: Instant::NEVER,
                timeouts_at_once: 0,
            }
        });
        let result = DatagramsResult { scores, octets: vec![Vec::new(); config.client.len()], refused: 0 };
        Self { config, ends, result, packets: 0, lengths: Vec::new() }
    }

    /// Handles an event of an end; returns whether [`Self::poll_transmit`] and so on must follow.
    pub(crate) fn handle_timeout(&mut self, now: Instant, side: usize) -> bool {
        let Some(end) = self.ends.get_mut(side).filter(|end| end.armed <= now) else { return false };
        end.armed = Instant::NEVER;
        end.timeouts_at_once = if end.last_timeout == now { end.timeouts_at_once + 1 } else { 0 };
        end.last_timeout = now;
        assert!(end.timeouts_at_once < STALLED, "the timeout of a carrier of datagrams does not move on");
        if end.carrier.poll_timeout() <= now {
            end.carrier.handle_timeout(now);
        }
        for flow in 0..self.config.flows.len() {
            self.send_due(now, side, flow);
        }
        true
    }

    fn send_due(&mut self, now: Instant, side: usize, flow: usize) {
        let end = &mut self.ends[side];
        let (source, place) = (&mut end.sources[flow], end.scores[flow]);
        while source.due <= now {
            let frame = source.take(&mut self.lengths);
            for length in &self.lengths {
                let score = place.and_then(|place| self.result.scores.get_mut(place));
                let number = score.map_or(0, |score| score.send(now, *length, frame));
                let taken = end.carrier.send(now, flow as u16, payload(number, *length));
                self.result.refused += u64::from(!taken);
            }
        }
    }

    /// A packet arrived at an end.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        (from, to): (InterfaceId, InterfaceId),
        packet: &[u8],
    ) -> Option<usize> {
        let side = usize::from(to == self.config.server);
        let of_client = if side == 0 { to } else { from };
        let path = self.config.client.iter().position(|interface| *interface == of_client)?;
        self.ends[side].carrier.handle_packet(now, path, packet);
        Some(side)
    }

    /// Programs receive their datagrams, and answer.
    pub(crate) fn deliver(&mut self, now: Instant, side: usize) {
        while let Some((flow, bytes)) = self.ends[side].carrier.poll_datagram() {
            let Some(number) = number_of(&bytes) else { continue };
            let flow = usize::from(flow);
            let Some(config) = self.config.flows.get(flow) else { continue };
            if let (Pattern::Requests { answer, .. }, 1) = (config.pattern, side) {
                let taken = self.ends[1].carrier.send(now, flow as u16, payload(number, answer));
                self.result.refused += u64::from(!taken);
                continue;
            }
            let score =
                self.result.scores.iter_mut().find(|score| score.flow == flow && score.to_client == (side == 0));
            score.into_iter().for_each(|score| score.arrive(now, number));
        }
    }

    /// The next packet of an end.
    pub(crate) fn poll_transmit(&mut self, now: Instant, side: usize, overhead: u32) -> Option<Transmit> {
        loop {
            let (path, payload) = self.ends[side].carrier.poll_transmit()?;
            let Some(client) = self.config.client.get(path) else { continue };
            let (from, to) = if side == 0 { (*client, self.config.server) } else { (self.config.server, *client) };
            let interval = (now - Instant::ZERO).as_nanos() / self.config.sample.as_nanos().max(1);
            let row = &mut self.result.octets[path];
            if row.len() <= interval as usize {
                row.resize(interval as usize + 1, PathOctets::default());
            }
            let octets = payload.len() as u64 + u64::from(overhead);
            let place = &mut row[interval as usize];
            *(if side == 0 { &mut place.from_client } else { &mut place.from_server }) += octets;
            self.packets += 1;
            return Some(Transmit { from, to, payload });
        }
    }

    /// When to put the next event of an end into the queue, if it is not there already.
    pub(crate) fn arm(&mut self, now: Instant, side: usize) -> Option<Instant> {
        let end = &mut self.ends[side];
        let sources = end.sources.iter().map(|source| source.due).min().unwrap_or(Instant::NEVER);
        let due = end.carrier.poll_timeout().min(sources).max(now);
        let earlier = due < end.armed;
        if earlier {
            end.armed = due;
        }
        earlier.then_some(due)
    }
}

/// The payload of a datagram: its number, and zeros.
fn payload(number: u32, length: u32) -> Bytes {
    let mut bytes = vec![0; length.max(LEAST_PAYLOAD) as usize];
    bytes.iter_mut().zip(u64::from(number).to_be_bytes()).for_each(|(place, byte)| *place = byte);
    bytes.into()
}

fn number_of(payload: &[u8]) -> Option<u32> {
    let bytes = payload.first_chunk::<8>()?;
    u32::try_from(u64::from_be_bytes(*bytes)).ok()
}
