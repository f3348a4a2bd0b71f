//! Random runs with a receiver as strict as Linux: paths that fail temporarily or for good, bursts of losses with holes
//! before selectively acknowledged data, subflows that are suspended, resumed and made backups. Every byte arrives.
//! While any path works, the data level does not stall for longer than a few of the sender's timeouts.
//!
//! 100 runs by default; `ANABRANCH_PROGRESS_RUNS=1000` for all, `ANABRANCH_PROGRESS_RUN=17` for one.

#[path = "multipath/orders.rs"]
#[allow(dead_code)]
mod orders;
mod pair;

use anabranch_mptcp::Protocol;
use anabranch_mptcp::{BufferSize, CloseCause, ConnectionConfig, Event};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::PathAction;
use anabranch_policy::scheduler::{self, Answer, Chunk, Decision, Hole, Needs, Reinjection, Relief, Scheduler, Work};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use anabranch_wire::Packet;
use anabranch_wire::mptcp::DataAck;
use bytes::Bytes;
use orders::{Orders, create, obedient_pair};
use pair::luck::Luck;
use pair::{Fate, Pair, config, policies};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The longest stall of the data level, in timeouts (the sender's longest without back-off). The connection's timer
/// expires after two of them and doubles each time. If one path has reinjected another's lost data and fails too, that
/// is two and four, a round trip, and the time that the remaining path needs itself.
const MOST_TIMEOUTS: f64 = 8.0;
/// The sum of all stalls of a timeout or more, per event on a path.
const MOST_ADDED: f64 = 5.0;

/// An event on a path or its subflow.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Op {
    Dies,
    Returns,
    /// Loss in 1/1000.
    Loses(u64),
    Suspend,
    Resume,
    Backup(bool),
    /// The path manager closes the subflow, which stays until the peer has received all of its data.
    Close,
    /// The client's address is removed.
    Gone,
}

/// The parameters of a run.
#[derive(Clone, Debug)]
struct Run {
    delays: Vec<u64>,
    scheduler: &'static str,
    congestion: &'static str,
    /// Overrides the scheduler's.
    reinjection: Option<Reinjection>,
    strict: bool,
    buffer: u64,
    checksum: bool,
    /// Percentage of DATA_ACKs with only 32 bits.
    short: u64,
    length: u64,
    /// The server sends the same amount.
    both: bool,
    /// Interval of the receiving application's reads in milliseconds; 0 is at once.
    rests: u64,
    /// Time in milliseconds, path, event.
    script: Vec<(u64, usize, Op)>,
    seed: u64,
}

impl Run {
    fn draw(number: u64) -> Self {
        let mut luck = Luck(number.wrapping_mul(0x1234_5678_9abc_def1) ^ 11);
        let paths = 2 + luck.below(2) as usize;
        let delays = (0..paths).map(|_| 2 + luck.below(80)).collect();
        let names: Vec<&'static str> = scheduler::TABLE.iter().map(|member| member.name).collect();
        let often = ["lowest_rtt", "linux", "round_robin", "anabranch"];
        let scheduler = if luck.one_in(2) { luck.pick(&often) } else { luck.pick(&names) };
        let mut script = Vec::new();
        for path in 0..paths {
            for _ in 0..luck.below(5) {
                let at = luck.below(2_000);
                let until = at + luck.pick(&[30, 300, 1_500, 6_000]);
                match luck.below(7) {
                    0 => script.push((at, path, Op::Dies)),
                    1 => script.extend([(at, path, Op::Dies), (until, path, Op::Returns)]),
                    2 => script.extend([(at, path, Op::Suspend), (until, path, Op::Resume)]),
                    3 => script.extend([(at, path, Op::Backup(true)), (until, path, Op::Backup(false))]),
                    4 => script.push((at, path, luck.pick(&[Op::Close, Op::Gone]))),
                    _ => {
                        let share = luck.pick(&[30, 200, 600]);
                        script.extend([(at, path, Op::Loses(share)), (until, path, Op::Loses(0))]);
                    }
                }
            }
        }
        script.sort_by_key(|(at, ..)| *at);
        Self {
            delays,
            scheduler,
            congestion: luck.pick(&["new_reno", "lia", "cubic"]),
            reinjection: luck.pick(&[
                None,
                None,
                Some(Reinjection::OnConnectionTimeout),
                Some(Reinjection::OnSubflowTimeout),
            ]),
            strict: !luck.one_in(5),
            buffer: luck.pick(&[8_000, 12_000, 100_000, 400_000]),
            checksum: luck.one_in(6),
            short: luck.pick(&[0, 0, 50, 100]),
            length: luck.pick(&[100_000, 500_000, 2_000_000]),
            both: luck.one_in(4),
            rests: luck.pick(&[0, 0, 0, 30]),
            script,
            seed: luck.next(),
        }
    }

    /// The same with a reinjection policy that leaves outstanding data on a subflow until it is gone, and parameters so
    /// that a run ends soon.
    fn leaving_data_to_its_subflow(self) -> Self {
        Self { reinjection: Some(Reinjection::Never), ..self }
    }

    fn side(&self) -> ConnectionConfig {
        let (name, reinjection) = (self.scheduler, self.reinjection);
        let mut config = ConnectionConfig { policies: policies(self.congestion, name), ..config() };
        config.policies.scheduler = Arc::new(move || {
            let inner = table::build(scheduler::TABLE, name, &Settings::new()).unwrap();
            Box::new(Otherwise { inner, reinjection })
        });
        config.receive_buffer = BufferSize::Fixed(self.buffer);
        config.buffers_per_subflow = false;
        config.send_buffer = self.buffer * 4;
        config.receiver.data_in_subflow_order = self.strict;
        config.checksum = self.checksum;
        if reinjection == Some(Reinjection::Never) {
            config.data_reinjection = reinjection;
            config.tcp.max_timeouts = 8;
        }
        config
    }
}

/// A scheduler with another reinjection policy.
struct Otherwise {
    inner: Box<dyn Scheduler>,
    reinjection: Option<Reinjection>,
}

impl Scheduler for Otherwise {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        self.inner.schedule(connection, chunk, subflows)
    }
    fn on_window_blocked(&mut self, connection: &ConnectionView, hole: &Hole, subflows: &[SubflowView]) -> Relief {
        self.inner.on_window_blocked(connection, hole, subflows)
    }
    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        self.inner.next(connection, work, subflows)
    }
    fn needs(&self) -> Needs {
        let needs = self.inner.needs();
        Needs { reinjection: self.reinjection.unwrap_or(needs.reinjection), ..needs }
    }
    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.inner.on_subflow_removed(id);
    }
}

/// The current state of the paths.
struct Paths {
    luck: Luck,
    dead: Vec<bool>,
    loss: Vec<u64>,
    short: u64,
}

fn path_of(packet: &Packet) -> usize {
    match packet.ip.destination {
        IpAddr::V4(to) => usize::from(to.octets()[2]),
        IpAddr::V6(_) => 0,
    }
}

impl Paths {
    fn judge(&mut self, packet: &Packet) -> Fate {
        let path = path_of(packet);
        if self.dead[path] || self.luck.below(1_000) < self.loss[path] {
            return Fate::Drop;
        }
        let mut cut = packet.clone();
        if let Some(dss) = cut.segment.options.dss.as_mut()
            && let Some(DataAck::Long(number)) = dss.data_ack
            && self.luck.below(100) < self.short
        {
            dss.data_ack = Some(DataAck::Short(number as u32));
            return Fate::Instead(Box::new(cut));
        }
        Fate::Deliver
    }
}

/// The byte at a position of a host's stream.
fn byte(host: usize, at: u64) -> u8 {
    (at.wrapping_mul(2_654_435_761).wrapping_add(host as u64 * 77) >> 13) as u8
}

/// Both ends with the history of the run.
struct Life {
    run: Run,
    pair: Pair,
    orders: [Orders; 2],
    paths: Rc<RefCell<Paths>>,
    ids: [ConnectionId; 2],
    written: [u64; 2],
    closed: [bool; 2],
    checked: [usize; 2],
    suspended: Vec<bool>,
    /// For each path: since when it works, delayed by the preceding outage (its timers have backed off), and since when
    /// it does not.
    good_from: Vec<Instant>,
    bad_since: Vec<Option<Instant>>,
    progress: [(usize, Instant); 2],
    /// The current stall of each direction, in timeouts.
    stands: [f64; 2],
    /// The longest stall, and the sum of those of a timeout or more.
    worst: f64,
    added: f64,
    next_read: Instant,
    what: String,
}

impl Life {
    fn begin(run: &Run) -> Self {
        let (mut pair, orders) = obedient_pair(run.delays.len());
        pair.delay = run.delays.iter().map(|millis| Duration::from_millis(*millis)).collect();
        pair.keep = false;
        pair.burst_limit = 20_000;
        pair.reading = [run.rests == 0; 2];
        let count = run.delays.len();
        let paths = Paths { luck: Luck(run.seed), dead: vec![false; count], loss: vec![0; count], short: run.short };
        let paths = Rc::new(RefCell::new(paths));
        let judge = paths.clone();
        pair.judge = Box::new(move |_, _, packet| judge.borrow_mut().judge(packet));
        let client = pair.connect(run.side(), run.side());
        pair.hosts[0].write(pair.now, client, Bytes::from(vec![byte(0, 0)])).unwrap();
        pair.settle();
        let mut life = Self {
            run: run.clone(),
            pair,
            orders,
            paths,
            ids: [client, client],
            written: [1, 0],
            closed: [false; 2],
            checked: [0; 2],
            suspended: vec![false; count],
            good_from: vec![Instant::ZERO; count],
            bad_since: vec![None; count],
            progress: [(0, Instant::ZERO); 2],
            stands: [0.0; 2],
            worst: 0.0,
            added: 0.0,
            next_read: Instant::ZERO,
            what: String::new(),
        };
        life.pair.run(Duration::from_millis(600));
        life.ids[1] = life.pair.accepted().expect("nothing is lost yet");
        for path in 1..count as u8 {
            let announce = PathAction::Announce { connection: life.ids[1], local: AddressId(1 + path) };
            life.orders[1].give(&mut life.pair, 1, announce);
            life.pair.run(Duration::from_millis(600));
            life.orders[0].give(&mut life.pair, 0, create(client, 1 + path, 1 + path, false));
        }
        life.pair.run(Duration::from_millis(600));
        assert_eq!(life.pair.hosts[0].subflow_views(life.pair.now, client).len(), count);
        assert_eq!(life.pair.hosts[0].protocol(client), Some(Protocol::Multipath));
        life
    }

    fn subflow_on(&self, host: usize, path: usize) -> Option<SubflowId> {
        let views = self.pair.hosts[host].subflow_views(self.pair.now, self.ids[host]);
        views.iter().find(|view| usize::from(view.local_address.0) == path + 1).map(|view| view.id)
    }

    fn act(&mut self, path: usize, op: Op) {
        match op {
            Op::Dies | Op::Returns => self.paths.borrow_mut().dead[path] = op == Op::Dies,
            Op::Loses(share) => self.paths.borrow_mut().loss[path] = share,
            Op::Gone => {
                self.pair.hosts[0].handle_address_down(self.pair.now, AddressId(1 + path as u8));
                self.pair.settle();
            }
            Op::Suspend | Op::Resume | Op::Backup(_) | Op::Close => {
                for host in 0..2 {
                    let Some(subflow) = self.subflow_on(host, path) else { continue };
                    let connection = self.ids[host];
                    let action = match op {
                        Op::Suspend => PathAction::Suspend { connection, subflow },
                        Op::Resume => PathAction::Resume { connection, subflow },
                        Op::Backup(backup) => PathAction::SetBackup { connection, subflow, backup },
                        Op::Close if host == 0 => PathAction::CloseSubflow { connection, subflow },
                        _ => return,
                    };
                    self.orders[host].give(&mut self.pair, host, action);
                }
                match op {
                    Op::Suspend => self.suspended[path] = true,
                    Op::Resume => self.suspended[path] = false,
                    _ => {}
                }
            }
        }
        let now = self.pair.now;
        for path in 0..self.run.delays.len() {
            let paths = self.paths.borrow();
            let bad = paths.dead[path] || paths.loss[path] > 0 || self.suspended[path];
            match (bad, self.bad_since[path]) {
                (true, None) => self.bad_since[path] = Some(now),
                (false, Some(since)) => {
                    self.bad_since[path] = None;
                    self.good_from[path] = now + now.since(since) + now.since(since) / 4;
                }
                _ => {}
            }
        }
    }

    /// Writes as much as the buffer accepts, and closes after the last byte.
    fn write_on(&mut self) {
        for host in 0..2 {
            let total = if host == 0 || self.run.both { self.run.length } else { 0 };
            while self.written[host] < total {
                let end = (self.written[host] + 20_000).min(total);
                let data: Bytes = (self.written[host]..end).map(|at| byte(host, at)).collect();
                let Ok(taken) = self.pair.hosts[host].write(self.pair.now, self.ids[host], data) else { return };
                self.written[host] += taken as u64;
                if taken == 0 {
                    break;
                }
            }
            if self.written[host] >= total && !self.closed[host] {
                self.closed[host] = true;
                let _ = self.pair.hosts[host].close(self.pair.now, self.ids[host]);
            }
        }
        self.pair.settle();
    }

    fn read_on(&mut self) {
        let now = self.pair.now;
        if now < self.next_read {
            return;
        }
        self.next_read = now + Duration::from_millis(self.run.rests);
        for host in 0..2 {
            self.pair.read(host, self.ids[host]);
            for at in self.checked[host]..self.pair.received[host].len() {
                assert_eq!(self.pair.received[host][at], byte(1 - host, at as u64), "at {at}");
            }
            self.checked[host] = self.pair.received[host].len();
        }
        self.pair.settle();
    }

    /// Measures for how long the data level of each direction has stalled while a path works.
    fn watch(&mut self) {
        let now = self.pair.now;
        for host in 0..2 {
            let (seen, since) = self.progress[host];
            let Some(view) = self.pair.hosts[host].connection_view(now, self.ids[host]) else { continue };
            let arrived = self.pair.received[1 - host].len();
            if arrived != seen || arrived as u64 == self.written[host] {
                self.progress[host] = (arrived, now);
                let stood = std::mem::take(&mut self.stands[host]);
                self.added += if stood > 1.0 { stood } else { 0.0 };
                continue;
            }
            let views = self.pair.hosts[host].subflow_views(now, self.ids[host]);
            let open = |path: usize| views.iter().any(|v| v.usable() && usize::from(v.local_address.0) == path + 1);
            let good = (0..self.run.delays.len()).filter(|path| self.bad_since[*path].is_none() && open(*path));
            let Some(from) = good.map(|path| self.good_from[path]).min() else { continue };
            let stood = now.since(since.max(from));
            let timeout = views.iter().filter(|v| v.usable()).map(|v| v.rto).max().unwrap_or_default();
            let timeouts = stood.as_secs_f64() / timeout.max(Duration::from_millis(200)).as_secs_f64();
            self.stands[host] = self.stands[host].max(timeouts);
            if timeouts > self.worst {
                self.worst = timeouts;
                self.what = format!(
                    "host {host} at {now:?} since {since:?} (a path carries from {from:?}): {arrived} of {} {view:#?} {views:#?}",
                    self.written[host]
                );
            }
        }
    }

    fn pass(&mut self, until: Instant) {
        loop {
            let next = if self.run.rests > 0 { self.next_read.min(until) } else { until };
            let more = self.pair.step(next);
            self.read_on();
            self.write_on();
            self.watch();
            if !more && self.pair.now >= until {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        (0..2).all(|host| self.pair.events[host].iter().any(|event| matches!(event, Event::Closed(..))))
    }
}

/// Returns the longest stall and the sum, in timeouts, and a description of the longest.
fn live(run: &Run) -> (f64, f64, String) {
    let mut life = Life::begin(run);
    let begun = life.pair.now;
    life.progress = [(life.pair.received[1].len(), begun), (0, begun)];
    life.write_on();
    let mut script: Vec<_> = run.script.clone();
    // At the end one path works, drawn at random.
    let saviour = (run.seed % run.delays.len() as u64) as usize;
    script.retain(|(_, path, op)| *path != saviour || !matches!(op, Op::Close | Op::Gone));
    script.extend([(12_000, saviour, Op::Returns), (12_000, saviour, Op::Loses(0)), (12_000, saviour, Op::Resume)]);
    for (at, path, op) in script {
        life.pass(begun + Duration::from_millis(at));
        life.act(path, op);
        if life.is_over() {
            break;
        }
    }
    let mut seconds = 0;
    while !life.is_over() {
        assert!(seconds < 1_500, "it does not end: {} {:?}", life.what, life.pair.events);
        let until = life.pair.now + Duration::from_secs(1);
        life.pass(until);
        seconds += 1;
    }
    for host in 0..2 {
        let finished = |event: &Event| matches!(event, Event::Closed(_, CloseCause::Finished));
        assert!(life.pair.events[host].iter().any(finished), "{:?}", life.pair.events[host]);
        assert_eq!(life.pair.received[1 - host].len() as u64, life.written[host]);
    }
    (life.worst, life.added / (run.script.len() + 1) as f64, life.what)
}

#[test]
fn as_long_as_a_path_carries_the_data_level_does_not_stand_still() {
    let only = std::env::var("ANABRANCH_PROGRESS_RUN").ok().map(|number| number.parse::<u64>().expect("a number"));
    let runs = std::env::var("ANABRANCH_PROGRESS_RUNS").map_or(100, |number| number.parse().expect("a number"));
    let (mut worst, mut most_added) = ((0.0, 0), (0.0, 0));
    for number in only.map_or(0..runs, |only| only..only + 1) {
        let run = Run::draw(number);
        let outcome = std::panic::catch_unwind(|| live(&run));
        let Ok((stood, added, what)) = outcome else { panic!("run {number}: {run:?}") };
        assert!(stood < MOST_TIMEOUTS, "run {number} stood still for {stood} timeouts: {run:?} {what}");
        assert!(added < MOST_ADDED, "run {number} stood still {added} timeouts for each change: {run:?} {what}");
        worst = if stood > worst.0 { (stood, number) } else { worst };
        most_added = if added > most_added.0 { (added, number) } else { most_added };
    }
    eprintln!(
        "{runs} runs: a standstill of {:.2} timeouts in run {}; for each change {:.2} in run {}",
        worst.0, worst.1, most_added.0, most_added.1
    );
}

#[test]
fn every_byte_arrives_where_data_is_left_to_its_subflow() {
    for number in 0..40 {
        let run = Run::draw(number).leaving_data_to_its_subflow();
        let outcome = std::panic::catch_unwind(|| live(&run));
        assert!(outcome.is_ok(), "run {number}: {run:?}");
    }
}
