//! `struct tcp_info` and `struct mptcp_info`, read by the length that the kernel returns: a field that it does not have
//! is absent, and what it appends is ignored (linux/tcp.h and linux/mptcp.h of 5.15 to 6.18).

use crate::attributes::{u8_at, u32_at, u64_at};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_steering::sample::{
    Bytes, CaState, Chronographs, Endpoints, Last, Owner, Segments, SubflowSample, TcpState,
};

/// A `min_rtt` of no measurement.
const NO_MIN_RTT: u32 = u32::MAX;

/// A bit field of one bit that is the first of its byte.
const FIRST_BIT: u8 = if cfg!(target_endian = "big") { 0x80 } else { 1 };

/// Fields of a subflow's block (MPTCP_SUBFLOW_ATTR_*).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SubflowBlock {
    pub token: u32,
    pub flags: u32,
    pub local_id: u8,
    pub remote_id: u8,
}

/// Flags of the block: we asked for the join; the peer made the subflow a backup; we did; all of MPTCP's handshake is
/// over.
const JOIN_LOCAL: u32 = 1 << 3;
const BACKUP_REMOTE: u32 = 1 << 4;
const BACKUP_LOCAL: u32 = 1 << 5;
const FULLY_ESTABLISHED: u32 = 1 << 6;

/// Reads `struct tcp_info`. `None` if it is shorter than that of Linux 3.15.
pub fn read_tcp_info(info: &[u8], endpoints: Endpoints, block: SubflowBlock) -> Option<SubflowSample> {
    let number = |at| u32_at(info, at);
    let micros = |at| number(at).map(|micros| Duration::from_micros(micros.into()));
    let millis = |at| number(at).map(|millis| Duration::from_millis(millis.into()));
    let long_micros = |at| u64_at(info, at).map_or(Duration::ZERO, micros_of);
    Some(SubflowSample {
        endpoints,
        local_id: block.local_id,
        remote_id: block.remote_id,
        backup_local: block.flags & BACKUP_LOCAL != 0,
        backup_remote: block.flags & BACKUP_REMOTE != 0,
        owner: Owner::default(),
        state: state(u8_at(info, 0)?, block.flags),
        ca_state: ca_state(u8_at(info, 1)?),
        retransmits: u8_at(info, 2)?,
        backoff: u8_at(info, 4)?,
        delivery_rate_app_limited: u8_at(info, 7)? & FIRST_BIT != 0,
        rto: micros(8)?,
        segments: Segments {
            unacked: number(24)?,
            sacked: number(28)?,
            lost: number(32)?,
            retrans: number(36)?,
            total_retrans: number(100)?,
        },
        last: Last { data_sent: millis(44)?, data_recv: millis(52)?, ack_recv: millis(56)? },
        snd_mss: number(16)?,
        rtt: micros(68)?,
        rttvar: micros(72)?,
        snd_ssthresh: number(76)?,
        snd_cwnd: number(80)?,
        pacing_rate: u64_at(info, 104).map_or(Rate::UNLIMITED, rate),
        min_rtt: number(148).filter(|rtt| *rtt != NO_MIN_RTT).map(|rtt| Duration::from_micros(rtt.into())),
        delivery_rate: u64_at(info, 160).filter(|rate| *rate != 0).map(rate),
        bytes: Bytes {
            acked: u64_at(info, 120).unwrap_or_default(),
            received: u64_at(info, 128).unwrap_or_default(),
            notsent: number(144),
            sent: u64_at(info, 200),
            retrans: u64_at(info, 208),
        },
        chronographs: Chronographs {
            busy_time: long_micros(168),
            rwnd_limited: long_micros(176),
            sndbuf_limited: long_micros(184),
        },
        snd_wnd: number(228),
    })
}

fn micros_of(micros: u64) -> Duration {
    Duration::from_nanos(micros.saturating_mul(1_000))
}

/// From bytes per second.
fn rate(bytes: u64) -> Rate {
    bytes.checked_mul(8).map_or(Rate::UNLIMITED, Rate::from_bits_per_second)
}

/// From a number of `include/net/tcp_states.h`.
///
/// A join that we asked for is over with the fourth ACK (RFC 8684, section 3.2). Until then Linux passes the subflow
/// over when it changes priorities, and reports success.
fn state(number: u8, flags: u32) -> TcpState {
    match number {
        1 if flags & JOIN_LOCAL != 0 && flags & FULLY_ESTABLISHED == 0 => TcpState::Opening,
        1 => TcpState::Established,
        // SYN-SENT, SYN-RECEIVED, and one of which the handshake's last segment is missing.
        2 | 3 | 12 => TcpState::Opening,
        _ => TcpState::Closing,
    }
}

fn ca_state(number: u8) -> CaState {
    match number {
        0 => CaState::Open,
        1 => CaState::Disorder,
        2 => CaState::Cwr,
        3 => CaState::Recovery,
        _ => CaState::Loss,
    }
}

/// What is read of `struct mptcp_info`. Sequence numbers are the kernel's, with its initial data sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MptcpInfo {
    pub token: u32,
    /// Subflows beyond the first.
    pub joins: u8,
    pub fallback: bool,
    /// By the state of its socket: one end has ended its stream.
    pub closing: bool,
    pub write_seq: u64,
    pub snd_una: u64,
    pub rcv_nxt: u64,
    /// Since 6.5.
    pub bytes_acked: Option<u64>,
}

/// Flag of a connection that fell back to TCP.
const FALLBACK: u32 = 1;

/// Reads `struct mptcp_info`. `None` if it is shorter than that of Linux 5.15.
pub fn read_mptcp_info(info: &[u8]) -> Option<MptcpInfo> {
    Some(MptcpInfo {
        joins: u8_at(info, 0)?,
        fallback: u32_at(info, 8)? & FALLBACK != 0,
        closing: false,
        token: u32_at(info, 12)?,
        write_seq: u64_at(info, 16)?,
        snd_una: u64_at(info, 24)?,
        rcv_nxt: u64_at(info, 32)?,
        bytes_acked: u64_at(info, 72),
    })
}
