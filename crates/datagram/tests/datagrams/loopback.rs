//! Tests on loopback, with a relay between client and server that records, replays and forges datagrams.

use crate::scene::{KEY, address, ask, block_on, client, server, target, udp};
use anabranch_datagram::{ClientState, Datagram, Done, Kind, LARGEST_PAYLOAD, Server};
use bytes::Bytes;
use libtest_mimic::Trial;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, work: fn()| {
        Trial::test(name, move || {
            work();
            Ok(())
        })
    };
    vec![
        trial("datagrams_of_all_sizes_go_to_a_target_and_back", all_sizes),
        trial("a_question_is_answered_by_the_servers_resolver_whatever_was_asked", a_question),
        trial("what_is_not_allowed_is_not_reached", not_allowed),
        trial("a_wrong_key_gets_no_word_and_the_server_tells_of_it_once", a_wrong_key),
        trial("a_recorder_that_repeats_everything_from_elsewhere_changes_nothing", a_recorder),
        trial("a_server_that_was_restarted_has_its_client_back", a_restart),
    ]
}

/// A server in the calling event loop; it ends when the sender is dropped.
fn serve(config: anabranch_datagram::ServerConfig) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<Done>) {
    let server = Server::bind(config).expect("a port is free");
    let place = server.local_address().expect("it is bound");
    let (end, ended) = oneshot::channel();
    (place, end, tokio::spawn(server.run(async { _ = ended.await })))
}

fn anywhere() -> SocketAddr {
    address("127.0.0.1:0")
}

fn all_sizes() {
    block_on(async {
        let (place, end, done) = serve(server(anywhere(), Vec::new()));
        let target = target("127.0.0.1:0").await;
        let client = client(place, KEY, "lowest_delay");
        ask(&client, &udp(target, b"first")).await.expect("an answer");
        for size in [0, 1, 100, 1_000, 1_372, 8_000, 65_507] {
            let question = udp(target, &vec![5; size]);
            let answer = ask(&client, &question).await.expect("an answer");
            assert!(answer == question, "{size} bytes");
        }
        assert!(!client.send(udp(target, &[0; LARGEST_PAYLOAD + 1])));
        assert_eq!(client.counters().too_large, 1);
        let report = client.report();
        assert!(report[0].usable && report[0].round_trip.is_some() && report[0].datagrams_received > 6);
        client.close();
        drop(end);
        let done = done.await.expect("it ends");
        assert_eq!((done.sessions.clients, done.sessions.unproven, done.mappings.made), (1, 0, 1));
    });
}

fn a_question() {
    block_on(async {
        let resolver = target("127.0.0.1:0").await;
        let (place, _end, _done) = serve(server(anywhere(), vec![resolver]));
        let client = client(place, KEY, "lowest_delay");
        let question = Datagram { kind: Kind::Dns, ..udp(address("192.0.2.53:53"), b"\x12\x34who") };
        let answer = ask(&client, &question).await.expect("an answer");
        assert_eq!(answer, question);
    });
}

fn not_allowed() {
    block_on(async {
        let (place, end, done) = serve(server(anywhere(), Vec::new()));
        let target = target("127.0.0.1:0").await;
        let client = client(place, KEY, "lowest_delay");
        ask(&client, &udp(target, b"first")).await.expect("an answer");
        assert!(client.send(udp(address("127.0.0.1:9"), b"x")));
        ask(&client, &udp(target, b"last")).await.expect("an answer");
        drop(end);
        assert_eq!(done.await.expect("it ends").mappings.not_allowed, 1);
    });
}

fn a_wrong_key() {
    block_on(async {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&lines);
        let mut config = server(anywhere(), Vec::new());
        config.journal = Some(Arc::new(move |line: &str| told.lock().expect("nobody panics").push(line.to_owned())));
        // A socket of both families, which tells addresses of IPv4 as mapped ones.
        config.bind = address("[::]:0");
        let (place, end, done) = serve(config);
        let place = SocketAddr::from(([127, 0, 0, 1], place.port()));
        let client = client(place, [8; 32], "lowest_delay");
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert_eq!(client.state(), ClientState::Beginning);
        assert!(!client.send(udp(address("192.0.2.1:1"), b"x")));
        drop(end);
        let done = done.await.expect("it ends").sessions;
        assert!(done.unproven >= 3 && done.clients == 0, "{done}");
        let lines = lines.lock().expect("nobody panics");
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("does not prove the key"), "{}", lines[0]);
        assert!(lines[0].starts_with("a datagram client at 127.0.0.1:"), "{}", lines[0]);
    });
}

/// A relay to `server` that records all datagrams to it.
async fn relay(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let (inner, outer) = (UdpSocket::bind("127.0.0.1:0").await, UdpSocket::bind("127.0.0.1:0").await);
    let (inner, outer) = (inner.expect("a port is free"), outer.expect("a port is free"));
    let place = inner.local_addr().expect("it is bound");
    let seen = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let record = Arc::clone(&seen);
    tokio::spawn(async move {
        let (mut there, mut back, mut client) = ([0; 2_048], [0; 2_048], None);
        loop {
            tokio::select! {
                Ok((length, from)) = inner.recv_from(&mut there) => {
                    client = Some(from);
                    record.lock().expect("nobody panics").push(there[..length].to_vec());
                    let _ = outer.send_to(&there[..length], server).await;
                }
                Ok((length, _)) = outer.recv_from(&mut back) => {
                    let Some(client) = client else { continue };
                    let _ = inner.send_to(&back[..length], client).await;
                }
            }
        }
    });
    (place, seen)
}

fn a_recorder() {
    block_on(async {
        let (place, end, done) = serve(server(anywhere(), Vec::new()));
        let target = target("127.0.0.1:0").await;
        let (relay, seen) = relay(place).await;
        let client = client(relay, KEY, "lowest_delay");
        for number in 0..20 {
            ask(&client, &udp(target, &[number])).await.expect("an answer");
        }
        let attacker = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let seen: Vec<Vec<u8>> = seen.lock().expect("nobody panics").clone();
        for datagram in &seen {
            attacker.send_to(datagram, place).await.expect("it can be sent");
            // A changed copy and a truncated one.
            let mut changed = datagram.clone();
            changed[datagram.len() / 2] ^= 1;
            attacker.send_to(&changed, place).await.expect("it can be sent");
            attacker.send_to(&datagram[..datagram.len() / 2], place).await.expect("it can be sent");
        }
        let answer = ask(&client, &udp(target, b"after")).await.expect("an answer");
        assert_eq!(answer.payload, Bytes::from_static(b"after"));
        assert_eq!(tokio::time::timeout(Duration::from_millis(200), client.receive()).await, Err(elapsed().await));
        let mut buffer = [0; 2_048];
        let mut answered = 0;
        while let Ok((length, _)) = attacker.try_recv_from(&mut buffer) {
            answered += length;
        }
        assert!(answered <= 57, "the recorded first message is answered, with as many bytes: {answered}");
        drop(end);
        let done = done.await.expect("it ends").sessions;
        assert_eq!((done.clients, done.moved), (1, 0));
        assert!(done.rejected >= seen.len() as u64, "{done}");
    });
}

/// The error of an elapsed timeout.
async fn elapsed() -> tokio::time::error::Elapsed {
    tokio::time::timeout(Duration::ZERO, std::future::pending::<()>()).await.expect_err("it never comes")
}

fn a_restart() {
    block_on(async {
        let (place, end, done) = serve(server(anywhere(), Vec::new()));
        let target = target("127.0.0.1:0").await;
        let client = client(place, KEY, "lowest_delay");
        ask(&client, &udp(target, b"first")).await.expect("an answer");
        // As if killed: without a goodbye.
        done.abort();
        let _ = done.await;
        drop(end);
        // Another test's socket may have the port for a moment.
        while let Err(error) = std::net::UdpSocket::bind(place) {
            assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (_, _end, _done) = serve(server(place, Vec::new()));
        let answer = ask(&client, &udp(target, b"again")).await.expect("an answer");
        assert_eq!(answer.payload, Bytes::from_static(b"again"));
        assert_eq!(client.counters().handshakes, 2);
    });
}
