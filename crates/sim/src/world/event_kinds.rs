//! The kinds of events of the world.

// Besides `LINK_EVENT` (network.rs) and those of the mesh.
pub(super) const HOST_EVENT: u32 = 1;
pub(super) const FLOW_EVENT: u32 = 2;
pub(super) const SAMPLE_EVENT: u32 = 3;
pub(super) const UDP_EVENT: u32 = 4;
pub(super) const CHANGE_EVENT: u32 = 5;
pub(super) const START_EVENT: u32 = 6;
pub(super) const STOP_EVENT: u32 = 7;
pub(super) const SESSION_EVENT: u32 = 12;
pub(super) const SUPERVISOR_EVENT: u32 = 13;
