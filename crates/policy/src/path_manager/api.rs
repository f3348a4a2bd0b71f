//! Events, actions and measurements of a path manager.

use crate::ids::{AddressId, ConnectionId, SubflowId};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, SubflowView};
use core::net::{IpAddr, SocketAddr};

/// Our end of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// We opened it.
    Client,
    /// We accepted it.
    Server,
}

/// Why a subflow ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// Both FINs were exchanged, or the path manager closed it.
    Normal,
    /// A reset was received.
    Reset,
    /// Too many retransmissions, or the handshake, stayed without an answer.
    TimedOut,
    /// An ICMP error answered the SYN of the join: the peer cannot be reached on this path.
    Unreachable,
    /// Its local address is gone.
    AddressGone,
    /// The peer refused the join or violated the protocol.
    ProtocolError,
}

/// An event for a path manager.
#[derive(Clone, Copy, Debug)]
pub enum PathEvent<'a> {
    /// A local address is available.
    AddressUp {
        /// Stable as long as the address is up.
        id: AddressId,
        address: IpAddr,
    },
    /// A local address is gone; its subflows are being closed.
    AddressDown { id: AddressId },
    /// A connection is established and confirmed as multipath: joins are allowed.
    ConnectionEstablished {
        connection: ConnectionId,
        role: Role,
        /// Identifier of the local address of the initial subflow.
        local: AddressId,
        /// The peer's address and port of the initial subflow (its identifier is 0).
        remote: SocketAddr,
        /// The peer does not allow subflows to `remote` (the C flag of MP_CAPABLE).
        remote_denies_joins: bool,
        /// Round-trip time of the initial subflow so far, usually that of its handshake; zero if it is not known.
        handshake_rtt: Duration,
    },
    /// A connection ended.
    ConnectionClosed { connection: ConnectionId },
    /// The peer announced an address (ADD_ADDR).
    AddressAnnounced {
        connection: ConnectionId,
        /// The peer's identifier.
        id: AddressId,
        /// Address and port; the port of the initial subflow if ADD_ADDR has none.
        remote: SocketAddr,
    },
    /// The peer withdrew an address (REMOVE_ADDR).
    AddressRemoved {
        connection: ConnectionId,
        /// The peer's identifier.
        id: AddressId,
    },
    /// A subflow is established, possibly the initial one.
    SubflowEstablished {
        connection: ConnectionId,
        subflow: SubflowId,
        /// The local address.
        local: AddressId,
        /// The remote address.
        remote: AddressId,
        /// Whether either end made it a backup.
        backup: bool,
    },
    /// A subflow ended, or could not be established.
    SubflowClosed {
        connection: ConnectionId,
        subflow: SubflowId,
        /// The local address.
        local: AddressId,
        /// The remote address.
        remote: AddressId,
        reason: CloseReason,
    },
    /// The peer changed a subflow's priority (MP_PRIO).
    SubflowPriority {
        connection: ConnectionId,
        subflow: SubflowId,
        /// Whether it is a backup now.
        backup: bool,
    },
    /// The state of all subflows, at the interval of [`PathManager::measurements`].
    Measured {
        connection: &'a ConnectionView,
        /// In order of id.
        subflows: &'a [SubflowView],
    },
    /// The receive buffer is blocked: data waits, a usable subflow has congestion window left, and the connection-level
    /// window is exhausted because of a hole. Once per episode, and again after each further largest round-trip time.
    ReceiveBufferBlocked {
        connection: &'a ConnectionView,
        /// In order of id.
        subflows: &'a [SubflowView],
        /// First missing byte at data level.
        hole: u64,
    },
    /// The receive buffer is blocked, as the receiver sees it: bytes are missing, and what arrived after them reaches
    /// so close to the edge of the advertised window that no full segment fits behind it; only data that fills the hole
    /// can still arrive. When the sender knows this it reports [`Self::ReceiveBufferBlocked`], if it has data waiting
    /// and congestion window on a path, which the receiver cannot know. The reverse does not hold: the sender's event
    /// also occurs while data up to the edge is merely in flight, and one path is faster than another. Once per
    /// episode, and again after each further largest round-trip time. Only if [`PathManager::forward_delays`] asks for
    /// delays of arrivals.
    ReceiverBlocked {
        connection: &'a ConnectionView,
        /// In order of id.
        subflows: &'a [SubflowView],
        /// First missing byte of the peer's stream.
        hole: u64,
    },
    /// The retransmission timer of a subflow expired.
    SubflowTimeout {
        connection: &'a ConnectionView,
        /// In order of id.
        subflows: &'a [SubflowView],
        subflow: SubflowId,
    },
    /// The time of [`PathAction::WakeAt`].
    Wake,
}

/// An action of a path manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathAction {
    /// Announce a local address to the peer (ADD_ADDR, repeated until echoed).
    Announce { connection: ConnectionId, local: AddressId },
    /// Withdraw an announced address (REMOVE_ADDR).
    Remove { connection: ConnectionId, local: AddressId },
    /// Open a subflow (MP_JOIN).
    CreateSubflow {
        connection: ConnectionId,
        /// From this local address.
        local: AddressId,
        /// To this remote address.
        remote: AddressId,
        /// Make it a backup.
        backup: bool,
    },
    /// Close a subflow.
    CloseSubflow { connection: ConnectionId, subflow: SubflowId },
    /// Make a subflow a backup, or not, at both ends (MP_PRIO).
    SetBackup { connection: ConnectionId, subflow: SubflowId, backup: bool },
    /// Send no new data on a subflow, and reinject what is unacknowledged there.
    Suspend { connection: ConnectionId, subflow: SubflowId },
    /// Use a suspended subflow again.
    Resume { connection: ConnectionId, subflow: SubflowId },
    /// Measure a subflow that carries nothing, with one segment of data that is in flight elsewhere.
    Probe { connection: ConnectionId, subflow: SubflowId },
    /// Deliver [`PathEvent::Wake`] at this time; a later action replaces it.
    WakeAt(Instant),
}

/// Interval of [`PathEvent::Measured`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measurements {
    Never,
    /// Once per smoothed round-trip time of the connection (the longest of its usable subflows, at least 10 ms).
    EveryRoundTrip,
    Every(Duration),
}

/// One-way delays to be measured ([`SubflowView::forward_delay`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardDelays {
    Unmeasured,
    /// Of data that arrives: our clock at its arrival minus its timestamp. A retransmission has a new timestamp, so all
    /// segments count.
    OfArrivals,
    /// Of data that we send: the timestamp of its acknowledgement minus the one echoed. Includes the delay of the
    /// acknowledgement.
    OfAcknowledgements,
}

/// Decides which subflows the connections of a host have.
pub trait PathManager: Send {
    /// Handles an event, and appends actions to `actions`. An action that cannot be carried out (no such subflow, a
    /// limit) is dropped and counted by the engine.
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>);

    /// The interval of measurements.
    fn measurements(&self) -> Measurements {
        Measurements::Never
    }

    /// The one-way delays to be measured; queried once per connection.
    fn forward_delays(&self) -> ForwardDelays {
        ForwardDelays::Unmeasured
    }
}
