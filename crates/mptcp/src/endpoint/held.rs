//! SYNs for addresses that are nobody's, which wait until the application has said what is to become of their connections.

use crate::connection::TimeWait;
use anabranch_wire::Packet;
use core::net::SocketAddr;
use foldhash::quality::FixedState;
use std::collections::HashMap;

/// A local and a remote address with ports.
type Pair = (SocketAddr, SocketAddr);

/// One that waits.
pub struct Held {
    /// The packet.
    pub syn: Packet,
    /// What is left of the connection that had its addresses before.
    pub last: Option<TimeWait>,
}

/// What becomes of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holding {
    /// It waits from now on.
    New,
    /// One from there waits already.
    Again,
    /// There is no room.
    Full,
}

/// SYNs that wait, by address pairs. The map is only looked up, never walked.
pub struct HeldSyns {
    held: HashMap<Pair, Held, FixedState>,
    most: usize,
}

impl HeldSyns {
    /// None yet, and never more than `most`.
    pub fn new(most: usize, hash: FixedState) -> Self {
        Self { held: HashMap::with_hasher(hash), most }
    }

    /// Whether any are held at all.
    pub fn is_used(&self) -> bool {
        self.most > 0
    }

    /// Has a SYN wait, if there is room for another.
    pub fn hold(&mut self, pair: Pair, syn: &Packet, last: Option<TimeWait>, room: bool) -> Holding {
        if let Some(known) = self.held.get_mut(&pair) {
            if known.syn.segment.seq != syn.segment.seq {
                // The program gave up and tries again from the same port.
                known.syn = syn.clone();
            }
            return Holding::Again;
        }
        if !room || self.held.len() >= self.most {
            return Holding::Full;
        }
        self.held.insert(pair, Held { syn: syn.clone(), last });
        Holding::New
    }

    /// The SYN between these addresses, which does not wait any more.
    pub fn release(&mut self, pair: Pair) -> Option<Held> {
        self.held.remove(&pair)
    }
}
