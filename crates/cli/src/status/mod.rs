//! Status of a running command: on a socket for `anabranch status` and `top`, and over HTTP if requested.

mod http;
mod metrics;
mod model;
mod place;
mod server;

pub use model::{Flow, Source, Status, Uplink};
pub use place::{instances, read};
pub use server::{Listeners, Serving, StatusOptions};
