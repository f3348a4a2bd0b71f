//! Random runs in which data is abandoned. Delivered data is exact, each gap is announced once, and together they form
//! the stream. Only data that arrived is acknowledged, memory is bounded, the counters of both ends agree, and the
//! connection ends. The runs vary policies, both levels, messages and bytes, buffers from three segments, paths that
//! fail temporarily or for good, losses, reordering, and lost notices.
//!
//! 200 runs by default; `ANABRANCH_GAP_RUNS=2000` for all, `ANABRANCH_GAP_RUN=17` for one.

mod pair;

use anabranch_mptcp::stats::{ConnectionStats, GapTotals};
use anabranch_mptcp::{BufferSize, CloseCause, ConnectionConfig, Event, Framing, MessageOptions, Record};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::reliability::{self, Reason};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::notice::Notice;
use anabranch_wire::mptcp::{DataAck, DataSequence};
use anabranch_wire::{Flags, MptcpOption, Packet, SeqNumber};
use bytes::Bytes;
use pair::luck::Luck;
use pair::{Fate, Pair, config, pattern, policies};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Milliseconds; no packet is lost afterwards.
const CALM: u64 = 20_000;

/// The parameters of a run.
#[derive(Debug)]
struct Run {
    paths: usize,
    scheduler: &'static str,
    framing: Framing,
    receiver: (&'static str, Settings),
    sender: (&'static str, Settings),
    buffer: BufferSize,
    /// Probabilities of loss, delay and duplication, in 1/1000.
    weather: [u64; 3],
    /// Share of the losses that also affect all retransmissions on the subflow, in 1/1000.
    cursed: u64,
    /// Share of lost notices, in 1/1000.
    deaf: u64,
    /// Dead paths, with start and end in milliseconds.
    dead: Vec<(usize, u64, u64)>,
    /// Writes: time in milliseconds, and length.
    writes: Vec<(u64, usize)>,
    /// Pause of the reader between reads, in milliseconds.
    rests: u64,
    /// The receiver passes data to the data level only in subflow order, as Linux does.
    strict: bool,
    seed: u64,
}

fn settings(luck: &mut Luck, policy: &str) -> Settings {
    let millis = luck.pick(&[5, 30, 100, 300, 800]);
    match policy {
        "spe" | "both_ends" => {
            let switch = |luck: &mut Luck| if luck.one_in(4) { "off" } else { "on" };
            let level = luck.pick(&["data", "subflow", "subflow"]);
            let settings = Settings::new().with("latency", millis).with("level", level);
            let settings =
                settings.with("most_skipped", luck.pick(&["0.05", "0.5", "0.5"])).with("blocked", switch(luck));
            if policy == "both_ends" {
                return settings;
            }
            let settings = settings.with("reserve", luck.below(20)).with("expired", switch(luck));
            settings.with("overtaken", switch(luck))
        }
        "pr_mptcp" | "mo_pr" => Settings::new().with("lifetime", millis),
        "too_late" => Settings::new().with("latency", millis),
        _ => Settings::new(),
    }
}

impl Run {
    fn draw(number: u64) -> Self {
        let mut luck = Luck(number.wrapping_mul(0x1234_5678_9abc_def1) ^ 7);
        let paths = 1 + luck.below(3) as usize;
        let framing = if luck.one_in(3) { Framing::Bytes } else { Framing::Messages };
        let policy = luck.pick(&["spe", "spe", "both_ends", "both_ends", "too_late", "pr_mptcp", "mo_pr", "full"]);
        // A peer without the extension, one of ours, or one of ours with another rule.
        let other = match luck.below(4) {
            0 => "full",
            1 => luck.pick(&["spe", "both_ends", "too_late", "pr_mptcp", "mo_pr"]),
            _ => policy,
        };
        let scheduler = luck.pick(&["lowest_rtt", "lowest_rtt", "anabranch", "redundant", "round_robin"]);
        let (receiver, sender) = (settings(&mut luck, policy), settings(&mut luck, other));
        let size = luck.pick(&[4_500, 6_000, 16_000, 64_000, 256_000]);
        let buffer =
            if luck.one_in(2) { BufferSize::Fixed(size) } else { BufferSize::Auto { initial: size, max: size * 4 } };
        let weather = [luck.pick(&[0, 10, 50, 150]), luck.pick(&[0, 30, 200]), luck.pick(&[0, 20])];
        let cursed = luck.pick(&[0, 100, 500]);
        let deaf = luck.pick(&[0, 300, 1_000]);
        let failing = |path: u64, luck: &mut Luck| {
            let begins = luck.below(3_000);
            let ends = if luck.one_in(3) { CALM } else { begins + luck.below(4_000) };
            (path as usize, begins, ends)
        };
        let mut dead = Vec::new();
        for path in 0..paths as u64 {
            if luck.one_in(4) {
                dead.push(failing(path, &mut luck));
            }
        }
        let count = 1 + luck.below(120);
        let pace = luck.pick(&[0, 5, 40]);
        let most = luck.pick(&[40, 200, 3_000, 12_000]);
        let writes = (0..count).map(|nth| (nth * pace, luck.below(most) as usize)).collect();
        let rests = luck.pick(&[0, 0, 20, 400]);
        let (receiver, sender) = ((policy, receiver), (other, sender));
        Self {
            paths,
            scheduler,
            framing,
            receiver,
            sender,
            buffer,
            weather,
            cursed,
            deaf,
            dead,
            writes,
            rests,
            seed: luck.next(),
            strict: luck.one_in(3),
        }
    }

    fn skips(&self) -> bool {
        let settings = format!("{:?}", self.receiver.1);
        settings.contains("subflow")
    }

    /// Highest share of received data that subflow acknowledgements may skip.
    fn most_skipped(&self) -> f64 {
        self.receiver.1.get("most_skipped").map_or(0.05, |share| share.parse().expect("a share"))
    }

    fn side(&self, (policy, settings): &(&'static str, Settings)) -> ConnectionConfig {
        let (policy, settings) = (*policy, settings.clone());
        let mut config = ConnectionConfig { policies: policies("new_reno", self.scheduler), ..config() };
        config.receive_buffer = self.buffer;
        config.buffers_per_subflow = false;
        config.framing = self.framing;
        config.receiver.data_in_subflow_order = self.strict;
        config.policies.reliability = Arc::new(move || table::build(reliability::TABLE, policy, &settings).unwrap());
        config
    }
}

/// Data that reached the receiver: nothing beyond may be acknowledged.
#[derive(Debug, Default)]
struct Passed {
    data: u64,
    subflows: HashMap<(std::net::IpAddr, u16), SeqNumber>,
}

impl Passed {
    fn data_of(packet: &Packet) -> Option<u64> {
        let mapping = packet.segment.options.dss.as_ref()?.mapping?;
        let DataSequence::Long(number) = mapping.data_seq else { return None };
        Some(number + u64::from(mapping.length))
    }
    fn note(&mut self, packet: &Packet) {
        if let Some(end) = Self::data_of(packet) {
            self.data = self.data.max(end);
        }
        let end = packet.segment.seq + packet.segment.sequence_length();
        let highest = self.subflows.entry((packet.ip.source, packet.segment.source_port)).or_insert(end);
        *highest = (*highest).max(end);
    }
    fn check(&self, packet: &Packet) {
        let segment = &packet.segment;
        if let (Some(DataAck::Long(number)), true) =
            (segment.options.dss.as_ref().and_then(|dss| dss.data_ack), self.data > 0)
        {
            assert!(number <= self.data, "the data level acknowledges {} bytes not seen", number - self.data);
        }
        let subflow = self.subflows.get(&(packet.ip.destination, segment.destination_port));
        if let (Some(highest), true) = (subflow, segment.flags.contains(Flags::ACK)) {
            assert!(segment.ack.at_or_before(*highest), "a subflow acknowledges what was not seen: {packet:?}");
        }
    }
}

fn on_the_way(run: &Run) -> pair::Judge {
    let mut luck = Luck(run.seed);
    let (weather, cursed, deaf, dead) = (run.weather, run.cursed, run.deaf, run.dead.clone());
    let mut doomed: Vec<(u16, SeqNumber, SeqNumber)> = Vec::new();
    let passed = Rc::new(RefCell::new(Passed::default()));
    Box::new(move |from, now, packet| {
        let millis = now.since(Instant::ZERO).as_millis();
        let std::net::IpAddr::V4(to) = packet.ip.destination else { return Fate::Deliver };
        let path = usize::from(to.octets()[2]);
        let mut passed = passed.borrow_mut();
        if from == 1 {
            passed.check(packet);
        }
        // Handshakes are never lost, nor anything at the end.
        let calm = millis > CALM || packet.segment.flags.contains(Flags::SYN) || millis < 400;
        let is_dead = dead.iter().any(|(which, begins, ends)| *which == path && (*begins..*ends).contains(&millis));
        let says = |option: &MptcpOption| !matches!(Notice::of(option), None | Some(Notice::Hello { .. }));
        let is_unheard = packet.segment.options.mptcp.iter().any(says) && luck.below(1_000) < deaf;
        let segment = &packet.segment;
        let (port, begins, ends) = (segment.source_port, segment.seq, segment.seq + segment.payload.len() as u32);
        let is_doomed = doomed.iter().any(|(of, start, end)| *of == port && begins.before(*end) && ends.after(*start));
        let fate = match luck.below(1_000) {
            _ if calm => Fate::Deliver,
            _ if is_dead || is_unheard || (from == 0 && is_doomed) => Fate::Drop,
            draw if draw < weather[0] => Fate::Drop,
            draw if draw < weather[0] + weather[1] => Fate::Late(Duration::from_millis(luck.below(120))),
            draw if draw < weather[0] + weather[1] + weather[2] => Fate::Twice,
            _ => Fate::Deliver,
        };
        match fate {
            Fate::Drop if from == 0 && luck.below(1_000) < cursed => doomed.push((port, begins, ends)),
            Fate::Drop => {}
            _ if from == 0 => passed.note(packet),
            _ => {}
        }
        fate
    })
}

/// The reader's view.
#[derive(Default)]
struct Account {
    offset: u64,
    /// Number and bytes of gaps, by reason.
    gaps: BTreeMap<&'static str, GapTotals>,
    delivered: u64,
    next_number: u32,
}

impl Account {
    fn take(&mut self, record: &Record, run: &Run, written: &[usize]) {
        assert_eq!(record.offset(), self.offset, "records are contiguous: {record:?}");
        assert!(record.length() > 0, "{record:?}");
        self.offset = record.end();
        match record {
            Record::Bytes { offset, bytes } => {
                self.delivered += bytes.len() as u64;
                let exact = bytes.iter().zip(*offset..).all(|(byte, at)| *byte == byte_at(at));
                assert!(exact && run.framing == Framing::Bytes, "at {offset}");
            }
            Record::Message { header, payload, .. } => {
                self.delivered += record.length();
                assert!(header.number >= self.next_number, "{header:?} after {}", self.next_number);
                self.next_number = header.number + 1;
                let length = written[header.number as usize];
                assert_eq!(&payload[..], &payload_of(header.number, length)[..]);
            }
            Record::Gap { length, reason, .. } => {
                let gaps = self.gaps.entry(reason.name()).or_default();
                (gaps.gaps, gaps.bytes) = (gaps.gaps + 1, gaps.bytes + length);
            }
        }
    }
}

fn byte_at(at: u64) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 13) as u8
}

fn payload_of(number: u32, length: usize) -> Vec<u8> {
    let mut payload = pattern(length);
    payload.iter_mut().for_each(|byte| *byte ^= number as u8);
    payload
}

/// Both ends with the history of the run.
struct Life<'a> {
    run: &'a Run,
    pair: Pair,
    id: ConnectionId,
    server: ConnectionId,
    account: Account,
    /// Lengths of the accepted messages, and bytes.
    written: Vec<usize>,
    bytes: u64,
    rests_until: Instant,
    /// The last counters read.
    stats: [Option<ConnectionStats>; 2],
}

impl Life<'_> {
    fn write(&mut self, length: usize, luck: &mut Luck) {
        let now = self.pair.now;
        if self.run.framing == Framing::Bytes {
            let data: Bytes = (self.bytes..self.bytes + length as u64).map(byte_at).collect();
            self.bytes += self.pair.hosts[0].write(now, self.id, data).unwrap() as u64;
        } else {
            let number = self.written.len() as u32;
            let lifetime = luck.one_in(5).then(|| Duration::from_millis(luck.below(400)));
            let play_out = now.since(Instant::ZERO) + Duration::from_millis(luck.below(50));
            let options = MessageOptions { importance: luck.below(256) as u8, play_out, lifetime };
            let payload = Bytes::from(payload_of(number, length));
            let taken = self.pair.hosts[0].write_message(now, self.id, payload, &options).unwrap();
            if let Some(taken) = taken {
                assert_eq!(taken, number);
                self.written.push(length);
            }
        }
        self.pair.settle();
    }

    fn read(&mut self) {
        let now = self.pair.now;
        self.check_memory();
        if now < self.rests_until {
            return;
        }
        self.rests_until = now + Duration::from_millis(self.run.rests);
        while let Some(record) = self.pair.hosts[1].read_record(now, self.server) {
            self.account.take(&record, self.run, &self.written);
            self.check_memory();
        }
        self.pair.settle();
    }

    fn pass(&mut self, until: Instant) {
        while self.pair.step(until) {
            self.read();
        }
        self.read();
    }

    fn describe(&mut self) -> String {
        let ends = [(0, self.id), (1, self.server)].map(|(host, id)| {
            let host = &mut self.pair.hosts[host];
            let now = self.pair.now;
            let next = host.poll_timeout();
            let (view, subflows) = (host.connection_view(now, id), host.subflow_views(now, id));
            format!("{now:?} {next:?} {view:#?} {subflows:#?} {:?} {:?}", host.receive_state(id), host.stats(id))
        });
        format!("{} {} {:?}", ends[0], ends[1], self.pair.events)
    }

    fn check_memory(&mut self) {
        let now = [self.pair.hosts[0].stats(self.id), self.pair.hosts[1].stats(self.server)];
        self.stats.iter_mut().zip(now).for_each(|(last, now)| *last = now.or(*last));
        let Some(state) = self.pair.hosts[1].receive_state(self.server) else { return };
        // The next segment in order is always accepted.
        assert!(state.readable + state.out_of_order <= state.buffer + 2_000, "{state:?}");
        let most = match self.run.buffer {
            BufferSize::Fixed(size) => size,
            BufferSize::Auto { max, .. } => max,
        };
        assert!(state.buffer <= most, "{state:?}");
    }
}

fn live(number: u64) -> (BTreeMap<&'static str, GapTotals>, [ConnectionStats; 2]) {
    let run = Run::draw(number);
    let mut luck = Luck(run.seed ^ 99);
    let mut pair = Pair::new(run.paths);
    for delay in &mut pair.delay {
        *delay = Duration::from_millis(1 + luck.below(80));
    }
    pair.keep = false;
    pair.reading = [false, false];
    pair.judge = on_the_way(&run);
    let id = pair.connect(run.side(&run.sender), run.side(&run.receiver));
    pair.run(Duration::from_millis(400));
    let server = pair.accepted().expect("handshakes pass");
    let account = Account::default();
    let mut life = Life {
        run: &run,
        pair,
        id,
        server,
        account,
        written: Vec::new(),
        bytes: 0,
        rests_until: Instant::ZERO,
        stats: [None, None],
    };
    for (at, length) in &run.writes {
        life.pass(Instant::ZERO + Duration::from_millis(400 + at));
        life.write(*length, &mut luck);
    }
    let now = life.pair.now;
    life.pair.hosts[0].close(now, life.id).unwrap();
    life.pair.hosts[1].close(now, life.server).unwrap();
    life.pair.settle();
    let ended = |life: &Life<'_>, host: usize| {
        let over = |event: &Event| matches!(event, Event::Closed(_, CloseCause::Finished));
        life.pair.events[host].iter().any(over)
    };
    let mut seconds = 0;
    while !(ended(&life, 0) && ended(&life, 1)) {
        assert!(seconds < 3_000, "it does not end: {}", life.describe());
        let until = life.pair.now + Duration::from_millis(500);
        life.pass(until);
        seconds += 1;
    }
    life.read();
    check_the_sums(&life);
    let stats = life.stats.map(|stats| stats.expect("there was a connection"));
    (std::mem::take(&mut life.account.gaps), stats)
}

fn check_the_sums(life: &Life<'_>) {
    let [sender, receiver] = life.stats.map(|stats| stats.expect("there was a connection"));
    let account = &life.account;
    let abandoned: u64 = account.gaps.values().map(|gaps| gaps.bytes).sum();
    assert_eq!(account.delivered + abandoned, account.offset);
    assert_eq!(account.offset, sender.bytes_acked, "the whole stream was accounted for");
    if life.run.framing == Framing::Bytes {
        assert_eq!(account.offset, life.bytes);
    }
    for reason in Reason::ALL {
        let announced = account.gaps.get(reason.name()).copied().unwrap_or_default();
        assert_eq!(receiver.abandoned.of(reason), announced, "{reason}");
    }
    assert_eq!(receiver.bytes_delivered, account.delivered);
    // A message with a missing byte is abandoned entirely; the sender is told only of the missing bytes.
    assert!(sender.bytes_abandoned_by_peer <= abandoned && receiver.late_bytes_received <= abandoned);
    assert!(receiver.skipped_bytes == 0 || life.run.skips(), "level data: {receiver:?}");
    // A few packets are duplicated.
    let came = 1.1 * (sender.bytes_sent + sender.bytes_retransmitted + sender.bytes_reinjected) as f64;
    assert!(receiver.skipped_bytes as f64 <= life.run.most_skipped() * came, "{receiver:?} {sender:?}");
    if life.run.receiver.0 == "full" {
        let refused = account.gaps.keys().all(|reason| *reason == Reason::Unframed.name());
        assert!(refused, "under full reliability: {:?}", account.gaps);
    }
    if life.run.framing == Framing::Messages {
        // Data removed before any of it was sent is in neither stream.
        let total: u64 = life.written.iter().map(|length| *length as u64 + 24).sum();
        let taken_out = total - account.offset;
        assert!(taken_out <= sender.bytes_withdrawn, "{taken_out} of {sender:?}");
        let withdraws = ["both_ends", "too_late", "pr_mptcp", "mo_pr"].contains(&life.run.sender.0);
        assert!(withdraws || sender.messages_withdrawn == 0);
    }
}

#[test]
fn what_is_delivered_is_exact_and_each_gap_is_announced_once() {
    let only = std::env::var("ANABRANCH_GAP_RUN").ok().map(|number| number.parse::<u64>().expect("a number"));
    let runs = std::env::var("ANABRANCH_GAP_RUNS").map_or(200, |number| number.parse().expect("a number"));
    let (mut gaps, mut with_gaps) = (BTreeMap::<&str, GapTotals>::new(), 0);
    let (mut delivered, mut late, mut skipped, mut withdrawn) = (0, 0, 0, 0);
    for number in only.map_or(0..runs, |only| only..only + 1) {
        let outcome = std::panic::catch_unwind(|| live(number));
        let Ok((here, [sender, receiver])) = outcome else { panic!("run {number}: {:#?}", Run::draw(number)) };
        with_gaps += u64::from(!here.is_empty());
        for (reason, more) in here {
            let sum = gaps.entry(reason).or_default();
            (sum.gaps, sum.bytes) = (sum.gaps + more.gaps, sum.bytes + more.bytes);
        }
        (delivered, late) = (delivered + receiver.bytes_delivered, late + receiver.late_bytes_received);
        (skipped, withdrawn) = (skipped + receiver.skipped_bytes, withdrawn + sender.bytes_withdrawn);
    }
    eprintln!("{runs} runs, {with_gaps} with gaps: {delivered} bytes delivered, abandoned {gaps:?}");
    eprintln!("{late} bytes came late, {skipped} were skipped on subflows, {withdrawn} withdrawn");
    assert!(only.is_some() || with_gaps > runs / 10);
    assert!(only.is_some() || runs < 200 || (late > 0 && skipped > 0 && withdrawn > 0));
}
