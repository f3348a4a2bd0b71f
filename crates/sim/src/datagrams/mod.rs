//! Programs that send datagrams between a client with several paths and a server: when they send, what carries it, and what became of it.
//!
//! The lab knows nothing of how datagrams are carried: that is a [`Carrier`] at each end, the machine that carries them on real networks.

mod carrier;
mod flow;
mod score;
mod session;

pub use carrier::Carrier;
pub use flow::{DatagramFlow, LEAST_PAYLOAD, Pattern};
pub use score::{FlowScore, Sent};
pub use session::{DatagramsConfig, DatagramsResult, PathOctets};
pub(crate) use session::{Session, Transmit};
