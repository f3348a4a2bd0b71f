//! What a command that runs tells of itself: on a socket that `anabranch status` and `top` find, and over HTTP where it is
//! asked for.

mod http;
mod metrics;
mod model;
mod place;
mod server;

pub use model::{Flow, Source, Status, Uplink};
pub use place::{instances, read};
pub use server::{Listeners, Serving, StatusOptions};
