//! A server: authenticates clients, keeps a session for each, and tracks the current address of each of their paths.

use super::allowance::{Allowance, network};
use super::epoch::Epoch;
use super::noise::{Response, respond};
use super::outbox::Outbox;
use super::peer::{Heard, Out, Peer, What};
use crate::config::PolicyFactory;
use crate::datagram::{Datagram, Unreachable};
use crate::format::{Handshake, Header, Message, Outer, answer, read_outer};
use crate::share::{ClientKey, Crowd, Owner, gives_way};
use anabranch_policy::time::{Duration, Instant};
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Most unconfirmed handshakes; then the oldest of the key and source that have most is dropped.
const MOST_PENDING: usize = 256;
/// Lifetime of an unconfirmed handshake.
const PENDING: Duration = Duration::from_secs(30);
/// A client silent for this time is removed. Clients probe at least every 5 s.
const CLIENT_IDLE: Duration = Duration::from_secs(180);
/// Where there are as many clients as may be, one silent for this time makes room: it has missed two probes.
const CLIENT_SILENT: Duration = Duration::from_secs(15);
/// A path is unusable if its last arrival is this much older than another's: a client probes all of its paths at once.
const BEHIND: Duration = Duration::from_secs(1);
/// Interval between searches for silent clients.
const LOOK: Duration = Duration::from_secs(1);
/// Least time between two checks of timers.
const TICK: Duration = Duration::from_millis(1);

/// The address of a client's path, and our address to which it sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whereabouts {
    /// The client's address as seen here, after any NAT.
    pub client: SocketAddr,
    /// Our address, if the kernel reported it.
    pub ours: Option<IpAddr>,
}

/// Counters of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerCounters {
    /// Authenticated clients.
    pub clients: u64,
    /// Their handshakes; each makes new keys.
    pub handshakes: u64,
    /// First messages that did not prove the key.
    pub unproven: u64,
    /// First messages dropped above the rate limit.
    pub not_looked_at: u64,
    /// Clients refused at the limit.
    pub refused: u64,
    /// Datagrams with another format, or that failed authentication, were replayed, or are of an expired session.
    pub rejected: u64,
    /// Changes of a path's address.
    pub moved: u64,
    /// Datagrams received for targets.
    pub received: u64,
    /// Datagrams sent to programs.
    pub sent: u64,
}

impl fmt::Display for ServerCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, handshakes, unproven, not_looked_at, refused, rejected, moved, received, sent } = self;
        write!(
            f,
            "{clients} datagram clients, {handshakes} handshakes, {received} datagrams from them, {sent} to them; {unproven} did not \
             prove the key, {not_looked_at} too many at a time, {refused} clients refused, {rejected} datagrams rejected, {moved} \
             changes of address"
        )
    }
}

/// An answered handshake that the client has not confirmed.
struct Pending {
    hello: Handshake,
    answer: Handshake,
    client: u64,
    /// Whose key it has, and where it came from.
    holder: (Owner, IpAddr),
    known_as: u64,
    /// None once the client has used it.
    epoch: Option<Epoch>,
    since: Instant,
}

/// The address of a path, and when something last arrived from it.
#[derive(Clone, Copy, Debug)]
struct Place {
    whereabouts: Whereabouts,
    heard: Instant,
}

struct Known {
    known_as: u64,
    owner: Owner,
    peer: Peer,
    current: Epoch,
    previous: Option<Epoch>,
    places: Vec<Option<Place>>,
    /// The paths over which the client reports that the server answers.
    answered: u32,
    heard: Instant,
}

/// A program's datagram with its client.
pub type Fresh = (u64, Datagram);

/// The sessions of all clients.
pub struct ServerSessions {
    keys: Vec<ClientKey>,
    policy: PolicyFactory,
    most: usize,
    draw: Box<dyn FnMut() -> u64 + Send>,
    clients: BTreeMap<u64, Known>,
    /// Maps sessions to clients.
    sessions: HashMap<u64, u64>,
    pending: VecDeque<Pending>,
    allowance: Allowance,
    outbox: Outbox<Whereabouts>,
    arrived: VecDeque<Fresh>,
    come: Vec<(u64, Owner)>,
    gone: Vec<u64>,
    /// Who gave way last.
    crowd: Option<Crowd>,
    tick: Instant,
    counters: ServerCounters,
}

/// Output for a client's paths.
struct Lanes<'a> {
    outbox: &'a mut Outbox<Whereabouts>,
    places: &'a [Option<Place>],
}

impl Out for Lanes<'_> {
    fn push(&mut self, path: u8, write: impl FnOnce(&mut Vec<u8>)) -> Option<usize> {
        let place = (*self.places.get(usize::from(path))?)?;
        self.outbox.push(place.whereabouts, write)
    }
}

impl ServerSessions {
    /// Creates the state without clients. `draw` returns random numbers.
    pub fn new(
        keys: Vec<ClientKey>,
        policy: PolicyFactory,
        most: usize,
        draw: impl FnMut() -> u64 + Send + 'static,
    ) -> Self {
        Self {
            keys,
            policy,
            most,
            draw: Box::new(draw),
            clients: BTreeMap::new(),
            sessions: HashMap::new(),
            pending: VecDeque::new(),
            allowance: Allowance::default(),
            outbox: Outbox::default(),
            arrived: VecDeque::new(),
            come: Vec::new(),
            gone: Vec::new(),
            crowd: None,
            tick: Instant::NEVER,
            counters: ServerCounters::default(),
        }
    }

    /// Replaces the keys. Sessions under removed keys end when their own keys expire.
    pub(crate) fn set_keys(&mut self, keys: Vec<ClientKey>) {
        self.keys = keys;
    }

    /// Handles a received datagram.
    pub fn handle_datagram(&mut self, now: Instant, from: Whereabouts, datagram: &mut [u8]) {
        match read_outer(datagram) {
            Some(Outer::Hello(hello)) => {
                let hello = *hello;
                self.handle_hello(now, from, &hello);
            }
            Some(Outer::Sealed(header)) => self.handle_sealed(now, from, &header, datagram),
            _ => self.counters.rejected += 1,
        }
    }

    fn handle_hello(&mut self, now: Instant, from: Whereabouts, hello: &Handshake) {
        // A repeated message, also over other paths, gets the same answer without new computation.
        if let Some(pending) = self.pending.iter().find(|pending| pending.hello == *hello) {
            self.outbox.push(from, |out| out.extend(answer(&pending.answer)));
            return;
        }
        if !self.allowance.takes(now, from.client.ip()) {
            self.counters.not_looked_at += 1;
            return;
        }
        let drawn = (self.draw)();
        let known_as = |client: u64| self.clients.get(&client).map_or(drawn, |known| known.known_as);
        let mut keys = self.keys.iter();
        let response =
            keys.find_map(|ClientKey { key, owner }| Some((respond(key, known_as, hello, now).ok()?, owner)));
        let Some((Response { client, answer: message, epoch, known_as }, owner)) = response else {
            self.counters.unproven += 1;
            return;
        };
        let holder = (owner.clone(), network(from.client.ip()));
        if self.pending.len() >= MOST_PENDING {
            self.drop_pending(&holder);
        }
        let pending =
            Pending { hello: *hello, answer: message, client, holder, known_as, epoch: Some(epoch), since: now };
        self.pending.push_back(pending);
        self.outbox.push(from, |out| out.extend(answer(&message)));
    }

    /// Drops an unconfirmed handshake for another: of those with the key and of the source that have most the oldest.
    fn drop_pending(&mut self, asking: &(Owner, IpAddr)) {
        let holders = self.pending.iter().map(|pending| (&pending.holder, 1));
        let most = gives_way(holders, &asking).map_or(asking, |(holder, _)| holder).clone();
        let oldest = self.pending.iter().position(|pending| pending.holder == most).unwrap_or(0);
        self.pending.remove(oldest);
    }

    fn handle_sealed(&mut self, now: Instant, from: Whereabouts, header: &Header, datagram: &mut [u8]) {
        let client = match self.sessions.get(&header.session) {
            Some(client) => Some(*client),
            None => self.confirm(now, header, datagram),
        };
        let known = client.and_then(|client| Some((client, self.clients.get_mut(&client)?)));
        let Some((client, known)) = known else {
            self.counters.rejected += 1;
            return;
        };
        let epochs = core::iter::once(&mut known.current).chain(&mut known.previous);
        let epoch = epochs.into_iter().find(|epoch| epoch.id() == header.session && !epoch.is_over(now));
        let Some(heard) = epoch.and_then(|epoch| known.peer.open(now, epoch, header, datagram)) else {
            self.counters.rejected += 1;
            return;
        };
        self.counters.moved += u64::from(known.note(now, header.path, from, &heard));
        self.handle_heard(now, client, header.path, heard);
    }

    /// Confirms a session by its first datagram, which proves that the handshake was not replayed.
    fn confirm(&mut self, now: Instant, header: &Header, datagram: &mut [u8]) -> Option<u64> {
        let of_it = |pending: &&mut Pending| pending.epoch.as_ref().is_some_and(|epoch| epoch.id() == header.session);
        let pending = self.pending.iter_mut().find(of_it)?;
        // Opened as a copy, since it is opened again with the session.
        pending.epoch.as_ref()?.try_open(header, &mut datagram.to_vec()).then_some(())?;
        let (client, known_as, owner) = (pending.client, pending.known_as, pending.holder.0.clone());
        let full = self.clients.len() >= self.most && !self.clients.contains_key(&client);
        if full && !self.make_room(now, &owner) {
            self.counters.refused += 1;
            return None;
        }
        let mut of_it =
            self.pending.iter_mut().filter_map(|pending| pending.epoch.take_if(|epoch| epoch.id() == header.session));
        let epoch = of_it.next()?;
        drop(of_it);
        self.sessions.insert(epoch.id(), client);
        self.counters.handshakes += 1;
        match self.clients.get_mut(&client) {
            Some(known) => {
                let previous = core::mem::replace(&mut known.current, epoch);
                if let Some(older) = known.previous.replace(previous) {
                    self.sessions.remove(&older.id());
                }
            }
            None => {
                self.counters.clients += 1;
                let peer = Peer::new((self.policy)());
                let places = Vec::new();
                self.come.push((client, owner.clone()));
                let (previous, answered) = (None, u32::MAX);
                let known = Known { known_as, owner, peer, current: epoch, previous, places, answered, heard: now };
                self.clients.insert(client, known);
            }
        }
        Some(client)
    }

    /// Removes a client for a new one with the key of `owner`: of those with the key that has most the one heard longest ago,
    /// or of all, if it is silent. Returns whether there was one.
    fn make_room(&mut self, now: Instant, owner: &Owner) -> bool {
        let holders = self.clients.values().map(|known| (known.owner.clone(), 1));
        let crowd = gives_way(holders, owner).map(|(owner, count)| Crowd { owner, count });
        let is_of = |known: &Known| crowd.as_ref().is_none_or(|crowd| crowd.owner == known.owner);
        let of_them = self.clients.iter().filter(|(_, known)| is_of(known));
        let Some((client, heard)) =
            of_them.map(|(client, known)| (*client, known.heard)).min_by_key(|(_, heard)| *heard)
        else {
            return false;
        };
        if crowd.is_none() && now.since(heard) < CLIENT_SILENT {
            return false;
        }
        self.crowd = crowd.or(self.crowd.take());
        self.forget(client);
        true
    }

    /// Who gave way since the last call.
    pub(crate) fn poll_crowd(&mut self) -> Option<Crowd> {
        self.crowd.take()
    }

    /// The next client that was added, and whose key it has.
    pub(crate) fn poll_come(&mut self) -> Option<(u64, Owner)> {
        self.come.pop()
    }

    fn handle_heard(&mut self, now: Instant, client: u64, path: u8, heard: Heard) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        match heard.what {
            What::Probe(sent, usable) => {
                known.answered = usable;
                known.judge_paths();
                let Known { peer, current, places, .. } = known;
                let mut lanes = Lanes { outbox: &mut self.outbox, places };
                peer.tell(now, current, path, &mut lanes, |told| Message::Answer(sent, told));
            }
            What::Report(usable) => {
                known.answered = usable;
                known.judge_paths();
            }
            What::Close => self.forget(client),
            What::Size(size) => {
                let Known { peer, current, places, .. } = known;
                peer.answer_size(now, current, path, size, &mut Lanes { outbox: &mut self.outbox, places });
            }
            What::Data | What::Answer(_) | What::Done | What::Unknown => {}
        }
        self.collect(now, client);
    }

    /// Collects a client's datagrams and its next deadline.
    fn collect(&mut self, now: Instant, client: u64) {
        self.tick = self.tick.min(now + LOOK);
        let Some(known) = self.clients.get_mut(&client) else { return };
        while let Some(datagram) = known.peer.poll_datagram() {
            self.counters.received += 1;
            self.arrived.push_back((client, datagram));
        }
        self.tick = self.tick.min(known.peer.poll_timeout());
    }

    fn forget(&mut self, client: u64) {
        if let Some(known) = self.clients.remove(&client) {
            self.sessions.remove(&known.current.id());
            known.previous.map(|previous| self.sessions.remove(&previous.id()));
            self.gone.push(client);
        }
    }

    /// Sends a datagram to a client's program. Returns whether it was sent.
    pub fn send(&mut self, now: Instant, client: u64, datagram: &Datagram) -> bool {
        let Some(known) = self.clients.get_mut(&client) else { return false };
        if known.current.is_over(now) {
            return false;
        }
        known.judge_paths();
        let Known { peer, current, places, .. } = known;
        let sent = peer.send(now, current, datagram, &mut Lanes { outbox: &mut self.outbox, places });
        self.counters.sent += u64::from(sent);
        sent
    }

    /// Tells a client that its program's datagram was not delivered.
    pub(crate) fn send_unreachable(&mut self, now: Instant, client: u64, unreachable: Unreachable) {
        let Some(known) = self.clients.get_mut(&client).filter(|known| !known.current.is_over(now)) else { return };
        known.judge_paths();
        let Known { peer, current, places, .. } = known;
        peer.tell_unreachable(now, current, unreachable, &mut Lanes { outbox: &mut self.outbox, places });
    }

    /// Records that the host refuses datagrams of this size to this address.
    pub fn too_large(&mut self, to: Whereabouts, size: usize, now: Instant) {
        for known in self.clients.values_mut() {
            let there = |place: &Option<Place>| place.is_some_and(|place| place.whereabouts == to);
            if let Some(number) = known.places.iter().position(there) {
                known.peer.too_large(number as u8, size, now);
            }
            self.tick = now;
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.pending.front().is_some_and(|pending| now.since(pending.since) >= PENDING) {
            self.pending.pop_front();
        }
        let idle = |known: &Known| now.since(known.heard) >= CLIENT_IDLE || known.current.is_over(now);
        let gone: Vec<u64> = self.clients.iter().filter(|(_, known)| idle(known)).map(|(client, _)| *client).collect();
        gone.into_iter().for_each(|client| self.forget(client));
        let mut next = now + LOOK;
        for (client, known) in &mut self.clients {
            let Known { peer, current, places, .. } = known;
            if peer.report_is_due(now)
                && let Some(path) = peer.best_path(now)
            {
                peer.tell(now, current, path, &mut Lanes { outbox: &mut self.outbox, places }, Message::Report);
            }
            peer.probe_sizes(now, current, &mut Lanes { outbox: &mut self.outbox, places });
            peer.handle_timeout(now);
            // Reports for programs are only sent to clients.
            while peer.poll_unreachable().is_some() {}
            while let Some(datagram) = peer.poll_datagram() {
                self.counters.received += 1;
                self.arrived.push_back((*client, datagram));
            }
            next = next.min(peer.poll_timeout().max(now + TICK));
        }
        self.tick = next;
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Instant {
        self.tick
    }

    /// The next datagram from a program.
    pub fn poll_datagram(&mut self) -> Option<Fresh> {
        self.arrived.pop_front()
    }

    /// The next client that was removed.
    pub fn poll_gone(&mut self) -> Option<u64> {
        self.gone.pop()
    }

    /// The datagrams to send.
    pub fn outbox(&mut self) -> &mut Outbox<Whereabouts> {
        &mut self.outbox
    }

    /// Sends a goodbye to all clients.
    pub fn close(&mut self, now: Instant) {
        for known in self.clients.values_mut() {
            let Known { peer, current, places, .. } = known;
            peer.close(now, current, &mut Lanes { outbox: &mut self.outbox, places });
        }
    }

    /// The counters.
    pub fn counters(&self) -> ServerCounters {
        self.counters
    }

    /// The number of clients.
    #[cfg(test)]
    pub fn clients(&self) -> usize {
        self.clients.len()
    }
}

impl Known {
    /// Records an arrival over a path. Returns whether the path's address has changed.
    fn note(&mut self, now: Instant, path: u8, from: Whereabouts, heard: &Heard) -> bool {
        self.heard = now;
        let index = usize::from(path);
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        let Some(place) = self.places.get_mut(index) else { return false };
        let before = *place;
        // An overtaken datagram has the client's old address.
        let whereabouts = before.filter(|_| !heard.highest).map_or(from, |before| before.whereabouts);
        *place = Some(Place { whereabouts, heard: now });
        before.is_some_and(|before| before.whereabouts.client != whereabouts.client)
    }

    fn judge_paths(&mut self) {
        let last = self.places.iter().flatten().map(|place| place.heard).max().unwrap_or(Instant::ZERO);
        for (number, path) in self.peer.paths_mut() {
            let place = self.places.get(usize::from(number)).copied().flatten();
            let heard = place.is_some_and(|place| last.since(place.heard) < BEHIND);
            path.usable = heard && self.answered & (1_u32 << number) != 0;
        }
    }
}
