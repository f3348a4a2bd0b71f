//! What can be chosen about an endpoint and about a connection, with the defaults and their sources.

use crate::record::Framing;
use anabranch_policy::combination::{Combination, CombinationError};
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::reliability::{Full, Reliability};
use anabranch_policy::scheduler::{Reinjection, Scheduler};
use anabranch_policy::time::Duration;
use core::fmt;
use std::sync::Arc;

/// Makes the policy object of a new connection.
pub type Factory<P> = Arc<dyn Fn() -> Box<P> + Send + Sync>;

/// The policies of one connection; the path manager belongs to the host.
#[derive(Clone)]
pub struct Policies {
    /// Congestion control.
    pub congestion: Factory<dyn CongestionControl>,
    /// Scheduler.
    pub scheduler: Factory<dyn Scheduler>,
    /// Reliability.
    pub reliability: Factory<dyn Reliability>,
}

impl Policies {
    /// Those that a combination names.
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

/// Makes the reliability of TCP: nothing is given up.
pub fn fully_reliable() -> Factory<dyn Reliability> {
    Arc::new(|| Box::new(Full))
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Policies")
    }
}

/// What can be chosen about a host.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Seeds keys, nonces, initial sequence numbers and ports. In the lab it is derived from the run's seed; on a real
    /// network it must come from the operating system's generator, so that none of them can be guessed.
    pub seed: [u8; 32],
    /// Most connections that applications may still ask for; further SYNs are dropped and counted.
    pub max_connections: usize,
    /// Most subflows in TIME-WAIT of other connections; for further ones the oldest are forgotten and counted.
    pub max_time_waits: usize,
    /// Most connections that came in and whose handshake is not over; for further SYNs the oldest are given up and counted.
    pub max_half_open: usize,
    /// Most SYNs for addresses that are not ours that wait for [`crate::Endpoint::accept_held`]; further ones are dropped and counted.
    /// With 0 such SYNs are answered with a reset, as of a host they are.
    pub max_held_syns: usize,
    /// Most events that wait for the application.
    pub max_events: usize,
    /// From which ports connections are opened.
    pub ports: Ports,
    /// Which of the endpoints that are one host this is.
    pub share: Share,
}

/// Which of several endpoints that have the same addresses and are one host together. Each draws keys whose tokens are its own, so
/// that a join says by its token whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Which, from 0.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

impl Share {
    /// There is no other.
    pub(crate) const WHOLE: Self = Self { index: 0, count: 1 };

    /// Whether connections of this endpoint may have this token. Tokens are parts of hashes: each endpoint has as many as the others.
    pub(crate) fn owns_token(self, token: u32) -> bool {
        token % self.count.max(1) == self.index
    }

    /// The part of a range of ports that is this endpoint's.
    pub fn ports(self, low: u16, high: u16) -> Ports {
        let count = self.count.max(1);
        let width = (u32::from(high.saturating_sub(low)) + 1) / count;
        let first = u32::from(low) + self.index.min(count - 1) * width;
        // No more than `high`, which is a port.
        Ports::HashBased { low: first as u16, high: (first + width.max(1) - 1) as u16 }
    }
}

/// From which ports connections are opened, and how a host that has been told to wait knows the next connection between two ports
/// from the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ports {
    /// Each at random, of the dynamic ports (RFC 6056, algorithm 1); its timestamps begin anywhere.
    Random,
    /// One after the other with small random steps, of all in this range, so that each rests for as long as can be (RFC 6056,
    /// algorithm 3 with the steps of algorithm 5). The timestamps of all connections between two hosts are of one clock, so that
    /// a peer in TIME-WAIT sees that a SYN is new (RFC 6191).
    HashBased {
        /// The first of the range.
        low: u16,
        /// The last.
        high: u16,
    },
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
        }
    }
}

/// The size of a buffer, in bytes of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferSize {
    /// Always this.
    Fixed(u64),
    /// Grows with the rate at which the application reads (dynamic right-sizing).
    Auto {
        /// At the start.
        initial: u64,
        /// Never more than this.
        max: u64,
    },
}

/// Over which path a connection begins that we open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InitialPath {
    /// The one that answers first. A SYN that is not answered within 250 ms, or two round trips if they are known, is followed by one
    /// from the next local address, or to the peer's next address (RFC 8305, section 5). Addresses that were not answered
    /// lately come last. Plain TCP ([`ConnectionConfig::multipath`]) stays on the path that it was given.
    #[default]
    Race,
    /// The first, whether it answers or not: so it is in Linux.
    First,
}

/// A receiving side that is stricter than it need be, as that of Linux is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiverConfig {
    /// What waits out of order takes from the window that is offered, though the window's edge never goes back: so it is in
    /// Linux, where the window is what is left of the buffer's memory. Otherwise it lies inside the window.
    pub charge_out_of_order: bool,
    /// What lies behind a hole of its subflow is acknowledged there, and given to the data level when the hole is filled: so
    /// it is in Linux. Otherwise the data level has at once all that arrives. For tests and for the lab, whose senders meet a
    /// stricter receiver so.
    pub data_in_subflow_order: bool,
}

/// What can be chosen about a connection.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Offer or accept MPTCP; without it this is a plain TCP connection.
    pub multipath: bool,
    /// Require DSS checksums (RFC 8684, section 3.3.1).
    pub checksum: bool,
    /// Ask the peer not to join the address of the initial subflow (flag C).
    pub deny_join_initial: bool,
    /// Over which path it begins.
    pub initial_path: InitialPath,
    /// The receive buffer, shared by all subflows.
    pub receive_buffer: BufferSize,
    /// How its receiving side differs from the best that the RFCs allow.
    pub receiver: ReceiverConfig,
    /// Most bytes written by the application and not yet acknowledged at data level.
    pub send_buffer: u64,
    /// The send buffer, and the most that an automatic receive buffer grows to, are per subflow: what one path needs in
    /// flight, two need twice (RFC 6182, section 5.3: the sum of the bandwidths times the largest round trip). What they
    /// grew to for a subflow that is gone they keep.
    pub buffers_per_subflow: bool,
    /// When the data level sends again on another subflow what one has outstanding (RFC 8684, section 3.3.6, leaves that to
    /// the sender); none: when the scheduler asks for it ([`anabranch_policy::scheduler::Needs::reinjection`]). If it is said here that it waits for
    /// the connection's timer, or is never done, nothing that the scheduler would send a second time for other reasons goes
    /// out either: neither opportunistic retransmissions, nor what a silent subflow holds, nor duplicates of what is overdue.
    /// Only a scheduler by which every subflow carries the whole stream goes on to do that.
    pub data_reinjection: Option<Reinjection>,
    /// Most consecutive segments under one mapping, where the scheduler wants several
    /// ([`anabranch_policy::scheduler::Needs::segments_per_mapping`]). 1 where they leave put together, to be segmented by the kernel or
    /// the network card: that copies the options onto each, so all must have the same.
    pub segments_per_mapping: u32,
    /// Most subflows, both sides' together (Linux allows 8 besides the first).
    pub max_subflows: usize,
    /// How long a connection outlives the loss of its last subflow.
    pub survive_without_subflows: Duration,
    /// How long what was written, or the end of the stream, may stay without an acknowledgement at data level, or without
    /// progress of one, before the connection is aborted with [`crate::CloseCause::UserTimeout`]; none: for as long as it
    /// lives (RFC 9293, section 3.9.1.1; RFC 5482). What waits behind a closed window counts too. Subflows have limits of
    /// their own ([`TcpConfig::max_timeouts`]), which this does not raise.
    pub user_timeout: Option<Duration>,
    /// How long a peer may leave retransmissions and probes of its window without any answer, on all subflows together, before the
    /// connection is aborted with [`crate::CloseCause::TimedOut`], counted from the first of them; none: for as long as
    /// subflows live. A peer that answers and does not read is not affected, as it is by the user timeout.
    pub peer_timeout: Option<Duration>,
    /// The application's priority, 1 (highest) to 6.
    pub priority: u8,
    /// What each subflow's TCP does.
    pub tcp: TcpConfig,
    /// What the stream is made of: bytes, or messages with headers.
    pub framing: Framing,
    /// Congestion control, scheduler and reliability.
    pub policies: Policies,
    /// Record what is sent, received and delivered ([`crate::Endpoint::poll_trace`]).
    pub trace: bool,
}

impl ConnectionConfig {
    /// The defaults, with the given policies.
    pub fn new(policies: Policies) -> Self {
        Self {
            multipath: true,
            checksum: false,
            deny_join_initial: false,
            initial_path: InitialPath::default(),
            receive_buffer: BufferSize::Auto { initial: 128 * 1024, max: 6 * 1024 * 1024 },
            receiver: ReceiverConfig::default(),
            send_buffer: 4 * 1024 * 1024,
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

    /// The defaults, with the policies of a combination.
    ///
    /// # Errors
    /// [`CombinationError`], as of [`Policies::of`].
    pub fn of(combination: &Combination) -> Result<Self, CombinationError> {
        Ok(Self::new(Policies::of(combination)?))
    }

    /// Has a connection end within a minute of its peer's silence. If it is idle, it is probed after 15 s, its subflow is closed after
    /// four probes, and then another path has 25 s to be found. If it sends, retransmissions may have no answer for 55 s. Probes also
    /// keep NATs from forgetting a path (RFC 5382, REQ-5, asks them for two hours; many keep less than a minute).
    pub fn detect_dead_peer(&mut self) {
        self.tcp.keepalive = Some(Duration::from_secs(15));
        self.tcp.keepalive_interval = Duration::from_secs(5);
        self.tcp.keepalive_probes = 4;
        self.survive_without_subflows = Duration::from_secs(25);
        self.peer_timeout = Some(Duration::from_secs(55));
    }
}

impl Default for ConnectionConfig {
    /// For a real network: with [`Combination::recommended`], and [`Self::detect_dead_peer`].
    fn default() -> Self {
        let mut config = Self::of(&Combination::recommended()).expect("the recommended combination exists");
        config.detect_dead_peer();
        config
    }
}

/// How the retransmission timeout follows from the round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RtoRule {
    /// As RFC 6298, section 2, has it.
    #[default]
    Rfc6298,
    /// As Zhang, Zhao, Cheng (IEEE Access, 2020) print it, equations 7 and 8 with ALPHA 1/8 and BETA 2:
    /// SRTT = 1/8 SRTT + 7/8 RTT, which is RFC 6298's rule with the weights exchanged; RTO = min(`max_rto`, max(`min_rto`,
    /// 2 SRTT)).
    Paper,
}

/// Whether subflows use explicit congestion notification (RFC 3168); the same three that `tcp_ecn` of Linux knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnMode {
    /// They do not (0 in Linux).
    Off,
    /// Those that the peer opens do if its SYN asks (2 in Linux, and its default).
    #[default]
    Accept,
    /// Those that we open ask too. A SYN that is sent again does not (1 in Linux).
    Request,
}

/// TCP options that are offered, and used if the peer offers them too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionsConfig {
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer selective acknowledgements (RFC 2018).
    pub sack: bool,
}

impl Default for OptionsConfig {
    fn default() -> Self {
        Self { window_scaling: true, timestamps: true, sack: true }
    }
}

/// What can be chosen about TCP.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// Largest IP packet on the local link; the MSS option follows from it (RFC 9293, section 3.7.1).
    pub mtu: u16,
    /// Take two timeouts in a row of a long segment for a path that swallows such (RFC 4821, section 7.7), believe routers that
    /// say so (RFC 1191, RFC 8201), and search for the largest that passes. Until then segments are as long as `mtu` allows.
    pub path_mtu_discovery: bool,
    /// Options offered in SYNs.
    pub options: OptionsConfig,
    /// How fast the clock of the timestamps runs ahead of time, parts per million: for the lab, whose hosts would else
    /// agree on the length of a second. Nothing but timestamps goes by that clock. Its offset is random in any case.
    pub timestamp_drift: i32,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: EcnMode,
    /// Hold back small segments while data is in flight (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Longest delay of an acknowledgement; zero acknowledges each segment (RFC 9293, section 3.8.6.3: under 0.5 s).
    pub delayed_ack: Duration,
    /// Segments of the initial window (RFC 6928).
    pub initial_window: u32,
    /// Most bytes of congestion window, if limited (a paper's "window 100 packets"); one segment always fits.
    pub max_window: Option<u64>,
    /// How the retransmission timeout follows from the round-trip time.
    pub rto: RtoRule,
    /// Least retransmission timeout. RFC 6298 says 1 s; Linux and nearly all others 200 ms.
    pub min_rto: Duration,
    /// Largest retransmission timeout.
    pub max_rto: Duration,
    /// Retransmission timeout before the first sample (RFC 6298, section 2.1).
    pub initial_rto: Duration,
    /// Transmissions of a SYN before giving up, at least 1. With 8 that is after four minutes (RFC 9293, section 3.8.3,
    /// MUST-23: at least three).
    pub syn_attempts: u32,
    /// Probe for a lost tail two round trips after the last segment, before the retransmission timeout (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// Retransmissions of a segment by timeout until a subflow is given up, when the timer runs out once more (RFC 9293,
    /// section 3.8.3, R2).
    pub max_timeouts: u32,
    /// Idle time before keepalive probes; none: no keepalive (RFC 9293, section 3.8.4).
    pub keepalive: Option<Duration>,
    /// Time between keepalive probes that are not answered (Linux has 75 s).
    pub keepalive_interval: Duration,
    /// Keepalive probes without an answer before a subflow is given up (Linux has 9).
    pub keepalive_probes: u32,
    /// Spread segments over the round trip.
    pub pacing: bool,
    /// Time in TIME-WAIT, twice the maximum segment lifetime (Linux has 60 s).
    pub time_wait: Duration,
    /// Time in FIN-WAIT-2 of a subflow of an MPTCP connection, where the peer has only to answer, and of a connection whose
    /// application is done with both directions (Linux has 60 s for sockets that are closed both ways).
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
