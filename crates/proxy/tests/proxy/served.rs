//! Through `serve`: with a key over paths of which one dies, and without one for MPTCP programs of the same host.

use crate::kernel::ip;
use crate::program::{Directory, curl, output, run, sha256, start, there_is, web};
use crate::scene::{
    PORT, kernel_address, limits, one_listener, prioritising, proxy, scene, server, stack, stack_address, via,
};
use anabranch_proxy::{AllowList, Destination, Forward, Key, Limits, Priorities, Target};
use libtest_mimic::Trial;
use std::net::SocketAddr;
use std::process::Output;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    let test = |name: &str, programs: &[&str], work: fn()| {
        let missing: Vec<&str> = programs.iter().copied().filter(|program| !there_is(program)).collect();
        if !missing.is_empty() {
            eprintln!("skipped: served::{name}: there is no {}", missing.join(" and no "));
        }
        let run = move || {
            work();
            Ok(())
        };
        Trial::test(format!("served::{name}"), run).with_ignored_flag(!missing.is_empty())
    };
    vec![
        test("a_download_outlives_a_path_that_dies", &["curl", "python3"], dying_path),
        test("targets_are_named_there_and_checked_there", &["curl", "python3"], allowed),
        test("what_comes_back_has_the_priority_of_its_target", &["curl", "python3"], prioritised),
        test("a_forwarded_port_leads_where_the_server_leads", &["curl", "python3"], fixed),
        test("iperf3_under_mptcpize_in_both_directions", &["iperf3", "mptcpize"], iperf),
        test("curl_under_mptcpize", &["curl", "mptcpize", "python3"], curl_under_mptcpize),
        test("python_is_a_client_with_multipath_sockets", &["python3"], python_client),
    ]
}

fn key() -> Key {
    Key::generate().expect("random numbers")
}

/// The target at the kernel's own loopback.
fn local(port: u16) -> Target {
    SocketAddr::from(([127, 0, 0, 1], port)).into()
}

fn dying_path() {
    scene(60, || async {
        let (near, far, key) = (stack(0..2), stack(2..4), key());
        let serve = server(
            &far,
            Some(&key),
            Destination::Named(rules(&["127.0.0.1:8000"])),
            Limits { drain: Duration::from_secs(30), ..limits() },
        );
        let (address, running) = proxy(&near, via(2, &key), limits());
        let directory = Directory::new();
        let digest = directory.fill("file", 100_000_000);
        let _web = web(directory.path(), 8000, false).await;
        // Slow enough that a path can die in the middle.
        let download = tokio::spawn(async move {
            let proxy = format!("socks5h://{address}");
            run(&[
                "curl",
                "--silent",
                "--show-error",
                "--limit-rate",
                "40M",
                "--proxy",
                &proxy,
                "http://127.0.0.1:8000/file",
            ])
            .await
        });
        tokio::time::sleep(Duration::from_millis(800)).await;
        // The first path, over which the connection was opened, falls silent in both directions.
        ip("route add blackhole 10.0.0.2/32");
        ip("rule add from 10.0.0.2 blackhole");
        assert!(!download.is_finished(), "the path is to die in the middle");
        assert_eq!(sha256(&download.await.expect("curl ends")), digest);
        let (counters, serve) = (running.stop().await, serve.stop().await);
        assert_eq!((counters.finished, counters.tampered, counters.reset), (1, 0, 0), "{counters}");
        assert_eq!((serve.accepted, serve.unproven, serve.reset), (1, 0, 0), "{serve}");
        // The proxy's own reply has 10 bytes.
        assert_eq!(serve.bytes_down + 10, counters.bytes_down);
    });
}

fn rules(rules: &[&str]) -> AllowList {
    AllowList::new(rules.iter().map(|rule| rule.parse().expect("a rule")).collect())
}

fn prioritised() {
    scene(60, || async {
        let (near, far, key) = (stack(0..1), stack(1..2), key());
        let priorities = ["127.0.0.0/8:8001=6", "127.0.0.0/8=4"].map(|rule| rule.parse().expect("a rule")).to_vec();
        let destination = Destination::Named(rules(&["127.0.0.1:*"]));
        let _serve = prioritising(&far, Some(&key), destination, limits(), Priorities::new(priorities));
        let (address, _running) = proxy(&near, via(1, &key), limits());
        let directory = Directory::new();
        directory.fill("file", 100_000_000);
        for (port, priority) in [(8000, 4), (8001, 6)] {
            let _web = web(directory.path(), port, false).await;
            let slowly = tokio::spawn(async move {
                let (proxy, url) = (format!("socks5h://{address}"), format!("http://127.0.0.1:{port}/file"));
                run(&["curl", "--silent", "--limit-rate", "20M", "--proxy", &proxy, &url]).await
            });
            tokio::time::sleep(Duration::from_millis(800)).await;
            assert!(!slowly.is_finished(), "it is to be looked at in the middle");
            let priorities: Vec<u8> = far.connections(10).iter().map(|connection| connection.priority).collect();
            assert_eq!(priorities.last(), Some(&priority), "port {port}: {priorities:?}");
            slowly.abort();
        }
    });
}

fn allowed() {
    scene(60, || async {
        let (near, far, key) = (stack(0..1), stack(1..2), key());
        let serve = server(&far, Some(&key), Destination::Named(rules(&["localhost:8000", "*:8001"])), limits());
        let (address, running) = proxy(&near, via(1, &key), limits());
        let directory = Directory::new();
        let digest = directory.fill("file", 1_000_000);
        let _web = web(directory.path(), 8000, false).await;
        let _other = web(directory.path(), 8001, false).await;
        for url in ["http://localhost:8000/file", "http://10.0.0.1:8001/file"] {
            assert_eq!(sha256(&curl("socks5h", address, url).await), digest, "{url}");
            assert_eq!(sha256(&curl("http", address, url).await), digest, "{url}");
        }
        // Another port, an address that no rule has, and this host's own in disguise.
        for url in
            ["http://localhost:8002/", "http://10.0.0.1:8000/", "http://127.0.0.1:8001/", "http://localhost:8001/"]
        {
            let refused = output(&["curl", "--silent", "--proxy", &format!("socks5h://{address}"), url]).await;
            assert_eq!(refused.status.code(), Some(97), "{url}");
        }
        let (counters, serve) = (running.stop().await, serve.stop().await);
        assert_eq!((counters.finished, counters.not_allowed), (4, 4), "{counters}");
        assert_eq!((serve.finished, serve.not_allowed), (4, 4), "{serve}");
    });
}

fn fixed() {
    scene(60, || async {
        let (near, far, key) = (stack(0..1), stack(1..2), key());
        let serve = server(&far, Some(&key), Destination::Fixed(local(8000)), limits());
        let (address, running) = one_listener(&near, via(1, &key), Forward::ServerDefault, limits());
        let (asking, other) = proxy(&near, via(1, &key), limits());
        let directory = Directory::new();
        let digest = directory.fill("file", 1_000_000);
        let _web = web(directory.path(), 8000, false).await;
        let body = run(&["curl", "--silent", "--show-error", &format!("http://{address}/file")]).await;
        assert_eq!(sha256(&body), digest);
        assert_eq!(
            sha256(&curl("socks5h", asking, "http://127.0.0.1:8000/file").await),
            digest,
            "its own target by name"
        );
        let refused =
            output(&["curl", "--silent", "--proxy", &format!("socks5h://{asking}"), "http://127.0.0.1:8001/"]).await;
        assert_eq!(refused.status.code(), Some(97), "no other target");
        assert_eq!(running.stop().await.finished, 1);
        assert_eq!(other.stop().await.not_allowed, 1);
        let serve = serve.stop().await;
        assert_eq!((serve.finished, serve.not_allowed), (2, 1), "{serve}");
    });
}

fn iperf() {
    scene(60, || async {
        let far = stack(0..2);
        let serve = server(&far, None, Destination::Fixed(local(5201)), limits());
        let (host, port) = (stack_address(0).to_string(), PORT.to_string());
        let base = ["mptcpize", "run", "iperf3", "--client", &host, "--port", &port, "--bytes", "200M"];
        for more in [&[][..], &["--reverse"], &["--parallel", "4"]] {
            // One server for each test: between two tests iperf3 is busy for a moment, and then closes its listener and
            // opens another.
            let _iperf = start(&["iperf3", "--server", "--one-off"], 5201).await;
            let Output { stdout, stderr, .. } = output(&[&base[..], more].concat()).await;
            let printed = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
            assert!(printed.contains("receiver"), "{printed}");
        }
        let serve = serve.stop().await;
        // A connection for control and the streams: 2 + 2 + 5. iperf3 may reset its control connection at the end.
        assert_eq!(serve.accepted, 9, "{serve}");
        assert!(serve.bytes_up >= 400_000_000 && serve.bytes_down >= 200_000_000, "{serve}");
    });
}

fn curl_under_mptcpize() {
    scene(60, || async {
        let far = stack(0..2);
        let serve = server(&far, None, Destination::Fixed(local(8000)), limits());
        let directory = Directory::new();
        let digest = directory.fill("file", 50_000_000);
        let _web = web(directory.path(), 8000, false).await;
        let url = format!("http://{}:{PORT}/file", stack_address(0));
        let body = run(&["mptcpize", "run", "curl", "--silent", "--show-error", &url]).await;
        assert_eq!(sha256(&body), digest);
        let serve = serve.stop().await;
        assert_eq!((serve.accepted, serve.finished), (1, 1), "{serve}");
    });
}

/// Sends a file through the server to an echo and compares.
const PYTHON: &str = "
import hashlib, socket, sys, threading
client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
client.connect((sys.argv[1], int(sys.argv[2])))
data = open(sys.argv[3], 'rb').read()
def write():
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)
threading.Thread(target=write).start()
digest = hashlib.sha256()
while piece := client.recv(1 << 20):
    digest.update(piece)
print(digest.hexdigest())
";

fn python_client() {
    scene(60, || async {
        let far = stack(0..2);
        let echo = tokio::net::TcpListener::bind((kernel_address(0), 7)).await.expect("the port is free");
        tokio::spawn(async move {
            let (mut socket, _) = echo.accept().await.expect("the server connects");
            let (mut read, mut write) = socket.split();
            tokio::io::copy(&mut read, &mut write).await.expect("it is read");
            tokio::io::AsyncWriteExt::shutdown(&mut write).await.expect("it is open");
        });
        let target = SocketAddr::new(kernel_address(0), 7).into();
        let serve = server(&far, None, Destination::Fixed(target), limits());
        let directory = Directory::new();
        let digest = directory.fill("file", 20_000_000);
        let (host, port) = (stack_address(0).to_string(), PORT.to_string());
        let printed = run(&["python3", "-c", PYTHON, &host, &port, &directory.file("file")]).await;
        assert_eq!(String::from_utf8_lossy(&printed).trim(), digest);
        let serve = serve.stop().await;
        assert_eq!((serve.finished, serve.bytes_up, serve.bytes_down), (1, 20_000_000, 20_000_000), "{serve}");
    });
}
