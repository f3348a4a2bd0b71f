//! Every decision of multipath TCP that can be swapped, and the words it is made in.
//!
//! A policy gets read-only views and returns decisions; it never sees the engine, a socket or a clock.
//! So it can be tested in five lines, and the same object runs in the lab, in the user-space stack and
//! in the daemon that steers a kernel.
//!
//! | family | decides | table |
//! |---|---|---|
//! | [`CongestionControl`] | how much may be in flight on each subflow | [`congestion::TABLE`] |
//! | [`Scheduler`] | which subflow carries the next chunk of data | [`scheduler::TABLE`] |
//! | [`PathManager`] | which subflows exist and which are active | [`path_manager::TABLE`] |
//! | [`LinkForecaster`] | how likely a link is up at a horizon | [`forecast::TABLE`] |
//! | [`Reliability`] | what may be given up, and when | [`reliability::TABLE`] |
//! | [`DatagramPolicy`] | which paths carry a datagram | [`datagram::TABLE`] |

#![warn(missing_docs)]

pub mod combination;
pub mod congestion;
pub mod datagram;
pub mod forecast;
pub mod forward_delay;
pub mod ids;
pub mod path_manager;
pub mod rate;
pub mod reliability;
pub mod scheduler;
pub mod setting;
pub mod settings;
pub mod table;
pub mod time;
pub mod view;

pub use combination::Combination;
pub use congestion::CongestionControl;
pub use datagram::DatagramPolicy;
pub use forecast::LinkForecaster;
pub use ids::{AddressId, ConnectionId, SubflowId, SubflowMap};
pub use path_manager::PathManager;
pub use rate::Rate;
pub use reliability::Reliability;
pub use scheduler::Scheduler;
pub use time::{Duration, Instant};
pub use view::{ConnectionView, SubflowState, SubflowView};
