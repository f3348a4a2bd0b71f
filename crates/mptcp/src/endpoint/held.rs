//! SYNs for foreign addresses that wait for the application's decision.

use crate::connection::TimeWait;
use anabranch_wire::Packet;
use core::net::SocketAddr;
use foldhash::quality::FixedState;
use std::collections::HashMap;

/// Local and remote address with ports.
type Pair = (SocketAddr, SocketAddr);

/// A waiting SYN.
pub struct Held {
    pub syn: Packet,
    /// What is left of the previous connection between its addresses.
    pub last: Option<TimeWait>,
}

/// What happened to a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holding {
    /// It waits from now on.
    New,
    /// It was retransmitted, and waits already.
    Again,
    /// There is no space.
    Full,
}

/// Waiting SYNs by address pair. The map is never iterated.
pub struct HeldSyns {
    held: HashMap<Pair, Held, FixedState>,
    most: usize,
}

impl HeldSyns {
    /// An empty table of at most `most` SYNs.
    pub fn new(most: usize, hash: FixedState) -> Self {
        Self { held: HashMap::with_hasher(hash), most }
    }

    /// Whether SYNs are held at all.
    pub fn is_used(&self) -> bool {
        self.most > 0
    }

    /// Holds a SYN, if there is space.
    pub fn hold(&mut self, pair: Pair, syn: &Packet, last: Option<TimeWait>, room: bool) -> Holding {
        if let Some(known) = self.held.get_mut(&pair) {
            if known.syn.segment.seq != syn.segment.seq {
                // The peer aborted and retries from the same port.
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

    /// Removes and returns the SYN between these addresses.
    pub fn release(&mut self, pair: Pair) -> Option<Held> {
        self.held.remove(&pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_syns_wait_as_may_and_one_that_waits_takes_no_second_place() {
        let pair = |port: u16| (SocketAddr::from(([10, 0, 0, 1], port)), SocketAddr::from(([10, 0, 0, 2], 80)));
        assert!(!HeldSyns::new(0, FixedState::default()).is_used());
        let mut syns = HeldSyns::new(2, FixedState::default());
        assert!(syns.is_used());
        let mut hold = |port, room| syns.hold(pair(port), &Packet::default(), None, room);
        assert_eq!(hold(1, false), Holding::Full, "others have taken the room");
        assert_eq!(hold(1, true), Holding::New);
        assert_eq!(hold(2, true), Holding::New);
        assert_eq!(hold(1, true), Holding::Again);
        assert_eq!(hold(3, true), Holding::Full);
        assert!(syns.release(pair(1)).is_some() && syns.release(pair(3)).is_none());
        assert_eq!(syns.hold(pair(3), &Packet::default(), None, true), Holding::New);
    }
}
