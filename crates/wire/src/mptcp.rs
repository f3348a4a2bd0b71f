//! The options of multipath TCP, version 1 (RFC 8684, section 3).

mod codec;
mod dss_checksum;
pub mod notice;
mod option;

pub(crate) use codec::{Parsed, parse};
pub use dss_checksum::dss_checksum;
pub use option::{CapableFlags, CapableKeys, DataAck, DataSequence, Dss, KIND, Mapping, MptcpOption, VERSION};

#[cfg(test)]
mod tests;
