//! The commands.

mod check_config;
#[cfg(feature = "lab")]
mod compare;
#[cfg(feature = "lab")]
mod data;
#[cfg(feature = "lab")]
mod emulate;
#[cfg(feature = "uplinks")]
mod hang_up;
#[cfg(feature = "lab")]
mod heading;
#[cfg(feature = "uplinks")]
mod key;
mod list;
#[cfg(feature = "manual")]
mod manual;
#[cfg(feature = "lab")]
mod options;
#[cfg(feature = "uplinks")]
mod proxy;
#[cfg(feature = "lab")]
mod reproduce;
#[cfg(feature = "lab")]
mod results;
#[cfg(feature = "lab")]
mod run;
#[cfg(feature = "uplinks")]
mod run_inside;
#[cfg(feature = "uplinks")]
mod run_program;
#[cfg(feature = "uplinks")]
mod serve;
#[cfg(feature = "uplinks")]
mod server_move;
#[cfg(feature = "uplinks")]
mod server_watch;
#[cfg(feature = "uplinks")]
mod status;
#[cfg(feature = "screen")]
mod top;
#[cfg(feature = "uplinks")]
mod up;

pub use check_config::check_config;
#[cfg(feature = "lab")]
pub use compare::compare;
#[cfg(feature = "lab")]
pub use data::{DataOptions, merge_rows};
#[cfg(feature = "lab")]
pub use emulate::{EXAMPLES as EMULATE_EXAMPLES, EmulateOptions, emulate};
#[cfg(feature = "uplinks")]
pub use hang_up::{Taken, read_again};
#[cfg(feature = "uplinks")]
pub use key::key;
pub use list::list;
#[cfg(feature = "manual")]
pub use manual::manual;
#[cfg(feature = "lab")]
pub use options::Options;
#[cfg(feature = "uplinks")]
pub use proxy::{ProxyOptions, proxy};
#[cfg(feature = "lab")]
pub use reproduce::{Ending, ReproduceOptions, reproduce};
#[cfg(feature = "lab")]
pub use run::run;
#[cfg(feature = "uplinks")]
pub use run_inside::run_inside;
#[cfg(feature = "uplinks")]
pub use run_program::{RUN_PROGRAM_NOTES, RunProgramOptions, run_program};
#[cfg(feature = "uplinks")]
pub use serve::{ServeOptions, serve};
#[cfg(feature = "uplinks")]
pub use status::{StatusQuery, status};
#[cfg(feature = "screen")]
pub use top::top;
#[cfg(feature = "uplinks")]
pub use up::{UpOptions, up};
