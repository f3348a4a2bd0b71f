//! TCP as its RFCs describe it: one endpoint without MPTCP, spoken to segment by segment.
//!
//! See `transcript` for the notation. `docs/rfc9293.md` says which requirement is shown by which test.

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
mod user_timeout;
mod windows;
