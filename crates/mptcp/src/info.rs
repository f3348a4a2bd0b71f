//! What can be asked of a connection at any time, like `TCP_INFO` and `MPTCP_INFO` of Linux.
//!
//! A field that Linux has too has its name there, without the prefix; the others have the RFCs' words. **Units are not
//! always Linux's**: sizes and windows are bytes of payload and never segments, times are [`Duration`]s. Counters are totals
//! since the beginning. Nothing is kept for it: it is put together when somebody asks.

use crate::connection::Protocol;
use crate::subflow::{Identity, State};
use anabranch_policy::path_manager::Role;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_policy::view::Phase;

/// A connection now ([`crate::Endpoint::info`]). Positions in a stream count its bytes from 0.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// Which end we are.
    pub role: Role,
    /// What is spoken.
    pub protocol: Protocol,
    /// It is plain TCP although MPTCP was offered or would have been taken (RFC 8684, section 3.7).
    pub fell_back: bool,
    /// Our token, of an MPTCP connection (RFC 8684, section 3.2).
    pub token: Option<u32>,
    /// DSS checksums are in use (RFC 8684, section 3.3.1).
    pub csum_enabled: bool,
    /// End of what the application wrote.
    pub write_seq: u64,
    /// First byte that is not acknowledged at data level.
    pub snd_una: u64,
    /// First byte that has not been given to a subflow: from `snd_una` to here data is outstanding.
    pub snd_nxt: u64,
    /// Next byte expected from the peer.
    pub rcv_nxt: u64,
    /// What the peer's window lets us have outstanding at data level (RFC 8684, section 3.3.5).
    pub snd_wnd: u64,
    /// Our window.
    pub rcv_wnd: u64,
    /// Size of the receive buffer.
    pub rcvbuf: u64,
    /// In order, not yet read by the application.
    pub readable: u64,
    /// Held out of order at data level.
    pub out_of_order: u64,
    /// Sent for the first time.
    pub bytes_sent: u64,
    /// Acknowledged at data level.
    pub bytes_acked: u64,
    /// Received in order.
    pub bytes_received: u64,
    /// Sent again on the same subflow.
    pub bytes_retrans: u64,
    /// Reinjections: sent again on another subflow, because the first failed (RFC 8684, section 3.3.6).
    pub bytes_reinjected: u64,
    /// Sent twice on purpose: redundancy, opportunistic retransmission, probes.
    pub bytes_duplicated: u64,
    /// Received, and had been received before.
    pub duplicate_bytes_received: u64,
    /// Retransmission timeouts of all subflows, those that are gone included.
    pub total_rto: u64,
    /// Segments sent, acknowledgements included.
    pub segs_out: u64,
    /// Segments received, but for the SYNs by which the peer opened the connection or a subflow.
    pub segs_in: u64,
    /// The subflows that there are, in order of id; one at most in plain TCP.
    pub subflows: Vec<SubflowInfo>,
}

/// A subflow of a [`ConnectionInfo`].
#[derive(Clone, Debug)]
pub struct SubflowInfo {
    /// Its number, addresses and their identifiers.
    pub identity: Identity,
    /// The state of RFC 9293, section 3.3.2.
    pub state: State,
    /// What congestion control is doing (`ca_state` in Linux).
    pub phase: Phase,
    /// Data is outstanding, and nothing came back for a timeout or for longer than the scheduler allows.
    pub stale: bool,
    /// What the handshake agreed on.
    pub options: OptionsInfo,
    /// Whether it is a backup, or put aside.
    pub priority: PriorityInfo,
    /// Round-trip times.
    pub round_trip: RoundTripInfo,
    /// Bytes.
    pub bytes: BytesInfo,
    /// How long ago things happened last.
    pub last: LastInfo,
    /// Largest payload of a segment that we send.
    pub snd_mss: u32,
    /// Congestion window; 0 before the handshake is over.
    pub snd_cwnd: u64,
    /// Slow-start threshold; none before the first loss.
    pub snd_ssthresh: Option<u64>,
    /// What the peer's window on this subflow lets us have outstanding (RFC 8684, section 3.3.5).
    pub snd_wnd: u64,
    /// Sent, neither acknowledged nor marked lost ("pipe", RFC 6675).
    pub in_flight: u64,
    /// Segments found lost by acknowledgements, not by a timeout; wraps.
    pub segments_lost: u32,
    /// Retransmission timeouts.
    pub total_rto: u32,
    /// Those since an acknowledgement last made progress.
    pub retransmits: u32,
    /// Smoothed share of segments lost, 0 to 1.
    pub loss_rate: f64,
    /// Rate at which segments are released: congestion control's, or window over round-trip time.
    pub pacing_rate: Rate,
    /// Rate at which data was delivered last; zero before the first sample.
    pub delivery_rate: Rate,
    /// Something else than congestion control limits what is sent: `delivery_rate` says little of the path.
    pub delivery_rate_app_limited: bool,
    /// Data waits behind a hole of this subflow: it was reordered or lost.
    pub has_gap: bool,
}

/// Whether a subflow is a backup, or put aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PriorityInfo {
    /// A backup, because we said so (RFC 8684, section 3.3.8).
    pub backup: bool,
    /// A backup, because the peer said so.
    pub request_bkup: bool,
    /// Put aside by the path manager.
    pub suspended: bool,
}

/// Round-trip times of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTripInfo {
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub rtt: Duration,
    /// Its variation; zero before the first sample.
    pub rttvar: Duration,
    /// Least round-trip time seen; zero before the first sample.
    pub min_rtt: Duration,
    /// Retransmission timeout, without back-off.
    pub rto: Duration,
    /// Round-trip time as the receiver sees it, by echoed timestamps; zero before the first sample.
    pub rcv_rtt: Duration,
}

/// Bytes of payload that a subflow carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BytesInfo {
    /// Sent for the first time here.
    pub sent: u64,
    /// Acknowledged at subflow level.
    pub acked: u64,
    /// Received first here.
    pub received: u64,
    /// Sent again here.
    pub retrans: u64,
    /// Marked lost, each loss once.
    pub lost: u64,
    /// Given to the subflow and not sent, or lost and not sent again.
    pub notsent: u64,
}

/// How long ago things happened last on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastInfo {
    /// Time since data was last sent; none before.
    pub data_sent: Option<Duration>,
    /// Time since something acceptable last came: data or an acknowledgement.
    pub recv: Duration,
    /// Time since an acknowledgement last made progress, or since the handshake.
    pub progress: Duration,
}

/// What the handshake of a subflow agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionsInfo {
    /// Timestamps on every segment (RFC 7323).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Explicit congestion notification: our data can be marked (RFC 3168).
    pub ecn: bool,
    /// Shift of the windows that the peer sends, 0 to 14 (RFC 7323).
    pub snd_wscale: u8,
    /// Shift of the windows that we send, 0 to 14.
    pub rcv_wscale: u8,
}
