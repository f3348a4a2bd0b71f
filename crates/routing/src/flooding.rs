//! Flooding: queues, timers and rules (RFC 2328, 13; RFC 5340, 4.5; RFC 5614, 8).

pub(crate) mod acknowledgments;
pub(crate) mod backup_wait;
pub(crate) mod decision;
pub(crate) mod queue;
