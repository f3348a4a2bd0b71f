//! A router at a node.

use anabranch_policy::time::Instant;
use anabranch_routing::Router;

pub(crate) struct Agent {
    pub(crate) router: Router,
    /// The earliest of its events in the queue.
    pub(crate) armed: Instant,
    /// Its interfaces are up.
    pub(crate) started: bool,
}
