//! Status of a running command: on a socket for `anabranch status` and `top`, and over HTTP if requested.

mod http;
mod metrics;
mod model;
mod place;
mod server;
mod steered;
mod uplink;

pub use model::{Flow, NamedClient, Source, Status};
pub use place::{instances, read};
pub use server::{Listeners, Serving, StatusOptions};
pub use steered::{Decision, Snapshot, Steered, SteeredHost};
pub use uplink::{Measured, Uplink};
