//! Settings of an endpoint and of a connection, with their defaults and the sources of these.

use crate::buffer_memory::BufferMemory;
use crate::record::Framing;
use anabranch_policy::combination::{Combination, CombinationError};
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::reliability::{Full, Reliability};
use anabranch_policy::scheduler::{Reinjection, Scheduler};
use anabranch_policy::time::Duration;
use core::fmt;
use core::ops::RangeInclusive;
use std::sync::Arc;

/// Limit of a buffer for each path on real networks, bytes. Linux 6.18 has the same for receive buffers (`tcp_rmem`).
const LARGEST_BUFFER: u64 = 32 * 1024 * 1024;

/// Makes a policy object for each new connection.
pub type Factory<P> = Arc<dyn Fn() -> Box<P> + Send + Sync>;

/// The policies of one connection; the path manager belongs to the host.
#[derive(Clone)]
pub struct Policies {
    pub congestion: Factory<dyn CongestionControl>,
    pub scheduler: Factory<dyn Scheduler>,
    pub reliability: Factory<dyn Reliability>,
}

impl Policies {
    /// The policies that a combination names.
    ///
    /// # Errors
    /// [`CombinationError`] if it names something that does not exist, or a setting out of range.
    pub fn of(combination: &Combination) -> Result<Self, CombinationError> {
        combination.check()?;
        let (one, other, third) = (combination.clone(), combination.clone(), combination.clone());
        Ok(Self {
            congestion: Arc::new(move || one.build_congestion().expect("the combination was checked")),
            scheduler: Arc::new(move || other.build_scheduler().expect("the combination was checked")),
            reliability: Arc::new(move || third.build_reliability().expect("the combination was checked")),
        })
    }
}

/// The reliability of plain TCP: no data is ever abandoned.
pub fn fully_reliable() -> Factory<dyn Reliability> {
    Arc::new(|| Box::new(Full))
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Policies")
    }
}

/// Settings of a host.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Seeds keys, nonces, initial sequence numbers and ports. In the lab it is derived from the run's seed; on a real
    /// network it must come from the operating system's generator, so that none of them can be guessed.
    pub seed: [u8; 32],
    /// Limit of connections that the application may open or accept. A SYN above it is dropped and counted.
    pub max_connections: usize,
    /// Limit of subflows in TIME-WAIT that outlived their connection. Above it the oldest is forgotten and counted.
    pub max_time_waits: usize,
    /// Limit of incoming connections in their handshake. Above it the oldest are aborted and counted.
    pub max_half_open: usize,
    /// Limit of SYNs for foreign addresses that wait for [`crate::Endpoint::accept_held`]. Further ones are dropped and
    /// counted. With 0, such a SYN is answered with a reset.
    pub max_held_syns: usize,
    /// Limit of queued events.
    pub max_events: usize,
    /// Local ports of the connections that we open.
    pub ports: Ports,
    /// The index of this endpoint among those that share one host.
    pub share: Share,
    /// Where ports and timestamps begin, unless `ports` is [`Ports::Random`].
    pub origin: Origin,
}

/// What programs that follow each other on a host have in common, so that the connections of the next do not look like those of the
/// last. Its timestamps (RFC 7323, section 5.4) go on, since a peer in TIME-WAIT takes a SYN by its later timestamp (RFC 6191). It
/// takes other ports, since a NAT may remember those of the last; and where it takes the same, with a later sequence number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// A number that other hosts do not know, for ports and timestamps; derived from the seed if `None`.
    pub secret: Option<u128>,
    /// A secret that the host's other users do not know either, for initial sequence numbers (RFC 6528); the seed if `None`.
    pub sequences: Option<[u8; 32]>,
    /// The clock at [`Instant::ZERO`](anabranch_policy::time::Instant::ZERO), in milliseconds.
    pub millis: u32,
}

/// An endpoint's share of a host whose addresses several endpoints use. Each draws only keys whose tokens belong to it,
/// so that the token of a join tells which endpoint owns the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Counted from 0.
    pub index: u32,
    /// Number of endpoints.
    pub count: u32,
}

impl Share {
    /// A host with one endpoint.
    pub(crate) const WHOLE: Self = Self { index: 0, count: 1 };

    /// Whether this endpoint's connections may use the token. Tokens are truncated hashes, so each endpoint owns an
    /// equal part of them.
    pub(crate) fn owns_token(self, token: u32) -> bool {
        token % self.count.max(1) == self.index
    }

    /// This endpoint's part of a range of ports.
    pub fn ports(self, low: u16, high: u16) -> Ports {
        let count = self.count.max(1);
        let width = (u32::from(high.saturating_sub(low)) + 1) / count;
        let first = u32::from(low) + self.index.min(count - 1) * width;
        // At most `high`, which is a `u16`.
        Ports::HashBased { low: first as u16, high: (first + width.max(1) - 1) as u16 }
    }
}

/// How local ports are chosen, and how a peer in TIME-WAIT recognizes the next connection between two ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ports {
    /// Random dynamic ports (RFC 6056, algorithm 1), each connection with a random timestamp offset.
    Random,
    /// Ports of this range in ascending order, so that a port rests as long as possible (RFC 6056, algorithm 3), the first
    /// by the time of [`Origin`]. All connections between two hosts share one timestamp clock, so that a peer in TIME-WAIT
    /// accepts a new SYN (RFC 6191).
    HashBased { low: u16, high: u16 },
}

impl Ports {
    pub(crate) fn range(self) -> RangeInclusive<u16> {
        match self {
            // The dynamic ports (RFC 6335, section 6).
            Self::Random => 49_152..=u16::MAX,
            Self::HashBased { low, high } => low..=high,
        }
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            seed: [0; 32],
            max_connections: 100_000,
            max_time_waits: 262_144,
            max_half_open: 4_096,
            max_held_syns: 0,
            max_events: 65_536,
            ports: Ports::Random,
            share: Share::WHOLE,
            origin: Origin::default(),
        }
    }
}

/// Size of a buffer, in bytes of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferSize {
    Fixed(u64),
    /// Grows with the rate at which the application reads (dynamic right-sizing).
    Auto {
        initial: u64,
        max: u64,
    },
}

/// The path on which a connection that we open sends its SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InitialPath {
    /// The path that answers first. A SYN without an answer for 250 ms, or for two round trips if the round-trip time
    /// is known, is followed by one from the next local address, or to the peer's next address (RFC 8305, section 5).
    /// Addresses that failed to answer lately come last. Plain TCP ([`ConnectionConfig::multipath`]) does not race.
    #[default]
    Race,
    /// The first path, whether it answers or not, as in Linux.
    First,
}

/// Restrictions of the receiving side that RFC 8684 does not ask for, but Linux has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiverConfig {
    /// Out-of-order data reduces the advertised window, whose right edge still never moves left. Linux does so, because
    /// its window is what is left of the buffer's memory. Otherwise out-of-order data lies within the window.
    pub charge_out_of_order: bool,
    /// Data behind a hole of its subflow is acknowledged there, but reaches the data level only when the hole is
    /// filled, as in Linux. Otherwise all data reaches the data level on arrival. For tests, and for senders in the lab
    /// that shall meet such a receiver.
    pub data_in_subflow_order: bool,
}

/// Settings of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Offer or accept MPTCP. Without it this is a plain TCP connection.
    pub multipath: bool,
    /// Require DSS checksums (RFC 8684, section 3.3.1).
    pub checksum: bool,
    /// Ask the peer not to join the address of the initial subflow (flag C).
    pub deny_join_initial: bool,
    /// The path of the SYN.
    pub initial_path: InitialPath,
    /// The receive buffer, shared by all subflows.
    pub receive_buffer: BufferSize,
    /// The size of the receive buffer of a stream of bytes before [`crate::Endpoint::open_receive_buffer`], in KiB, for peers
    /// that have yet to show who they are; 0: as `receive_buffer` says from the start.
    pub receive_buffer_at_first: u8,
    /// Restrictions of the receiving side.
    pub receiver: ReceiverConfig,
    /// Limit of bytes written and not yet acknowledged at data level; with `send_buffer_max` the one it begins with.
    pub send_buffer: u64,
    /// Limit in bytes up to which the send buffer grows with the congestion windows, while the application writes more
    /// than it holds: to twice what all subflows carry within the longest round trip. With 0 it does not grow.
    pub send_buffer_max: u64,
    /// What the buffers of several connections may hold together, beyond 64 KiB of a send buffer that grows and the
    /// initial size of an automatic receive buffer. None: as much as each of them may by itself.
    pub memory: Option<Arc<BufferMemory>>,
    /// The limits of the send buffer, and the limit of an automatic receive buffer, are per subflow, since the bytes in
    /// flight of two paths add up (RFC 6182, section 5.3: the sum of the bandwidths times the largest round trip). A
    /// buffer does not shrink when a subflow closes.
    pub buffers_per_subflow: bool,
    /// When the data level reinjects the outstanding data of one subflow on another (RFC 8684, section 3.3.6, leaves
    /// that to the sender); none: as the scheduler asks ([`anabranch_policy::scheduler::Needs::reinjection`]). If set
    /// to wait for the connection's timer, or to never, other duplicates are off as well: opportunistic retransmission,
    /// reinjection from an unresponsive subflow, and duplicates of overdue data. A scheduler that sends the whole
    /// stream on every subflow is not affected.
    pub data_reinjection: Option<Reinjection>,
    /// Limit of consecutive segments under one mapping, if the scheduler asks for several
    /// ([`anabranch_policy::scheduler::Needs::segments_per_mapping`]). Use 1 if segments leave as one packet for
    /// segmentation offload: the kernel or network card copies the options to each segment, so all must be the same.
    pub segments_per_mapping: u32,
    /// Limit of subflows, whichever end opened them (Linux allows 8 besides the first).
    pub max_subflows: usize,
    /// Time that a connection survives without any subflow.
    pub survive_without_subflows: Duration,
    /// Limit of the time that written data, or the end of the stream, waits for progress of the acknowledgement at data
    /// level. Then the connection is aborted with [`crate::CloseCause::UserTimeout`]; none: no limit (RFC 9293, section
    /// 3.9.1.1; RFC 5482). Waiting for a closed window counts. Does not raise the limits of a subflow
    /// ([`TcpConfig::max_timeouts`]).
    pub user_timeout: Option<Duration>,
    /// Limit of the time that retransmissions and window probes stay without an answer on all subflows together, from
    /// the first of them. Then the connection is aborted with [`crate::CloseCause::TimedOut`]; none: as long as a
    /// subflow is left. Unlike the user timeout, this does not affect a peer that answers but does not read.
    pub peer_timeout: Option<Duration>,
    /// The application's priority, from 1 (highest) to 6.
    pub priority: u8,
    /// TCP of each subflow.
    pub tcp: TcpConfig,
    /// Whether the stream is bytes, or messages with headers.
    pub framing: Framing,
    pub policies: Policies,
    /// Record data that is sent, received and delivered ([`crate::Endpoint::poll_trace`]).
    pub trace: bool,
}

impl ConnectionConfig {
    /// [`Self::receive_buffer_at_first`] in bytes.
    pub(crate) fn bytes_at_first(&self) -> u64 {
        u64::from(self.receive_buffer_at_first) * 1024
    }

    /// The default settings with these policies.
    pub fn new(policies: Policies) -> Self {
        Self {
            multipath: true,
            checksum: false,
            deny_join_initial: false,
            initial_path: InitialPath::default(),
            receive_buffer: BufferSize::Auto { initial: 128 * 1024, max: 6 * 1024 * 1024 },
            receive_buffer_at_first: 0,
            receiver: ReceiverConfig::default(),
            send_buffer: 4 * 1024 * 1024,
            send_buffer_max: 0,
            memory: None,
            buffers_per_subflow: true,
            data_reinjection: None,
            segments_per_mapping: u32::MAX,
            max_subflows: 9,
            survive_without_subflows: Duration::from_secs(60),
            user_timeout: None,
            peer_timeout: None,
            priority: 1,
            tcp: TcpConfig::default(),
            framing: Framing::Bytes,
            policies,
            trace: false,
        }
    }

    /// The default settings with the policies of a combination.
    ///
    /// # Errors
    /// [`CombinationError`], as of [`Policies::of`].
    pub fn of(combination: &Combination) -> Result<Self, CombinationError> {
        Ok(Self::new(Policies::of(combination)?))
    }

    /// Lets both buffers grow as far as a path of 1 Gbit/s and 100 ms needs: up to 32 MiB for each path, which is 16
    /// MiB in flight, and as much that waits for a retransmission or the reader. The receive buffer begins with 128
    /// KiB, and the send buffer with 1 MiB: where round trips are short, a smaller one would wake the application more
    /// often.
    pub fn grow_buffers(&mut self) {
        self.send_buffer = 1024 * 1024;
        self.send_buffer_max = LARGEST_BUFFER;
        self.receive_buffer = BufferSize::Auto { initial: 128 * 1024, max: LARGEST_BUFFER };
    }

    /// Lets a connection end within a minute after its peer falls silent. An idle subflow is probed after 15 s and
    /// closed after four probes without an answer; then another path has 25 s to open. Retransmissions may stay without
    /// an answer for 55 s. Probes also keep NAT bindings alive (RFC 5382, REQ-5, asks for two hours; many NATs keep
    /// less than a minute).
    pub fn detect_dead_peer(&mut self) {
        self.tcp.keepalive = Some(Duration::from_secs(15));
        self.tcp.keepalive_interval = Duration::from_secs(5);
        self.tcp.keepalive_probes = 4;
        self.survive_without_subflows = Duration::from_secs(25);
        self.peer_timeout = Some(Duration::from_secs(55));
    }
}

impl Default for ConnectionConfig {
    /// For real networks: [`Combination::recommended`], [`Self::grow_buffers`] and [`Self::detect_dead_peer`].
    fn default() -> Self {
        let mut config = Self::of(&Combination::recommended()).expect("the recommended combination exists");
        config.grow_buffers();
        config.detect_dead_peer();
        config
    }
}

/// How the retransmission timeout follows from round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RtoRule {
    /// RFC 6298, section 2.
    #[default]
    Rfc6298,
    /// Zhang, Zhao, Cheng (IEEE Access, 2020), as printed, equations 7 and 8 with ALPHA 1/8 and BETA 2: SRTT = 1/8 SRTT
    /// + 7/8 RTT (RFC 6298 has the weights the other way round); RTO = min(`max_rto`, max(`min_rto`, 2 SRTT)).
    Paper,
}

/// Use of explicit congestion notification (RFC 3168), with the three modes of `tcp_ecn` in Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnMode {
    /// Never (0 in Linux).
    Off,
    /// On subflows whose peer asks for it in its SYN (2 in Linux, its default).
    #[default]
    Accept,
    /// On these, and our SYNs ask for it, except retransmitted ones (1 in Linux).
    Request,
}

/// TCP options to offer. Each is used if the peer offers it too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionsConfig {
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
}

impl Default for OptionsConfig {
    fn default() -> Self {
        Self { window_scaling: true, timestamps: true, sack: true }
    }
}

/// Settings of the TCP of a subflow.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// Largest IP packet on the local link; the MSS option follows from it (RFC 9293, section 3.7.1).
    pub mtu: u16,
    /// Path MTU discovery. Two timeouts in a row of a long segment are taken for a black hole (RFC 4821, section 7.7),
    /// ICMP errors of routers are accepted (RFC 1191, RFC 8201), and the largest size that passes is searched. Segments
    /// start with the size of `mtu`.
    pub path_mtu_discovery: bool,
    pub options: OptionsConfig,
    /// Parts per million by which the timestamp clock runs fast. For the lab, whose hosts would otherwise have the same
    /// second. Affects timestamps only. The clock's offset is always random.
    pub timestamp_drift: i32,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: EcnMode,
    /// Nagle's algorithm: delay small segments while data is in flight (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Longest delay of an acknowledgement; zero acknowledges each segment (RFC 9293, section 3.8.6.3: under 0.5 s).
    pub delayed_ack: Duration,
    /// Initial window, in segments (RFC 6928).
    pub initial_window: u32,
    /// Limit of the congestion window in bytes, if any (a paper's "window 100 packets"). One segment is always allowed.
    pub max_window: Option<u64>,
    /// How the retransmission timeout follows from round-trip times.
    pub rto: RtoRule,
    /// Minimum retransmission timeout. RFC 6298 says 1 s; Linux and nearly all others use 200 ms.
    pub min_rto: Duration,
    /// Maximum retransmission timeout.
    pub max_rto: Duration,
    /// Retransmission timeout before the first sample (RFC 6298, section 2.1).
    pub initial_rto: Duration,
    /// Limit of transmissions of a SYN, at least 1. 8 last about four minutes (RFC 9293, section 3.8.3, MUST-23: at
    /// least three minutes).
    pub syn_attempts: u32,
    /// Tail loss probe, two round trips after the last segment and before the retransmission timeout (RFC 8985, section
    /// 7).
    pub tail_loss_probe: bool,
    /// Limit of retransmissions of a segment by timeout (R2 of RFC 9293, section 3.8.3). The next timeout closes the
    /// subflow.
    pub max_timeouts: u32,
    /// Idle time before a keepalive probe; none: no keepalive (RFC 9293, section 3.8.4).
    pub keepalive: Option<Duration>,
    /// Time between unanswered keepalive probes (Linux has 75 s).
    pub keepalive_interval: Duration,
    /// Unanswered keepalive probes after which a subflow is closed (Linux has 9).
    pub keepalive_probes: u32,
    /// Pace segments over the round trip.
    pub pacing: bool,
    /// Time in TIME-WAIT, twice the maximum segment lifetime (Linux has 60 s).
    pub time_wait: Duration,
    /// Limit of the time in FIN-WAIT-2 of a subflow of an MPTCP connection, whose peer has only a FIN to send, and of a
    /// connection that the application has discarded (Linux has 60 s for sockets closed in both directions).
    pub fin_wait_2: Duration,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mtu: 1500,
            path_mtu_discovery: true,
            options: OptionsConfig::default(),
            timestamp_drift: 0,
            ecn: EcnMode::default(),
            nagle: true,
            delayed_ack: Duration::from_millis(40),
            initial_window: 10,
            max_window: None,
            rto: RtoRule::Rfc6298,
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(120),
            initial_rto: Duration::from_secs(1),
            syn_attempts: 8,
            tail_loss_probe: true,
            max_timeouts: 15,
            keepalive: None,
            keepalive_interval: Duration::from_secs(75),
            keepalive_probes: 9,
            pacing: false,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::combination::Choice;

    #[test]
    fn a_combination_that_names_what_does_not_exist_makes_no_configuration() {
        let of = |congestion: &str| {
            ConnectionConfig::of(&Combination { congestion: Choice::new(congestion), ..Combination::default() })
        };
        assert!(of("no_such_control").is_err());
        // The defaults of the lab, not those of a network.
        let config = of("cubic").unwrap();
        assert_eq!((config.peer_timeout, config.tcp.keepalive), (None, TcpConfig::default().keepalive));
        assert_eq!(ConnectionConfig::default().peer_timeout, Some(Duration::from_secs(55)));
    }

    #[test]
    fn buffers_of_real_networks_begin_small_and_grow_to_32_mebibytes() {
        let config = ConnectionConfig::default();
        assert_eq!((config.send_buffer, config.send_buffer_max), (1 << 20, 32 << 20));
        let receive = BufferSize::Auto { initial: 128 << 10, max: 32 << 20 };
        assert_eq!(config.receive_buffer, receive);
        let seconds = Duration::from_secs;
        let tcp = &config.tcp;
        assert_eq!((tcp.keepalive, tcp.keepalive_interval, tcp.keepalive_probes), (Some(seconds(15)), seconds(5), 4));
        assert_eq!((config.survive_without_subflows, config.peer_timeout), (seconds(25), Some(seconds(55))));
    }
}
