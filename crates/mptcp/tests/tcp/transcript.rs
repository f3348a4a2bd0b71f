//! A transcript: the peer's segments to one endpoint, the endpoint's expected segments, and their times.
//!
//! A segment is a line of text: control bits, sequence range, and what else matters.
//!
//! ```text
//! S 0:0 mss 1000 sackok         a SYN; its sequence number is 0, since numbers count from each side's own SYN
//! SA 0:0 ack 1 win 65535        the answer
//! A 1:1001 ack 1                1000 bytes
//! FA 1001:1001 ack 1            a FIN
//! A 1:1 ack 1001 sack 2001-3001 a bare acknowledgement
//! ```
//!
//! Bits: `S`YN, `F`IN, `R`ST, `A`CK, `E`CE, c`W`r, `U`RG, `P`SH; `-` for none. Words: `win`, `mss`, `scale`, `sackok`,
//! `ts VALUE/ECHO`, `sack`, `urg`, and the IP header's `ect` and `ce`. In expected segments, bits (except PSH), numbers
//! and SACK blocks must match; windows, timestamps, sizes and codepoints only if they are written. Payload is a fixed
//! pattern, checked in both directions. Every segment of the endpoint must be expected: a transcript that ends with a
//! segment unread fails.

use anabranch_mptcp::{BufferSize, CloseCause, ConnectionConfig, Endpoint, EndpointConfig, Event, Policies};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, path_manager, scheduler};
use anabranch_wire::tcp::{SackBlock, SackBlocks, Timestamps};
use anabranch_wire::{Ecn, Flags, IpHeader, Packet, Segment, SeqNumber};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The port that the endpoint listens on.
pub const PORT: u16 = 80;

/// The peer's initial sequence number.
pub const PEER_INITIAL: u32 = 70_000;

const LETTERS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('A', Flags::ACK),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('U', Flags::URG),
];

/// Plain TCP with segments of 1000 bytes, without timestamps and window scaling, with SACK, NewReno and a receive
/// buffer of 50,000 bytes: numbers that are easy to follow.
pub fn plain() -> ConnectionConfig {
    let build = |name| table::build(congestion::TABLE, name, &Settings::new()).unwrap();
    let mut config = ConnectionConfig::new(Policies {
        congestion: Arc::new(move || build("new_reno")),
        scheduler: Arc::new(|| table::build(scheduler::TABLE, "lowest_rtt", &Settings::new()).unwrap()),
        reliability: anabranch_mptcp::config::fully_reliable(),
    });
    config.multipath = false;
    config.receive_buffer = BufferSize::Fixed(50_000);
    config.tcp.mtu = 1040;
    config.tcp.path_mtu_discovery = false;
    config.tcp.options.timestamps = false;
    config.tcp.options.window_scaling = false;
    config
}

/// [`plain`], changed.
pub fn plain_with(change: impl FnOnce(&mut ConnectionConfig)) -> ConnectionConfig {
    let mut config = plain();
    change(&mut config);
    config
}

/// An endpoint and its peer.
pub struct Transcript {
    pub host: Endpoint,
    pub now: Instant,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub id: Option<ConnectionId>,
    /// Events of the application.
    pub events: Vec<Event>,
    /// The endpoint's initial sequence number and first timestamp, once seen.
    pub initial: u32,
    pub stamp: Option<u32>,
    /// The window of the peer's segments by default.
    pub window: u16,
    said: VecDeque<(Instant, Packet)>,
    written: u64,
    read: u64,
}

impl Transcript {
    /// A host that listens on [`PORT`], one second after time zero.
    pub fn new(config: ConnectionConfig) -> Self {
        Self::on(config, EndpointConfig { seed: [7; 32], ..EndpointConfig::default() }, [10, 0, 0, 1].into())
    }

    /// The same with other settings and another address.
    pub fn on(config: ConnectionConfig, host: EndpointConfig, address: IpAddr) -> Self {
        let manager = table::build(path_manager::TABLE, "full_mesh", &Settings::new()).unwrap();
        let mut host = Endpoint::new(host, manager);
        let now = Instant::ZERO + Duration::from_secs(1);
        host.handle_address_up(now, AddressId(1), address);
        host.listen(PORT, config).unwrap();
        let peer: IpAddr = if address.is_ipv4() { [10, 0, 0, 2].into() } else { [0xfd00, 0, 0, 0, 0, 0, 0, 2].into() };
        Self {
            host,
            now,
            local: SocketAddr::new(address, PORT),
            remote: SocketAddr::new(peer, 4000),
            id: None,
            events: Vec::new(),
            initial: 0,
            stamp: None,
            window: 65_535,
            said: VecDeque::new(),
            written: 0,
            read: 0,
        }
    }

    /// A connection that the peer opened with SACK and segments of 1000 bytes.
    pub fn accepted(config: ConnectionConfig) -> Self {
        Self::accepted_from(config, "S 0:0 mss 1000 sackok")
    }

    /// A connection opened by this SYN of the peer; the round trip is 100 ms.
    pub fn accepted_from(config: ConnectionConfig, syn: &str) -> Self {
        let mut t = Self::new(config);
        t.peer(syn);
        let answer = t.hear();
        assert!(answer.segment.flags.contains(Flags::SYN | Flags::ACK), "{answer:?}");
        t.wait(100);
        let echo = answer.segment.options.timestamps.map_or(String::new(), |ts| format!(" ts {}/0", ts.echo));
        t.peer(&format!("A 1:1 ack 1{echo}"));
        assert!(t.id.is_some(), "not accepted: {:?}", t.events);
        t
    }

    /// A connection that we open: its SYN must be expected.
    pub fn connecting(config: ConnectionConfig) -> Self {
        let mut t = Self::new(plain());
        t.connect(config);
        t
    }

    /// A connection that we opened; the round trip was 100 ms.
    pub fn connected(config: ConnectionConfig) -> Self {
        let mut t = Self::connecting(config);
        t.hear();
        t.wait(100);
        t.peer("SA 0:0 ack 1 mss 1000 sackok");
        t.expect("A 1:1 ack 1");
        t
    }

    /// Opens a connection to the peer.
    pub fn connect(&mut self, config: ConnectionConfig) {
        let id = self.host.connect(self.now, None, self.remote, config).unwrap();
        self.id = Some(id);
        self.drain();
        let (_, syn) = self.said.back().expect("a SYN");
        self.local.set_port(syn.segment.source_port);
    }

    // The application.

    pub fn id(&self) -> ConnectionId {
        self.id.expect("a connection")
    }
    /// Writes `length` bytes of the pattern; all must fit.
    pub fn write(&mut self, length: usize) {
        let taken = self.host.write(self.now, self.id(), pattern(self.written, length)).unwrap();
        assert_eq!(taken, length);
        self.written += length as u64;
        self.drain();
    }
    /// Reads everything, which must be `length` bytes of the pattern.
    #[track_caller]
    pub fn read(&mut self, length: usize) {
        let mut all = Vec::new();
        while let Some(bytes) = self.host.read(self.now, self.id(), usize::MAX) {
            all.extend_from_slice(&bytes);
        }
        assert_eq!(all.len(), length);
        assert_eq!(all, pattern(self.read, length));
        self.read += length as u64;
        self.drain();
    }
    pub fn close(&mut self) {
        self.host.close(self.now, self.id()).unwrap();
        self.drain();
    }
    /// Discards both directions.
    pub fn discard(&mut self) {
        self.host.discard(self.now, self.id()).unwrap();
        self.drain();
    }
    /// Forgets the connection after its end.
    pub fn forget(&mut self) {
        self.host.forget(self.now, self.id());
        self.drain();
    }
    pub fn set_nagle(&mut self, on: bool) {
        self.host.set_nagle(self.now, self.id(), on).unwrap();
        self.drain();
    }
    pub fn abort(&mut self) {
        self.host.abort(self.now, self.id()).unwrap();
        self.drain();
    }
    /// Why the connection ended, if the application was told.
    pub fn closed(&self) -> Option<CloseCause> {
        self.events.iter().find_map(|event| match event {
            Event::Closed(id, cause) if Some(*id) == self.id => Some(*cause),
            _ => None,
        })
    }
    pub fn heard_of(&self, event: Event) -> bool {
        self.events.contains(&event)
    }
    /// The congestion window in segments of 1000 bytes.
    pub fn cwnd(&self) -> u64 {
        self.host.subflow_views(self.now, self.id())[0].cwnd / 1000
    }
    /// Segments marked lost by acknowledgements, timeouts, and acknowledgements with progress.
    pub fn counted(&self) -> (u32, u32, u32) {
        let view = &self.host.subflow_views(self.now, self.id())[0];
        (view.counters.segments_lost, view.counters.timeouts, view.counters.acknowledgements)
    }

    // The peer.

    /// The peer sends a segment; the endpoint's answer must be expected.
    #[track_caller]
    pub fn peer(&mut self, line: &str) {
        let packet = self.packet(line);
        self.host.handle_packet(self.now, packet);
        self.drain();
    }

    /// The packet that a line describes.
    #[track_caller]
    pub fn packet(&self, line: &str) -> Packet {
        let line = Line::parse(line);
        let (start, end) = line.range;
        let mut segment = Segment {
            source_port: self.remote.port(),
            destination_port: self.local.port(),
            seq: SeqNumber(PEER_INITIAL) + start,
            ack: SeqNumber(line.ack.map_or(0, |ack| self.initial.wrapping_add(ack))),
            flags: line.flags,
            window: line.window.unwrap_or(self.window),
            urgent: line.urgent.unwrap_or(0),
            payload: pattern(u64::from(start.wrapping_sub(1)), end.wrapping_sub(start) as usize),
            ..Segment::default()
        };
        segment.options.maximum_segment_size = line.mss;
        segment.options.window_scale = line.scale;
        segment.options.sack_permitted = line.sackok;
        segment.options.timestamps = line.stamps.map(|(value, echo)| Timestamps {
            value,
            echo: self.stamp.filter(|_| line.flags.contains(Flags::ACK)).map_or(0, |stamp| stamp.wrapping_add(echo)),
        });
        let mut blocks = SackBlocks::new();
        for (start, end) in &line.sack {
            let absolute = |number: u32| SeqNumber(self.initial) + number;
            blocks.push(SackBlock { start: absolute(*start), end: absolute(*end) });
        }
        segment.options.sack = blocks;
        let ecn = line.ecn.unwrap_or(Ecn::NotCapable);
        let ip = IpHeader { source: self.remote.ip(), destination: self.local.ip(), ecn, dscp: 0, hop_limit: 64 };
        Packet { ip, segment }
    }

    // The endpoint.

    /// The next segment, whatever it is.
    #[track_caller]
    pub fn hear(&mut self) -> Packet {
        let (_, packet) = self.said.pop_front().expect("the endpoint said nothing");
        packet
    }

    /// The next segment, if there is one.
    pub fn take_if_any(&mut self) -> Option<Packet> {
        self.said.pop_front().map(|(_, packet)| packet)
    }

    /// All segments so far.
    pub fn take(&mut self) -> Vec<Packet> {
        self.said.drain(..).map(|(_, packet)| packet).collect()
    }

    /// Asserts that the next segment matches.
    #[track_caller]
    pub fn expect(&mut self, line: &str) -> Packet {
        let Some((_, packet)) = self.said.pop_front() else { panic!("nothing was said, expected {line:?}") };
        let (said, wanted) = (self.describe(&packet), Line::parse(line));
        assert!(wanted.matches(&said), "\n    said {}\nexpected {line}", said.show());
        let segment = &packet.segment;
        let ends = [(packet.ip.source, segment.source_port), (packet.ip.destination, segment.destination_port)];
        assert_eq!(ends.map(SocketAddr::from), [self.local, self.remote], "from and to");
        if !packet.segment.flags.contains(Flags::SYN) {
            let start = u64::from(said.range.0.wrapping_sub(1));
            assert_eq!(packet.segment.payload, pattern(start, packet.segment.payload.len()), "other bytes");
        }
        packet
    }

    /// Full segments from `start`, `count` of them, acknowledging `ack`.
    #[track_caller]
    pub fn expect_segments(&mut self, start: u32, count: u32, ack: u32) {
        for segment in 0..count {
            let start = start + segment * 1000;
            self.expect(&format!("A {start}:{} ack {ack}", start + 1000));
        }
    }

    /// Asserts that nothing is sent now.
    #[track_caller]
    pub fn expect_nothing(&mut self) {
        if let Some((_, packet)) = self.said.front() {
            panic!("expected nothing, said {}", self.describe(packet).show());
        }
    }

    /// Asserts that nothing is sent for `millis`, and then this segment, to the nanosecond.
    #[track_caller]
    pub fn expect_in(&mut self, millis: u64, line: &str) -> Packet {
        self.expect_nothing();
        let due = self.now + Duration::from_millis(millis);
        self.run(Instant::from_nanos(due.as_nanos() - 1));
        if let Some((at, packet)) = self.said.front() {
            let early = due.since(*at).as_secs_f64() * 1000.0;
            panic!("{early} ms early: {}", self.describe(packet).show());
        }
        self.run(due);
        self.expect(line)
    }

    /// Advances time; segments sent meanwhile must be expected.
    pub fn wait(&mut self, millis: u64) {
        self.run(self.now + Duration::from_millis(millis));
    }

    /// Stops the host for a while: what was due meanwhile is due now.
    pub fn stop(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.host.handle_timeout(self.now);
        self.drain();
    }

    /// Advances time, and asserts that nothing is sent.
    #[track_caller]
    pub fn silence(&mut self, millis: u64) {
        self.wait(millis);
        self.expect_nothing();
    }

    /// Advances time to `end`.
    pub fn wait_until(&mut self, end: Instant) {
        self.run(end);
    }

    fn run(&mut self, end: Instant) {
        loop {
            let due = self.host.poll_timeout();
            if due > end {
                break;
            }
            self.now = self.now.max(due);
            self.host.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    pub fn drain(&mut self) {
        while let Some(packet) = self.host.poll_transmit(self.now) {
            if packet.segment.flags.contains(Flags::SYN) {
                self.initial = packet.segment.seq.0;
            }
            if let Some(stamps) = packet.segment.options.timestamps {
                self.stamp.get_or_insert(stamps.value);
            }
            self.said.push_back((self.now, packet));
        }
        while let Some(event) = self.host.poll_event() {
            if let Event::Accepted { connection, .. } = event {
                self.id = Some(connection);
            }
            self.events.push(event);
        }
    }

    fn describe(&self, packet: &Packet) -> Line {
        let segment = &packet.segment;
        let start = segment.seq.0.wrapping_sub(self.initial);
        let stamps = segment.options.timestamps;
        let from_peer = |number: SeqNumber| number.0.wrapping_sub(PEER_INITIAL);
        Line {
            flags: segment.flags,
            range: (start, start.wrapping_add(segment.payload.len() as u32)),
            ack: segment.flags.contains(Flags::ACK).then(|| from_peer(segment.ack)),
            window: Some(segment.window),
            urgent: Some(segment.urgent),
            mss: segment.options.maximum_segment_size,
            scale: segment.options.window_scale,
            sackok: segment.options.sack_permitted,
            stamps: stamps.map(|ts| (ts.value.wrapping_sub(self.stamp.unwrap_or(0)), ts.echo)),
            sack: segment.options.sack.as_slice().iter().map(|b| (from_peer(b.start), from_peer(b.end))).collect(),
            ecn: Some(packet.ip.ecn),
        }
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.expect_nothing();
        }
    }
}

/// The pattern's bytes from `start`.
pub fn pattern(start: u64, length: usize) -> Bytes {
    (start..start + length as u64).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// A line of a transcript.
#[derive(Debug)]
struct Line {
    flags: Flags,
    range: (u32, u32),
    ack: Option<u32>,
    window: Option<u16>,
    urgent: Option<u16>,
    mss: Option<u16>,
    scale: Option<u8>,
    sackok: bool,
    stamps: Option<(u32, u32)>,
    sack: Vec<(u32, u32)>,
    ecn: Option<Ecn>,
}

impl Line {
    #[track_caller]
    fn parse(line: &str) -> Self {
        fn pair(text: &str, by: char) -> (u32, u32) {
            let (a, b) = text.split_once(by).unwrap_or_else(|| panic!("not a pair: {text}"));
            (number(a), number(b))
        }
        // A negative number is before the SYN.
        fn number(text: &str) -> u32 {
            text.parse::<i64>().unwrap_or_else(|_| panic!("not a number: {text}")) as u32
        }
        let mut words = line.split_whitespace();
        let bits = words.next().unwrap();
        let flag = |letter| LETTERS.iter().find(|(known, _)| *known == letter).map_or(Flags::NONE, |(_, flag)| *flag);
        let flags = bits.chars().map(flag).fold(Flags::NONE, |all, flag| all | flag);
        let range = pair(words.next().unwrap(), ':');
        let mut parsed = Self {
            flags,
            range,
            ack: None,
            window: None,
            urgent: None,
            mss: None,
            scale: None,
            sackok: false,
            stamps: None,
            sack: Vec::new(),
            ecn: None,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("no value for {word}: {line}"));
            match word {
                "ack" => parsed.ack = Some(number(value())),
                "win" => parsed.window = Some(number(value()) as u16),
                "urg" => parsed.urgent = Some(number(value()) as u16),
                "mss" => parsed.mss = Some(number(value()) as u16),
                "scale" => parsed.scale = Some(number(value()) as u8),
                "sackok" => parsed.sackok = true,
                "ts" => parsed.stamps = Some(pair(value(), '/')),
                "sack" => parsed.sack = value().split(',').map(|block| pair(block, '-')).collect(),
                "ect" => parsed.ecn = Some(Ecn::Capable0),
                "not-ect" => parsed.ecn = Some(Ecn::NotCapable),
                "ce" => parsed.ecn = Some(Ecn::Congestion),
                _ => panic!("unknown word {word} in {line}"),
            }
        }
        assert_eq!(parsed.ack.is_some(), flags.contains(Flags::ACK), "A without ack or the reverse: {line}");
        parsed
    }

    /// Whether `said` matches this line.
    fn matches(&self, said: &Self) -> bool {
        fn asked<T: PartialEq>(wanted: &Option<T>, said: &Option<T>) -> bool {
            wanted.is_none() || wanted == said
        }
        let bits = |flags: Flags| flags.0 & !Flags::PSH.0;
        bits(self.flags) == bits(said.flags)
            && self.range == said.range
            && self.ack == said.ack
            && self.sack == said.sack
            && (!self.sackok || said.sackok)
            && asked(&self.window, &said.window)
            && asked(&self.urgent, &said.urgent)
            && asked(&self.mss, &said.mss)
            && asked(&self.scale, &said.scale)
            && asked(&self.stamps, &said.stamps)
            && asked(&self.ecn, &said.ecn)
    }

    fn show(&self) -> String {
        let mut text: String =
            LETTERS.iter().filter(|(_, flag)| self.flags.contains(*flag)).map(|(letter, _)| *letter).collect();
        text += &format!(" {}:{}", self.range.0 as i32, self.range.1 as i32);
        for (name, value) in [("ack", self.ack), ("win", self.window.map(u32::from)), ("mss", self.mss.map(u32::from))]
        {
            text += &value.map_or(String::new(), |value| format!(" {name} {}", value as i32));
        }
        text += &self.scale.map_or(String::new(), |scale| format!(" scale {scale}"));
        text += &self.stamps.map_or(String::new(), |(value, echo)| format!(" ts {value}/{echo}"));
        let blocks: Vec<String> = self.sack.iter().map(|(start, end)| format!("{start}-{end}")).collect();
        text += &if blocks.is_empty() { String::new() } else { format!(" sack {}", blocks.join(",")) };
        text + if self.sackok { " sackok" } else { "" } + &format!(" {:?}", self.ecn)
    }
}
