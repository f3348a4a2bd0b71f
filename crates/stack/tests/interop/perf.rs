//! Measurements between our stack and the kernel's sockets, in all pairings, and what strangers do to a server.

use crate::kernel::release;
use crate::pair::{config, ours, theirs, with_paths};
use anabranch_mptcp::ConnectionConfig;
use anabranch_perf::{
    self, Direction, Host, KernelProtocol, KernelSockets, Length, Ours, PerfError, Plan, Report, ServerConfig,
    ServerCounters, ServerEvent, Side,
};
use anabranch_policy::combination::Combination;
use anabranch_stack::Stack;
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use std::future::pending;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PORT: u16 = 5201;

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn()| {
        Trial::test(format!("perf::{name}"), move || {
            test();
            Ok(())
        })
    };
    let mut trials = vec![
        trial("a_plain_tcp_peer_is_measured_and_the_fallback_is_named", a_fallback_is_named),
        trial("so_many_bytes_are_carried_and_no_more", so_many_bytes),
        trial("what_is_omitted_does_not_count", what_is_omitted),
        trial("a_server_that_is_not_there_is_told_from_one_of_another_kind", no_server),
        trial("any_server_that_swallows_will_do", a_sink),
        trial("strangers_change_nothing_but_a_counter", strangers),
        trial("many_clients_are_served_at_once_and_too_many_refused", many_clients),
        trial("the_kernel_is_measured_against_itself", the_kernel_alone),
    ];
    for (word, direction) in [("up", Direction::Up), ("down", Direction::Down), ("both", Direction::Both)] {
        for we_serve in [true, false] {
            let name = if we_serve { "the_kernel_to_us" } else { "we_to_the_kernel" };
            trials.push(Trial::test(format!("perf::{name}_{word}"), move || {
                a_second_over_two_paths(we_serve, direction);
                Ok(())
            }));
        }
    }
    trials
}

fn our_host(stack: &Stack) -> Host {
    // The paths have no bottleneck but this machine: buffers that fill within the second.
    let config = ConnectionConfig { send_buffer: 1 << 20, ..config(&Combination::default()) };
    Host::Ours(Box::new(Ours { stack: stack.clone(), config, local: None, policies: "default".to_owned() }))
}

fn kernel(protocol: KernelProtocol) -> Host {
    Host::Kernel(KernelSockets::new(protocol))
}

fn short(direction: Direction) -> Plan {
    Plan { direction, length: Length::Seconds(1.0), interval: 0.25, ..Plan::default() }
}

/// Runs one client against one server in this namespace.
async fn measure(server: Host, client: &Host, remote: SocketAddr, plan: &Plan) -> (Report, ServerCounters) {
    let config = ServerConfig { one_off: true, ..ServerConfig::new(remote) };
    let (told, listening) = tokio::sync::oneshot::channel();
    let told = Mutex::new(Some(told));
    let served = tokio::spawn(async move {
        let tell = move |event: ServerEvent| {
            if let ServerEvent::Listening(_) = event {
                let told = told.lock().expect("nobody panics").take().expect("it listens once");
                told.send(()).expect("it is waited for");
            }
        };
        anabranch_perf::serve(&server, &config, pending(), tell).await.expect("the port is free")
    });
    listening.await.expect("it listens");
    let report =
        anabranch_perf::run(client, remote, plan, pending(), |_| ()).await.unwrap_or_else(|error| panic!("{error}"));
    (report, served.await.expect("the server ends"))
}

/// Whether it is an old kernel that measured: before 6.5 they say nothing of a connection's subflows.
fn tells_no_paths(side: &Side) -> bool {
    side.paths.is_empty() && release() < (6, 5)
}

fn assert_side_is_sound(side: &Side, plan: &Plan) {
    let Length::Seconds(seconds) = plan.length else { panic!("a test of time") };
    assert!(side.bytes > 0 && side.seconds >= seconds, "{side:?}");
    let counted = side.intervals.iter().filter(|interval| !interval.omitted);
    assert_eq!(counted.map(|interval| interval.bytes).sum::<u64>(), side.bytes);
    if tells_no_paths(side) {
        return;
    }
    let shares: f64 = side.paths.iter().map(|path| path.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{:?}", side.paths);
    // Of what the paths carried a part was sent twice, and a part was under way at the ends of the measurement.
    let carried: u64 = side.paths.iter().map(|path| path.bytes).sum();
    assert!(
        (side.bytes / 2..side.bytes.saturating_mul(2)).contains(&carried),
        "{} bytes, {:?}",
        side.bytes,
        side.paths
    );
}

fn a_second_over_two_paths(we_serve: bool, direction: Direction) {
    with_paths(2, false, |stack| async move {
        let plan = short(direction);
        let (server, client, remote) = if we_serve {
            (our_host(&stack), kernel(KernelProtocol::Mptcp), ours(0, false))
        } else {
            (kernel(KernelProtocol::Mptcp), our_host(&stack), theirs(0, false))
        };
        let (report, counters) = measure(server, &client, SocketAddr::new(remote, PORT), &plan).await;
        assert_eq!((counters.tests, counters.strangers), (1, 0));
        assert_eq!(report.streams.len(), 1);
        assert_eq!((report.streams[0].protocol.as_str(), &report.streams[0].fallback), ("mptcp", &None));
        assert_eq!((report.up.is_some(), report.down.is_some()), (direction.is_up(), direction.is_down()));
        for transfer in report.up.iter().chain(&report.down) {
            let (sent, received) = (transfer.sent.as_ref().unwrap(), transfer.received.as_ref().unwrap());
            assert_side_is_sound(sent, &plan);
            assert_side_is_sound(received, &plan);
            if tells_no_paths(sent) {
                continue;
            }
            assert!(sent.paths.iter().any(|path| path.max_cwnd > Some(0) && path.rtt_ms.is_some()), "{sent:?}");
            // Paths are called by their interfaces, at our end and at the kernel's.
            assert!(sent.paths.iter().all(|path| path.name.starts_with("path")), "{:?}", sent.paths);
        }
        // The kernel as client does not join: nobody told it to.
        let sent = report.up.as_ref().or(report.down.as_ref()).and_then(|transfer| transfer.sent.as_ref()).unwrap();
        assert!(tells_no_paths(sent) || sent.paths.len() == if we_serve { 1 } else { 2 }, "{sent:?}");
    });
}

fn a_fallback_is_named() {
    with_paths(1, false, |stack| async move {
        let remote = SocketAddr::new(theirs(0, false), PORT);
        let (report, _) = measure(kernel(KernelProtocol::Tcp), &our_host(&stack), remote, &short(Direction::Up)).await;
        assert_eq!(report.streams[0].protocol, "tcp");
        assert_eq!(report.streams[0].fallback.as_deref(), Some("the peer's handshake had no MP_CAPABLE"));
        assert!(report.up.unwrap().goodput() > 0.0);
    });
}

fn so_many_bytes() {
    with_paths(2, false, |stack| async move {
        let plan = Plan { length: Length::Bytes(3_000_001), streams: 2, ..short(Direction::Both) };
        let remote = SocketAddr::new(theirs(0, false), PORT);
        let (report, _) = measure(kernel(KernelProtocol::Mptcp), &our_host(&stack), remote, &plan).await;
        for transfer in [report.up.unwrap(), report.down.unwrap()] {
            assert_eq!(transfer.received.as_ref().map(|side| side.bytes), Some(3_000_001));
            assert!(transfer.sent.is_some_and(|side| side.bytes <= 3_000_001));
        }
    });
}

fn what_is_omitted() {
    with_paths(1, false, |stack| async move {
        let plan = Plan { omit: 0.5, ..short(Direction::Down) };
        let remote = SocketAddr::new(theirs(0, false), PORT);
        let (report, _) = measure(kernel(KernelProtocol::Mptcp), &our_host(&stack), remote, &plan).await;
        let side = report.down.unwrap().received.unwrap();
        let omitted: u64 = side.intervals.iter().filter(|interval| interval.omitted).map(|i| i.bytes).sum();
        let all: u64 = side.intervals.iter().map(|interval| interval.bytes).sum();
        assert!(omitted > 0, "{side:?}");
        assert_eq!(side.bytes + omitted, all);
        let seconds: f64 = side.intervals.iter().filter(|i| !i.omitted).map(|i| i.end - i.start).sum();
        assert!((side.seconds - seconds).abs() < 1e-6, "{side:?}");
    });
}

fn no_server() {
    with_paths(1, false, |stack| async move {
        let (client, remote) = (our_host(&stack), SocketAddr::new(theirs(0, false), PORT));
        let error = anabranch_perf::run(&client, remote, &Plan::default(), pending(), |_| ())
            .await
            .expect_err("nobody listens");
        assert!(matches!(error, PerfError::Connect { .. }) && error.is_users(), "{error}");
        let listener = TcpListener::bind(remote).expect("the port is free");
        for (answer, versions) in [(&b"HTTP/1.1 400 Bad Request\r\n"[..], false), (b"ANBRPERF\0\x09\0\0\0\0", true)] {
            let listener = listener.try_clone().expect("a descriptor");
            let other = std::thread::spawn(move || {
                let (mut socket, _) = listener.accept().expect("we connect");
                socket.write_all(answer).expect("we read");
                socket
            });
            let error = anabranch_perf::run(&client, remote, &Plan::default(), pending(), |_| ())
                .await
                .expect_err("no server of ours");
            assert_eq!(matches!(error, PerfError::Version(9)), versions, "{error}");
            assert_eq!(matches!(error, PerfError::NotOurs(_)), !versions, "{error}");
            assert!(error.is_users());
            drop(other.join());
        }
    });
}

fn a_sink() {
    with_paths(1, false, |stack| async move {
        let (client, remote) = (our_host(&stack), SocketAddr::new(theirs(0, false), 9));
        let listener = TcpListener::bind(remote).expect("the port is free");
        let sink = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("we connect");
            let mut bytes = vec![0; 65_536];
            let mut all = 0;
            while let Ok(count @ 1..) = socket.read(&mut bytes) {
                all += count as u64;
            }
            all
        });
        let report = anabranch_perf::run_against_any(&client, remote, &short(Direction::Up), pending(), |_| ())
            .await
            .expect("it swallows");
        let swallowed = tokio::task::spawn_blocking(|| sink.join().expect("it ends")).await.expect("it ran");
        let transfer = report.up.unwrap();
        assert!(transfer.received.is_none() && report.server.is_none());
        let sent = transfer.sent.unwrap();
        assert!(sent.bytes > 0 && sent.bytes <= swallowed, "{} of {swallowed}", sent.bytes);
    });
}

/// A thousand strangers that say something else, nothing, too much, or a stream of no test, while a client is served.
fn strangers() {
    with_paths(1, false, |stack| async move {
        let address = SocketAddr::new(ours(0, false), PORT);
        let server = our_host(&stack);
        let reasons = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&reasons);
        let served = tokio::spawn(async move {
            let config = ServerConfig { one_off: true, ..ServerConfig::new(address) };
            let tell = move |event: ServerEvent| {
                if let ServerEvent::Stranger { reason, .. } = event {
                    heard.lock().expect("nobody panics").push(reason);
                }
            };
            anabranch_perf::serve(&server, &config, pending(), tell).await.expect("the port is free")
        });
        let words: [&[u8]; 6] = [
            b"GET / HTTP/1.1\r\n\r\n",
            b"ANBRPERF\0\x01\xff\xff\xff\xff",
            b"ANBRPERF\0\x07\0\0\0\x02{}",
            b"ANBRPERF\0\x01\0\0\0\x02{}",
            br#"ANBRPERF000"#,
            b"",
        ];
        let namespace = Namespace::current().expect("it is there");
        let noise = std::thread::spawn(move || {
            let work = || {
                for round in 0..1_000 {
                    let mut socket = TcpStream::connect(address).expect("we accept");
                    // It may be reset before it has all been said.
                    let _ = socket.write_all(words[round % words.len()]);
                }
                let mut socket = TcpStream::connect(address).expect("we accept");
                let stream = br#"{"type":"stream","session":"00","stream":0}"#;
                let mut frame = b"ANBRPERF\0\x01\0\0\0".to_vec();
                frame.push(stream.len() as u8);
                frame.extend(stream);
                socket.write_all(&frame).expect("it is open");
            };
            namespace.run(work).expect("it can be entered");
        });
        tokio::task::spawn_blocking(|| noise.join().expect("the noise ends")).await.expect("it ran");
        while reasons.lock().expect("nobody panics").len() < 1_001 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let client = kernel(KernelProtocol::Mptcp);
        let report = anabranch_perf::run(&client, address, &short(Direction::Up), pending(), |_| ())
            .await
            .expect("it is served");
        assert!(report.up.unwrap().goodput() > 0.0);
        let counters = served.await.expect("the server does not panic");
        assert_eq!((counters.tests, counters.strangers), (1, 1_001));
        let reasons = reasons.lock().expect("nobody panics");
        for word in ["not a frame", "version 7", "4294967295 bytes", "without a message", "of no test"] {
            assert!(reasons.iter().any(|reason| reason.contains(word)), "{word}");
        }
    });
}

fn many_clients() {
    with_paths(1, false, |stack| async move {
        let address = SocketAddr::new(theirs(0, false), PORT);
        let server = kernel(KernelProtocol::Mptcp);
        let config = ServerConfig { max_tests: 4, ..ServerConfig::new(address) };
        let served =
            tokio::spawn(async move { anabranch_perf::serve(&server, &config, pending(), |_| ()).await.map(|_| ()) });
        tokio::task::yield_now().await;
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let client = our_host(&stack);
            clients.spawn(async move {
                anabranch_perf::run(&client, address, &short(Direction::Up), pending(), |_| ()).await
            });
        }
        let outcomes = clients.join_all().await;
        let refused = outcomes.iter().filter(|outcome| matches!(outcome, Err(PerfError::Refused(_)))).count();
        assert_eq!((refused, outcomes.iter().filter(|outcome| outcome.is_ok()).count()), (2, 4), "{outcomes:?}");
        served.abort();
    });
}

fn the_kernel_alone() {
    with_paths(0, false, |_| async move {
        // A port each: a program that another test is just starting holds a copy of what is closed here for a moment.
        for (protocol, port) in [(KernelProtocol::Tcp, PORT), (KernelProtocol::Mptcp, PORT + 1)] {
            let sockets = KernelSockets {
                congestion: Some("reno".to_owned()),
                send_buffer: Some(65_536),
                receive_buffer: Some(65_536),
                ..KernelSockets::new(protocol)
            };
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let (report, _) = measure(kernel(protocol), &Host::Kernel(sockets), address, &short(Direction::Both)).await;
            assert_eq!(report.client.policies, "congestion=reno");
            for transfer in [report.up.unwrap(), report.down.unwrap()] {
                assert_side_is_sound(&transfer.received.unwrap(), &short(Direction::Both));
                let sent = transfer.sent.unwrap();
                assert!(tells_no_paths(&sent) || sent.paths[0].name == "lo", "{sent:?}");
            }
        }
        let sockets =
            KernelSockets { congestion: Some("no_such".to_owned()), ..KernelSockets::new(KernelProtocol::Tcp) };
        let address = SocketAddr::from(([127, 0, 0, 1], PORT));
        let error = anabranch_perf::run(&Host::Kernel(sockets), address, &Plan::default(), pending(), |_| ()).await;
        assert!(error.expect_err("there is none").to_string().contains("'no_such'"));
    });
}
