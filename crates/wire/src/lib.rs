//! Bytes to meaning and back: IP, TCP, TCP options, MPTCP options, pcapng. No state, no time.
//!
//! Parsing takes bytes that may be anything and gives a value or a [`ParseError`]; it never panics. Emitting a value
//! and parsing it again gives the same value.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic))]

pub mod error;
pub mod ip;
pub mod mptcp;
pub mod packet;
pub mod seq;
pub mod tcp;

pub use error::ParseError;
pub use ip::{Ecn, IpHeader};
pub use mptcp::MptcpOption;
pub use packet::Packet;
pub use seq::SeqNumber;
pub use tcp::{Flags, Segment, TcpOptions};
