//! What is sampled of connections and subflows: the counters that Linux tells through sock_diag.
//!
//! Names are those of `struct tcp_info` and `struct mptcp_info` (include/uapi/linux/tcp.h, mptcp.h) without prefix. A
//! kernel that is older than a field leaves it out, so fields that not every kernel since 5.15 has are options.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use core::net::SocketAddr;

/// Identifies a connection at our end (RFC 8684, section 3.2): the truncated hash of our key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u32);

/// Addresses and ports of a subflow, ours first. They identify it: the kernel has no identifier that is never used
/// again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Endpoints {
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// All connections at one time.
#[derive(Clone, Debug, Default)]
pub struct HostSample {
    pub at: Instant,
    /// In order of token.
    pub connections: Vec<ConnectionSample>,
}

impl HostSample {
    /// Whether the connection was there.
    pub fn has(&self, token: Token) -> bool {
        self.connections.binary_search_by_key(&token, |connection| connection.token).is_ok()
    }
}

/// One connection.
#[derive(Clone, PartialEq, Debug)]
pub struct ConnectionSample {
    pub token: Token,
    /// It fell back to TCP.
    pub fallback: bool,
    /// One end has ended its stream, or both: no further subflow can begin.
    pub closing: bool,
    /// Bytes that the application has written, counted from the initial data sequence number.
    pub write_seq: u64,
    /// First byte not acknowledged at data level.
    pub snd_una: u64,
    /// Next byte expected from the peer.
    pub rcv_nxt: u64,
    /// Those that are established or being opened or closed, in order of [`Endpoints`].
    pub subflows: Vec<SubflowSample>,
}

impl ConnectionSample {
    /// The addresses with which it began, as far as its subflows tell: the identifier of both is 0.
    pub fn initial(&self) -> Option<Endpoints> {
        let initial = self.subflows.iter().find(|subflow| subflow.local_id == 0 && subflow.remote_id == 0);
        initial.or_else(|| self.subflows.first()).map(|subflow| subflow.endpoints)
    }

    /// Whether no program has its socket.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.subflows.iter().any(|subflow| subflow.owner.absent)
    }

    /// Whether there is anything to deliver but the end of the stream, which counts as a byte.
    pub(crate) fn has_data(&self) -> bool {
        self.write_seq.saturating_sub(self.snd_una) > 1
    }
}

/// State of a subflow's TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpState {
    /// SYN-SENT or SYN-RECEIVED, or a join of ours whose fourth ACK has not come (RFC 8684, section 3.2).
    Opening,
    Established,
    /// A FIN was sent or received.
    Closing,
}

/// State of congestion control (`tcpi_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaState {
    Open,
    Disorder,
    Cwr,
    Recovery,
    Loss,
}

/// One subflow. Segments are counted where the kernel counts them.
#[derive(Clone, PartialEq, Debug)]
pub struct SubflowSample {
    pub endpoints: Endpoints,
    /// Address identifiers (RFC 8684, section 3.4.1).
    pub local_id: u8,
    pub remote_id: u8,
    /// We made it a backup.
    pub backup_local: bool,
    /// The peer made it a backup.
    pub backup_remote: bool,
    /// The socket's owner and control group, if they are known.
    pub owner: Owner,
    pub state: TcpState,
    pub ca_state: CaState,
    /// Bytes.
    pub snd_mss: u32,
    /// Segments.
    pub snd_cwnd: u32,
    /// Segments; `u32::MAX` or the kernel's 0x7fffffff before the first loss.
    pub snd_ssthresh: u32,
    pub segments: Segments,
    /// Retransmission timeouts in a row.
    pub retransmits: u8,
    pub rtt: Duration,
    pub rttvar: Duration,
    pub min_rtt: Option<Duration>,
    /// With back-off.
    pub rto: Duration,
    /// Times that the retransmission timeout was doubled.
    pub backoff: u8,
    pub last: Last,
    pub pacing_rate: Rate,
    pub delivery_rate: Option<Rate>,
    pub delivery_rate_app_limited: bool,
    pub bytes: Bytes,
    pub chronographs: Chronographs,
    /// The peer's window in bytes.
    pub snd_wnd: Option<u32>,
}

/// Segments of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segments {
    /// Segments sent and not acknowledged cumulatively.
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    /// Segments retransmitted that are in flight now.
    pub retrans: u32,
    /// Retransmissions since the beginning.
    pub total_retrans: u32,
}

/// Time since the last events of a subflow (`tcpi_last_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Last {
    pub data_sent: Duration,
    pub ack_recv: Duration,
    pub data_recv: Duration,
}

/// Payload of a subflow (`tcpi_bytes_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bytes {
    pub acked: u64,
    pub received: u64,
    /// Retransmissions included.
    pub sent: Option<u64>,
    pub retrans: Option<u64>,
    /// Queued and not sent.
    pub notsent: Option<u32>,
}

/// What a subflow spent its time with. The last two are parts of the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chronographs {
    /// Data outstanding or waiting.
    pub busy_time: Duration,
    pub rwnd_limited: Duration,
    pub sndbuf_limited: Duration,
}

/// Who has a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Owner {
    pub uid: u32,
    pub cgroup: Option<u64>,
    /// No program has it: it was closed, or has not been accepted.
    pub absent: bool,
    /// It is of IPv6, so that the connection may have subflows of both families.
    pub ipv6: bool,
}
