//! The endpoint's connections, and which of them an address pair or a token belongs to.

use crate::connection::Connection;
use crate::subflow::is_at;
use anabranch_policy::ids::ConnectionId;
use anabranch_wire::Packet;
use core::hash::BuildHasher;
use core::net::SocketAddr;
use foldhash::quality::FixedState;
use std::collections::HashMap;

/// A local and a remote address with ports.
type Pair = (SocketAddr, SocketAddr);

/// Connections by number, address pairs and tokens.
///
/// The maps are only looked up, never walked, so their order cannot show. Their hash is keyed from the endpoint's seed: a
/// stranger cannot choose ports that collide.
///
/// Of an address pair only the hash stands here, a quarter of its length: the subflow that has the pair knows it. Of two pairs with
/// the same hash, one in 2^64, the second counts as taken: a stranger's packets come to a connection that does not know them,
/// and we choose another port.
pub struct Connections {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    opened: u32,
    routes: HashMap<u64, ConnectionId, FixedState>,
    tokens: HashMap<u32, ConnectionId, FixedState>,
    /// The two pairs looked up last: packets come in trains, and those of two paths in turn.
    recent: [Option<(Pair, ConnectionId)>; 2],
}

impl Connections {
    /// None yet.
    pub fn new(hash: FixedState) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            opened: 0,
            routes: HashMap::with_hasher(hash.clone()),
            tokens: HashMap::with_hasher(hash),
            recent: [None; 2],
        }
    }

    /// The id that the next connection will have: a slot, and how many came before.
    pub fn next_id(&self) -> ConnectionId {
        let slot = self.free.last().copied().unwrap_or(self.slots.len() as u32);
        ConnectionId(u64::from(self.opened) << 32 | u64::from(slot))
    }

    /// Adds the connection that was made with [`Self::next_id`].
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

    /// A connection.
    pub fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(slot(id))?.as_deref().filter(|connection| connection.id() == id)
    }

    /// A connection, to change.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.get_mut(slot(id))?.as_deref_mut().filter(|connection| connection.id() == id)
    }

    /// Forgets a connection. Its routes were removed with its subflows.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Segments between these addresses belong to this connection.
    pub fn add_route(&mut self, local: SocketAddr, remote: SocketAddr, id: ConnectionId) {
        self.routes.insert(self.hash_of((local, remote)), id);
    }

    /// They do not any more.
    pub fn remove_route(&mut self, local: SocketAddr, remote: SocketAddr) {
        self.routes.remove(&self.hash_of((local, remote)));
        self.recent = [None; 2];
    }

    /// Whether somebody has this pair.
    pub fn has_route(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.routes.contains_key(&self.hash_of((local, remote)))
    }

    /// Whose a packet is, if it comes between the same addresses as one shortly before.
    #[inline]
    pub fn recent_route(&self, packet: &Packet) -> Option<ConnectionId> {
        let (ip, segment) = (&packet.ip, &packet.segment);
        let same = |((local, remote), _): &&(Pair, ConnectionId)| {
            is_at(remote, &ip.source, segment.source_port) && is_at(local, &ip.destination, segment.destination_port)
        };
        let [last, other] = &self.recent;
        last.as_ref().filter(same).or_else(|| other.as_ref().filter(same)).map(|(_, id)| *id)
    }

    /// Whose segments between these addresses are.
    pub fn route(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<ConnectionId> {
        let pair = (local, remote);
        let id = *self.routes.get(&self.hash_of(pair))?;
        let [last, _] = self.recent;
        self.recent = [Some((pair, id)), last];
        Some(id)
    }

    fn hash_of(&self, pair: Pair) -> u64 {
        self.routes.hasher().hash_one(pair)
    }

    /// Whether a token is taken.
    pub fn has_token(&self, token: u32) -> bool {
        self.tokens.contains_key(&token)
    }

    /// Whose token it is.
    pub fn by_token(&self, token: u32) -> Option<ConnectionId> {
        self.tokens.get(&token).copied()
    }
}

/// A hash that is keyed from a seed.
pub fn keyed_hash(seed: [u8; 32]) -> FixedState {
    let key = seed.iter().fold(0_u64, |key, byte| key.rotate_left(8) ^ u64::from(*byte));
    FixedState::with_seed(key)
}

fn slot(id: ConnectionId) -> usize {
    (id.0 & 0xffff_ffff) as usize
}
