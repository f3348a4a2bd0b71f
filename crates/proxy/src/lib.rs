//! The proxy and its server: programs without multipath TCP connect here, and their connections use several paths.

mod allow;
mod ask;
mod changing;
mod client;
mod control;
mod counters;
mod credentials;
mod failure;
mod far;
pub mod inbound;
mod key;
mod keys;
pub mod noise;
mod priorities;
mod private_file;
mod relay;
mod resolve;
mod server;
mod service;
mod target;

pub use allow::{AllowList, Rule, RuleError};
pub use ask::{Answer, ask};
pub use client::{BindError, Choose, Entrance, Entrances, Leads, Proxy, ProxyConfig, ProxyTerms, Via};
pub use control::Control;
pub use counters::{Outcome, ProxyCounters};
pub use credentials::{Credentials, CredentialsError};
pub use failure::Failure;
pub use key::{Key, KeyError};
pub use keys::{Keys, KeysError};
pub use priorities::{Priorities, PriorityRule, PriorityRuleError};
pub use private_file::PrivateFileError;
pub use server::{Destination, Server, ServerConfig, ServerTerms};
pub use service::{Journal, Limits};
pub use target::{Host, Target, TargetError};
