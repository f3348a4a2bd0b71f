//! Two hosts of the kernel with emulated paths between them, and their sockets.

use anabranch_emulate::{Hop, Hosts, HostsConfig, Network, Relay, address};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::link::{LinkConfig, Schedule};
use anabranch_steer::Sampler;
use anabranch_steering::sample::{ConnectionSample, HostSample};
use anabranch_system::{Clock, Namespace};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The server's port.
pub const PORT: u16 = 7;

/// How long anything that is waited for may take, on a busy machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// A path: the same link in both directions.
#[derive(Clone, Debug)]
pub struct Path {
    /// Mbit/s.
    pub rate: u64,
    /// One-way delay in milliseconds.
    pub delay: u64,
    /// Packets.
    pub queue: usize,
    /// When nothing passes, in seconds since the beginning. The client's device stays up.
    pub dead: Option<(u64, u64)>,
}

impl Path {
    pub fn new(rate: u64, delay: u64) -> Self {
        Self { rate, delay, queue: 100, dead: None }
    }

    fn link(&self) -> LinkConfig {
        let rate = Rate::from_bits_per_second(self.rate * 1_000_000);
        let mut link = LinkConfig::new(rate, Duration::from_millis(self.delay), self.queue);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        if let Some((from, to)) = self.dead {
            link.schedule = Schedule::DownDuring(vec![(at(from), at(to))]);
        }
        link
    }
}

/// What manages the client's paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathManager {
    Kernel,
    UserSpace,
}

/// The hosts, and the links between them.
pub struct Scene {
    hosts: Hosts,
    relay: Option<Relay>,
}

impl Scene {
    /// Hosts with MPTCP, with an endpoint for each path at the client.
    pub fn new(paths: &[Path], path_manager: PathManager) -> Self {
        let names = (1..=paths.len()).map(|number| format!("path{number}")).collect();
        let number = u8::from(path_manager == PathManager::UserSpace);
        let settings = vec![("net.mptcp.pm_type".to_owned(), number.to_string())];
        let config = HostsConfig { paths: names, mtu: 1_500, mptcp: true, congestion: None, settings };
        let (hosts, ends) = Hosts::new(&config).expect("hosts can be made");
        let relay = Relay::start(network(paths), ends, None).expect("the links run");
        Self { hosts, relay: Some(relay) }
    }

    /// Runs `work` at the client.
    pub fn client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(self.hosts.client(), work)
    }

    /// Runs `work` at the server.
    pub fn server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(self.hosts.server(), work)
    }

    /// A connection from the client's first path, established at both ends: its socket and the server's.
    pub fn connect(&self) -> (Socket, Socket) {
        self.connect_with(|_| ())
    }

    /// The same with settings of the listener.
    pub fn connect_with(&self, set: impl FnOnce(&Socket) + Send) -> (Socket, Socket) {
        let listener = self.listen_with(set);
        let connected = self.client(connect);
        let (accepted, _) = listener.accept().expect("the client has connected");
        // The client may join when the server has acknowledged data (RFC 8684, section 3.1).
        (&connected).write_all(&[1]).expect("the connection lives");
        (&accepted).read_exact(&mut [0]).expect("the connection lives");
        (&accepted).write_all(&[1]).expect("the connection lives");
        (&connected).read_exact(&mut [0]).expect("the connection lives");
        // Joins need a listener at the port as long as the connection lives.
        std::mem::forget(listener);
        (connected, accepted)
    }

    /// A listener at all of the server's addresses.
    pub fn listen(&self) -> Socket {
        self.listen_with(|_| ())
    }

    fn listen_with(&self, set: impl FnOnce(&Socket) + Send) -> Socket {
        self.server(|| {
            let listener = mptcp_socket();
            set(&listener);
            listener.set_reuse_address(true).expect("an option that sockets have");
            let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT);
            listener.bind(&any.into()).expect("the port is free");
            listener.listen(4_096).expect("it can listen");
            listener
        })
    }

    /// Samples the client until `wanted` is in its only connection, and returns that.
    pub fn client_sees(&self, wanted: impl Fn(&ConnectionSample) -> bool + Send) -> ConnectionSample {
        self.client(|| sees(wanted))
    }

    /// The same at the server.
    pub fn server_sees(&self, wanted: impl Fn(&ConnectionSample) -> bool + Send) -> ConnectionSample {
        self.server(|| sees(wanted))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.hosts.end();
        drop(self.relay.take().map(Relay::stop));
    }
}

fn inside<T: Send>(host: &Namespace, work: impl FnOnce() -> T + Send) -> T {
    host.run(work).expect("the namespace can be entered")
}

/// Links for each path, whose other ends meet at the server.
fn network(paths: &[Path]) -> Network {
    let mut network = Network::new(1);
    let clients: Vec<_> = paths.iter().map(|_| network.add_port()).collect();
    let server = network.add_port();
    let mut routes = Vec::new();
    for ((path, client), number) in paths.iter().zip(clients).zip(1u8..) {
        let forward = network.add_link(&format!("{number}/forward"), &path.link(), Hop::Port(server));
        network.connect(client, Hop::Link(forward));
        let backward = network.add_link(&format!("{number}/backward"), &path.link(), Hop::Port(client));
        routes.extend(address::prefixes(number).map(|prefix| (prefix, Hop::Link(backward))));
    }
    let routes = network.add_routes(routes);
    network.connect(server, Hop::Routes(routes));
    network
}

/// The client's address on a path, from 1.
pub fn client_address(path: u8) -> IpAddr {
    address::client(path)[0]
}

pub fn server_address() -> SocketAddr {
    SocketAddr::new(address::server()[0], PORT)
}

pub fn mptcp_socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).expect("the kernel has MPTCP")
}

/// Connects from the calling thread's namespace.
pub fn connect() -> Socket {
    let socket = mptcp_socket();
    socket.bind(&SocketAddr::new(client_address(1), 0).into()).expect("the address is ours");
    socket.connect(&server_address().into()).expect("the server listens");
    socket
}

/// All connections of the calling thread's namespace.
pub fn sample() -> HostSample {
    let mut sampler = Sampler::open().expect("the kernel has sock_diag");
    sampler.sample(Clock::new().now()).expect("we may look")
}

fn sees(wanted: impl Fn(&ConnectionSample) -> bool) -> ConnectionSample {
    let mut sampler = Sampler::open().expect("the kernel has sock_diag");
    let clock = Clock::new();
    wait_for(|| {
        let sample = sampler.sample(clock.now()).expect("we may look");
        let [connection] = sample.connections.as_slice() else { return Err(format!("{:#?}", sample.connections)) };
        if wanted(connection) { Ok(connection.clone()) } else { Err(format!("{connection:#?}")) }
    })
}

/// Waits until `look` succeeds.
pub fn wait_for<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if std::time::Instant::now() > end => panic!("what is waited for does not come: {seen}"),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    }
}

/// Bytes on their way from one socket to another, without end.
pub struct Transfer {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
    ends: Vec<Socket>,
}

impl Transfer {
    pub fn start(from: Socket, to: Socket) -> Self {
        let (stop, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let clone = |socket: &Socket| socket.try_clone().expect("a descriptor");
        let ends = vec![clone(&from), clone(&to)];
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&received));
        let sender = std::thread::spawn(move || {
            let block = vec![0; 65_536];
            while !stopped.load(Ordering::Relaxed) && (&from).write_all(&block).is_ok() {}
        });
        let receiver = std::thread::spawn(move || {
            let mut block = vec![0; 65_536];
            while let Ok(length @ 1..) = (&to).read(&mut block) {
                count.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
        Self { stop, received, threads: vec![sender, receiver], ends }
    }

    /// Bytes received so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for end in &self.ends {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
