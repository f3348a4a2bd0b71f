//! Datagrams without a server: each flow leaves by one uplink, straight to its target, and by another when that is silent.

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

/// Idle mappings and flows are looked for this often.
const SWEEP: Duration = Duration::from_secs(5);
/// Interfaces are looked at this often at most.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Most words on datagrams that did not arrive, that wait for whoever takes them.
const MOST_UNREACHABLE: usize = 256;

/// What is to be known to send straight to targets.
#[derive(Debug)]
pub struct DirectConfig {
    /// The interfaces to use; empty: all with a default route, followed as they come and go.
    pub interfaces: Vec<String>,
    /// The host's resolvers, in order: they are asked when nobody else is named, or whoever is named is silent.
    pub nameservers: Vec<SocketAddr>,
    /// A resolver on this host that is asked, over no uplink, when there is nobody else.
    pub local_resolver: Option<SocketAddr>,
    /// What keeps programs from taking everything.
    pub limits: Limits,
}

/// A handle; copies are the same.
#[derive(Clone)]
pub struct Direct {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    clock: Clock,
    inner: Mutex<Inner>,
    /// Something has become due earlier.
    wake: Notify,
    /// A datagram came.
    arrived: Notify,
    /// What was said of datagrams that did not arrive.
    unreachable: Mutex<VecDeque<Unreachable>>,
    /// Something was.
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
    /// Begins, and gives the task that follows the uplinks and asks again, to be spawned in a runtime; it ends when it is dropped. To
    /// be called within a runtime with a clock; sockets belong to the network namespace of the thread that calls [`Self::send`].
    ///
    /// # Errors
    /// If the kernel cannot be asked, or an interface is not there or is the loopback interface.
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

    /// Sends a datagram, or drops it: no uplink takes it, or it is too large. Never waits. To be called within a runtime.
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

    /// The next datagram for a program. What nobody takes is dropped when too many wait.
    pub async fn receive(&self) -> Datagram {
        loop {
            if let Some(datagram) = self.shared.lock().poll_datagram() {
                return datagram;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// The next word on a datagram that did not reach its target. Only a few wait for whoever asks.
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

    /// Uplinks that are used only while no other works, and uplinks that are not used at all.
    pub fn set_uses(&self, reserve: &[String], barred: &[String]) {
        self.shared.lock().set_uses(reserve, barred);
    }

    /// Other resolvers of the host's from now on.
    pub fn set_nameservers(&self, nameservers: Vec<SocketAddr>) {
        self.shared.lock().set_nameservers(nameservers);
    }

    /// The uplinks that can be used, the best first.
    pub fn preferred(&self) -> Vec<String> {
        self.shared.lock().preferred(self.shared.clock.now())
    }

    /// How each uplink is, in the order in which they came.
    pub fn states(&self) -> Vec<(String, LaneState)> {
        self.shared.lock().states(self.shared.clock.now())
    }

    /// The uplinks now; one whose interface is gone is there and not usable.
    pub fn report(&self) -> Vec<PathReport> {
        self.shared.lock().report(self.shared.clock.now())
    }
}

/// The task of a handle.
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

    /// Brings the uplinks in line with what the network looks like now.
    fn take(&self, snapshot: &Snapshot) {
        let families = |interface: &Interface| [false, true].map(|ipv6| interface.public(ipv6).is_some());
        let is_wanted = |interface: &&Interface| is_uplink(interface, &self.names) && families(interface) != [false; 2];
        let there: Vec<&Interface> = snapshot.interfaces.iter().filter(is_wanted).collect();
        let now = self.shared.clock.now();
        let mut inner = self.shared.lock();
        inner.close_others(&there.iter().map(|interface| interface.index).collect::<Vec<_>>());
        for interface in there {
            let families = families(interface);
            if inner.keeps(interface.index, families) {
                continue;
            }
            let (mappings, name) = (mappings(&self.shared, self.limits), interface.name.clone());
            inner.open(Lane::new(name.clone(), interface.index, families, mappings.through(name)), now);
        }
        drop(inner);
        self.shared.wake.notify_one();
    }
}

/// Sockets that pass on what comes to whoever waits for it, as long as there is somebody.
fn mappings(shared: &Arc<Shared>, limits: Limits) -> Mappings {
    let back = Arc::downgrade(shared);
    let deliver = move |client, what: Back| {
        let Some(shared) = back.upgrade() else { return };
        match what {
            Back::Datagram(datagram) => {
                shared.lock().hear(shared.clock.now(), client, datagram);
                shared.arrived.notify_one();
            }
            // A question is asked elsewhere.
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
        // The first uplink asks whom the host knows as well; each has a socket of its own.
        let mut askers = Vec::new();
        while askers.len() < 2 {
            let (length, from) = resolver.recv_from(&mut buffer).await.expect("it comes");
            // Besides, new uplinks are tried.
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
}
