//! What a path manager hears, what it can do, and what it asks for.

use crate::ids::{AddressId, ConnectionId, SubflowId};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, SubflowView};
use core::net::{IpAddr, SocketAddr};

/// Which end of the connection we are.
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
    /// A reset came in.
    Reset,
    /// Too many retransmissions without an answer, or the handshake got none.
    TimedOut,
    /// Its local address went away.
    AddressGone,
    /// The peer refused the join or broke the protocol.
    ProtocolError,
}

/// What a path manager hears.
#[derive(Clone, Copy, Debug)]
pub enum PathEvent<'a> {
    /// A local address can be used.
    AddressUp {
        /// Its identifier, stable as long as the address is up.
        id: AddressId,
        /// The address.
        address: IpAddr,
    },
    /// A local address is gone; its subflows are being closed.
    AddressDown {
        /// Its identifier.
        id: AddressId,
    },
    /// A connection is established and confirmed as multipath: joins may begin.
    ConnectionEstablished {
        /// The connection.
        connection: ConnectionId,
        /// Which end we are.
        role: Role,
        /// Identifier of the local address of the initial subflow.
        local: AddressId,
        /// The peer's address and port of the initial subflow (its identifier is 0).
        remote: SocketAddr,
        /// The peer asked not to open subflows to `remote` (the C flag of MP_CAPABLE).
        remote_denies_joins: bool,
    },
    /// A connection ended.
    ConnectionClosed {
        /// The connection.
        connection: ConnectionId,
    },
    /// The peer announced an address (ADD_ADDR).
    AddressAnnounced {
        /// The connection.
        connection: ConnectionId,
        /// The peer's identifier.
        id: AddressId,
        /// Address and port; the port of the initial subflow where ADD_ADDR named none.
        remote: SocketAddr,
    },
    /// The peer withdrew an address (REMOVE_ADDR).
    AddressRemoved {
        /// The connection.
        connection: ConnectionId,
        /// The peer's identifier.
        id: AddressId,
    },
    /// A subflow is established; the initial one too.
    SubflowEstablished {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
        /// Our address.
        local: AddressId,
        /// The peer's.
        remote: AddressId,
        /// Whether either side calls it a backup.
        backup: bool,
    },
    /// A subflow ended, or could not be established.
    SubflowClosed {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
        /// Our address.
        local: AddressId,
        /// The peer's.
        remote: AddressId,
        /// Why.
        reason: CloseReason,
    },
    /// The peer changed a subflow's priority (MP_PRIO).
    SubflowPriority {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
        /// Whether it is a backup now.
        backup: bool,
    },
    /// The state of all subflows, as often as [`PathManager::measurements`] asks.
    Measured {
        /// The connection.
        connection: &'a ConnectionView,
        /// Its subflows, in order of id.
        subflows: &'a [SubflowView],
    },
    /// The receive buffer is blocked: data waits, a usable subflow has window to spare, and the connection-level
    /// window is exhausted because of a hole. Once per episode; again each time it has outlasted the largest
    /// round-trip time once more.
    ReceiveBufferBlocked {
        /// The connection.
        connection: &'a ConnectionView,
        /// Its subflows, in order of id.
        subflows: &'a [SubflowView],
        /// First missing byte at data level.
        hole: u64,
    },
    /// The receive buffer is blocked as the receiving end sees it: bytes are missing, and what arrived after them reaches
    /// so near to the edge of the window that the peer was told that no whole segment fits behind it; nothing more can
    /// come but what fills the hole. When that is known to the sender it calls itself blocked
    /// ([`Self::ReceiveBufferBlocked`]), provided it has data waiting and window on a path, which the receiver cannot
    /// know. The reverse does not hold: the sender's event also comes while what it has sent up to the edge is merely on
    /// its way, and one path is faster than another. Once per episode; again each time it has outlasted the largest round-trip time once more. Only told where
    /// [`PathManager::forward_delays`] asks for delays of arrivals.
    ReceiverBlocked {
        /// The connection.
        connection: &'a ConnectionView,
        /// Its subflows, in order of id.
        subflows: &'a [SubflowView],
        /// First missing byte of the peer's stream.
        hole: u64,
    },
    /// A subflow's retransmission timer ran out.
    SubflowTimeout {
        /// The connection.
        connection: &'a ConnectionView,
        /// Its subflows, in order of id.
        subflows: &'a [SubflowView],
        /// The subflow.
        subflow: SubflowId,
    },
    /// The time that [`PathAction::WakeAt`] named has come.
    Wake,
}

/// What a path manager can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathAction {
    /// Announce a local address to the peer (ADD_ADDR, repeated until echoed).
    Announce {
        /// The connection.
        connection: ConnectionId,
        /// The local address.
        local: AddressId,
    },
    /// Withdraw an announced address (REMOVE_ADDR).
    Remove {
        /// The connection.
        connection: ConnectionId,
        /// The local address.
        local: AddressId,
    },
    /// Open a subflow (MP_JOIN).
    CreateSubflow {
        /// The connection.
        connection: ConnectionId,
        /// From this local address.
        local: AddressId,
        /// To this address of the peer's.
        remote: AddressId,
        /// Ask for it to be a backup.
        backup: bool,
    },
    /// Close a subflow.
    CloseSubflow {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
    },
    /// Ask the peer to treat a subflow as backup or not, and do so ourselves (MP_PRIO).
    SetBackup {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
        /// Backup or not.
        backup: bool,
    },
    /// Send no new data on a subflow; what is unacknowledged there is sent again elsewhere.
    Suspend {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
    },
    /// Use a suspended subflow again.
    Resume {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
    },
    /// Measure a subflow that carries nothing: send one segment of data that is in flight elsewhere.
    Probe {
        /// The connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
    },
    /// Deliver [`PathEvent::Wake`] at this time; a later action replaces it.
    WakeAt(Instant),
}

/// How often a path manager wants [`PathEvent::Measured`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measurements {
    /// Not at all.
    Never,
    /// Once per smoothed round-trip time of the connection (the longest of its usable subflows, 10 ms at least).
    EveryRoundTrip,
    /// At a fixed interval.
    Every(Duration),
}

/// Which forward one-way delays a path manager wants measured ([`SubflowView::forward_delay`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardDelays {
    /// None.
    Unmeasured,
    /// Of the data that arrives: our clock at its arrival less the timestamp it carries. A segment that is sent again has a
    /// timestamp of its own, so all count.
    OfArrivals,
    /// Of the data that we send: the timestamp of what acknowledges it less the one echoed. Delayed acknowledgements are
    /// in it.
    OfAcknowledgements,
}

/// Decides which subflows a host's connections have.
pub trait PathManager: Send {
    /// Takes one event in; what is to be done is appended to `actions`. An action that cannot be carried out
    /// (no such subflow, a limit) is dropped and counted by the engine.
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>);

    /// How often it wants measurements.
    fn measurements(&self) -> Measurements {
        Measurements::Never
    }

    /// Which forward delays it wants; asked once per connection.
    fn forward_delays(&self) -> ForwardDelays {
        ForwardDelays::Unmeasured
    }
}
