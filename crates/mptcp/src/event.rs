//! What an endpoint tells its application, and what it records for measurements.

use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::CloseReason;
use core::net::SocketAddr;

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CloseCause {
    /// Both directions were closed and all data acknowledged.
    #[error("closed")]
    Finished,
    /// We aborted it.
    #[error("aborted here")]
    Aborted,
    /// The peer aborted it (MP_FASTCLOSE, or RST on its last subflow).
    #[error("aborted by the peer")]
    AbortedByPeer,
    /// Nobody answers there: a reset came for our SYN.
    #[error("connection refused")]
    Refused,
    /// The peer went silent, or all subflows were lost for too long.
    #[error("timed out")]
    TimedOut,
    /// What was written stayed without an acknowledgement for [`crate::ConnectionConfig::user_timeout`].
    #[error("data was not acknowledged within the user timeout")]
    UserTimeout,
    /// The peer broke the protocol in a way that leaves no fallback.
    #[error("protocol error")]
    ProtocolError,
}

/// Why a connection that offered MPTCP, or would have taken it, is plain TCP (RFC 8684, section 3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FallbackCause {
    /// The SYN/ACK or the SYN had no usable MP_CAPABLE.
    #[error("the peer does not speak MPTCP, or a middlebox took MP_CAPABLE from the SYN or its answer")]
    NotCapable,
    /// The SYN had to be sent again without MP_CAPABLE to get an answer.
    #[error("SYNs with MP_CAPABLE went unanswered, one without it did not")]
    SynLost,
    /// The third ACK or the first data came without MPTCP options.
    #[error("MPTCP options were lost on the way after the handshake had begun")]
    OptionsStripped,
    /// Data came without a mapping on the only subflow.
    #[error("data came without a mapping")]
    NoMapping,
    /// A DSS checksum was wrong on the only subflow.
    #[error("a DSS checksum was wrong: a middlebox changes payload")]
    Checksum,
    /// The peer sent an infinite mapping or MP_FAIL.
    #[error("the peer fell back: it met a wrong checksum, or lost options")]
    Peer,
}

/// What the application hears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A SYN came for an address that is not ours, and waits for [`crate::Endpoint::accept_held`],
    /// [`crate::Endpoint::refuse_held`] or [`crate::Endpoint::drop_held`].
    Asked {
        /// Where it is to go.
        local: SocketAddr,
        /// Where it comes from.
        remote: SocketAddr,
    },
    /// A connection that we opened is established.
    Connected(ConnectionId),
    /// A peer's connection is established.
    Accepted {
        /// The connection.
        connection: ConnectionId,
        /// The local port it came to.
        port: u16,
        /// The peer.
        remote: SocketAddr,
    },
    /// Bytes can be read; not repeated until they have been read.
    Readable(ConnectionId),
    /// Bytes can be written again after a write was cut short.
    Writable(ConnectionId),
    /// The peer closed its direction and all its bytes are here.
    EndOfStream(ConnectionId),
    /// The connection ended; its id is free of meaning from now on.
    Closed(ConnectionId, CloseCause),
    /// The connection continues as plain TCP.
    FellBack(ConnectionId, FallbackCause),
    /// A subflow carries data from now on.
    SubflowEstablished(ConnectionId, SubflowId),
    /// A subflow ended.
    SubflowClosed(ConnectionId, SubflowId, CloseReason),
}

/// Why data was put on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendKind {
    /// For the first time.
    New,
    /// Again on the same subflow.
    Retransmission,
    /// Again on another subflow.
    Reinjection,
    /// A second copy, as the scheduler asked (redundancy, opportunistic retransmission) or as a probe.
    Duplicate,
}

/// One step of a range of data, for measurements; data sequences count from 0 at the first byte of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceRecord {
    /// Data left on a subflow.
    Sent {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
        /// First byte.
        data_seq: u64,
        /// Bytes.
        length: u32,
        /// Why.
        kind: SendKind,
    },
    /// Data arrived on a subflow.
    Arrived {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
        /// First byte.
        data_seq: u64,
        /// Bytes.
        length: u32,
        /// Next byte that was expected in order when it arrived.
        expected: u64,
    },
    /// All data before `data_seq` can be read by the application.
    Delivered {
        /// The connection.
        connection: ConnectionId,
        /// The byte after the last.
        data_seq: u64,
    },
    /// The receive buffer is blocked, as seen by the sender
    /// ([`anabranch_policy::path_manager::PathEvent::ReceiveBufferBlocked`]).
    Blocked {
        /// The connection.
        connection: ConnectionId,
        /// First missing byte.
        hole: u64,
    },
}
