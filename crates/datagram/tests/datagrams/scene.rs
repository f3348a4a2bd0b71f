//! Two namespaces: ours, with two uplinks, and the world, which is both router and server; and helpers for clients and
//! servers.
//!
//! ```text
//!   ours                               world
//!   up0  10.1.0.2  ------------------  10.1.0.1  down0
//!   up1  10.2.0.2  ------------------  10.2.0.1  down1
//!                                      203.0.113.1 (server), 203.0.113.9 (target)
//! ```

use anabranch_datagram::{Client, ClientConfig, Datagram, Kind, Limits, ServerConfig};
use anabranch_policy::datagram::{DatagramPolicy, TABLE};
use anabranch_policy::table::{Settings, build};
use anabranch_system::Namespace;
use bytes::Bytes;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;

/// The shared key.
pub const KEY: [u8; 32] = [7; 32];
/// Longer than any successful operation takes.
pub const LONG: Duration = Duration::from_secs(20);

/// Runs `ip WORDS` in the calling thread's namespace.
pub fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

pub struct Scene {
    pub ours: Namespace,
    pub world: Namespace,
}

impl Scene {
    pub fn new() -> Self {
        let namespace = || Namespace::new().expect("it was possible a moment ago");
        let scene = Self { ours: namespace(), world: namespace() };
        scene.in_ours(|| ip("link set lo up"));
        scene.in_world(|| {
            ip("link set lo up");
            ip("address add 203.0.113.1/32 dev lo");
            ip("address add 203.0.113.9/32 dev lo");
        });
        let world = format!("/proc/{}/fd/{}", std::process::id(), scene.world.file().as_raw_fd());
        for n in 0..2 {
            let net = n + 1;
            scene.in_ours(|| ip(&format!("link add up{n} type veth peer name down{n} netns {world}")));
            scene.in_world(|| {
                ip(&format!("address add 10.{net}.0.1/24 dev down{n}"));
                ip(&format!("link set down{n} up"));
            });
            scene.in_ours(|| {
                ip(&format!("link set up{n} up"));
                ip(&format!("address add 10.{net}.0.2/24 dev up{n}"));
                ip(&format!("route add default via 10.{net}.0.1 dev up{n} metric 10{n}"));
            });
        }
        scene
    }

    pub fn in_ours<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.ours.run(work).expect("the namespace can be entered")
    }

    pub fn in_world<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.world.run(work).expect("the namespace can be entered")
    }
}

/// Runs `work` on an event loop of its own.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an event loop");
    runtime.block_on(work)
}

pub fn policy(name: &str) -> Box<dyn DatagramPolicy> {
    build(TABLE, name, &Settings::new()).expect("it is in the table")
}

pub fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A server whose clients may reach all ports except 9.
pub fn server(bind: SocketAddr, nameservers: Vec<SocketAddr>) -> ServerConfig {
    ServerConfig {
        bind,
        keys: vec![KEY.into()],
        allow: Arc::new(|target| target.port() != 9),
        policy: Arc::new(|| policy("lowest_delay")),
        nameservers,
        limits: Limits::default(),
        journal: None,
    }
}

/// A client of `server` in the calling event loop.
pub fn client(server: SocketAddr, key: [u8; 32], name: &str) -> Client {
    let config = ClientConfig { server: server.into(), key, interfaces: Vec::new(), policy: policy(name) };
    let (client, work) = Client::start(config).expect("sockets can be opened");
    tokio::spawn(work);
    client
}

/// A datagram from 10.9.0.1:7.
pub fn udp(outside: SocketAddr, payload: &[u8]) -> Datagram {
    let payload = Bytes::copy_from_slice(payload);
    Datagram { kind: Kind::Udp, inside: address("10.9.0.1:7"), outside, payload }
}

/// Sends the datagram until its answer arrives, and returns the answer.
pub async fn ask(client: &Client, question: &Datagram) -> Option<Datagram> {
    let begun = Instant::now();
    while begun.elapsed() < LONG {
        client.send(question.clone());
        let answer = tokio::time::timeout(Duration::from_millis(100), client.receive()).await;
        if let Ok(answer) = answer {
            return Some(answer);
        }
    }
    None
}

/// An echo target. Returns its address.
pub async fn target(bind: &str) -> SocketAddr {
    let socket = UdpSocket::bind(bind).await.expect("a port is free");
    let place = socket.local_addr().expect("it is bound");
    tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 16];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&buffer[..length], from).await;
        }
    });
    place
}
