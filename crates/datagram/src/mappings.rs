//! The server's NAT for datagrams: a socket of its own for each inside address of a client, whatever the target
//! (endpoint-independent mapping, RFC 4787, REQ-1). What comes from an address that was not sent to is dropped
//! (address-dependent filtering, REQ-8).

use crate::config::{Allow, Limits};
use crate::datagram::{Datagram, Kind, Reason, Unreachable};
use crate::outside::Outside;
use crate::question;
use anabranch_policy::time::{Duration, Instant};
use anabranch_system::SocketError;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

/// How long a mapping lives without a datagram from inside (RFC 4787, REQ-5 and REQ-6).
const IDLE: Duration = Duration::from_secs(120);
/// And one that asks one question.
const IDLE_QUESTION: Duration = Duration::from_secs(30);
/// Most targets of a mapping that are remembered.
const MOST_TARGETS: usize = 1_024;
/// The largest datagram that there is.
const BUFFER: usize = 1 << 16;
/// Most questions over TCP at a time.
const MOST_QUESTIONS: usize = 256;
/// Datagrams taken from a socket before others have their turn.
const AT_ONCE: usize = 64;

/// What a mapping is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    pub client: u64,
    pub kind: Kind,
    pub inside: SocketAddr,
    /// Of the socket: that of the targets.
    ipv6: bool,
    /// Where the program believes the resolver is.
    resolver: Option<SocketAddr>,
    /// The program's identifier of its echo requests, or of its question.
    identifier: Option<[u8; 2]>,
}

struct Mapping {
    outside: Arc<Outside>,
    targets: Arc<Mutex<Targets>>,
    used: Instant,
    reader: AbortHandle,
}

/// Where a mapping has sent to.
#[derive(Default)]
struct Targets {
    hosts: HashSet<IpAddr>,
    allowed: HashSet<SocketAddr>,
}

/// What became of datagrams from inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MappingCounters {
    /// Mappings that were made.
    pub made: u64,
    /// Datagrams to targets that are not allowed.
    pub not_allowed: u64,
    /// Datagrams for which there was no room for a mapping.
    pub no_room: u64,
    /// Echo requests that the host does not let us send.
    pub no_echo: u64,
    /// Questions without a resolver.
    pub no_resolver: u64,
    /// Datagrams that the kernel did not take.
    pub not_taken: u64,
    /// Datagrams of which the target, or a router, said that they did not arrive, or that were refused here: the program is told.
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

/// What is worth a word to the user, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remark {
    /// Ping sockets are not allowed on this host.
    NoEcho,
}

/// What comes from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Back {
    /// An answer.
    Datagram(Datagram),
    /// The word that there will be none.
    Unreachable(Unreachable),
}

/// Is given what comes from outside.
pub type Deliver = Arc<dyn Fn(u64, Back) + Send + Sync>;

/// All mappings of a server.
pub struct Mappings {
    allow: Allow,
    nameservers: Arc<[SocketAddr]>,
    /// Which of them is asked; the next one after a question that is asked again.
    preferred: usize,
    limits: Limits,
    deliver: Deliver,
    mappings: HashMap<Key, Mapping>,
    count_by_client: HashMap<u64, usize>,
    readers: JoinSet<()>,
    /// Where all sockets leave, if that is not left to the routes.
    interface: Option<String>,
    /// Room for questions over TCP.
    questions: Arc<Semaphore>,
    /// Where sockets receive, one after the other.
    buffer: Arc<Mutex<Vec<u8>>>,
    /// What was refused here, and whose it is.
    refused: VecDeque<(u64, Unreachable)>,
    pub counters: MappingCounters,
    told: bool,
}

impl Mappings {
    /// None yet; `deliver` is given what comes from outside, with its client.
    pub fn new(allow: Allow, nameservers: Vec<SocketAddr>, limits: Limits, deliver: Deliver) -> Self {
        Self {
            allow,
            nameservers: nameservers.into(),
            preferred: 0,
            limits,
            deliver,
            mappings: HashMap::new(),
            count_by_client: HashMap::new(),
            readers: JoinSet::new(),
            interface: None,
            questions: Arc::new(Semaphore::new(MOST_QUESTIONS)),
            buffer: Arc::new(Mutex::new(vec![0; BUFFER])),
            refused: VecDeque::new(),
            counters: MappingCounters::default(),
            told: false,
        }
    }

    /// All sockets leave through this interface.
    pub fn through(self, interface: String) -> Self {
        Self { interface: Some(interface), ..self }
    }

    /// Sends a client's datagram on, if it may go. To be called within a runtime.
    pub fn forward(&mut self, now: Instant, client: u64, datagram: &Datagram) -> Option<Remark> {
        if datagram.kind == Kind::DnsOverTcp {
            self.ask(client, datagram);
            return None;
        }
        let (key, target) = self.resolve(client, datagram)?;
        self.send(now, key, target, datagram)
    }

    /// Sends a client's datagram on, a question to `resolver`; whether the kernel has taken it. To be called within a runtime.
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
        let lost = |counters: &MappingCounters| {
            let MappingCounters { made: _, not_allowed, no_room, no_echo, no_resolver, not_taken, unreachable: _ } = *counters;
            not_allowed + no_room + no_echo + no_resolver + not_taken
        };
        let before = lost(&self.counters);
        self.send(now, key, target, datagram);
        // Another uplink may take it.
        self.refused.clear();
        lost(&self.counters) == before
    }

    fn send(&mut self, now: Instant, key: Key, target: SocketAddr, datagram: &Datagram) -> Option<Remark> {
        let allow = Arc::clone(&self.allow);
        let client = key.client;
        match self.mapping(now, key) {
            Ok(Some(mapping)) => {
                if mapping.admits(&allow, key.kind, target) {
                    mapping.used = now;
                    if let Err(error) = mapping.outside.send(&datagram.payload, target) {
                        self.counters.not_taken += 1;
                        reason_of(&error).into_iter().for_each(|reason| self.refuse(client, datagram, reason));
                    }
                } else {
                    self.counters.not_allowed += 1;
                    self.refuse(client, datagram, Reason::Prohibited);
                }
            }
            Ok(None) => self.counters.no_room += 1,
            Err(_) if key.kind == Kind::Echo => {
                self.counters.no_echo += 1;
                self.refuse(client, datagram, Reason::Prohibited);
                return (!core::mem::replace(&mut self.told, true)).then_some(Remark::NoEcho);
            }
            Err(_) => self.counters.no_room += 1,
        }
        None
    }

    /// Asks the resolver over TCP.
    fn ask(&mut self, client: u64, datagram: &Datagram) {
        if self.nameservers.is_empty() {
            self.counters.no_resolver += 1;
            return;
        }
        let Ok(room) = Arc::clone(&self.questions).try_acquire_owned() else {
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

    /// The program is to be told that its datagram goes nowhere.
    fn refuse(&mut self, client: u64, datagram: &Datagram, reason: Reason) {
        let &Datagram { kind, inside, outside, ref payload } = datagram;
        let head = payload.first_chunk().copied().unwrap_or_default();
        self.counters.unreachable += 1;
        self.refused.push_back((client, Unreachable { kind, inside, outside, by: outside.ip(), reason, head }));
    }

    /// A datagram that goes nowhere, and whose it is.
    pub fn poll_refused(&mut self) -> Option<(u64, Unreachable)> {
        self.refused.pop_front()
    }

    /// Which mapping a datagram is of, and where it goes.
    fn resolve(&mut self, client: u64, datagram: &Datagram) -> Option<(Key, SocketAddr)> {
        let kind = datagram.kind;
        let inside = datagram.inside;
        // What is mapped into IPv6 is judged, and sent, as what it is.
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
                // Asked again: the resolver has not answered.
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

    /// The mapping of a key, which is made if there is none; nothing if there is no room for it.
    fn mapping(&mut self, now: Instant, key: Key) -> io::Result<Option<&mut Mapping>> {
        if !self.mappings.contains_key(&key) {
            let of_client = self.count_by_client.get(&key.client).copied().unwrap_or(0);
            if self.mappings.len() >= self.limits.mappings || of_client >= self.limits.mappings_per_client {
                return Ok(None);
            }
            let outside = Arc::new(Outside::open(key.kind, key.ipv6, self.interface.as_deref())?);
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

    /// Forgets mappings that were not used for long.
    pub fn sweep(&mut self, now: Instant) {
        let idle = |key: &Key| if key.kind == Kind::Udp { IDLE } else { IDLE_QUESTION };
        self.retain(|key, mapping| now.since(mapping.used) < idle(key));
        while self.readers.try_join_next().is_some() {}
    }

    /// Forgets all mappings of a client.
    pub fn forget(&mut self, client: u64) {
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

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.mappings.len()
    }
}

impl Mapping {
    /// Whether a target may be sent to; if so it may answer.
    fn admits(&self, allow: &Allow, kind: Kind, target: SocketAddr) -> bool {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if targets.allowed.contains(&target) {
            return true;
        }
        // The resolver is the server's own choice, wherever it is.
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

/// Takes what comes from outside for one mapping.
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

    /// What is there, but not so much that others have to wait.
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
                // What was said of an earlier datagram, or an echo message that is no reply.
                Err(_) => {}
            }
        }
    }
}

/// Why the kernel does not send a datagram, if that is worth a word to the program.
fn reason_of(error: &io::Error) -> Option<Reason> {
    match error.kind() {
        io::ErrorKind::NetworkUnreachable => Some(Reason::Network),
        io::ErrorKind::HostUnreachable => Some(Reason::Host),
        io::ErrorKind::PermissionDenied => Some(Reason::Prohibited),
        _ => None,
    }
}

/// What a program is told of a message of ICMP (RFC 792, RFC 1812) or ICMPv6 (RFC 4443) about a datagram of its.
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
    // Of an echo request it is the whole message that is quoted, with the kernel's identifier.
    let head = match (key.kind, key.identifier) {
        (Kind::Echo, Some([i0, i1])) => {
            let [s0, s1] = quoted.get(6..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
            [i0, i1, s0, s1]
        }
        _ => quoted.first_chunk().copied().unwrap_or_default(),
    };
    let port = if key.kind == Kind::Echo { 0 } else { error.target.port() };
    let (outside, by) = match key.resolver {
        // The program does not know whom we have asked.
        Some(resolver) => (resolver, resolver.ip()),
        None => (SocketAddr::new(error.target.ip(), port), error.by.unwrap_or(error.target.ip())),
    };
    Some(Unreachable { kind: key.kind, inside: key.inside, outside, by, reason, head })
}

/// What a program gets of what came from outside.
fn answer(key: &Key, payload: &mut [u8], from: SocketAddr) -> Option<Datagram> {
    if let Some(identifier) = key.identifier.filter(|_| key.kind == Kind::Echo) {
        payload.first_chunk_mut().map(|first| *first = identifier)?;
    }
    let outside = match (key.resolver, from.ip()) {
        (Some(resolver), _) => resolver,
        // An ICMP reply and the program are of one family, so is UDP.
        (None, address) => SocketAddr::new(address, from.port()),
    };
    let payload = bytes::Bytes::copy_from_slice(payload);
    Some(Datagram { kind: key.kind, inside: key.inside, outside, payload })
}

/// The addresses that the lines `nameserver` of a file such as `/etc/resolv.conf` name, in order. One with a zone, which leads to a link
/// and needs its number, is left out.
pub fn named_resolvers(text: &str) -> impl Iterator<Item = IpAddr> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = (words.next() == Some("nameserver")).then(|| words.next())??;
        address.parse().ok()
    })
}

/// The nameservers of a file such as `/etc/resolv.conf`, at most three, as the C library has it.
pub fn nameservers(text: &str) -> Vec<SocketAddr> {
    let mut found: Vec<IpAddr> = named_resolvers(text).take(3).collect();
    if found.is_empty() {
        // As resolv.conf(5) has it.
        found.push(Ipv4Addr::LOCALHOST.into());
    }
    found.into_iter().map(|address| SocketAddr::new(address, 53)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use tokio::net::UdpSocket;
    use tokio::sync::mpsc;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn mappings(limits: Limits, nameservers: Vec<SocketAddr>) -> (Mappings, mpsc::UnboundedReceiver<(u64, Back)>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let deliver = move |client, back| _ = sender.send((client, back));
        let allow: Allow = Arc::new(|target: SocketAddr| target.port() != 9);
        (Mappings::new(allow, nameservers, limits, Arc::new(deliver)), receiver)
    }

    fn udp(inside: u16, outside: SocketAddr, payload: &'static [u8]) -> Datagram {
        let inside = SocketAddr::new([10, 0, 0, 1].into(), inside);
        Datagram { kind: Kind::Udp, inside, outside, payload: Bytes::from_static(payload) }
    }

    async fn target() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let address = socket.local_addr().expect("it is bound");
        (socket, address)
    }

    async fn received(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut buffer = [0; 64];
        let (length, from) = socket.recv_from(&mut buffer).await.expect("the socket is open");
        (buffer[..length].to_vec(), from)
    }

    #[tokio::test]
    async fn one_inside_address_is_one_address_outside_whatever_the_target() {
        let (mut mappings, mut answers) = mappings(Limits::default(), Vec::new());
        let ((one, first), (other, second)) = (target().await, target().await);
        mappings.forward(at(0), 1, &udp(7, first, b"a"));
        mappings.forward(at(0), 1, &udp(7, second, b"b"));
        mappings.forward(at(0), 1, &udp(8, second, b"c"));
        let (from_one, from_other, third) = (received(&one).await, received(&other).await, received(&other).await);
        assert_eq!((&from_one.0[..], &from_other.0[..], &third.0[..]), (&b"a"[..], &b"b"[..], &b"c"[..]));
        assert_eq!(from_one.1.port(), from_other.1.port());
        assert_ne!(from_one.1.port(), third.1.port());
        one.send_to(b"answer", from_one.1).await.expect("it can be sent");
        assert_eq!(answers.recv().await, Some((1, Back::Datagram(udp(7, first, b"answer")))));
    }

    #[tokio::test]
    async fn what_is_not_allowed_is_not_sent_also_in_another_dress() {
        let (mut mappings, _answers) = mappings(Limits::default(), Vec::new());
        for outside in ["192.0.2.1:9", "[::ffff:192.0.2.1]:9", "192.0.2.1:0"] {
            mappings.forward(at(0), 1, &udp(7, outside.parse().expect("an address"), b"x"));
        }
        assert_eq!((mappings.counters.not_allowed, mappings.counters.not_taken), (3, 0));
        let refused: Vec<_> = core::iter::from_fn(|| mappings.poll_refused()).collect();
        // Port 0 is nobody's.
        assert_eq!(refused.len(), 2);
        assert!(refused.iter().all(|(client, said)| *client == 1 && said.reason == Reason::Prohibited), "{refused:?}");
    }

    #[tokio::test]
    async fn a_port_where_nobody_listens_is_told_of_and_the_next_datagram_still_goes() {
        let (mut mappings, mut answers) = mappings(Limits::default(), Vec::new());
        let (one, first) = target().await;
        let (closed, second) = target().await;
        drop(closed);
        mappings.forward(at(0), 1, &udp(7, second, b"anybody"));
        let inside = SocketAddr::new([10, 0, 0, 1].into(), 7);
        let (kind, reason, by) = (Kind::Udp, Reason::Port, second.ip());
        let said = Unreachable { kind, inside, outside: second, by, reason, head: *b"anyb" };
        assert_eq!(answers.recv().await, Some((1, Back::Unreachable(said))));
        for payload in [b"a", b"b"] {
            mappings.forward(at(0), 1, &udp(7, second, b"anybody"));
            // The kernel has the answer before the call returns.
            mappings.forward(at(0), 1, &udp(7, first, payload));
            assert_eq!(received(&one).await.0, payload);
        }
    }

    #[tokio::test]
    async fn a_large_datagram_goes_out_and_comes_back_whole() {
        let (mut mappings, mut answers) = mappings(Limits::default(), Vec::new());
        let (one, first) = target().await;
        let payload = Bytes::from(vec![7; 65_507]);
        let large = Datagram { payload, ..udp(7, first, b"") };
        mappings.forward(at(0), 1, &large);
        let mut buffer = vec![0; 1 << 16];
        let (length, from) = one.recv_from(&mut buffer).await.expect("the socket is open");
        one.send_to(&buffer[..length], from).await.expect("it can be sent");
        assert_eq!(answers.recv().await, Some((1, Back::Datagram(large))));
    }

    #[test]
    fn messages_are_told_in_the_words_of_the_session() {
        let error = |kind, code, info| SocketError {
            target: "192.0.2.1:33434".parse().expect("an address"),
            by: Some([192, 0, 2, 9].into()),
            kind,
            code,
            info,
            quoted: 8,
        };
        let key = |kind, ipv6, resolver, identifier| {
            let inside = SocketAddr::new([10, 0, 0, 1].into(), 7);
            Key { client: 1, kind, inside, ipv6, resolver, identifier }
        };
        let udp = key(Kind::Udp, false, None, None);
        for (kind, code, info, reason) in [
            (3, 0, 0, Some(Reason::Network)),
            (3, 1, 0, Some(Reason::Host)),
            (3, 3, 0, Some(Reason::Port)),
            (3, 4, 1_280, Some(Reason::TooBig(1_280))),
            (3, 4, 1 << 16, None),
            (3, 13, 0, Some(Reason::Prohibited)),
            (11, 0, 0, Some(Reason::HopLimit)),
            (12, 0, 0, None),
        ] {
            let said = said(&udp, &error(kind, code, info), b"abcdefgh");
            assert_eq!(said.map(|said| said.reason), reason, "{kind} {code}");
        }
        let ipv6 = key(Kind::Udp, true, None, None);
        for (kind, code, reason) in [(1, 3, Reason::Host), (1, 4, Reason::Port), (2, 0, Reason::TooBig(1_300))] {
            let said = said(&ipv6, &error(kind, code, 1_300), b"");
            assert_eq!(said.map(|said| (said.reason, said.head)), Some((reason, [0; 4])));
        }
        let echo = said(&key(Kind::Echo, false, None, Some([1, 2])), &error(3, 1, 0), &[8, 0, 9, 9, 7, 7, 0, 5]);
        assert_eq!(echo.map(|said| (said.head, said.outside.port())), Some(([1, 2, 0, 5], 0)));
        let asked = "203.0.113.53:53".parse().expect("an address");
        let dns = said(&key(Kind::Dns, false, Some(asked), None), &error(3, 3, 0), b"who?");
        assert_eq!(dns.map(|said| (said.outside, said.by)), Some((asked, asked.ip())));
    }

    #[tokio::test]
    async fn who_was_not_sent_to_does_not_get_in() {
        let (mut mappings, mut answers) = mappings(Limits::default(), Vec::new());
        let (one, first) = target().await;
        mappings.forward(at(0), 1, &udp(7, first, b"a"));
        let (_, from) = received(&one).await;
        let stranger = UdpSocket::bind("127.0.0.2:0").await.expect("a port is free");
        stranger.send_to(b"stranger", from).await.expect("it can be sent");
        one.send_to(b"answer", from).await.expect("it can be sent");
        assert_eq!(answers.recv().await, Some((1, Back::Datagram(udp(7, first, b"answer")))));
    }

    #[tokio::test]
    async fn mappings_are_bounded_and_end_after_two_minutes() {
        let limits = Limits { mappings_per_client: 2, mappings: 3, ..Limits::default() };
        let (mut mappings, _answers) = mappings(limits, Vec::new());
        let (_one, first) = target().await;
        for inside in 1..=4 {
            mappings.forward(at(0), 1, &udp(inside, first, b"a"));
            mappings.forward(at(0), 2, &udp(inside, first, b"a"));
        }
        assert_eq!((mappings.len(), mappings.counters.no_room), (3, 5));
        mappings.forward(at(60), 1, &udp(1, first, b"a"));
        mappings.sweep(at(119));
        assert_eq!(mappings.len(), 3);
        mappings.sweep(at(120));
        assert_eq!(mappings.len(), 1);
        mappings.forward(at(120), 1, &udp(9, first, b"a"));
        assert_eq!(mappings.len(), 2);
        mappings.forget(1);
        assert_eq!((mappings.len(), mappings.count_by_client.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_question_goes_to_the_servers_resolver_and_asked_again_to_the_next() {
        let ((one, first), (other, second)) = (target().await, target().await);
        let (mut mappings, mut answers) = mappings(Limits::default(), vec![first, second]);
        let question = Datagram { kind: Kind::Dns, ..udp(7, "198.51.100.53:53".parse().expect("an address"), b"who") };
        mappings.forward(at(0), 1, &question);
        received(&one).await;
        mappings.forward(at(5), 1, &question);
        let (_, from) = received(&other).await;
        other.send_to(b"he", from).await.expect("it can be sent");
        let answer = Datagram { payload: Bytes::from_static(b"he"), ..question };
        assert_eq!(answers.recv().await, Some((1, Back::Datagram(answer))));
        mappings.sweep(at(35));
        assert_eq!(mappings.len(), 0);
    }

    #[test]
    fn nameservers_are_read_as_resolv_conf_has_them() {
        let text = "# one\nnameserver 192.0.2.1\n nameserver 2001:db8::1 \nsearch x\nnameserver bad\nnameserver 1.1.1.1\nnameserver 2.2.2.2";
        let found: Vec<String> = nameservers(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["192.0.2.1:53", "[2001:db8::1]:53", "1.1.1.1:53"]);
        assert_eq!(nameservers(""), ["127.0.0.1:53".parse().expect("an address")]);
    }
}
