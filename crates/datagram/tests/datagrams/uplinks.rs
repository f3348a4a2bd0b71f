//! Tests between namespaces, with two uplinks that fail.

use crate::scene::{KEY, LONG, Scene, address, ask, block_on, client, ip, server, target, udp};
use anabranch_datagram::{Client, ClientState, Datagram, Kind, Server};
use bytes::Bytes;
use libtest_mimic::Trial;
use std::time::Duration;
use tokio::sync::oneshot;

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, work: fn()| {
        Trial::test(name, move || {
            work();
            Ok(())
        })
    };
    vec![
        trial("a_stream_goes_on_over_the_other_uplink_when_one_is_silently_dead", a_dead_uplink),
        trial("an_uplink_that_loses_its_carrier_is_left_and_taken_again", a_lost_carrier),
        trial("a_client_whose_address_changes_keeps_its_session", a_new_address),
        trial("an_echo_request_is_answered_where_the_server_may_ask", an_echo),
    ]
}

const SERVER: &str = "203.0.113.1:4411";

/// Runs a server and a target in the world, and `work` with a client in ours.
fn between<W: Future<Output = ()>>(policy: &'static str, work: impl FnOnce(&'static Scene, Client) -> W + Send) {
    // Its threads may outlive a test that fails.
    let scene: &'static Scene = Box::leak(Box::new(Scene::new()));
    let (end, ended) = oneshot::channel::<()>();
    std::thread::scope(|scope| {
        let world = scope.spawn(move || {
            scene.in_world(|| {
                block_on(async {
                    target("203.0.113.9:7").await;
                    let server = Server::bind(server(address(SERVER), Vec::new())).expect("the port is free");
                    server.run(async { _ = ended.await }).await
                })
            })
        });
        scene.in_ours(|| {
            block_on(async {
                let client = client(address(SERVER), KEY, policy);
                ask(&client, &udp(address("203.0.113.9:7"), b"first")).await.expect("an answer");
                until(&client, [true, true]).await;
                work(scene, client).await;
            });
        });
        drop(end);
        world.join().expect("nothing went wrong there");
    });
}

/// Sends a number every 20 ms. Returns the numbers that came back.
async fn stream(client: &Client, numbers: core::ops::Range<u32>) -> Vec<u32> {
    let mut came = Vec::new();
    for number in numbers {
        client.send(udp(address("203.0.113.9:7"), &number.to_be_bytes()));
        let until = tokio::time::Instant::now() + Duration::from_millis(20);
        while let Ok(datagram) = tokio::time::timeout_at(until, client.receive()).await {
            came.extend(datagram.payload[..].try_into().ok().map(u32::from_be_bytes));
        }
    }
    came
}

/// Routes up0 to a host that does not exist: datagrams are lost without an ICMP error.
fn kill(scene: &Scene) {
    scene.in_ours(|| ip("neigh replace 10.1.0.1 lladdr 02:00:00:00:00:99 dev up0 nud permanent"));
}

/// Sends datagrams until exactly these uplinks are usable.
async fn until(client: &Client, expected: [bool; 2]) {
    let begun = std::time::Instant::now();
    loop {
        stream(client, 0..5).await;
        let report = client.report();
        if report.iter().map(|path| path.usable).eq(expected) {
            return;
        }
        assert!(begun.elapsed() < LONG, "{report:?}");
    }
}

fn a_dead_uplink() {
    between("lowest_delay", |scene, client| async move {
        kill(scene);
        until(&client, [false, true]).await;
        let came = stream(&client, 100..150).await;
        assert_eq!(came, (100..150).collect::<Vec<_>>());
    });
    between("duplicate", |scene, client| async move {
        kill(scene);
        let came = stream(&client, 0..100).await;
        assert_eq!(came, (0..100).collect::<Vec<_>>(), "nothing is lost meanwhile, and nothing comes twice");
    });
}

fn a_lost_carrier() {
    between("duplicate", |scene, client| async move {
        scene.in_world(|| ip("link set down0 down"));
        until(&client, [false, true]).await;
        scene.in_world(|| ip("link set down0 up"));
        scene.in_ours(|| ip("route replace default via 10.1.0.1 dev up0 metric 100"));
        let came = stream(&client, 0..100).await;
        assert_eq!(came, (0..100).collect::<Vec<_>>());
        until(&client, [true, true]).await;
    });
}

fn a_new_address() {
    between("lowest_delay", |scene, client| async move {
        scene.in_ours(|| {
            for n in 0..2 {
                ip(&format!("address del 10.{0}.0.2/24 dev up{n}", n + 1));
                ip(&format!("address add 10.{0}.0.77/24 dev up{n}", n + 1));
                ip(&format!("route replace default via 10.{0}.0.1 dev up{n} metric 10{n}", n + 1));
            }
        });
        let came = stream(&client, 0..150).await;
        assert_eq!(came.last(), Some(&149));
        assert_eq!(client.state(), ClientState::Connected);
        assert_eq!(client.counters().handshakes, 1);
    });
}

fn an_echo() {
    between("lowest_delay", |scene, client| async move {
        let inside = address("10.9.0.1:0");
        let request = |payload: &'static [u8]| Datagram {
            kind: Kind::Echo,
            inside,
            outside: address("203.0.113.9:0"),
            payload: Bytes::from_static(payload),
        };
        scene.in_world(|| {
            std::fs::write("/proc/sys/net/ipv4/ping_group_range", "1 0").expect("it can be set");
        });
        client.send(request(b"\x01\x02\x00\x01not allowed"));
        let none = tokio::time::timeout(Duration::from_millis(300), client.receive()).await;
        assert!(none.is_err(), "{none:?}");
        scene.in_world(|| {
            std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647").expect("it can be set");
        });
        let answer = ask(&client, &request(b"\x01\x02\x00\x01hello")).await.expect("an answer");
        assert_eq!(answer, request(b"\x01\x02\x00\x01hello"));
    });
}
