//! The commands.

mod compare;
mod emulate;
mod key;
mod list;
mod options;
mod proxy;
mod reproduce;
mod results;
mod run;
mod serve;

pub use compare::compare;
pub use emulate::{EXAMPLES as EMULATE_EXAMPLES, EmulateOptions, emulate};
pub use key::key;
pub use list::list;
pub use options::Options;
pub use proxy::{ProxyOptions, proxy};
pub use reproduce::{Ending, ReproduceOptions, reproduce};
pub use results::Page;
pub use run::run;
pub use serve::{ServeOptions, serve};
