//! The lab: a deterministic network in virtual time.

pub mod event_queue;
pub mod link;
pub mod random;
pub mod trace_hash;
