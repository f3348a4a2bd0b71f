//! New connections while the first uplink is silently dead: it swallows everything and nothing says so.

use crate::kernel::ip;
use crate::program::{Directory, run, there_is, web};
use crate::scene::{PORT, connection, limits, one_listener, proxy, scene, server, stack, stack_address, via};
use anabranch_policy::ids::AddressId;
use anabranch_proxy::{AllowList, Destination, Forward, Key, Limits, Via};
use libtest_mimic::Trial;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 3] = [
        ("dead_uplinks::through_a_server_all_new_connections_go_over_the_other", through_a_server),
        ("dead_uplinks::an_uplink_that_goes_while_the_key_is_proved_costs_an_attempt_and_not_the_connection", goes),
        ("dead_uplinks::straight_to_targets_all_new_connections_go_over_the_other", straight),
    ];
    let missing = !there_is("curl") || !there_is("python3");
    let trial = |(name, test): (&str, fn())| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(missing)
    };
    tests.into_iter().map(trial).collect()
}

/// A connection is refused before the SYN on the dead uplink would be sent a fourth time.
fn patience() -> Limits {
    Limits { connect: Duration::from_secs(5), ..limits() }
}

/// What leaves the stack on path 0 goes nowhere, and nothing comes there.
fn kill_first() {
    ip("route add blackhole 10.0.0.2/32");
    ip("rule add from 10.0.0.2 blackhole");
}

async fn fetch_all(proxy: SocketAddr, url: &str) {
    let proxy = format!("socks5h://{proxy}");
    for n in 0..25 {
        let page = run(&["curl", "--silent", "--show-error", "--max-time", "20", "--proxy", &proxy, url]).await;
        assert_eq!(page, b"over the other".to_vec(), "connection {n}");
    }
}

fn through_a_server() {
    scene(120, || async {
        let (near, far) = (stack(0..2), stack(2..4));
        let key = Key::generate().expect("random numbers");
        kill_first();
        let allowed = AllowList::new(vec!["127.0.0.1:8000".parse().expect("a rule")]);
        let _serve = server(&far, Some(&key), Destination::Named(allowed), limits());
        let (address, running) = proxy(&near, via(2, &key), patience());
        let directory = Directory::new();
        std::fs::write(directory.path().join("page"), "over the other").expect("it can be written");
        let _web = web(directory.path(), 8000, false).await;
        fetch_all(address, "http://127.0.0.1:8000/page").await;
        let counters = running.stop().await;
        assert_eq!(counters.finished, 25, "{counters}");
    });
}

fn straight() {
    scene(120, || async {
        let near = stack(0..2);
        kill_first();
        let (address, running) = proxy(&near, Via::Direct, patience());
        let directory = Directory::new();
        std::fs::write(directory.path().join("page"), "over the other").expect("it can be written");
        let _web = web(directory.path(), 8000, false).await;
        // The kernel's address on a path that is not dead.
        fetch_all(address, "http://10.0.1.1:8000/page").await;
        let counters = running.stop().await;
        assert_eq!(counters.finished, 25, "{counters}");
    });
}

/// The server is slow to answer, the connection has one subflow yet, and that loses its address.
fn goes() {
    scene(60, || async {
        let (near, far) = (stack(0..2), stack(2..4));
        let key = Key::generate().expect("random numbers");
        let listener = far.listen(PORT, connection()).expect("the port is free");
        let (address, _running) = one_listener(&near, via(2, &key), Forward::ServerDefault, limits());
        let _program = TcpStream::connect(address).await.expect("the proxy listens");
        let first = listener.accept().await.expect("it comes").peer_address().ip();
        near.address_down(AddressId(if first == stack_address(0) { 1 } else { 2 }));
        let second = listener.accept().await.expect("it comes again").peer_address().ip();
        assert!(first != second && [0, 1].map(stack_address).contains(&second), "{first}, {second}");
    });
}
