//! What can be asked of a connection.

use super::Endpoint;
use crate::info::ConnectionInfo;
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;

impl Endpoint {
    /// All that is known of a connection and its subflows now; none of a connection that is gone.
    pub fn info(&self, now: Instant, id: ConnectionId) -> Option<ConnectionInfo> {
        self.connections.get(id).map(|connection| connection.info(now))
    }
}
