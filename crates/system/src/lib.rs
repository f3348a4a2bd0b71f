//! Linux features that the standard library lacks: a clock with the engine's type, exact timers, descriptors in the
//! runtime, namespaces, signals, priorities. The only crate with unsafe code.

mod capabilities;
mod channel;
mod clock;
pub mod descriptor;
mod memory;
mod namespace;
mod needs;
mod packet_pipe;
mod priority;
pub mod sandbox;
mod signals;
mod socket_errors;
mod socket_option;
mod timer;
mod unmapped;
mod write_joined;

pub use capabilities::{Capability, keep_only};
pub use channel::Channel;
pub use clock::Clock;
pub use descriptor::{is_out_of_descriptors, open_at_once, poll_readable, watch};
pub use memory::memory;
pub use namespace::{Namespace, command_in, namespace_cookie};
pub use needs::{Need, missing};
pub use packet_pipe::{enlarge, packet_pipe};
pub use priority::{Priority, raise as raise_priority};
pub use signals::{Signals, Told, end_by, leave_signals_to_others, send_signal};
pub use socket_errors::{SocketError, is_too_large, keep_socket_errors, take_socket_error};
pub use socket_option::{socket_option, steer_by_word};
pub use timer::Timer;
pub use unmapped::unmapped;
pub use write_joined::write_joined;
