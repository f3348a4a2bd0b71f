//! The commands.

mod check_config;
#[cfg(feature = "lab")]
mod compare;
#[cfg(feature = "lab")]
mod data;
#[cfg(feature = "lab")]
mod emulate;
mod hang_up;
#[cfg(feature = "lab")]
mod heading;
mod key;
mod list;
#[cfg(feature = "manual")]
mod manual;
#[cfg(feature = "lab")]
mod options;
mod proxy;
#[cfg(feature = "lab")]
mod reproduce;
#[cfg(feature = "lab")]
mod results;
#[cfg(feature = "lab")]
mod run;
mod run_inside;
mod run_program;
mod serve;
mod server_watch;
mod status;
#[cfg(feature = "screen")]
mod top;
mod up;

pub use check_config::check_config;
#[cfg(feature = "lab")]
pub use compare::compare;
#[cfg(feature = "lab")]
pub use data::{DataOptions, merge_rows};
#[cfg(feature = "lab")]
pub use emulate::{EXAMPLES as EMULATE_EXAMPLES, EmulateOptions, emulate};
pub use hang_up::read_again_of;
pub use key::key;
pub use list::list;
#[cfg(feature = "manual")]
pub use manual::manual;
#[cfg(feature = "lab")]
pub use options::Options;
pub use proxy::{ProxyOptions, proxy};
#[cfg(feature = "lab")]
pub use reproduce::{Ending, ReproduceOptions, reproduce};
#[cfg(feature = "lab")]
pub use run::run;
pub use run_inside::run_inside;
pub use run_program::{RUN_PROGRAM_NOTES, RunProgramOptions, run_program};
pub use serve::{ServeOptions, serve};
pub use status::{StatusQuery, status};
#[cfg(feature = "screen")]
pub use top::top;
pub use up::{UpOptions, up};
