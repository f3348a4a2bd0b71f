//! Actions of a path manager, as Python objects.

use crate::failure::{number, plain};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::PathAction;
use anabranch_policy::time::{Duration, Instant};
use pyo3::prelude::*;

/// An action of a path manager, as `PathAction` in Rust; ids are integers, times seconds.
#[pyclass(eq, name = "PathAction", module = "anabranch")]
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PyPathAction {
    Announce {
        connection: u64,
        local: u8,
    },
    Remove {
        connection: u64,
        local: u8,
    },
    #[pyo3(constructor = (connection, local, remote, backup=false))]
    CreateSubflow {
        connection: u64,
        local: u8,
        remote: u8,
        backup: bool,
    },
    CloseSubflow {
        connection: u64,
        subflow: u32,
    },
    SetBackup {
        connection: u64,
        subflow: u32,
        backup: bool,
    },
    Suspend {
        connection: u64,
        subflow: u32,
    },
    Resume {
        connection: u64,
        subflow: u32,
    },
    Probe {
        connection: u64,
        subflow: u32,
    },
    WakeAt {
        time: f64,
    },
}

#[pymethods]
impl PyPathAction {
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

impl PyPathAction {
    pub fn new(action: &PathAction) -> Self {
        match *action {
            PathAction::Announce { connection, local } => Self::Announce { connection: connection.0, local: local.0 },
            PathAction::Remove { connection, local } => Self::Remove { connection: connection.0, local: local.0 },
            PathAction::CreateSubflow { connection, local, remote, backup } => {
                Self::CreateSubflow { connection: connection.0, local: local.0, remote: remote.0, backup }
            }
            PathAction::CloseSubflow { connection, subflow } => {
                Self::CloseSubflow { connection: connection.0, subflow: subflow.0 }
            }
            PathAction::SetBackup { connection, subflow, backup } => {
                Self::SetBackup { connection: connection.0, subflow: subflow.0, backup }
            }
            PathAction::Suspend { connection, subflow } => {
                Self::Suspend { connection: connection.0, subflow: subflow.0 }
            }
            PathAction::Resume { connection, subflow } => Self::Resume { connection: connection.0, subflow: subflow.0 },
            PathAction::Probe { connection, subflow } => Self::Probe { connection: connection.0, subflow: subflow.0 },
            PathAction::WakeAt(time) => Self::WakeAt { time: time.as_secs_f64() },
        }
    }

    /// As the engine takes it.
    ///
    /// # Errors
    /// It wakes at a time that is not after now: the run would stay there for ever.
    pub fn action(self, now: Instant) -> PyResult<PathAction> {
        Ok(match self {
            Self::Announce { connection, local } => {
                PathAction::Announce { connection: ConnectionId(connection), local: AddressId(local) }
            }
            Self::Remove { connection, local } => {
                PathAction::Remove { connection: ConnectionId(connection), local: AddressId(local) }
            }
            Self::CreateSubflow { connection, local, remote, backup } => PathAction::CreateSubflow {
                connection: ConnectionId(connection),
                local: AddressId(local),
                remote: AddressId(remote),
                backup,
            },
            Self::CloseSubflow { connection, subflow } => {
                PathAction::CloseSubflow { connection: ConnectionId(connection), subflow: SubflowId(subflow) }
            }
            Self::SetBackup { connection, subflow, backup } => {
                PathAction::SetBackup { connection: ConnectionId(connection), subflow: SubflowId(subflow), backup }
            }
            Self::Suspend { connection, subflow } => {
                PathAction::Suspend { connection: ConnectionId(connection), subflow: SubflowId(subflow) }
            }
            Self::Resume { connection, subflow } => {
                PathAction::Resume { connection: ConnectionId(connection), subflow: SubflowId(subflow) }
            }
            Self::Probe { connection, subflow } => {
                PathAction::Probe { connection: ConnectionId(connection), subflow: SubflowId(subflow) }
            }
            Self::WakeAt { time } => {
                let at = Instant::ZERO + Duration::from_secs_f64(if time.is_nan() { 0.0 } else { time.max(0.0) });
                if at <= now {
                    return Err(plain(format!(
                        "handle() asked to wake at {} s, and it is {} s: the time is a later one",
                        number(time),
                        number(now.as_secs_f64())
                    )));
                }
                PathAction::WakeAt(at)
            }
        })
    }
}
