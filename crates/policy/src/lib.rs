//! Every replaceable decision of multipath TCP, and the types to express it.
//!
//! A policy gets read-only views and returns decisions; it has no access to the engine, a socket or a clock. So a test
//! needs few lines, and the same object runs in the lab and in the user-space stack.
//!
//! | family | decides | table |
//! |---|---|---|
//! | [`CongestionControl`] | how much may be in flight on each subflow | [`congestion::TABLE`] |
//! | [`Scheduler`] | which subflow carries the next chunk of data | [`scheduler::TABLE`] |
//! | [`PathManager`] | which subflows exist and which are active | [`path_manager::TABLE`] |
//! | [`LinkForecaster`] | how likely a link is up at a horizon | [`forecast::TABLE`] |
//! | [`Reliability`] | which data may be abandoned, and when | [`reliability::TABLE`] |
//! | [`DatagramPolicy`] | which paths carry a datagram | [`datagram::TABLE`] |

pub mod combination;
pub mod congestion;
pub mod datagram;
pub mod forecast;
pub mod forward_delay;
pub mod ids;
pub mod observation;
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
