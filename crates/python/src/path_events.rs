//! Events of a path manager, as Python objects.

use crate::failure::plain;
use crate::views::{PyConnection, PySubflow};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, PathEvent, Role};
use anabranch_policy::time::Duration;
use anabranch_policy::view::{ConnectionView, SubflowView};
use pyo3::prelude::*;
use std::net::{IpAddr, SocketAddr};

/// An event of a path manager, as `PathEvent` in Rust; ids are integers, times seconds, the peer's addresses pairs of
/// address and port.
#[pyclass(name = "PathEvent", module = "anabranch")]
pub enum PyPathEvent {
    AddressUp {
        id: u8,
        address: String,
    },
    AddressDown {
        id: u8,
    },
    #[pyo3(constructor = (connection, role, local, remote, remote_denies_joins=false, handshake_rtt=0.0))]
    ConnectionEstablished {
        connection: u64,
        role: String,
        local: u8,
        remote: (String, u16),
        remote_denies_joins: bool,
        handshake_rtt: f64,
    },
    ConnectionClosed {
        connection: u64,
    },
    AddressAnnounced {
        connection: u64,
        id: u8,
        remote: (String, u16),
    },
    AddressRemoved {
        connection: u64,
        id: u8,
    },
    #[pyo3(constructor = (connection, subflow, local, remote, backup=false))]
    SubflowEstablished {
        connection: u64,
        subflow: u32,
        local: u8,
        remote: u8,
        backup: bool,
    },
    SubflowClosed {
        connection: u64,
        subflow: u32,
        local: u8,
        remote: u8,
        reason: String,
    },
    SubflowPriority {
        connection: u64,
        subflow: u32,
        backup: bool,
    },
    Measured {
        connection: Py<PyConnection>,
        subflows: Vec<Py<PySubflow>>,
    },
    ReceiveBufferBlocked {
        connection: Py<PyConnection>,
        subflows: Vec<Py<PySubflow>>,
        hole: u64,
    },
    ReceiverBlocked {
        connection: Py<PyConnection>,
        subflows: Vec<Py<PySubflow>>,
        hole: u64,
    },
    SubflowTimeout {
        connection: Py<PyConnection>,
        subflows: Vec<Py<PySubflow>>,
        subflow: u32,
    },
    Wake {},
}

const ROLES: [(&str, Role); 2] = [("client", Role::Client), ("server", Role::Server)];

const REASONS: [(&str, CloseReason); 6] = [
    ("normal", CloseReason::Normal),
    ("reset", CloseReason::Reset),
    ("timed_out", CloseReason::TimedOut),
    ("unreachable", CloseReason::Unreachable),
    ("address_gone", CloseReason::AddressGone),
    ("protocol_error", CloseReason::ProtocolError),
];

fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> String {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word).to_owned()
}

fn value<T: Copy>(words: &[(&'static str, T)], word: &str) -> PyResult<T> {
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let found = words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
    found.ok_or_else(|| plain(format!("'{word}' is none of {}", known())))
}

fn pair(address: SocketAddr) -> (String, u16) {
    (address.ip().to_string(), address.port())
}

fn socket((address, port): &(String, u16)) -> PyResult<SocketAddr> {
    Ok(SocketAddr::new(ip(address)?, *port))
}

fn ip(address: &str) -> PyResult<IpAddr> {
    address.parse().map_err(|_| plain(format!("'{address}' is no address")))
}

/// Views as Python objects.
fn views(
    py: Python<'_>,
    connection: &ConnectionView,
    subflows: &[SubflowView],
) -> PyResult<(Py<PyConnection>, Vec<Py<PySubflow>>)> {
    let subflows = subflows.iter().map(|subflow| Py::new(py, PySubflow(subflow.clone()))).collect::<PyResult<_>>()?;
    Ok((Py::new(py, PyConnection(connection.clone()))?, subflows))
}

impl PyPathEvent {
    /// # Errors
    /// No memory is left for it.
    pub fn new(py: Python<'_>, event: &PathEvent<'_>) -> PyResult<Self> {
        Ok(match *event {
            PathEvent::AddressUp { id, address } => Self::AddressUp { id: id.0, address: address.to_string() },
            PathEvent::AddressDown { id } => Self::AddressDown { id: id.0 },
            PathEvent::ConnectionEstablished {
                connection,
                role,
                local,
                remote,
                remote_denies_joins,
                handshake_rtt,
            } => Self::ConnectionEstablished {
                connection: connection.0,
                role: word(&ROLES, &role),
                local: local.0,
                remote: pair(remote),
                remote_denies_joins,
                handshake_rtt: handshake_rtt.as_secs_f64(),
            },
            PathEvent::ConnectionClosed { connection } => Self::ConnectionClosed { connection: connection.0 },
            PathEvent::AddressAnnounced { connection, id, remote } => {
                Self::AddressAnnounced { connection: connection.0, id: id.0, remote: pair(remote) }
            }
            PathEvent::AddressRemoved { connection, id } => Self::AddressRemoved { connection: connection.0, id: id.0 },
            PathEvent::SubflowEstablished { connection: ConnectionId(connection), subflow, local, remote, backup } => {
                Self::SubflowEstablished { connection, subflow: subflow.0, local: local.0, remote: remote.0, backup }
            }
            PathEvent::SubflowClosed { connection: ConnectionId(connection), subflow, local, remote, reason } => {
                let reason = word(&REASONS, &reason);
                Self::SubflowClosed { connection, subflow: subflow.0, local: local.0, remote: remote.0, reason }
            }
            PathEvent::SubflowPriority { connection, subflow, backup } => {
                Self::SubflowPriority { connection: connection.0, subflow: subflow.0, backup }
            }
            PathEvent::Measured { connection, subflows } => {
                let (connection, subflows) = views(py, connection, subflows)?;
                Self::Measured { connection, subflows }
            }
            PathEvent::ReceiveBufferBlocked { connection, subflows, hole } => {
                let (connection, subflows) = views(py, connection, subflows)?;
                Self::ReceiveBufferBlocked { connection, subflows, hole }
            }
            PathEvent::ReceiverBlocked { connection, subflows, hole } => {
                let (connection, subflows) = views(py, connection, subflows)?;
                Self::ReceiverBlocked { connection, subflows, hole }
            }
            PathEvent::SubflowTimeout { connection, subflows, subflow } => {
                let (connection, subflows) = views(py, connection, subflows)?;
                Self::SubflowTimeout { connection, subflows, subflow: subflow.0 }
            }
            PathEvent::Wake => Self::Wake {},
        })
    }

    /// Calls with the event as the engine has it.
    ///
    /// # Errors
    /// An address, a role or a reason is none.
    pub fn with<T>(&self, call: impl FnOnce(&PathEvent<'_>) -> T) -> PyResult<T> {
        match self {
            Self::Measured { connection, subflows } => {
                let (connection, subflows) = engine_views(connection, subflows);
                Ok(call(&PathEvent::Measured { connection, subflows: &subflows }))
            }
            Self::ReceiveBufferBlocked { connection, subflows, hole } => {
                let (connection, subflows) = engine_views(connection, subflows);
                Ok(call(&PathEvent::ReceiveBufferBlocked { connection, subflows: &subflows, hole: *hole }))
            }
            Self::ReceiverBlocked { connection, subflows, hole } => {
                let (connection, subflows) = engine_views(connection, subflows);
                Ok(call(&PathEvent::ReceiverBlocked { connection, subflows: &subflows, hole: *hole }))
            }
            Self::SubflowTimeout { connection, subflows, subflow } => {
                let (connection, subflows) = engine_views(connection, subflows);
                let subflow = SubflowId(*subflow);
                Ok(call(&PathEvent::SubflowTimeout { connection, subflows: &subflows, subflow }))
            }
            _ => self.without_views().map(|event| call(&event)),
        }
    }

    /// An event that has no views.
    fn without_views(&self) -> PyResult<PathEvent<'static>> {
        Ok(match self {
            Self::AddressUp { id, address } => PathEvent::AddressUp { id: AddressId(*id), address: ip(address)? },
            Self::AddressDown { id } => PathEvent::AddressDown { id: AddressId(*id) },
            Self::ConnectionEstablished { connection, role, local, remote, remote_denies_joins, handshake_rtt } => {
                PathEvent::ConnectionEstablished {
                    connection: ConnectionId(*connection),
                    role: value(&ROLES, role)?,
                    local: AddressId(*local),
                    remote: socket(remote)?,
                    remote_denies_joins: *remote_denies_joins,
                    handshake_rtt: Duration::from_secs_f64(handshake_rtt.max(0.0)),
                }
            }
            Self::ConnectionClosed { connection } => {
                PathEvent::ConnectionClosed { connection: ConnectionId(*connection) }
            }
            Self::AddressAnnounced { connection, id, remote } => PathEvent::AddressAnnounced {
                connection: ConnectionId(*connection),
                id: AddressId(*id),
                remote: socket(remote)?,
            },
            Self::AddressRemoved { connection, id } => {
                PathEvent::AddressRemoved { connection: ConnectionId(*connection), id: AddressId(*id) }
            }
            Self::SubflowEstablished { connection, subflow, local, remote, backup } => {
                let (local, remote) = (AddressId(*local), AddressId(*remote));
                let (connection, subflow) = (ConnectionId(*connection), SubflowId(*subflow));
                PathEvent::SubflowEstablished { connection, subflow, local, remote, backup: *backup }
            }
            Self::SubflowClosed { connection, subflow, local, remote, reason } => {
                let (local, remote) = (AddressId(*local), AddressId(*remote));
                let (connection, subflow) = (ConnectionId(*connection), SubflowId(*subflow));
                let reason = value(&REASONS, reason)?;
                PathEvent::SubflowClosed { connection, subflow, local, remote, reason }
            }
            Self::SubflowPriority { connection, subflow, backup } => PathEvent::SubflowPriority {
                connection: ConnectionId(*connection),
                subflow: SubflowId(*subflow),
                backup: *backup,
            },
            _ => PathEvent::Wake,
        })
    }
}

/// Views as the engine has them.
fn engine_views<'a>(
    connection: &'a Py<PyConnection>,
    subflows: &[Py<PySubflow>],
) -> (&'a ConnectionView, Vec<SubflowView>) {
    (&connection.get().0, subflows.iter().map(|subflow| subflow.get().0.clone()).collect())
}
