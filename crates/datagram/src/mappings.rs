//! The server's NAT for datagrams. Each inside address of a client has its own socket, whatever the target
//! (endpoint-independent mapping, RFC 4787, REQ-1). Datagrams from addresses to which the mapping has not sent are
//! dropped (address-dependent filtering, REQ-8).

use crate::config::{Allow, Limits};
use crate::datagram::{Datagram, Kind, Reason, Unreachable};
use crate::outside::Outside;
use crate::question;
use crate::questions::Questions;
use crate::share::{Crowd, Owner, gives_way};
use anabranch_policy::time::{Duration, Instant};
use anabranch_system::{SocketError, is_out_of_descriptors};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::{AbortHandle, JoinSet};

/// Lifetime of a mapping without a datagram from inside (RFC 4787, REQ-5 and REQ-6).
const IDLE: Duration = Duration::from_secs(120);
/// Lifetime of a mapping for a single DNS query.
const IDLE_QUESTION: Duration = Duration::from_secs(30);
/// At the limit of mappings, a client's mappings idle for this time are replaced by its new ones: otherwise name
/// resolution would stop.
const IDLE_CROWDED: Duration = Duration::from_secs(10);
/// Least time between two searches for such mappings.
const LOOK_FOR_ROOM: Duration = Duration::from_secs(1);
/// Most targets that a mapping remembers.
const MOST_TARGETS: usize = 1_024;
/// Bytes of the largest datagram.
const BUFFER: usize = 1 << 16;
/// Datagrams read from a socket before yielding.
const AT_ONCE: usize = 64;

/// Identifies a mapping.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    pub client: u64,
    pub kind: Kind,
    pub inside: SocketAddr,
    /// Whether the socket, and so its targets, is IPv6.
    ipv6: bool,
    /// The address to which the program sent its query.
    resolver: Option<SocketAddr>,
    /// The program's identifier in its echo requests, or the identifier of its query.
    identifier: Option<[u8; 2]>,
}

struct Mapping {
    outside: Arc<Outside>,
    targets: Arc<Mutex<Targets>>,
    used: Instant,
    reader: AbortHandle,
}

/// The targets to which a mapping has sent.
#[derive(Default)]
struct Targets {
    hosts: HashSet<IpAddr>,
    allowed: HashSet<SocketAddr>,
}

/// Counters of datagrams from inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MappingCounters {
    /// Mappings created.
    pub made: u64,
    /// Datagrams to forbidden targets.
    pub not_allowed: u64,
    /// Datagrams dropped at the limit of mappings.
    pub no_room: u64,
    /// Echo requests for which the host allows no ping socket.
    pub no_echo: u64,
    /// Queries without a resolver.
    pub no_resolver: u64,
    /// Datagrams that the kernel refused.
    pub not_taken: u64,
    /// Datagrams that the target or a router reported as undelivered, or that were refused here. The program is told.
    pub unreachable: u64,
}

impl fmt::Display for MappingCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { made, not_allowed, no_room, no_echo, no_resolver, not_taken, unreachable } = self;
        write!(
            f,
            "{made} mappings; not sent on: {not_allowed} not allowed, {no_room} too many mappings, {no_echo} echo not possible, \
             {no_resolver} no resolver, {not_taken} not taken by the kernel; {unreachable} refused here, and the program told"
        )
    }
}

/// Reported to the user once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remark {
    /// Ping sockets are not allowed on this host.
    NoEcho,
    /// The limit of mappings is reached, for one client or for all, or there are no more descriptors.
    NoRoom,
}

/// An arrival from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Back {
    Datagram(Datagram),
    /// A report that the target is unreachable.
    Unreachable(Unreachable),
}

/// A datagram that was not forwarded.
struct Lost {
    /// Reported to the program, if set.
    reason: Option<Reason>,
    /// Reported to the operator, if new.
    remark: Option<Remark>,
}

/// Called with arrivals from outside.
pub type Deliver = Arc<dyn Fn(u64, Back) + Send + Sync>;

/// All mappings of a server.
pub struct Mappings {
    allow: Allow,
    nameservers: Arc<[SocketAddr]>,
    /// The index of the resolver to query; advances when a query is repeated.
    preferred: usize,
    limits: Limits,
    deliver: Deliver,
    mappings: HashMap<Key, Mapping>,
    count_by_client: HashMap<u64, usize>,
    /// Whose key the clients have.
    owners: HashMap<u64, Owner>,
    /// Who gave way last.
    crowd: Option<Crowd>,
    readers: JoinSet<()>,
    /// The interface that all sockets are bound to, unless routes decide.
    interface: Option<String>,
    /// Limits concurrent queries over TCP.
    questions: Questions,
    /// The receive buffer shared by all sockets.
    buffer: Arc<Mutex<Vec<u8>>>,
    /// Refused datagrams, with their clients.
    refused: VecDeque<(u64, Unreachable)>,
    pub counters: MappingCounters,
    /// Next search for idle mappings to replace.
    look_for_room: Instant,
    told_no_echo: bool,
    told_no_room: bool,
}

impl Mappings {
    /// No mappings. `deliver` is called with each arrival from outside and its client.
    pub fn new(allow: Allow, nameservers: Vec<SocketAddr>, limits: Limits, deliver: Deliver) -> Self {
        Self {
            allow,
            nameservers: nameservers.into(),
            preferred: 0,
            limits,
            deliver,
            mappings: HashMap::new(),
            count_by_client: HashMap::new(),
            owners: HashMap::new(),
            crowd: None,
            readers: JoinSet::new(),
            interface: None,
            questions: Questions::default(),
            buffer: Arc::new(Mutex::new(vec![0; BUFFER])),
            refused: VecDeque::new(),
            counters: MappingCounters::default(),
            look_for_room: Instant::ZERO,
            told_no_echo: false,
            told_no_room: false,
        }
    }

    /// Binds all sockets to this interface.
    pub fn through(self, interface: String) -> Self {
        Self { interface: Some(interface), ..self }
    }

    /// Forwards a client's datagram if its target is allowed. Call this within a runtime.
    pub fn forward(&mut self, now: Instant, client: u64, datagram: &Datagram) -> Option<Remark> {
        if datagram.kind == Kind::DnsOverTcp {
            self.ask(client, datagram);
            return None;
        }
        let (key, target) = self.resolve(client, datagram)?;
        let lost = self.send(now, key, target, datagram).err()?;
        lost.reason.into_iter().for_each(|reason| self.refuse(client, datagram, reason));
        lost.remark
    }

    /// Forwards a client's datagram, a query to `resolver`. Returns whether the kernel accepted it. Call this within a
    /// runtime.
    pub fn pass(&mut self, now: Instant, client: u64, datagram: &Datagram, resolver: Option<SocketAddr>) -> bool {
        let outside = SocketAddr::new(datagram.outside.ip().to_canonical(), datagram.outside.port());
        let target = resolver.unwrap_or(outside);
        let key = Key {
            client,
            kind: datagram.kind,
            inside: datagram.inside,
            ipv6: target.is_ipv6(),
            resolver: resolver.map(|_| datagram.outside),
            identifier: datagram.payload.first_chunk().copied().filter(|_| datagram.kind != Kind::Udp),
        };
        // The program is not told of the loss: another uplink may accept the datagram.
        self.send(now, key, target, datagram).is_ok()
    }

    fn send(&mut self, now: Instant, key: Key, target: SocketAddr, datagram: &Datagram) -> Result<(), Lost> {
        let allow = Arc::clone(&self.allow);
        match self.mapping(now, key) {
            Ok(Some(mapping)) if mapping.admits(&allow, key.kind, target) => {
                mapping.used = now;
                mapping.outside.send(&datagram.payload, target).map_err(|error| {
                    self.counters.not_taken += 1;
                    Lost { reason: reason_of(&error), remark: None }
                })
            }
            Ok(Some(_)) => {
                self.counters.not_allowed += 1;
                Err(Lost { reason: Some(Reason::Prohibited), remark: None })
            }
            Err(_) if key.kind == Kind::Echo => {
                self.counters.no_echo += 1;
                let first = !core::mem::replace(&mut self.told_no_echo, true);
                Err(Lost { reason: Some(Reason::Prohibited), remark: first.then_some(Remark::NoEcho) })
            }
            Ok(None) | Err(_) => {
                self.counters.no_room += 1;
                let first = !core::mem::replace(&mut self.told_no_room, true);
                Err(Lost { reason: None, remark: first.then_some(Remark::NoRoom) })
            }
        }
    }

    /// Queries the resolver over TCP.
    fn ask(&mut self, client: u64, datagram: &Datagram) {
        if self.nameservers.is_empty() {
            self.counters.no_resolver += 1;
            return;
        }
        let owner = self.owners.get(&client).cloned().flatten();
        let Some(room) = self.questions.begin(client, &owner) else {
            self.counters.no_room += 1;
            return;
        };
        let (deliver, question) = (Arc::clone(&self.deliver), datagram.clone());
        let (nameservers, first) = (Arc::clone(&self.nameservers), self.preferred);
        self.readers.spawn(async move {
            if let Some(answer) = question::ask(&nameservers, first, &question.payload).await {
                deliver(client, Back::Datagram(Datagram { payload: answer.into(), ..question }));
            }
            drop(room);
        });
    }

    /// Queues a report for the program that its datagram was not forwarded.
    fn refuse(&mut self, client: u64, datagram: &Datagram, reason: Reason) {
        let &Datagram { kind, inside, outside, ref payload } = datagram;
        let head = payload.first_chunk().copied().unwrap_or_default();
        self.counters.unreachable += 1;
        self.refused.push_back((client, Unreachable { kind, inside, outside, by: outside.ip(), reason, head }));
    }

    /// The next report of a datagram refused here, with its client.
    pub fn poll_refused(&mut self) -> Option<(u64, Unreachable)> {
        self.refused.pop_front()
    }

    /// The mapping and the target of a datagram.
    fn resolve(&mut self, client: u64, datagram: &Datagram) -> Option<(Key, SocketAddr)> {
        let kind = datagram.kind;
        let inside = datagram.inside;
        // IPv4-mapped IPv6 addresses are checked and used as IPv4.
        let outside = SocketAddr::new(datagram.outside.ip().to_canonical(), datagram.outside.port());
        let identifier = match kind {
            Kind::Udp | Kind::DnsOverTcp => None,
            Kind::Echo | Kind::Dns => datagram.payload.first_chunk().copied(),
        };
        let mut key = Key { client, kind, inside, ipv6: outside.is_ipv6(), resolver: None, identifier };
        match kind {
            Kind::Udp if outside.port() == 0 => {
                self.counters.not_allowed += 1;
                None
            }
            Kind::Udp | Kind::Echo => Some((key, outside)),
            Kind::Dns | Kind::DnsOverTcp => {
                key.resolver = Some(datagram.outside);
                let asked = |ipv6| self.mappings.contains_key(&Key { ipv6, ..key });
                // A repeated query: the resolver has not answered.
                if asked(false) || asked(true) {
                    self.preferred = self.preferred.wrapping_add(1);
                }
                let index = self.preferred.checked_rem(self.nameservers.len());
                let Some(target) = index.and_then(|index| self.nameservers.get(index)) else {
                    self.counters.no_resolver += 1;
                    return None;
                };
                Some((Key { ipv6: target.is_ipv6(), ..key }, *target))
            }
        }
    }

    /// The mapping of a key, created if absent; `None` at the limit of mappings.
    fn mapping(&mut self, now: Instant, key: Key) -> io::Result<Option<&mut Mapping>> {
        if !self.mappings.contains_key(&key) {
            if !self.has_room(key.client) && now >= self.look_for_room {
                self.look_for_room = now + LOOK_FOR_ROOM;
                self.retain(|other, mapping| other.client != key.client || now.since(mapping.used) < IDLE_CROWDED);
            }
            let gets_room = self.has_room(key.client) || self.is_full() && self.make_room(key.client);
            if !gets_room {
                return Ok(None);
            }
            let interface = self.interface.clone();
            let open = || Outside::open(key.kind, key.ipv6, interface.as_deref());
            let outside = match open() {
                Err(error) if is_out_of_descriptors(&error) && self.make_room(key.client) => open()?,
                Err(error) if is_out_of_descriptors(&error) => return Ok(None),
                opened => opened?,
            };
            let outside = Arc::new(outside);
            let targets = Arc::<Mutex<Targets>>::default();
            let reader = Reader {
                key,
                outside: Arc::clone(&outside),
                targets: Arc::clone(&targets),
                buffer: Arc::clone(&self.buffer),
                deliver: Arc::clone(&self.deliver),
            };
            let reader = self.readers.spawn(reader.read());
            self.mappings.insert(key, Mapping { outside, targets, used: now, reader });
            *self.count_by_client.entry(key.client).or_default() += 1;
            self.counters.made += 1;
        }
        Ok(self.mappings.get_mut(&key))
    }

    fn has_room(&self, client: u64) -> bool {
        let of_client = self.count_by_client.get(&client).copied().unwrap_or(0);
        self.mappings.len() < self.limits.mappings && of_client < self.limits.mappings_per_client
    }

    fn is_full(&self) -> bool {
        self.mappings.len() >= self.limits.mappings
    }

    /// Whose key a client has.
    pub fn introduce(&mut self, client: u64, owner: Owner) {
        self.owners.insert(client, owner);
    }

    /// Removes the mapping that is idle longest of those with the key that has most, or of the client that has most with this
    /// client's own key. Returns whether there was one with more than the client.
    fn make_room(&mut self, client: u64) -> bool {
        let limit = self.limits.mappings_per_client;
        if self.count_by_client.get(&client).is_some_and(|count| *count >= limit) {
            return false;
        }
        let owner = |client: &u64| self.owners.get(client).cloned().flatten();
        let (own, counts) = (owner(&client), &self.count_by_client);
        let by_key = gives_way(counts.iter().map(|(client, count)| (owner(client), *count)), &own);
        let among_ours = || counts.iter().filter(|(client, _)| owner(client) == own).map(|(client, n)| (*client, *n));
        let by_client = if by_key.is_none() { gives_way(among_ours(), &client) } else { None };
        let (crowd, gives) = match (by_key, by_client) {
            (Some((owner, count)), _) => (Crowd { owner, count }, None),
            (None, Some((client, count))) => (Crowd { owner: own, count }, Some(client)),
            (None, None) => return false,
        };
        let is_of = |client: &u64| gives.map_or_else(|| owner(client) == crowd.owner, |gives| gives == *client);
        let of_them = self.mappings.iter().filter(|(key, _)| is_of(&key.client));
        let idlest = of_them.min_by_key(|(_, mapping)| mapping.used).map(|(key, _)| *key);
        self.crowd = Some(crowd);
        self.retain(|key, _| Some(*key) != idlest);
        idlest.is_some()
    }

    /// Who gave way since the last call.
    pub fn poll_crowd(&mut self) -> Option<Crowd> {
        self.crowd.take()
    }

    /// Removes mappings that have been idle too long.
    pub fn sweep(&mut self, now: Instant) {
        let idle = |key: &Key| if key.kind == Kind::Udp { IDLE } else { IDLE_QUESTION };
        self.retain(|key, mapping| now.since(mapping.used) < idle(key));
        while self.readers.try_join_next().is_some() {}
    }

    /// Removes all mappings of a client.
    pub fn forget(&mut self, client: u64) {
        self.owners.remove(&client);
        self.retain(|key, _| key.client != client);
    }

    fn retain(&mut self, keep: impl Fn(&Key, &Mapping) -> bool) {
        let counts = &mut self.count_by_client;
        self.mappings.retain(|key, mapping| {
            let stays = keep(key, mapping);
            if !stays {
                mapping.reader.abort();
                if let Some(count) = counts.get_mut(&key.client) {
                    *count -= 1;
                    if *count == 0 {
                        counts.remove(&key.client);
                    }
                }
            }
            stays
        });
    }

    /// The number of mappings.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.mappings.len()
    }
}

impl Mapping {
    /// Whether a target is allowed; if so, its answers are accepted.
    fn admits(&self, allow: &Allow, kind: Kind, target: SocketAddr) -> bool {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if targets.allowed.contains(&target) {
            return true;
        }
        // The server chose the resolver itself, so that its address needs no permission.
        if kind != Kind::Dns && !allow(target) {
            return false;
        }
        if targets.allowed.len() >= MOST_TARGETS {
            *targets = Targets::default();
        }
        targets.hosts.insert(target.ip());
        targets.allowed.insert(target);
        true
    }
}

/// Receives from the socket of one mapping.
struct Reader {
    key: Key,
    outside: Arc<Outside>,
    targets: Arc<Mutex<Targets>>,
    buffer: Arc<Mutex<Vec<u8>>>,
    deliver: Deliver,
}

impl Reader {
    async fn read(self) {
        while self.outside.ready().await.is_ok() {
            self.take();
            tokio::task::yield_now().await;
        }
    }

    /// Reads what has arrived, up to a limit, so that other tasks run.
    fn take(&self) {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..AT_ONCE {
            match self.outside.take_error(&mut buffer) {
                Ok(Some(error)) => {
                    let quoted = buffer.get(..error.quoted).unwrap_or_default();
                    let said = said(&self.key, &error, quoted);
                    said.into_iter().for_each(|said| (self.deliver)(self.key.client, Back::Unreachable(said)));
                }
                Ok(None) => {}
                Err(_) => break,
            }
        }
        for _ in 0..AT_ONCE {
            match self.outside.receive(&mut buffer) {
                Ok((payload, from)) => {
                    let known = self.targets.lock().unwrap_or_else(PoisonError::into_inner).hosts.contains(&from.ip());
                    if known && let Some(datagram) = answer(&self.key, payload, from) {
                        (self.deliver)(self.key.client, Back::Datagram(datagram));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An ICMP error for an earlier datagram, or an echo message that is no reply.
                Err(_) => {}
            }
        }
    }
}

/// Why the kernel refused a datagram, if the program is to be told.
fn reason_of(error: &io::Error) -> Option<Reason> {
    match error.kind() {
        io::ErrorKind::NetworkUnreachable => Some(Reason::Network),
        io::ErrorKind::HostUnreachable => Some(Reason::Host),
        io::ErrorKind::PermissionDenied => Some(Reason::Prohibited),
        _ => None,
    }
}

/// The report for a program from an ICMP (RFC 792, RFC 1812) or ICMPv6 (RFC 4443) error about its datagram.
fn said(key: &Key, error: &SocketError, quoted: &[u8]) -> Option<Unreachable> {
    let mtu = || u16::try_from(error.info).map(Reason::TooBig).ok();
    let reason = match (key.ipv6, error.kind, error.code) {
        (false, 3, 0 | 5 | 6 | 11) | (true, 1, 0) => Reason::Network,
        (false, 3, 1 | 7 | 8 | 12) | (true, 1, 2 | 3) => Reason::Host,
        (false, 3, 2 | 3) | (true, 1, 4) => Reason::Port,
        (false, 3, 9 | 10 | 13) | (true, 1, 1 | 5 | 6) => Reason::Prohibited,
        (false, 3, 4) | (true, 2, _) => mtu()?,
        (false, 11, _) | (true, 3, _) => Reason::HopLimit,
        _ => return None,
    };
    // For an echo request the whole message is quoted, with the identifier that the kernel set.
    let head = match (key.kind, key.identifier) {
        (Kind::Echo, Some([i0, i1])) => {
            let [s0, s1] = quoted.get(6..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
            [i0, i1, s0, s1]
        }
        _ => quoted.first_chunk().copied().unwrap_or_default(),
    };
    let port = if key.kind == Kind::Echo { 0 } else { error.target.port() };
    let (outside, by) = match key.resolver {
        // The program does not know which resolver was queried.
        Some(resolver) => (resolver, resolver.ip()),
        None => (SocketAddr::new(error.target.ip(), port), error.by.unwrap_or(error.target.ip())),
    };
    Some(Unreachable { kind: key.kind, inside: key.inside, outside, by, reason, head })
}

/// The datagram for a program from an arrival from outside.
fn answer(key: &Key, payload: &mut [u8], from: SocketAddr) -> Option<Datagram> {
    if let Some(identifier) = key.identifier.filter(|_| key.kind == Kind::Echo) {
        payload.first_chunk_mut().map(|first| *first = identifier)?;
    }
    let outside = match (key.resolver, from.ip()) {
        (Some(resolver), _) => resolver,
        // The ICMP reply has the program's address family, and so has UDP.
        (None, address) => SocketAddr::new(address, from.port()),
    };
    let payload = bytes::Bytes::copy_from_slice(payload);
    Some(Datagram { kind: key.kind, inside: key.inside, outside, payload })
}

/// The addresses on the `nameserver` lines of a file such as `/etc/resolv.conf`, in order. Addresses with a zone are
/// skipped: they need the number of the link.
pub fn named_resolvers(text: &str) -> impl Iterator<Item = IpAddr> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = (words.next() == Some("nameserver")).then(|| words.next())??;
        address.parse().ok()
    })
}

/// The nameservers of a file such as `/etc/resolv.conf`, at most three, as in the C library.
pub fn nameservers(text: &str) -> Vec<SocketAddr> {
    let mut found: Vec<IpAddr> = named_resolvers(text).take(3).collect();
    if found.is_empty() {
        // The default in resolv.conf(5).
        found.push(Ipv4Addr::LOCALHOST.into());
    }
    found.into_iter().map(|address| SocketAddr::new(address, 53)).collect()
}

#[cfg(test)]
mod tests;
