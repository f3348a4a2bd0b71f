//! State of a connection that can be queried at any time, like `TCP_INFO` and `MPTCP_INFO` of Linux.
//!
//! A field that Linux has too keeps the name from there, without the prefix; other names are the RFCs' terms. **Units
//! differ from Linux**: sizes and windows are bytes of payload, never segments, and times are [`Duration`]s. Counters
//! are totals since the connection began. The report is computed when it is queried.

use crate::connection::Protocol;
use crate::subflow::{Identity, State};
use anabranch_policy::path_manager::Role;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_policy::view::Phase;

/// A connection ([`crate::Endpoint::info`]). Positions in a stream count bytes from 0.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// Whether we opened the connection.
    pub role: Role,
    /// MPTCP or plain TCP.
    pub protocol: Protocol,
    /// The connection offered MPTCP or would have accepted it, but fell back to plain TCP (RFC 8684, section 3.7).
    pub fell_back: bool,
    /// Our token, of an MPTCP connection (RFC 8684, section 3.2).
    pub token: Option<u32>,
    /// DSS checksums are in use (RFC 8684, section 3.3.1).
    pub csum_enabled: bool,
    /// End of what the application wrote.
    pub write_seq: u64,
    /// First byte that is not acknowledged at data level.
    pub snd_una: u64,
    /// First byte not yet assigned to a subflow. Data from `snd_una` to here is outstanding.
    pub snd_nxt: u64,
    /// Next byte expected from the peer.
    pub rcv_nxt: u64,
    /// Bytes that may be outstanding at data level by the peer's window (RFC 8684, section 3.3.5).
    pub snd_wnd: u64,
    /// Our receive window.
    pub rcv_wnd: u64,
    /// Size of the receive buffer.
    pub rcvbuf: u64,
    /// Received in order, not yet read.
    pub readable: u64,
    /// Received out of order at data level.
    pub out_of_order: u64,
    /// Sent for the first time.
    pub bytes_sent: u64,
    /// Acknowledged at data level.
    pub bytes_acked: u64,
    /// Received in order.
    pub bytes_received: u64,
    /// Retransmitted on the same subflow.
    pub bytes_retrans: u64,
    /// Reinjected on another subflow (RFC 8684, section 3.3.6).
    pub bytes_reinjected: u64,
    /// Duplicates sent by redundancy, opportunistic retransmission or probes.
    pub bytes_duplicated: u64,
    /// Received more than once.
    pub duplicate_bytes_received: u64,
    /// Retransmission timeouts of all subflows, closed ones included.
    pub total_rto: u64,
    /// Segments sent, acknowledgements included.
    pub segs_out: u64,
    /// Segments received, except SYNs by which the peer opened the connection or a subflow.
    pub segs_in: u64,
    /// Open subflows in order of id; at most one in plain TCP.
    pub subflows: Vec<SubflowInfo>,
}

/// A subflow of a [`ConnectionInfo`].
#[derive(Clone, Debug)]
pub struct SubflowInfo {
    /// Number, addresses and address identifiers.
    pub identity: Identity,
    /// State of RFC 9293, section 3.3.2.
    pub state: State,
    /// Phase of congestion control (`ca_state` in Linux).
    pub phase: Phase,
    /// Data is outstanding, and nothing was acknowledged for a timeout, or for longer than the scheduler allows.
    pub stale: bool,
    /// Options negotiated in the handshake.
    pub options: OptionsInfo,
    /// Backup and suspended flags.
    pub priority: PriorityInfo,
    pub round_trip: RoundTripInfo,
    pub bytes: BytesInfo,
    pub last: LastInfo,
    /// Maximum payload of a segment that we send.
    pub snd_mss: u32,
    /// Congestion window; 0 during the handshake.
    pub snd_cwnd: u64,
    /// Slow-start threshold; none before the first loss.
    pub snd_ssthresh: Option<u64>,
    /// Bytes that may be outstanding on this subflow by the peer's window (RFC 8684, section 3.3.5).
    pub snd_wnd: u64,
    /// Bytes sent and neither acknowledged nor marked lost ("pipe", RFC 6675).
    pub in_flight: u64,
    /// Segments marked lost by acknowledgements, not by a timeout. Wraps around.
    pub segments_lost: u32,
    /// Retransmission timeouts.
    pub total_rto: u32,
    /// Retransmission timeouts since the last acknowledgement that made progress.
    pub retransmits: u32,
    /// Smoothed share of segments lost, 0 to 1.
    pub loss_rate: f64,
    /// Pacing rate: that of congestion control, or window over round-trip time.
    pub pacing_rate: Rate,
    /// Latest delivery rate sample; zero before the first.
    pub delivery_rate: Rate,
    /// The latest `delivery_rate` was limited by something other than congestion control, and says little about the
    /// path.
    pub delivery_rate_app_limited: bool,
    /// Data waits behind a hole in the sequence space of this subflow.
    pub has_gap: bool,
}

/// Backup and suspended flags of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PriorityInfo {
    /// We made it a backup (RFC 8684, section 3.3.8).
    pub backup: bool,
    /// The peer made it a backup.
    pub request_bkup: bool,
    /// The path manager suspended it.
    pub suspended: bool,
}

/// Round-trip times of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTripInfo {
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub rtt: Duration,
    /// Variation of the round-trip time; zero before the first sample.
    pub rttvar: Duration,
    /// Minimum round-trip time; zero before the first sample.
    pub min_rtt: Duration,
    /// Retransmission timeout without back-off.
    pub rto: Duration,
    /// Round-trip time measured by the receiver with echoed timestamps; zero before the first sample.
    pub rcv_rtt: Duration,
}

/// Payload of a subflow, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BytesInfo {
    /// Sent here for the first time.
    pub sent: u64,
    /// Acknowledged at subflow level.
    pub acked: u64,
    /// Received here first.
    pub received: u64,
    /// Retransmitted here.
    pub retrans: u64,
    /// Marked lost, each loss counted once.
    pub lost: u64,
    /// Queued on the subflow and not yet sent, or lost and not yet retransmitted.
    pub notsent: u64,
}

/// Times since the latest events of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastInfo {
    /// Time since data was sent; none before the first.
    pub data_sent: Option<Duration>,
    /// Time since data or an acceptable acknowledgement arrived.
    pub recv: Duration,
    /// Time since an acknowledgement made progress, or since the handshake.
    pub progress: Duration,
}

/// Options negotiated in the handshake of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionsInfo {
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Explicit congestion notification for our data (RFC 3168).
    pub ecn: bool,
    /// Shift of the peer's window, 0 to 14 (RFC 7323).
    pub snd_wscale: u8,
    /// Shift of our window, 0 to 14.
    pub rcv_wscale: u8,
}
