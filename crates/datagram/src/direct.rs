//! Datagrams without a server: each flow uses one uplink directly to its target, and moves to another uplink when it
//! gets no answers.

use crate::config::{Limits, PathReport};
use crate::datagram::{Datagram, Kind, LARGEST_PAYLOAD, Unreachable};
use crate::mappings::{Back, Mappings};
use crate::straight::{Inner, Lane, LaneState};
use crate::uplinks::{is_uplink, watch};
use anabranch_host::{Interface, Netlink, Snapshot, Watch};
use anabranch_policy::time::{Duration, Instant};
use anabranch_system::Clock;
use core::net::SocketAddr;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Interval between searches for idle mappings and flows.
const SWEEP: Duration = Duration::from_secs(5);
/// Least time between two looks at the interfaces.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Most unread reports of undelivered datagrams.
const MOST_UNREACHABLE: usize = 256;

/// Configuration for datagrams that go directly to their targets.
#[derive(Debug)]
pub struct DirectConfig {
    /// The interfaces to use; empty: all that have a default route, tracked as they appear and disappear.
    pub interfaces: Vec<String>,
    /// The host's resolvers, in order. They are queried when the program named no resolver, or that one does not
    /// answer.
    pub nameservers: Vec<SocketAddr>,
    /// A resolver on this host, queried over no uplink when there is no other.
    pub local_resolver: Option<SocketAddr>,
    /// Limits on the resources of programs.
    pub limits: Limits,
}

/// A handle; clones share the state.
#[derive(Clone)]
pub struct Direct {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    clock: Clock,
    inner: Mutex<Inner>,
    /// The next deadline is earlier.
    wake: Notify,
    /// A datagram arrived.
    arrived: Notify,
    /// Reports of undelivered datagrams.
    unreachable: Mutex<VecDeque<Unreachable>>,
    /// A report was added.
    failed: Notify,
}

impl Shared {
    fn new(nameservers: Vec<SocketAddr>) -> Self {
        let [wake, arrived, failed] = [(); 3].map(|()| Notify::new());
        let (inner, unreachable) = (Mutex::new(Inner::new(nameservers)), Mutex::default());
        Self { clock: Clock::new(), inner, wake, arrived, unreachable, failed }
    }

    fn unreachable(&self) -> MutexGuard<'_, VecDeque<Unreachable>> {
        self.unreachable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Direct {
    /// Creates a handle and the task that tracks the uplinks and repeats DNS queries. Spawn the task in a runtime. Call
    /// this within a runtime with time enabled. The sockets belong to the network namespace of the thread that calls
    /// [`Self::send`].
    ///
    /// # Errors
    /// If netlink fails, or an interface does not exist or is the loopback interface.
    pub fn start(config: DirectConfig) -> io::Result<(Self, impl Future<Output = io::Result<()>> + Send + 'static)> {
        let (watch, netlink, snapshot) = watch(&config.interfaces)?;
        let shared = Arc::new(Shared::new(config.nameservers));
        let driver =
            Driver { shared: Arc::clone(&shared), names: config.interfaces, netlink, watch, limits: config.limits };
        if let Some(resolver) = config.local_resolver {
            shared.lock().set_local(mappings(&shared, config.limits), resolver);
        }
        driver.take(&snapshot);
        Ok((Self { shared }, driver.run()))
    }

    /// Sends a datagram, or drops it: no uplink accepts it, or it is too large. Never waits. Call this within a
    /// runtime.
    pub fn send(&self, datagram: Datagram) -> bool {
        if datagram.payload.len() > LARGEST_PAYLOAD {
            return false;
        }
        let sent = self.shared.lock().send(self.shared.clock.now(), &datagram);
        if matches!(datagram.kind, Kind::Dns | Kind::DnsOverTcp) {
            self.shared.wake.notify_one();
        }
        sent
    }

    /// The next datagram for a program. Unread datagrams are dropped when the queue is full.
    pub async fn receive(&self) -> Datagram {
        loop {
            if let Some(datagram) = self.shared.lock().poll_datagram() {
                return datagram;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// The next report that a datagram did not reach its target. The queue of unread reports is short.
    pub async fn unreachable(&self) -> Unreachable {
        loop {
            if let Some(unreachable) = self.shared.unreachable().pop_front() {
                return unreachable;
            }
            self.shared.failed.notified().await;
        }
    }

    /// Whether any uplink has an address of the target's family.
    pub fn reaches(&self, target: SocketAddr) -> bool {
        self.shared.lock().reaches(target.ip().to_canonical().is_ipv6())
    }

    /// Sets the uplinks used only while no other works, and the uplinks not used at all.
    pub fn set_uses(&self, reserve: &[String], barred: &[String]) {
        self.shared.lock().set_uses(reserve, barred);
    }

    /// Replaces the host's resolvers.
    pub fn set_nameservers(&self, nameservers: Vec<SocketAddr>) {
        self.shared.lock().set_nameservers(nameservers);
    }

    /// Whether a program's DNS query has waited for two seconds, and none was answered since it was asked.
    pub fn hears_no_resolver(&self) -> bool {
        self.shared.lock().hears_no_resolver(self.shared.clock.now())
    }

    /// The usable uplinks, best first.
    pub fn preferred(&self) -> Vec<String> {
        self.shared.lock().preferred(self.shared.clock.now())
    }

    /// The state of each uplink, in order of appearance.
    pub fn states(&self) -> Vec<(String, LaneState)> {
        self.shared.lock().states(self.shared.clock.now())
    }

    /// The uplinks. One whose interface is gone stays in the list, unusable.
    pub fn report(&self) -> Vec<PathReport> {
        self.shared.lock().report(self.shared.clock.now())
    }
}

struct Driver {
    shared: Arc<Shared>,
    names: Vec<String>,
    netlink: Netlink,
    watch: Watch,
    limits: Limits,
}

impl Driver {
    async fn run(mut self) -> io::Result<()> {
        let mut sweep = Instant::ZERO;
        loop {
            let now = self.shared.clock.now();
            let due = {
                let mut inner = self.shared.lock();
                inner.handle_timeout(now);
                if sweep <= now {
                    inner.sweep(now);
                    sweep = now + SWEEP;
                }
                inner.poll_timeout().min(sweep)
            };
            tokio::select! {
                () = self.shared.wake.notified() => {}
                () = tokio::time::sleep(std::time::Duration::from_nanos(due.since(now).as_nanos())) => {}
                heard = self.watch.changed() => {
                    heard?;
                    tokio::time::sleep(PAUSE).await;
                    let snapshot = Snapshot::take(&mut self.netlink)?;
                    self.take(&snapshot);
                }
            }
        }
    }

    /// Opens and closes uplinks to match the interfaces.
    fn take(&self, snapshot: &Snapshot) {
        let families = |interface: &Interface| [false, true].map(|ipv6| interface.public(ipv6).is_some());
        let is_wanted = |interface: &&Interface| is_uplink(interface, &self.names) && families(interface) != [false; 2];
        let there: Vec<&Interface> = snapshot.interfaces.iter().filter(is_wanted).collect();
        let now = self.shared.clock.now();
        let mut inner = self.shared.lock();
        let names = there.iter().map(|interface| (interface.name.as_str(), interface.index));
        inner.close_others(&names.collect::<Vec<_>>());
        for interface in there {
            let families = families(interface);
            if inner.keeps(&interface.name, interface.index, families) {
                continue;
            }
            let (mappings, name) = (mappings(&self.shared, self.limits), interface.name.clone());
            inner.open(Lane::new(name.clone(), interface.index, families, mappings.through(name)), now);
        }
        drop(inner);
        self.shared.wake.notify_one();
    }
}

/// Sockets that forward arrivals to the handle while it exists.
fn mappings(shared: &Arc<Shared>, limits: Limits) -> Mappings {
    let back = Arc::downgrade(shared);
    let deliver = move |client, what: Back| {
        let Some(shared) = back.upgrade() else { return };
        match what {
            Back::Datagram(datagram) => {
                shared.lock().hear(shared.clock.now(), client, datagram);
                shared.arrived.notify_one();
            }
            // An unreachable resolver is no error for the program: the query goes to other resolvers.
            Back::Unreachable(said) if matches!(said.kind, Kind::Dns | Kind::DnsOverTcp) => {}
            Back::Unreachable(said) => {
                let mut waiting = shared.unreachable();
                if waiting.len() < MOST_UNREACHABLE {
                    waiting.push_back(said);
                    shared.failed.notify_one();
                }
            }
        }
    };
    Mappings::new(Arc::new(|_| true), Vec::new(), limits, Arc::new(deliver))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uplinks::tests::interface;
    use bytes::Bytes;
    use tokio::net::UdpSocket;

    /// An uplink that is not bound to an interface, so that loopback can stand for the network.
    async fn direct(lanes: &[&str], nameservers: Vec<SocketAddr>) -> Direct {
        let shared = Arc::new(Shared::new(nameservers));
        for (index, name) in (1..).zip(lanes) {
            let mappings = mappings(&shared, Limits::default());
            let lane = Lane::new((*name).to_owned(), index, [true, true], mappings);
            let now = shared.clock.now();
            shared.lock().open(lane, now);
        }
        Direct { shared }
    }

    fn datagram(kind: Kind, outside: SocketAddr, payload: &'static [u8]) -> Datagram {
        let inside = "198.18.0.1:4000".parse().expect("an address");
        Datagram { kind, inside, outside, payload: Bytes::from_static(payload) }
    }

    #[tokio::test]
    async fn a_datagram_goes_straight_to_its_target_and_the_answer_comes_back() {
        let target = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let direct = direct(&["one", "two"], Vec::new()).await;
        let there = target.local_addr().expect("it is bound");
        assert!(direct.send(datagram(Kind::Udp, there, b"question")));
        let mut buffer = [0; 64];
        let (length, from) = target.recv_from(&mut buffer).await.expect("it comes");
        assert_eq!(&buffer[..length], b"question");
        target.send_to(b"answer", from).await.expect("it can be sent");
        assert_eq!(direct.receive().await, datagram(Kind::Udp, there, b"answer"));
    }

    #[tokio::test]
    async fn a_question_that_nobody_answers_goes_over_the_other_uplinks_to_all_resolvers_and_one_answer_is_passed_on() {
        let silent = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let resolver = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let there = resolver.local_addr().expect("it is bound");
        let direct = direct(&["one", "two"], vec![there]).await;
        let asked = silent.local_addr().expect("it is bound");
        assert!(direct.send(datagram(Kind::Dns, asked, b"\x12\x34 which?")));
        let late = direct.shared.clock.now() + Duration::from_secs(1);
        direct.shared.lock().handle_timeout(late);
        let mut buffer = [0; 64];
        // The first uplink also queries the host's resolver; each resolver has its own socket.
        let mut askers = Vec::new();
        while askers.len() < 2 {
            let (length, from) = resolver.recv_from(&mut buffer).await.expect("it comes");
            // New uplinks are probed as well.
            askers.extend((&buffer[..length] == b"\x12\x34 which?").then_some(from));
        }
        assert_ne!(askers[0], askers[1]);
        for asker in askers {
            resolver.send_to(b"\x12\x34 that", asker).await.expect("it can be sent");
        }
        assert_eq!(direct.receive().await, datagram(Kind::Dns, asked, b"\x12\x34 that"), "as from whom was asked");
        let more = tokio::time::timeout(std::time::Duration::from_millis(100), direct.receive()).await;
        assert!(more.is_err(), "the second answer is nobody's: {more:?}");
    }

    #[tokio::test]
    async fn no_resolver_is_heard_from_two_seconds_after_a_question_until_one_is_answered() {
        let resolver = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let there = resolver.local_addr().expect("it is bound");
        let direct = direct(&["one"], Vec::new()).await;
        let after = |millis| direct.shared.clock.now() + Duration::from_millis(millis);
        let hears_none = |millis| direct.shared.lock().hears_no_resolver(after(millis));
        assert!(direct.send(datagram(Kind::Dns, there, b"\x12\x34 which?")));
        assert!(direct.send(datagram(Kind::Dns, there, b"\x12\x35 that?")));
        assert!(!hears_none(0) && hears_none(2_000));
        // The questions are forgotten, and still nobody has answered.
        direct.shared.lock().sweep(after(20_000));
        assert!(hears_none(0));
        assert!(direct.send(datagram(Kind::Dns, there, b"\x12\x36 which?")));
        assert!(direct.send(datagram(Kind::Dns, there, b"\x12\x37 that?")));
        let mut buffer = [0; 64];
        let mut answered = None;
        while answered != Some(*b"\x12\x36") {
            let (length, from) = resolver.recv_from(&mut buffer).await.expect("it comes");
            answered = buffer.first_chunk().copied();
            if answered == Some(*b"\x12\x36") {
                resolver.send_to(&buffer[..length], from).await.expect("it can be sent");
            }
        }
        direct.receive().await;
        // The other may be one that the resolver itself has no answer to.
        assert!(!hears_none(2_000));
    }

    #[tokio::test]
    async fn what_asks_whether_an_uplink_lives_is_no_programs() {
        let resolver = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let direct = direct(&["one"], vec![resolver.local_addr().expect("it is bound")]).await;
        let now = direct.shared.clock.now();
        direct.shared.lock().handle_timeout(now);
        let mut buffer = [0; 64];
        let (length, from) = resolver.recv_from(&mut buffer).await.expect("a new uplink is tried");
        resolver.send_to(&buffer[..length], from).await.expect("it can be sent");
        let more = tokio::time::timeout(std::time::Duration::from_millis(100), direct.receive()).await;
        assert!(more.is_err(), "{more:?}");
        assert!(direct.report()[0].round_trip.is_some());
    }

    #[tokio::test]
    async fn an_interface_that_is_renamed_is_another_uplink() {
        let driver = Driver {
            shared: Arc::new(Shared::new(Vec::new())),
            names: Vec::new(),
            netlink: Netlink::open().expect("rtnetlink is there"),
            watch: Watch::open().expect("rtnetlink is there"),
            limits: Limits::default(),
        };
        let there = |name| Snapshot { interfaces: vec![interface(name, 2, true)], ..Snapshot::default() };
        driver.take(&there("eth0"));
        driver.take(&there("wan0"));
        let direct = Direct { shared: driver.shared };
        let expected = [("eth0".to_owned(), LaneState::Gone), ("wan0".to_owned(), LaneState::Usable)];
        assert_eq!(direct.states(), expected);
    }
}
