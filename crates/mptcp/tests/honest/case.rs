//! What one random case is made of: two hosts' settings, the paths between them, and what happens to them in turn.

use anabranch_mptcp::{BufferSize, ConnectionConfig, EcnMode};
use anabranch_policy::table::Member;
use anabranch_policy::time::Duration;
use anabranch_policy::{congestion, path_manager, scheduler};
use proptest::prelude::*;
use proptest::sample::select;

use crate::pair;

/// What kind of connection a family of cases is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Neither side offers MPTCP.
    Plain,
    /// Both do, without checksums.
    Multipath,
    /// Both do, with checksums, over paths that may change payload.
    Checksums,
    /// Each side as it likes.
    Mixed,
}

/// The choices of one host.
#[derive(Clone, Debug)]
pub struct Side {
    /// Offers or accepts MPTCP.
    pub multipath: bool,
    /// Requires DSS checksums.
    pub checksum: bool,
    /// Asks not to be joined at its first address.
    pub deny_join_initial: bool,
    /// Receive buffer.
    pub receive_buffer: (u64, Option<u64>),
    /// Send buffer, bytes.
    pub send_buffer: u64,
    /// Most subflows.
    pub max_subflows: usize,
    /// How long it outlives its last subflow, seconds.
    pub survive: u64,
    /// What its TCP does.
    pub tcp: Tcp,
    /// Index into the congestion control table.
    pub congestion: &'static str,
    /// Index into the scheduler table.
    pub scheduler: &'static str,
    /// Index into the path manager table.
    pub manager: &'static str,
    /// Records a trace.
    pub trace: bool,
    /// Gives data to the data level in the order of its subflow only, as Linux does.
    pub strict: bool,
}

/// The choices of one host's TCP.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// Largest IP packet.
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
    /// Most bytes of congestion window.
    pub max_window: Option<u64>,
    /// Timeouts in a row before a subflow is abandoned.
    pub max_timeouts: u32,
    /// Keepalive, seconds.
    pub keepalive: Option<u64>,
}

/// What a path does to packets, in parts of 256.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Weather {
    /// Lost.
    pub loss: u8,
    /// Delivered twice.
    pub twice: u8,
    /// Delivered up to `late_by` later.
    pub late: u8,
    /// Milliseconds.
    pub late_by: u16,
    /// Bits flipped on the way, so that TCP's checksum has it dropped.
    pub corrupt: u8,
    /// Payload changed by a middlebox, TCP's checksum corrected.
    pub mangle: u8,
    /// Cut in two, options copied, as segmentation offload and some middleboxes do.
    pub split: u8,
    /// Marked as having met congestion, where the packet allows it.
    pub mark: u8,
    /// Nothing passes.
    pub black_hole: bool,
}

impl Weather {
    /// Whether every packet arrives.
    pub fn is_calm(&self) -> bool {
        self.loss == 0 && self.corrupt == 0 && self.mangle == 0 && !self.black_hole
    }
}

/// Where a false segment aims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// At exactly the sequence number that the victim expects.
    Exact,
    /// Beyond it, by this much.
    Beyond(u16),
    /// Far from any window.
    Far(u32),
}

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// The application writes.
    Write(usize, u32),
    /// It stops reading.
    Pause(usize),
    /// It reads this much while paused.
    Read(usize, u16),
    /// It reads all from now on.
    Resume(usize),
    /// It closes its direction.
    Close(usize),
    /// It aborts.
    Abort(usize),
    /// It neither writes nor reads any more.
    Discard(usize),
    /// An address of a host goes.
    AddressDown(usize, usize),
    /// It comes back.
    AddressUp(usize, usize),
    /// A path changes.
    Path(usize, Weather),
    /// All paths become calm.
    Calm,
    /// A reset that the peer did not send comes to a host.
    Reset(usize, Aim),
    /// A segment with random numbers, payload and options comes to a host.
    Garbage(usize, u32),
    /// This many SYNs from ports that nobody uses come to the server.
    Flood(u8),
    /// A packet from the past comes again: how many back.
    Old(u8),
    /// Seconds pass.
    Jump(u8),
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Seeds the paths' luck and the hosts' numbers.
    pub seed: u64,
    /// The client and the server.
    pub sides: [Side; 2],
    /// Addresses are IPv6.
    pub v6: bool,
    /// One-way delays of the paths, microseconds.
    pub delays: Vec<u32>,
    /// Whether middleboxes take all MPTCP options from what each host sends, from the first SYN on.
    pub strip: [bool; 2],
    /// The first weather on all paths.
    pub weather: Weather,
    /// The server takes no more handshakes than this at once.
    pub max_half_open: usize,
    /// What happens, and the milliseconds that pass afterwards.
    pub script: Vec<(Op, u16)>,
}

impl Side {
    /// As the engine wants it.
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

    /// The most that its receive buffer can be.
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
        // Both attempts of a client whose SYNs race have a place, if nobody else takes it.
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
