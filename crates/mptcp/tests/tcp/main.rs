//! TCP as its RFCs describe it: one endpoint without MPTCP, tested segment by segment.
//!
//! See `transcript` for the notation. `docs/rfc9293.md` maps requirements to tests.

mod acknowledging;
mod closing;
mod congestion;
mod ecn;
mod limits;
mod loss;
mod opening;
mod options;
mod path_mtu;
mod resets;
mod status;
mod table;
mod time_wait;
mod transcript;
mod unreachable;
mod user_timeout;
mod windows;
