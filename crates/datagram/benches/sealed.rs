//! Sealed datagrams per second of processor time: a client and a server in one process, over loopback or without
//! sockets.
//!
//! `cargo bench -p anabranch-datagram --bench sealed [SECONDS]`

#![allow(clippy::print_stdout)]

use anabranch_datagram::session::{ClientSession, ServerSessions, Whereabouts};
use anabranch_datagram::{Client, ClientConfig, Datagram, Kind, Limits, Server, ServerConfig};
use anabranch_policy::datagram::{DatagramPolicy, TABLE};
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::net::SocketAddr;
use std::sync::Arc;

const KEY: [u8; 32] = [7; 32];
/// UDP payload in bytes, in a packet of 1,400 bytes.
const PAYLOAD: usize = 1_372;
/// Datagrams sent before yielding.
const AT_ONCE: usize = 32;

fn policy() -> Box<dyn DatagramPolicy> {
    build(TABLE, "lowest_delay", &Settings::new()).expect("it is in the table")
}

/// Seconds of user and system time.
fn times() -> (f64, f64) {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the kernel counts");
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    (seconds(usage.user_time()), seconds(usage.system_time()))
}

fn tell(name: &str, datagrams: u64, lost: u64, (user, system): (f64, f64)) {
    let rate = datagrams as f64 / (user + system);
    let megabits = rate * PAYLOAD as f64 * 8.0 / 1e6;
    println!(
        "{name}: {datagrams} datagrams of {PAYLOAD} bytes, {lost} lost, {user:.2} s user, {system:.2} s system: {rate:.0} a processor \
         second, {megabits:.0} Mbit/s"
    );
}

fn datagram(outside: SocketAddr) -> Datagram {
    let inside = SocketAddr::new([10, 9, 0, 1].into(), 7);
    Datagram { kind: Kind::Udp, inside, outside, payload: Bytes::from_static(&[5; PAYLOAD]) }
}

/// Both ends in memory: choose, seal, open, count.
fn without_sockets(count: u64) {
    let mut now = Instant::ZERO + Duration::from_secs(1);
    let from = Whereabouts { client: SocketAddr::new([10, 0, 0, 1].into(), 4_000), ours: None };
    let mut client = ClientSession::new(KEY, 1, policy(), now);
    client.open_path(0, now);
    let mut server = ServerSessions::new(vec![KEY.into()], Arc::new(policy), 1, || 1);
    let datagram = datagram(SocketAddr::new([192, 0, 2, 1].into(), 9));
    let (mut sent, mut came, mut buffer, mut begun) = (0, 0, Vec::new(), times());
    while sent < count {
        now += Duration::from_micros(100);
        if client.poll_timeout() <= now {
            client.handle_timeout(now);
        }
        if server.poll_timeout() <= now {
            server.handle_timeout(now);
        }
        for _ in 0..AT_ONCE {
            sent += u64::from(client.send(now, &datagram));
        }
        if let Some(outbox) = client.outbox(0) {
            outbox.drain(1, |batch| {
                buffer.clear();
                buffer.extend_from_slice(batch.bytes);
                server.handle_datagram(now, from, &mut buffer);
            });
        }
        came += core::iter::from_fn(|| server.poll_datagram()).count() as u64;
        server.outbox().drain(1, |batch| {
            buffer.clear();
            buffer.extend_from_slice(batch.bytes);
            client.handle_datagram(now, 0, &mut buffer);
        });
        if came == 0 {
            begun = times();
        }
    }
    let end = times();
    tell("both ends without sockets", came, sent - came, (end.0 - begun.0, end.1 - begun.1));
}

/// From a client through a server to a socket that is never read. The kernel's work for the server's sockets is
/// included.
async fn over_loopback(seconds: u64) {
    let sink = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
    let target = sink.local_addr().expect("it is bound");
    let config = ServerConfig {
        bind: SocketAddr::new([127, 0, 0, 1].into(), 0),
        keys: vec![KEY.into()],
        allow: Arc::new(|_| true),
        policy: Arc::new(policy),
        nameservers: Vec::new(),
        limits: Limits::default(),
        journal: None,
    };
    let server = Server::bind(config).expect("a port is free");
    let place = server.local_address().expect("it is bound");
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(server.run(async { _ = ended.await }));
    let config = ClientConfig { server: place.into(), key: KEY, interfaces: Vec::new(), policy: policy() };
    let (client, work) = Client::start(config).expect("sockets can be opened");
    tokio::spawn(work);
    let datagram = datagram(target);
    while !client.send(datagram.clone()) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let (begun, clock, mut sent) = (times(), std::time::Instant::now(), 0);
    while clock.elapsed().as_secs() < seconds {
        sent += (0..AT_ONCE).filter(|_| client.send(datagram.clone())).count() as u64;
        tokio::task::yield_now().await;
    }
    let end_times = times();
    drop(end);
    let done = server.await.expect("it ends");
    let came = done.sessions.received;
    tell(
        "client, loopback, server, target",
        came,
        sent.saturating_sub(came),
        (end_times.0 - begun.0, end_times.1 - begun.1),
    );
}

fn main() {
    let seconds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(3);
    without_sockets(200_000 * seconds);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an event loop");
    runtime.block_on(over_loopback(seconds));
}
