//! How ends, resets, slow readers and limits look from both sides of the proxy.

use crate::kernel::{ip, sysctl};
use crate::program::{noise, sha256};
use crate::scene::{Running, kernel_address, limits, one_listener, proxy, scene, server, stack, via};
use anabranch_proxy::{AllowList, Destination, Forward, Key, Limits, Via};
use libtest_mimic::Trial;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    // Straight to the target, and through a server.
    for (how, served) in [("direct", false), ("served", true)] {
        for (name, work) in [
            ("each_direction_ends_for_itself", halves as fn(bool)),
            ("a_reset_passes_through_both_ways", resets),
            ("a_slow_reader_slows_the_writer_down", slow_reader),
            ("who_is_not_connected_is_told_why", refusals),
        ] {
            trials.push(Trial::test(format!("manners::{name}_{how}"), move || {
                work(served);
                Ok(())
            }));
        }
    }
    for (name, work) in [
        ("idle_connections_end", idle as fn()),
        ("there_is_a_limit_of_connections", limit),
        ("connections_finish_for_a_moment_after_the_end_was_asked_for", drain),
        ("connections_that_are_let_finish_end_at_once_in_a_hurry", hurry),
    ] {
        trials.push(Trial::test(format!("manners::{name}"), move || {
            work();
            Ok(())
        }));
    }
    trials
}

/// A proxy that asks, straight or through a server of its own, and what must be stopped at the end.
struct Way {
    address: SocketAddr,
    running: Vec<Running>,
}

impl Way {
    fn new(served: bool) -> Self {
        let near = stack(0..2);
        if !served {
            let (address, running) = proxy(&near, Via::Direct, limits());
            return Self { address, running: vec![running] };
        }
        let (far, key) = (stack(2..4), Key::generate().expect("random numbers"));
        let serve = server(&far, Some(&key), Destination::Named(AllowList::default()), limits());
        let (address, running) = proxy(&near, via(2, &key), limits());
        Self { address, running: vec![running, serve] }
    }

    /// A connection to `target`, which must succeed.
    async fn connect(&self, target: SocketAddr) -> TcpStream {
        let (socket, reply) = ask(self.address, target).await;
        assert_eq!(reply, Some(0));
        socket
    }
}

/// Asks a proxy for a target; returns REP of the reply, if there is one.
async fn ask(proxy: SocketAddr, target: SocketAddr) -> (TcpStream, Option<u8>) {
    let mut socket = TcpStream::connect(proxy).await.expect("it listens");
    let SocketAddr::V4(target) = target else { panic!("these tests are about IPv4") };
    let mut words = vec![5, 1, 0, 5, 1, 0, 1];
    words.extend_from_slice(&target.ip().octets());
    words.extend_from_slice(&target.port().to_be_bytes());
    let mut reply = [0; 12];
    if socket.write_all(&words).await.is_err() || socket.read_exact(&mut reply).await.is_err() {
        return (socket, None);
    }
    assert_eq!(reply[..3], [5, 0, 5]);
    (socket, Some(reply[3]))
}

/// A listener of the kernel's.
async fn target() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((kernel_address(0), 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    (listener, address)
}

async fn read_all(socket: &mut TcpStream) -> Vec<u8> {
    let mut text = Vec::new();
    socket.read_to_end(&mut text).await.expect("it ends in peace");
    text
}

fn halves(served: bool) {
    scene(60, || async move {
        let way = Way::new(served);
        let (listener, address) = target().await;
        for client_first in [true, false] {
            let mut one = way.connect(address).await;
            let (mut other, _) = listener.accept().await.expect("somebody connects");
            if !client_first {
                std::mem::swap(&mut one, &mut other);
            }
            one.write_all(b"a question").await.expect("it is open");
            one.shutdown().await.expect("it is open");
            assert_eq!(read_all(&mut other).await, b"a question");
            // The other direction goes on, for as long as it likes.
            sleep(Duration::from_millis(300)).await;
            other.write_all(b"an answer").await.expect("it is open");
            other.shutdown().await.expect("it is open");
            assert_eq!(read_all(&mut one).await, b"an answer");
        }
        for running in way.running {
            let counters = running.stop().await;
            assert_eq!((counters.finished, counters.reset, counters.stopped), (2, 0, 0), "{counters}");
        }
    });
}

fn resets(served: bool) {
    scene(60, || async move {
        let way = Way::new(served);
        let (listener, address) = target().await;
        for client_resets in [true, false] {
            let mut one = way.connect(address).await;
            let (mut other, _) = listener.accept().await.expect("somebody connects");
            one.write_all(b"x").await.expect("it is open");
            assert_eq!(other.read_u8().await.expect("it comes"), b'x');
            if !client_resets {
                std::mem::swap(&mut one, &mut other);
            }
            socket2::SockRef::from(&one).set_linger(Some(Duration::ZERO)).expect("it is open");
            drop(one);
            let outcome = timeout(Duration::from_secs(10), other.read_u8()).await.expect("it is told");
            assert_eq!(outcome.expect_err("it ends").kind(), ErrorKind::ConnectionReset);
        }
        for running in way.running {
            let counters = running.stop().await;
            assert_eq!((counters.finished, counters.reset, counters.tampered), (0, 2, 0), "{counters}");
        }
    });
}

fn slow_reader(served: bool) {
    scene(60, || async move {
        let way = Way::new(served);
        let (listener, address) = target().await;
        let mut client = way.connect(address).await;
        let (mut far, _) = listener.accept().await.expect("somebody connects");
        let text = noise(100_000_000);
        let digest = sha256(&text);
        // Until nothing moves for a second.
        let mut written = 0;
        while let Ok(more) = timeout(Duration::from_secs(1), client.write(&text[written..])).await {
            written += more.expect("it is open");
            assert!(written < text.len(), "somewhere on the way all of it was taken");
        }
        // Two sockets' buffers and those of the streams between: 6 MB here and 4 MB there.
        assert!(written < 50_000_000, "{written} bytes wait");
        let rest = tokio::spawn(async move {
            client.write_all(&text[written..]).await.expect("it is open");
            client.shutdown().await.expect("it is open");
            client
        });
        assert_eq!(sha256(&read_all(&mut far).await), digest);
        drop(far);
        assert!(read_all(&mut rest.await.expect("it ends well")).await.is_empty());
        for running in way.running {
            let counters = running.stop().await;
            assert_eq!((counters.finished, counters.bytes_up), (1, 100_000_000), "{counters}");
        }
    });
}

fn refusals(served: bool) {
    scene(60, || async move {
        let way = Way::new(served);
        let (listener, address) = target().await;
        drop(listener);
        assert_eq!(ask(way.address, address).await.1, Some(5), "nobody listens there");
        if served {
            assert_eq!(ask(way.address, SocketAddr::from(([127, 0, 0, 1], 80))).await.1, Some(2), "not allowed");
        }
        // A name that there is not, and a family that there is not on our side or on the server's.
        let answer = connect_over_http(way.address, "no-such-name.invalid:80").await;
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.ends_with("cannot be reached.\n"), "{answer}");
        let answer = connect_over_http(way.address, "[2001:db8::1]:80").await;
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.ends_with("from.\n"), "{answer}");
        if !served {
            unreachable(way.address).await;
        }
        // Who sends more than its refused request still reads the answer.
        let mut socket = TcpStream::connect(way.address).await.expect("it listens");
        let post = format!("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(100_000));
        socket.write_all(post.as_bytes()).await.expect("it is open");
        let mut answer = vec![0; 12];
        socket.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(answer, b"HTTP/1.1 400");
        drop(socket);
        let mut failed = 0;
        for running in way.running {
            failed += running.stop().await.failed;
        }
        assert_eq!(failed, 6);
    });
}

/// Targets that the kernel, the stack's router, does not reach.
async fn unreachable(proxy: SocketAddr) {
    sysctl("ipv4.icmp_ratelimit", "0");
    ip("route add unreachable 192.0.2.1");
    for (host, reply) in [(1, 4), (2, 3)] {
        assert_eq!(ask(proxy, SocketAddr::from(([192, 0, 2, host], 80))).await.1, Some(reply), "192.0.2.{host}");
    }
    let answer = connect_over_http(proxy, "192.0.2.1:80").await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.ends_with("cannot be reached.\n"), "{answer}");
}

/// What a proxy says to CONNECT, if it is not connected.
async fn connect_over_http(proxy: SocketAddr, target: &str) -> String {
    let mut socket = TcpStream::connect(proxy).await.expect("it listens");
    socket.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.expect("it is open");
    String::from_utf8(read_all(&mut socket).await).expect("text")
}

fn idle() {
    scene(60, || async {
        let near = stack(0..1);
        let (listener, address) = target().await;
        let limits = Limits { idle: Duration::from_millis(400), ..limits() };
        let (place, running) = one_listener(&near, Via::Direct, Forward::To(address.into()), limits);
        let mut client = TcpStream::connect(place).await.expect("it listens");
        let (mut far, _) = listener.accept().await.expect("somebody connects");
        for _ in 0..10 {
            client.write_all(b"x").await.expect("it is open");
            assert_eq!(far.read_u8().await.expect("it is not idle"), b'x');
            sleep(Duration::from_millis(150)).await;
        }
        assert_eq!(client.read_u8().await.expect_err("it is idle").kind(), ErrorKind::ConnectionReset);
        assert_eq!(far.read_u8().await.expect_err("it is idle").kind(), ErrorKind::ConnectionReset);
        assert_eq!(running.stop().await.idle, 1);
    });
}

fn limit() {
    scene(60, || async {
        let near = stack(0..1);
        let (listener, address) = target().await;
        let (proxy, running) = proxy(&near, Via::Direct, Limits { connections: 2, ..limits() });
        let (first, _) = ask(proxy, address).await;
        let (_second, _) = ask(proxy, address).await;
        assert_eq!(ask(proxy, address).await.1, None, "there are two");
        drop((first, listener.accept().await.expect("the first comes")));
        // Room again, as soon as both directions have ended.
        let mut reply = None;
        for _ in 0..50 {
            sleep(Duration::from_millis(50)).await;
            reply = ask(proxy, address).await.1;
            if reply.is_some() {
                break;
            }
        }
        assert_eq!(reply, Some(0));
        let counters = running.stop().await;
        assert!(counters.over_limit >= 1 && counters.accepted == 3 && counters.most == 2, "{counters}");
    });
}

fn hurry() {
    scene(30, || async {
        let near = stack(0..1);
        let (listener, address) = target().await;
        let limits = Limits { drain: Duration::from_secs(3_600), ..limits() };
        let (proxy, running) = proxy(&near, Via::Direct, limits);
        let (mut stays, _) = ask(proxy, address).await;
        let (mut far, _) = listener.accept().await.expect("somebody connects");
        let control = running.control.clone();
        let stopping = tokio::spawn(running.stop());
        sleep(Duration::from_millis(200)).await;
        assert!(!stopping.is_finished(), "it has an hour");
        control.hurry();
        for end in [&mut stays, &mut far] {
            assert_eq!(end.read_u8().await.expect_err("it is ended").kind(), ErrorKind::ConnectionReset);
        }
        assert_eq!(stopping.await.expect("it ends well").stopped, 1);
    });
}

fn drain() {
    scene(60, || async {
        let near = stack(0..1);
        let (listener, address) = target().await;
        let (proxy, running) = proxy(&near, Via::Direct, Limits { drain: Duration::from_secs(2), ..limits() });
        let (mut finishes, _) = ask(proxy, address).await;
        let (mut far, _) = listener.accept().await.expect("somebody connects");
        let (mut stays, _) = ask(proxy, address).await;
        let (mut stays_far, _) = listener.accept().await.expect("somebody connects");
        let stopping = tokio::spawn(running.stop());
        sleep(Duration::from_millis(200)).await;
        assert!(TcpStream::connect(proxy).await.is_err(), "nobody is let in");
        finishes.write_all(b"the last word").await.expect("it is open");
        finishes.shutdown().await.expect("it is open");
        assert_eq!(read_all(&mut far).await, b"the last word");
        drop(far);
        assert!(read_all(&mut finishes).await.is_empty());
        assert_eq!(stays.read_u8().await.expect_err("time is up").kind(), ErrorKind::ConnectionReset);
        assert_eq!(stays_far.read_u8().await.expect_err("time is up").kind(), ErrorKind::ConnectionReset);
        let counters = stopping.await.expect("it ends well");
        assert_eq!((counters.finished, counters.stopped), (1, 1), "{counters}");
    });
}
