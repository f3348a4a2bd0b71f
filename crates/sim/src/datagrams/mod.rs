//! Programs that send datagrams between a multihomed client and a server: when they send, what carries them, and their
//! delivery.
//!
//! The lab does not know how datagrams are carried: each end has a [`Carrier`], the machine that also carries them on
//! real networks.

mod carrier;
mod flow;
mod score;
mod session;

pub use carrier::Carrier;
pub use flow::{DatagramFlow, LARGEST_PAYLOAD, LEAST_PAYLOAD, Pattern};
pub use score::{FlowScore, Sent};
pub use session::{DatagramsConfig, DatagramsResult, PathOctets};
pub(crate) use session::{Session, Transmit};
