//! Linux's side of [`anabranch_steering`]: the counters of MPTCP connections (sock_diag), what happens to them (family
//! `mptcp_pm` of generic netlink, rtnetlink), and commands to the kernel's path managers.

mod addresses;
mod attributes;
mod classes;
mod daemon;
mod diag;
mod events;
mod generic;
mod hands;
mod kernel;
mod netlink;
mod path_manager;
mod tcp_info;
#[cfg(test)]
mod tests;

pub use addresses::{Addresses, interface_name, user_id};
pub use classes::{Class, Classes, Condition, Group, Rule};
pub use daemon::{Daemon, Notice};
pub use diag::Sampler;
pub use events::{Events, open_path_manager, read_event};
pub use hands::Hands;
pub use kernel::{Counters, Loss, Mptcp, PathManagerChoice, PathManagerSetting};
pub use netlink::RequestError;
pub use path_manager::{Endpoint, KernelPathManager, Limits, flags};
