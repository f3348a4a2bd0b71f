//! A sender without partial reliability, a receiver that abandons data, and bytes of the stream that are lost for good.

use crate::pair::{Fate, Pair, config, pattern};
use anabranch_mptcp::{BufferSize, ConnectionConfig, Framing, MessageOptions, Record};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::reliability::{self, Reason};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::Packet;
use anabranch_wire::mptcp::DataAck;
use bytes::Bytes;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// With the policy `spe` and these settings.
pub fn spe(mut config: ConnectionConfig, settings: Settings) -> ConnectionConfig {
    config.policies.reliability =
        Arc::new(move || table::build(reliability::TABLE, "spe", &settings).expect("in the table"));
    config
}

pub fn latency(millis: u64) -> Settings {
    Settings::new().with("latency", millis).with("reserve", 0)
}

pub fn framed(config: ConnectionConfig) -> ConnectionConfig {
    ConnectionConfig { framing: Framing::Messages, ..config }
}

/// A sender without partial reliability, and a receiver that abandons data.
pub struct Bench {
    pub pair: Pair,
    pub id: ConnectionId,
    pub server: ConnectionId,
    pub records: Vec<(Instant, Record)>,
    /// Data sequence numbers of which all copies are lost.
    pub lost: Rc<RefCell<Vec<u64>>>,
}

impl Bench {
    pub fn new(paths: usize, client: ConnectionConfig, server: ConnectionConfig) -> Self {
        let mut pair = Pair::new(paths);
        pair.reading = [false, false];
        let lost = Rc::new(RefCell::new(Vec::<u64>::new()));
        let doomed = Rc::clone(&lost);
        let mut initial = None;
        pair.judge = Box::new(move |from, _, packet| {
            let segment = &packet.segment;
            let mapping = segment.options.dss.as_ref().and_then(|dss| dss.mapping);
            let (Some(mapping), 0, false) = (mapping, from, segment.payload.is_empty()) else { return Fate::Deliver };
            let anabranch_wire::mptcp::DataSequence::Long(number) = mapping.data_seq else { return Fate::Deliver };
            let first = *initial.get_or_insert(number);
            let offset = number.wrapping_sub(first) + u64::from(FIRST);
            let end = offset + segment.payload.len() as u64;
            if doomed.borrow().iter().any(|byte| (offset..end).contains(byte)) { Fate::Drop } else { Fate::Deliver }
        });
        let id = pair.connect(client, server);
        pair.run(Duration::from_millis(50));
        let server = pair.accepted().unwrap();
        let mut bench = Self { pair, id, server, records: Vec::new(), lost };
        // The first data has MP_CAPABLE without a mapping; then the second subflow joins.
        bench.write(&pattern(FIRST as usize));
        bench.run(200);
        bench.records.clear();
        bench
    }

    pub fn write(&mut self, data: &[u8]) {
        assert_eq!(self.pair.write_all(0, self.id, data, Duration::ZERO), 0);
    }

    /// Writes four segments every 10 ms.
    pub fn stream(&mut self, times: u64) {
        for _ in 0..times {
            self.write(&pattern(4 * SEGMENT as usize));
            self.run(10);
        }
    }

    pub fn run(&mut self, millis: u64) {
        let end = self.pair.now + Duration::from_millis(millis);
        loop {
            while let Some(record) = self.pair.hosts[1].read_record(self.pair.now, self.server) {
                self.records.push((self.pair.now, record));
            }
            self.pair.settle();
            if !self.pair.step(end) {
                break;
            }
        }
    }

    /// The records read: offset, length, and the reason if it is a gap.
    pub fn read(&self) -> Vec<(u64, u64, Option<Reason>)> {
        let mut read: Vec<(u64, u64, Option<Reason>)> = Vec::new();
        for (_, record) in &self.records {
            let reason = if let Record::Gap { reason, .. } = record { Some(*reason) } else { None };
            match read.last_mut() {
                Some(last) if last.2 == reason && reason.is_none() => last.1 += record.length(),
                _ => read.push((record.offset(), record.length(), reason)),
            }
        }
        read
    }

    pub fn stats(&self) -> anabranch_mptcp::stats::ConnectionStats {
        self.pair.hosts[1].stats(self.server).unwrap()
    }

    pub fn now(&self) -> Instant {
        self.pair.now
    }
}

pub const FIRST: u32 = 100;
/// Payload of a full segment: 1,500 - 40 - 12 - 28.
pub const SEGMENT: u64 = 1_420;

pub fn at(offset_in_segments: u64) -> u64 {
    u64::from(FIRST) + offset_in_segments * SEGMENT
}

pub fn data_ack(packet: &Packet) -> Option<u64> {
    match packet.segment.options.dss.as_ref()?.data_ack? {
        DataAck::Long(number) => Some(number),
        DataAck::Short(_) => None,
    }
}

pub fn message(bench: &mut Bench, length: usize, importance: u8, millis: u64) {
    put(bench, length, importance, millis);
    bench.pair.settle();
}

/// Writes without sending yet.
pub fn put(bench: &mut Bench, length: usize, importance: u8, millis: u64) {
    let options = MessageOptions { importance, play_out: Duration::from_millis(millis), lifetime: None };
    let taken = bench.pair.hosts[0].write_message(bench.now(), bench.id, Bytes::from(pattern(length)), &options);
    assert!(matches!(taken, Ok(Some(_))), "{taken:?}");
}

/// As `Bench::new`, with messages; the first has 76 bytes.
pub fn message_bench(settings: Settings, receive_buffer: BufferSize) -> Bench {
    let server = ConnectionConfig { receive_buffer, buffers_per_subflow: false, ..config() };
    let mut pair_bench = {
        let (client, server) = (framed(config()), spe(framed(server), settings));
        let mut pair = Pair::new(1);
        pair.reading = [false, false];
        let lost = Rc::new(RefCell::new(Vec::<u64>::new()));
        let doomed = Rc::clone(&lost);
        let mut initial = None;
        pair.judge = Box::new(move |from, _, packet| {
            let mapping = packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping);
            let (Some(mapping), 0, false) = (mapping, from, packet.segment.payload.is_empty()) else {
                return Fate::Deliver;
            };
            let anabranch_wire::mptcp::DataSequence::Long(number) = mapping.data_seq else { return Fate::Deliver };
            let offset = number.wrapping_sub(*initial.get_or_insert(number)) + u64::from(FIRST);
            let end = offset + packet.segment.payload.len() as u64;
            if doomed.borrow().iter().any(|byte| (offset..end).contains(byte)) { Fate::Drop } else { Fate::Deliver }
        });
        let id = pair.connect(client, server);
        pair.run(Duration::from_millis(50));
        let server = pair.accepted().unwrap();
        Bench { pair, id, server, records: Vec::new(), lost }
    };
    message(&mut pair_bench, 76, 0, 0);
    pair_bench.run(100);
    assert_eq!(pair_bench.read(), [(0, 100, None)]);
    pair_bench.records.clear();
    pair_bench
}

pub const LARGE: BufferSize = BufferSize::Fixed(1 << 20);
