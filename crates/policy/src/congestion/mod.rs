//! How much may be in flight on each subflow of a connection.
//!
//! One object serves a whole connection, because coupled algorithms need all its subflows. The engine
//! keeps the scoreboard, detects losses (RACK-TLP, RFC 8985), paces out recovery (PRR, RFC 9937) and limits
//! sending by [`CongestionControl::window`]; the object only moves window and threshold.

mod anabranch;
mod api;
mod balia;
mod bbr;
mod bounded_cubic;
mod classic_hystart;
mod coupled;
mod cubic;
#[cfg(test)]
mod harness;
mod hystart;
mod lia;
mod new_reno;
mod olia;
mod path_model;
mod quantum;
mod queue_evidence;
mod shared_bottleneck;
mod slow_start;
mod table;
#[cfg(test)]
mod tests;
mod uncoupled;
mod window;
mod wvegas;

pub use api::{Ack, Congestion, CongestionControl, CongestionEvent, Lost, Sent, Start};
pub use cubic::{Cubic, CubicSettings};
pub use new_reno::{NewReno, NewRenoSettings};
pub use quantum::{HOLD, send_quantum, whole_packet};
pub use table::TABLE;
pub use uncoupled::{SinglePath, Uncoupled};
