//! The connections of an endpoint, found by address pair or token.

use crate::connection::Connection;
use crate::subflow::is_at;
use anabranch_policy::ids::ConnectionId;
use anabranch_wire::Packet;
use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};
use foldhash::quality::FixedState;
use std::collections::HashMap;

/// How many address pairs are known without the map; a power of two.
const RECENT: usize = 64;

/// Local and remote address with ports.
type Pair = (SocketAddr, SocketAddr);

/// Connections by number, address pairs and tokens.
///
/// The maps are never iterated, so their order has no effect. Their hash is keyed with the endpoint's seed, so that an
/// attacker cannot choose ports that collide.
///
/// Of an address pair only the hash is stored, in a quarter of the memory; the subflow has the pair. Two pairs with the
/// same hash (probability 2^-64) count as one: packets of the second reach a connection that ignores them, and we
/// choose another port.
pub struct Connections {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    opened: u32,
    routes: HashMap<u64, ConnectionId, FixedState>,
    tokens: HashMap<u32, ConnectionId, FixedState>,
    /// Pairs looked up lately, each in its [`place`]: packets come in bursts, and those of several paths in turn.
    recent: Box<[Option<(Pair, ConnectionId)>; RECENT]>,
}

impl Connections {
    pub fn new(hash: FixedState) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            opened: 0,
            routes: HashMap::with_hasher(hash.clone()),
            tokens: HashMap::with_hasher(hash),
            recent: Box::new([None; RECENT]),
        }
    }

    /// The id of the next connection: a slot, and the number of connections before it.
    pub fn next_id(&self) -> ConnectionId {
        let slot = self.free.last().copied().unwrap_or(self.slots.len() as u32);
        ConnectionId(u64::from(self.opened) << 32 | u64::from(slot))
    }

    /// Adds the connection that was created with [`Self::next_id`].
    pub fn insert(&mut self, connection: Connection) -> ConnectionId {
        let id = connection.id();
        self.opened = self.opened.wrapping_add(1);
        if let Some(token) = connection.token() {
            self.tokens.insert(token, id);
        }
        let slot = self.free.pop().map_or(self.slots.len(), |slot| slot as usize);
        if slot >= self.slots.len() {
            self.slots.push(None);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(Box::new(connection));
        }
        id
    }

    pub fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(slot(id))?.as_deref().filter(|connection| connection.id() == id)
    }

    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.get_mut(slot(id))?.as_deref_mut().filter(|connection| connection.id() == id)
    }

    /// Removes a connection. Its routes were removed with its subflows.
    pub fn remove(&mut self, id: ConnectionId) {
        let Some(place) = self.slots.get_mut(slot(id)) else { return };
        let Some(connection) = place.take_if(|connection| connection.id() == id) else { return };
        self.free.push(slot(id) as u32);
        if let Some(token) = connection.token() {
            self.tokens.remove(&token);
        }
    }

    /// All ids, in order of slot.
    pub fn ids(&self) -> impl Iterator<Item = ConnectionId> {
        self.slots.iter().flatten().map(|connection| connection.id())
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Routes segments between these addresses to this connection.
    pub fn add_route(&mut self, local: SocketAddr, remote: SocketAddr, id: ConnectionId) {
        self.routes.insert(self.hash_of((local, remote)), id);
    }

    pub fn remove_route(&mut self, local: SocketAddr, remote: SocketAddr) {
        self.routes.remove(&self.hash_of((local, remote)));
        let place = place((&local.ip(), local.port()), (&remote.ip(), remote.port()));
        self.recent.get_mut(place).into_iter().for_each(|recent| *recent = None);
    }

    pub fn has_route(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.routes.contains_key(&self.hash_of((local, remote)))
    }

    /// The connection of a packet whose address pair was looked up lately.
    #[inline]
    pub fn recent_route(&self, packet: &Packet) -> Option<ConnectionId> {
        let (ip, segment) = (&packet.ip, &packet.segment);
        let same = |((local, remote), _): &&(Pair, ConnectionId)| {
            is_at(remote, &ip.source, segment.source_port) && is_at(local, &ip.destination, segment.destination_port)
        };
        let place = place((&ip.destination, segment.destination_port), (&ip.source, segment.source_port));
        self.recent.get(place)?.as_ref().filter(same).map(|(_, id)| *id)
    }

    /// The connection of an address pair.
    pub fn route(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<ConnectionId> {
        let pair = (local, remote);
        let id = *self.routes.get(&self.hash_of(pair))?;
        let place = place((&local.ip(), local.port()), (&remote.ip(), remote.port()));
        self.recent.get_mut(place).into_iter().for_each(|recent| *recent = Some((pair, id)));
        Some(id)
    }

    fn hash_of(&self, pair: Pair) -> u64 {
        self.routes.hasher().hash_one(pair)
    }

    pub fn has_token(&self, token: u32) -> bool {
        self.tokens.contains_key(&token)
    }

    pub fn by_token(&self, token: u32) -> Option<ConnectionId> {
        self.tokens.get(&token).copied()
    }
}

/// Where a pair is among those looked up lately: whoever makes pairs that share a place only has them looked up again.
#[inline]
fn place(local: (&IpAddr, u16), remote: (&IpAddr, u16)) -> usize {
    let bits = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address.to_bits() as u32,
    };
    let ports = u32::from(local.1) << 16 | u32::from(remote.1);
    let mixed = bits(local.0) ^ bits(remote.0).rotate_left(16) ^ ports;
    // The upper bits of a product with 2^32 divided by the golden ratio depend on all.
    (mixed.wrapping_mul(0x9e37_79b1) >> (u32::BITS - RECENT.ilog2())) as usize
}

/// A hash keyed with a seed.
pub fn keyed_hash(seed: [u8; 32]) -> FixedState {
    let key = seed.iter().fold(0_u64, |key, byte| key.rotate_left(8) ^ u64::from(*byte));
    FixedState::with_seed(key)
}

fn slot(id: ConnectionId) -> usize {
    (id.0 & 0xffff_ffff) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_differ_in_one_part_have_other_places_among_the_recent() {
        let of = |number: u32| {
            let v4 = |part: u32| IpAddr::from([10, (part >> 8) as u8, part as u8, 1]);
            let v6 = |part: u32| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, (part >> 16) as u16, part as u16]);
            let port = 20_000 + number as u16;
            [
                place((&v4(0), port), (&v4(1), 443)),
                place((&v4(0), 443), (&v4(1), port)),
                place((&v4(number), 443), (&v4(1), 443)),
                place((&v4(0), 443), (&v4(number), 443)),
                place((&v6(number), 443), (&v6(1), 443)),
                place((&v6(0), 443), (&v6(number), 443)),
            ]
        };
        let all: Vec<_> = (0..256).map(of).collect();
        for part in 0..6 {
            let places: std::collections::BTreeSet<usize> = all.iter().map(|places| places[part]).collect();
            assert!(places.last().is_some_and(|last| *last < RECENT));
            assert!(places.len() > RECENT / 2, "{part}: {places:?}");
        }
    }

    #[test]
    fn each_byte_of_the_seed_changes_the_hash() {
        use core::hash::BuildHasher;
        let hash = |seed: [u8; 32]| keyed_hash(seed).hash_one(7_u64);
        let changed = |at: usize| {
            let mut seed = [0x5a; 32];
            seed[at] ^= 0x11;
            hash(seed)
        };
        let hashes: std::collections::BTreeSet<u64> = (0..8).map(changed).chain([hash([0x5a; 32])]).collect();
        assert_eq!(hashes.len(), 9);
    }

    #[test]
    fn an_address_pair_that_was_looked_up_is_found_without_the_map_until_its_route_is_removed() {
        let mut connections = Connections::new(keyed_hash([3; 32]));
        let (local, remote) = (([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 5_000).into());
        let mut packet = Packet::default();
        (packet.ip.destination, packet.ip.source) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        (packet.segment.destination_port, packet.segment.source_port) = (80, 5_000);
        connections.add_route(local, remote, ConnectionId(9));
        assert_eq!(connections.recent_route(&packet), None, "nobody has looked it up");
        assert_eq!(connections.route(local, remote), Some(ConnectionId(9)));
        assert_eq!(connections.recent_route(&packet), Some(ConnectionId(9)));
        let other = |change: fn(&mut Packet)| {
            let mut other = packet.clone();
            change(&mut other);
            connections.recent_route(&other)
        };
        assert_eq!(other(|packet| packet.segment.source_port = 5_001), None);
        assert_eq!(other(|packet| packet.segment.destination_port = 81), None);
        assert_eq!(other(|packet| packet.ip.source = [10, 0, 0, 3].into()), None);
        assert_eq!(other(|packet| packet.ip.destination = [10, 0, 0, 3].into()), None);
        connections.remove_route(local, remote);
        assert_eq!((connections.recent_route(&packet), connections.route(local, remote)), (None, None));
        assert!(!connections.has_route(local, remote));
    }
}
