//! Parsing and emitting of wire formats: IP, TCP, TCP options, MPTCP options, message headers, OSPFv3, BFD, pcapng. No
//! state, no time.
//!
//! Parsing accepts any bytes and returns a value or a [`ParseError`]; it never panics. Emitting a value and parsing it
//! again returns the same value; a value for which that is impossible is an [`EmitError`].

#![warn(missing_docs)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic))]

pub mod bfd;
pub mod checksum;
pub mod echo;
pub mod encapsulation;
mod error;
pub mod icmp;
pub mod ip;
pub mod message;
pub mod mptcp;
pub mod ospf;
pub mod packet;
pub mod pcapng;
mod reader;
pub mod seq;
pub mod tcp;
pub mod udp;

pub use checksum::Checksum;
pub use echo::EchoPacket;
pub use error::{EmitError, ParseError};
pub use icmp::{IcmpError, Trouble, Unreachable};
pub use ip::{Ecn, IpHeader};
pub use message::MessageHeader;
pub use mptcp::MptcpOption;
pub use packet::Packet;
pub use seq::SeqNumber;
pub use tcp::{Flags, Segment, TcpOptions};
pub use udp::UdpPacket;
