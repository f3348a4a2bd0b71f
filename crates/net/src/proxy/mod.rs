//! What a user runs: programs that know nothing of multipath TCP connect here and go out over several paths.

mod credentials;
mod failure;
pub mod inbound;
mod key;
pub mod noise;
mod target;

pub use credentials::{Credentials, CredentialsError};
pub use failure::Failure;
pub use key::{Key, KeyError};
pub use target::{Host, Target, TargetError};
