//! A sans-IO TCP (RFC 9293) and the multipath TCP on top of it (RFC 8684).
//!
//! An [`Endpoint`] is a host: its addresses, listeners and connections. Its inputs are methods `handle_*` (a segment, a
//! local event, a timeout); its outputs are `poll_*` (transmit, event, timeout), drained in that order after every
//! input. Time is an argument. The output depends only on the seed and the inputs.
//!
//! Plain TCP is the same code without MPTCP options: a connection with one subflow and an infinite mapping.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic))]

mod buffer_memory;
pub mod config;
mod connection;
mod endpoint;
pub mod event;
mod info;
pub mod keys;
mod rare_queue;
mod receive_buffer;
mod record;
mod send_buffer;
mod sorted_ring;
mod stamp_clock;
pub mod stats;
mod subflow;
mod timer_table;

pub use buffer_memory::BufferMemory;
pub use config::{
    BufferSize, ConnectionConfig, EcnMode, EndpointConfig, Factory, InitialPath, Origin, Policies, Ports, RtoRule,
    Share, TcpConfig,
};
pub use connection::{JoinedSegments, Protocol};
pub use endpoint::{Endpoint, OperationError};
pub use event::{CloseCause, Event, FallbackCause, TraceRecord};
pub use info::{BytesInfo, ConnectionInfo, LastInfo, OptionsInfo, PriorityInfo, RoundTripInfo, SubflowInfo};
pub use receive_buffer::Dropped;
pub use record::{Framing, MessageOptions, Record};
pub use subflow::{Identity, State as TcpState};
