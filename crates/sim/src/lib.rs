//! The lab: a deterministic network in virtual time.
