//! The parameters of a random case: two hosts' settings, the paths between them, and a sequence of events.

use anabranch_mptcp::{BufferSize, ConnectionConfig, EcnMode};
use anabranch_policy::table::Member;
use anabranch_policy::time::Duration;
use anabranch_policy::{congestion, path_manager, scheduler};
use proptest::prelude::*;
use proptest::sample::select;

use crate::pair;

/// Families of cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Neither side offers MPTCP.
    Plain,
    /// Both do, without checksums.
    Multipath,
    /// Both do, with checksums, over paths that may change payload.
    Checksums,
    /// Each side decides.
    Mixed,
}

/// Settings of one host.
#[derive(Clone, Debug)]
pub struct Side {
    /// Offers or accepts MPTCP.
    pub multipath: bool,
    /// Requires DSS checksums.
    pub checksum: bool,
    /// Requests no joins to its first address.
    pub deny_join_initial: bool,
    /// Receive buffer: initial and largest size in bytes.
    pub receive_buffer: (u64, Option<u64>),
    /// Send buffer, bytes.
    pub send_buffer: u64,
    /// Most subflows.
    pub max_subflows: usize,
    /// How long a connection outlives its last subflow, seconds.
    pub survive: u64,
    /// Settings of its TCP.
    pub tcp: Tcp,
    /// Name in the congestion control table.
    pub congestion: &'static str,
    /// Name in the scheduler table.
    pub scheduler: &'static str,
    /// Name in the path manager table.
    pub manager: &'static str,
    /// Records a trace.
    pub trace: bool,
    /// Passes data to the data level only in subflow order, as Linux does.
    pub strict: bool,
}

/// Settings of one host's TCP.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// MTU in bytes of IP.
    pub mtu: u16,
    /// Window scaling, timestamps, SACK, ECN.
    pub options: [bool; 4],
    /// Nagle.
    pub nagle: bool,
    /// Pacing.
    pub pacing: bool,
    /// Delay of acknowledgements, milliseconds.
    pub delayed_ack: u64,
    /// Initial window, segments.
    pub initial_window: u32,
    /// Largest congestion window in bytes.
    pub max_window: Option<u64>,
    /// Consecutive timeouts before a subflow is abandoned.
    pub max_timeouts: u32,
    /// Keepalive, seconds.
    pub keepalive: Option<u64>,
}

/// Effects of a path on packets, in 1/256.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Weather {
    /// Lost.
    pub loss: u8,
    /// Duplicated.
    pub twice: u8,
    /// Delayed by up to `late_by`.
    pub late: u8,
    /// Milliseconds.
    pub late_by: u16,
    /// Bits flipped, so that TCP's checksum fails.
    pub corrupt: u8,
    /// Payload changed by a middlebox, with a correct TCP checksum.
    pub mangle: u8,
    /// Split in two, with copied options, as by segmentation offload and some middleboxes.
    pub split: u8,
    /// Marked with congestion experienced, if the packet is ECN-capable.
    pub mark: u8,
    /// Drops all packets.
    pub black_hole: bool,
}

impl Weather {
    /// Whether every packet arrives.
    pub fn is_calm(&self) -> bool {
        self.loss == 0 && self.corrupt == 0 && self.mangle == 0 && !self.black_hole
    }
}

/// The sequence number of a forged segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// Exactly the next one that the victim expects.
    Exact,
    /// Beyond it, by this much.
    Beyond(u16),
    /// Far from any window.
    Far(u32),
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// The application writes.
    Write(usize, u32),
    /// It stops reading.
    Pause(usize),
    /// It reads this many bytes while paused.
    Read(usize, u16),
    /// It reads everything from now on.
    Resume(usize),
    /// It closes its direction.
    Close(usize),
    /// It aborts.
    Abort(usize),
    /// It neither writes nor reads from now on.
    Discard(usize),
    /// An address of a host is removed.
    AddressDown(usize, usize),
    /// It is added again.
    AddressUp(usize, usize),
    /// A path changes.
    Path(usize, Weather),
    /// All paths become calm.
    Calm,
    /// A forged reset arrives at a host.
    Reset(usize, Aim),
    /// A segment with random numbers, payload and options arrives at a host.
    Garbage(usize, u32),
    /// This many SYNs from unused ports arrive at the server.
    Flood(u8),
    /// An earlier packet is replayed: how many packets back.
    Old(u8),
    /// Seconds pass.
    Jump(u8),
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Seeds the random numbers of paths and hosts.
    pub seed: u64,
    /// The client and the server.
    pub sides: [Side; 2],
    /// Addresses are IPv6.
    pub v6: bool,
    /// One-way delays of the paths, microseconds.
    pub delays: Vec<u32>,
    /// Whether middleboxes strip all MPTCP options from each host's packets, from the first SYN on.
    pub strip: [bool; 2],
    /// The initial state of all paths.
    pub weather: Weather,
    /// The server's limit of half-open connections.
    pub max_half_open: usize,
    /// The events, each followed by this many milliseconds.
    pub script: Vec<(Op, u16)>,
}

impl Side {
    /// The engine's configuration.
    pub fn config(&self) -> ConnectionConfig {
        let mut config = ConnectionConfig::new(pair::policies(self.congestion, self.scheduler));
        config.multipath = self.multipath;
        config.checksum = self.checksum;
        config.deny_join_initial = self.deny_join_initial;
        config.receive_buffer = match self.receive_buffer {
            (size, None) => BufferSize::Fixed(size),
            (initial, Some(max)) => BufferSize::Auto { initial, max },
        };
        config.send_buffer = self.send_buffer;
        config.buffers_per_subflow = false;
        config.max_subflows = self.max_subflows;
        config.survive_without_subflows = Duration::from_secs(self.survive);
        config.trace = self.trace;
        config.receiver.data_in_subflow_order = self.strict;
        let tcp = &mut config.tcp;
        tcp.mtu = self.tcp.mtu;
        let ecn;
        [tcp.options.window_scaling, tcp.options.timestamps, tcp.options.sack, ecn] = self.tcp.options;
        tcp.ecn = if ecn { EcnMode::Request } else { EcnMode::Off };
        tcp.nagle = self.tcp.nagle;
        tcp.pacing = self.tcp.pacing;
        tcp.delayed_ack = Duration::from_millis(self.tcp.delayed_ack);
        tcp.initial_window = self.tcp.initial_window;
        tcp.max_window = self.tcp.max_window;
        tcp.max_timeouts = self.tcp.max_timeouts;
        tcp.keepalive = self.tcp.keepalive.map(Duration::from_secs);
        config
    }

    /// The largest size of its receive buffer.
    pub fn largest_buffer(&self) -> u64 {
        self.receive_buffer.1.unwrap_or(self.receive_buffer.0).max(self.receive_buffer.0)
    }
}

fn names<P: ?Sized>(table: &'static [Member<P>]) -> impl Strategy<Value = &'static str> {
    select(table.iter().map(|member| member.name).collect::<Vec<_>>())
}

fn tcp() -> impl Strategy<Value = Tcp> {
    let options = any::<[bool; 4]>().prop_map(|bits| [!bits[0], !bits[1], !bits[2], bits[3]]);
    let keepalive = prop_oneof![2 => Just(None), 1 => (5_u64..30).prop_map(Some)];
    let max_window = prop_oneof![4 => Just(None), 1 => (1_000_u64..20_000).prop_map(Some)];
    (
        select(vec![1500_u16, 576, 1280, 9000]),
        options,
        (any::<bool>(), any::<bool>()),
        select(vec![40_u64, 0, 200]),
        1_u32..11,
        max_window,
        prop_oneof![3 => Just(15_u32), 1 => 2_u32..6],
        keepalive,
    )
        .prop_map(
            |(mtu, options, (slow, pacing), delayed_ack, initial_window, max_window, max_timeouts, keepalive)| Tcp {
                mtu,
                options,
                nagle: !slow,
                pacing,
                delayed_ack,
                initial_window,
                max_window,
                max_timeouts,
                keepalive,
            },
        )
}

fn side(kind: Kind) -> impl Strategy<Value = Side> {
    let offers = match kind {
        Kind::Plain => Just((false, false)).boxed(),
        Kind::Multipath => Just((true, false)).boxed(),
        Kind::Checksums => Just((true, true)).boxed(),
        Kind::Mixed => any::<(bool, bool)>().prop_map(|(plain, checksum)| (!plain, checksum)).boxed(),
    };
    let size = prop_oneof![3 => 2_048_u64..16_384, 2 => 16_384_u64..131_072, 1 => 131_072_u64..1_048_577];
    let buffer = (size.clone(), any::<bool>()).prop_map(|(size, auto)| (size, auto.then_some(size * 8)));
    (
        offers,
        prop::bool::weighted(0.1),
        buffer,
        size,
        1_usize..10,
        select(vec![60_u64, 5, 0]),
        tcp(),
        (names(congestion::TABLE), names(scheduler::TABLE), names(path_manager::TABLE)),
        (prop::bool::weighted(0.2), prop::bool::weighted(0.4)),
    )
        .prop_map(
            |(offers, deny, receive_buffer, send_buffer, max_subflows, survive, tcp, policies, (trace, strict))| Side {
                multipath: offers.0,
                checksum: offers.1,
                deny_join_initial: deny,
                receive_buffer,
                send_buffer,
                max_subflows,
                survive,
                tcp,
                congestion: policies.0,
                scheduler: policies.1,
                manager: policies.2,
                trace,
                strict,
            },
        )
}

fn weather(kind: Kind) -> impl Strategy<Value = Weather> {
    let rarely = |most: u8| prop_oneof![2 => Just(0_u8), 1 => 0..most];
    let mangles = matches!(kind, Kind::Checksums | Kind::Mixed);
    let mangle = if mangles { rarely(12).boxed() } else { Just(0).boxed() };
    let late = (rarely(100), 1_u16..400);
    let middlebox = (mangle, rarely(100), rarely(100));
    (rarely(80), rarely(60), late, rarely(40), middlebox, prop::bool::weighted(0.1)).prop_map(
        |(loss, twice, (late, late_by), corrupt, (mangle, split, mark), black_hole)| Weather {
            loss,
            twice,
            late,
            late_by,
            corrupt,
            mangle,
            split,
            mark,
            black_hole,
        },
    )
}

fn op(kind: Kind) -> impl Strategy<Value = Op> {
    let host = 0_usize..2;
    let path = 0_usize..4;
    let aim = prop_oneof![
        1 => Just(Aim::Exact),
        3 => any::<u16>().prop_map(Aim::Beyond),
        3 => any::<u32>().prop_map(Aim::Far),
    ];
    prop_oneof![
        12 => (host.clone(), prop_oneof![3 => 1_u32..3_000, 2 => 1_u32..30_000, 1 => 1_u32..120_000])
            .prop_map(|(host, length)| Op::Write(host, length)),
        3 => host.clone().prop_map(Op::Pause),
        3 => (host.clone(), any::<u16>()).prop_map(|(host, length)| Op::Read(host, length)),
        2 => host.clone().prop_map(Op::Resume),
        2 => host.clone().prop_map(Op::Close),
        1 => host.clone().prop_map(Op::Abort),
        1 => host.clone().prop_map(Op::Discard),
        2 => (host.clone(), path.clone()).prop_map(|(host, path)| Op::AddressDown(host, path)),
        3 => (host.clone(), path.clone()).prop_map(|(host, path)| Op::AddressUp(host, path)),
        6 => (path, weather(kind)).prop_map(|(path, weather)| Op::Path(path, weather)),
        2 => Just(Op::Calm),
        2 => (host.clone(), aim).prop_map(|(host, aim)| Op::Reset(host, aim)),
        3 => (host, any::<u32>()).prop_map(|(host, seed)| Op::Garbage(host, seed)),
        1 => (1_u8..20).prop_map(Op::Flood),
        3 => (0_u8..64).prop_map(Op::Old),
        1 => (1_u8..150).prop_map(Op::Jump),
    ]
}

/// Cases of a kind.
pub fn case(kind: Kind) -> impl Strategy<Value = Case> {
    let pause = prop_oneof![2 => Just(0_u16), 2 => 1_u16..100, 1 => 100_u16..3_000];
    let first = prop_oneof![2 => Just(Weather::default()), 1 => weather(kind)];
    let paths = if kind == Kind::Plain { 1..3_usize } else { 1..5 };
    (
        any::<u64>(),
        [side(kind), side(kind)],
        any::<bool>(),
        prop::collection::vec(50_u32..150_000, paths),
        (first, [prop::bool::weighted(0.05), prop::bool::weighted(0.05)]),
        // Both attempts of a client whose SYNs race have a place, if no other takes it.
        prop_oneof![1 => 4_usize..8, 2 => Just(64_usize)],
        prop::collection::vec((op(kind), pause), 0..24),
    )
        .prop_map(|(seed, sides, v6, delays, (weather, strip), max_half_open, script)| Case {
            seed,
            sides,
            v6,
            delays,
            strip,
            weather,
            max_half_open,
            script,
        })
}
