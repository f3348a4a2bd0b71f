//! Addresses of the clients of a tunnel: the last source address of each, in bounded memory.

use anabranch_wire::encapsulation::Place;
use core::net::{IpAddr, SocketAddr};
use foldhash::quality::RandomState;
use std::collections::HashMap;

/// A client's address, and our address that it uses: a NAT lets only answers from that pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Whereabouts {
    pub client: SocketAddr,
    pub ours: Option<IpAddr>,
}

/// Limit of entries of one generation.
const GENERATION: usize = 32_768;

/// Two generations of entries. When the young one is full, it replaces the old one, which is dropped; an entry in use
/// becomes young again. So a flood of unknown clients costs a silent client its entry at worst, and its next segment
/// restores it.
#[derive(Default)]
pub(super) struct Peers {
    young: HashMap<Place, Whereabouts, RandomState>,
    old: HashMap<Place, Whereabouts, RandomState>,
}

impl Peers {
    /// A segment arrived from there.
    pub(super) fn learn(&mut self, place: Place, address: Whereabouts) {
        if let Some(known) = self.young.get_mut(&place) {
            *known = address;
            return;
        }
        if self.young.len() >= GENERATION {
            self.old = core::mem::take(&mut self.young);
        }
        self.young.insert(place, address);
    }

    /// The address that its segments come from, while it is known.
    pub(super) fn source(&self, place: Place) -> Option<SocketAddr> {
        self.young.get(&place).or_else(|| self.old.get(&place)).map(|known| known.client)
    }

    /// The address to send to.
    pub(super) fn whereabouts(&mut self, place: Place) -> Option<Whereabouts> {
        if let Some(address) = self.young.get(&place) {
            return Some(*address);
        }
        let address = self.old.remove(&place)?;
        self.learn(place, address);
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(session: u64) -> Place {
        Place { session, path: 1 }
    }

    fn address(port: u16) -> Whereabouts {
        Whereabouts { client: SocketAddr::from(([192, 0, 2, 1], port)), ours: None }
    }

    #[test]
    fn the_last_address_counts() {
        let mut peers = Peers::default();
        peers.learn(place(1), address(1));
        peers.learn(place(1), address(2));
        assert_eq!(peers.whereabouts(place(1)), Some(address(2)));
        assert_eq!(peers.source(place(1)), Some(address(2).client));
        assert_eq!(peers.whereabouts(place(2)), None);
        assert_eq!(peers.source(place(2)), None);
    }

    #[test]
    fn a_flood_of_strangers_is_forgotten_before_those_we_speak_to() {
        let mut peers = Peers::default();
        peers.learn(place(u64::MAX), address(1));
        peers.learn(place(u64::MAX - 1), address(2));
        for session in 0..10 * GENERATION as u64 {
            peers.learn(place(session), address(3));
            if session % 1_000 == 0 {
                assert_eq!(peers.whereabouts(place(u64::MAX)), Some(address(1)));
            }
        }
        assert_eq!(peers.whereabouts(place(u64::MAX - 1)), None);
        assert!(peers.young.len() + peers.old.len() <= 2 * GENERATION);
    }
}
