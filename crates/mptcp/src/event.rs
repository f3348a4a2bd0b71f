//! Events for the application, and trace records for measurements.

use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::CloseReason;
use core::net::SocketAddr;

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CloseCause {
    /// Both directions were closed and all data acknowledged.
    #[error("closed")]
    Finished,
    /// The application aborted it.
    #[error("aborted here")]
    Aborted,
    /// The peer aborted it (MP_FASTCLOSE, or RST on its last subflow).
    #[error("aborted by the peer")]
    AbortedByPeer,
    /// The peer answered our SYN with a reset, or an ICMP error said that it takes no packets to the port.
    #[error("connection refused")]
    Refused,
    /// An ICMP error answered our SYN: the peer's network cannot be reached.
    #[error("network unreachable")]
    NetworkUnreachable,
    /// The same of the peer.
    #[error("host unreachable")]
    HostUnreachable,
    /// The peer stopped answering, or no subflow was left for too long.
    #[error("timed out")]
    TimedOut,
    /// Written data stayed unacknowledged for [`crate::ConnectionConfig::user_timeout`].
    #[error("data was not acknowledged within the user timeout")]
    UserTimeout,
    /// The peer violated the protocol, and a fallback was not possible.
    #[error("protocol error")]
    ProtocolError,
}

/// Why a connection fell back to plain TCP (RFC 8684, section 3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FallbackCause {
    /// The SYN/ACK or the SYN had no usable MP_CAPABLE.
    #[error("the peer does not speak MPTCP, or a middlebox took MP_CAPABLE from the SYN or its answer")]
    NotCapable,
    /// The SYN was answered only after it had been retransmitted without MP_CAPABLE.
    #[error("SYNs with MP_CAPABLE went unanswered, one without it did not")]
    SynLost,
    /// The third ACK or the first data had no MPTCP options.
    #[error("MPTCP options were lost on the way after the handshake had begun")]
    OptionsStripped,
    /// Data without a mapping arrived on the only subflow.
    #[error("data came without a mapping")]
    NoMapping,
    /// A DSS checksum failed on the only subflow.
    #[error("a DSS checksum was wrong: a middlebox changes payload")]
    Checksum,
    /// The peer sent an infinite mapping or MP_FAIL.
    #[error("the peer fell back: it met a wrong checksum, or lost options")]
    Peer,
}

/// An event for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A SYN for a foreign address arrived. It waits for [`crate::Endpoint::accept_held`],
    /// [`crate::Endpoint::refuse_held`] or [`crate::Endpoint::drop_held`].
    Asked {
        /// Destination of the SYN.
        local: SocketAddr,
        /// Source of the SYN.
        remote: SocketAddr,
    },
    /// A connection that we opened is established.
    Connected(ConnectionId),
    /// A connection that the peer opened is established.
    Accepted {
        connection: ConnectionId,
        /// The local port.
        port: u16,
        remote: SocketAddr,
    },
    /// Data can be read. Not repeated until all of it has been read.
    Readable(ConnectionId),
    /// Data can be written again after a short write.
    Writable(ConnectionId),
    /// The peer closed its direction, and all its data has arrived.
    EndOfStream(ConnectionId),
    /// The connection has ended. Its id is no longer valid.
    Closed(ConnectionId, CloseCause),
    /// The connection continues as plain TCP.
    FellBack(ConnectionId, FallbackCause),
    /// A subflow can carry data.
    SubflowEstablished(ConnectionId, SubflowId),
    /// A subflow ended.
    SubflowClosed(ConnectionId, SubflowId, CloseReason),
}

/// The reason for which a range was sent on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendKind {
    /// First transmission.
    New,
    /// Retransmission on the same subflow.
    Retransmission,
    /// Reinjection on another subflow.
    Reinjection,
    /// A duplicate that the scheduler asked for (redundancy, opportunistic retransmission), or a probe.
    Duplicate,
}

/// One step of a range of data, for measurements. Data sequences count from 0 at the first byte of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceRecord {
    /// A range was sent on a subflow.
    Sent {
        connection: ConnectionId,
        subflow: SubflowId,
        /// Its first byte.
        data_seq: u64,
        /// In bytes.
        length: u32,
        kind: SendKind,
    },
    /// A range arrived on a subflow.
    Arrived {
        connection: ConnectionId,
        subflow: SubflowId,
        /// Its first byte.
        data_seq: u64,
        /// In bytes.
        length: u32,
        /// Next byte expected in order at that time.
        expected: u64,
    },
    /// The application can read all data before `data_seq`.
    Delivered { connection: ConnectionId, data_seq: u64 },
    /// The sender found the receive buffer blocked
    /// ([`anabranch_policy::path_manager::PathEvent::ReceiveBufferBlocked`]).
    Blocked {
        connection: ConnectionId,
        /// First missing byte.
        hole: u64,
    },
}
