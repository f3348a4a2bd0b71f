//! SYNs for any address, which wait until the application knows what is to become of their connections.

use super::error::OperationError;
use super::state::Endpoint;
use crate::config::ConnectionConfig;
use crate::connection::TimeWait;
use crate::event::Event;
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::time::Instant;
use anabranch_wire::Packet;
use core::net::SocketAddr;
use foldhash::quality::FixedState;
use std::collections::HashMap;
use std::sync::Arc;

/// A local and a remote address with ports.
type Pair = (SocketAddr, SocketAddr);

/// One that waits, and what is left of the connection that had its addresses before.
struct Held {
    syn: Packet,
    last: Option<TimeWait>,
}

/// SYNs that wait, by address pairs. The map is never walked.
pub(super) struct HeldSyns {
    held: HashMap<Pair, Held, FixedState>,
    most: usize,
}

impl HeldSyns {
    /// None yet, and never more than `most`.
    pub(super) fn new(most: usize, hash: FixedState) -> Self {
        Self { held: HashMap::with_hasher(hash), most }
    }

    /// Whether any are held at all.
    pub(super) fn any(&self) -> bool {
        self.most > 0
    }
}

impl Endpoint {
    /// A SYN for an address that is nobody's: the application is asked, once.
    pub(super) fn hold(&mut self, local: SocketAddr, remote: SocketAddr, syn: &Packet, last: Option<TimeWait>) {
        let pair = (local, remote);
        if let Some(known) = self.held.held.get_mut(&pair) {
            self.counters.repeated_syns += 1;
            if known.syn.segment.seq != syn.segment.seq {
                // The program gave up and tries again from the same port.
                known.syn = syn.clone();
            }
            return;
        }
        // Without a word: it comes again, and there may be room then.
        if self.held.held.len() >= self.held.most || self.events.len() >= self.config.max_events {
            self.counters.refused_by_limit += 1;
            return;
        }
        self.held.held.insert(pair, Held { syn: syn.clone(), last });
        self.push_event(Event::Asked { local, remote });
    }

    /// Lets the connection of a SYN that waits begin, as if somebody listened at its destination with `config`.
    /// [`Event::Accepted`] follows when the handshake is over.
    ///
    /// # Errors
    /// [`OperationError::NoPeer`] if no such SYN waits, [`OperationError::LimitReached`] with too many connections; then it does not
    /// wait any more.
    pub fn accept_held(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        config: ConnectionConfig,
    ) -> Result<ConnectionId, OperationError> {
        let Held { syn, last } = self.held.held.remove(&(local, remote)).ok_or(OperationError::NoPeer)?;
        // No address of ours: nothing else begins or ends there.
        self.admit(now, Arc::new(config), AddressId(0), (local, remote), &syn, last).ok_or(OperationError::LimitReached)
    }

    /// Answers a SYN that waits with a reset, as where nobody listens.
    pub fn refuse_held(&mut self, local: SocketAddr, remote: SocketAddr) {
        if let Some(held) = self.held.held.remove(&(local, remote)) {
            self.refuse(local, remote, &held.syn.segment, None);
        }
    }

    /// Forgets a SYN that waits without an answer, and gives it back.
    pub fn drop_held(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<Packet> {
        self.held.held.remove(&(local, remote)).map(|held| held.syn)
    }
}
