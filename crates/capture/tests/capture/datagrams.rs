//! UDP, ICMP echo and DNS.

use crate::scene::{Scene, TARGET, TARGET_V6, target, trial};
use libtest_mimic::Trial;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("datagrams::udp_goes_to_its_target_and_comes_back_from_there", udp),
        trial("datagrams::what_a_program_has_the_kernel_cut_arrives_in_pieces", cut),
        trial("datagrams::questions_for_names_go_to_the_servers_resolver_whomever_they_ask", names),
        trial("datagrams::an_echo_comes_back", echo),
        trial("datagrams::a_large_echo_comes_back", large_echo),
        trial("datagrams::a_port_where_nobody_listens_refuses", nobody_listens),
        trial("datagrams::without_a_way_programs_are_told_so", no_way),
        trial("datagrams::another_protocol_is_refused_and_what_is_for_many_is_dropped", others),
    ]
}

/// Timeout of a program.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));

fn any(ipv6: bool) -> SocketAddr {
    let address: IpAddr = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(address, 0)
}

/// A program's socket.
fn socket(ipv6: bool) -> UdpSocket {
    let socket = UdpSocket::bind(any(ipv6)).expect("a socket");
    socket.set_read_timeout(PATIENCE).expect("it can wait");
    socket
}

/// An echo target.
async fn echoes(address: &str, port: u16) {
    let socket = tokio::net::UdpSocket::bind(target(address, port)).await.expect("the port is free");
    tokio::spawn(async move {
        let mut bytes = vec![0; 1 << 16];
        while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
            let _ = socket.send_to(&bytes[..length], from).await;
        }
    });
}

async fn udp(mut scene: Scene) {
    for address in [TARGET, TARGET_V6] {
        echoes(address, 7).await;
    }
    let client = scene.client().await;
    let running = scene.capture(Some(client));
    let talk = || {
        for address in [TARGET, TARGET_V6] {
            let (to, socket) = (target(address, 7), socket(address.contains(':')));
            for length in [0, 1, 500, 1_352, 1_373, 8_000, 65_487] {
                let data: Vec<u8> = (0..=250).cycle().take(length).collect();
                socket.send_to(&data, to).expect("it is sent");
                let mut bytes = vec![0; 1 << 16];
                let (received, from) = socket.recv_from(&mut bytes).expect("it comes back");
                assert_eq!((&bytes[..received], from), (&data[..], to));
            }
        }
    };
    scene.program(talk).await;
    let counters = running.stop().await;
    assert_eq!((counters.datagrams_out, counters.datagrams_in, counters.datagrams_dropped), (14, 14, 0));
    assert_eq!((counters.reassembled, counters.unfinished), (6, 0));
}

async fn cut(mut scene: Scene) {
    echoes(TARGET, 7).await;
    let client = scene.client().await;
    let running = scene.capture(Some(client));
    let talk = || {
        let socket = socket(false);
        setsockopt(&socket, sockopt::UdpGsoSegment, &1_000).expect("the kernel cuts");
        let data: Vec<u8> = (0..5_500_u32).map(|at| (at / 1_000) as u8).collect();
        socket.send_to(&data, target(TARGET, 7)).expect("it is sent");
        let mut lengths = Vec::new();
        for _ in 0..6 {
            let mut bytes = vec![0; 2_000];
            let received = socket.recv(&mut bytes).expect("it comes back");
            assert!(bytes[..received].iter().all(|byte| *byte == bytes[0]), "a piece is of one part");
            lengths.push((bytes[0], received));
        }
        lengths.sort_unstable();
        assert_eq!(lengths, [(0, 1_000), (1, 1_000), (2, 1_000), (3, 1_000), (4, 1_000), (5, 500)]);
    };
    scene.program(talk).await;
    assert_eq!(running.stop().await.datagrams_out, 6);
}

async fn names(mut scene: Scene) {
    let resolver = tokio::net::UdpSocket::bind(scene.resolver).await.expect("the port is free");
    let listener = tokio::net::TcpListener::bind(scene.resolver).await.expect("the port is free");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut question = vec![0; stream.read_u16().await.expect("a length").into()];
            stream.read_exact(&mut question).await.expect("a question");
            // Too much for UDP.
            let answer = [&question[..], &[b'.'; 60_000]].concat();
            let length = u16::try_from(answer.len()).expect("it is short enough").to_be_bytes();
            stream.write_all(&[&length[..], &answer].concat()).await.expect("somebody listens");
        }
    });
    tokio::spawn(async move {
        let mut bytes = vec![0; 2_000];
        while let Ok((length, from)) = resolver.recv_from(&mut bytes).await {
            let answer = [&bytes[..length], b" is here"].concat();
            let _ = resolver.send_to(&answer, from).await;
        }
    });
    let client = scene.client().await;
    let running = scene.capture(Some(client));
    let ask = || {
        // No host has any of these addresses.
        for address in ["198.18.0.2", "192.0.2.53", "2001:db8::53"] {
            let (whom, socket) = (target(address, 53), socket(address.contains(':')));
            socket.send_to(b"17 who", whom).expect("it is sent");
            let mut bytes = vec![0; 2_000];
            let (length, from) = socket.recv_from(&mut bytes).expect("an answer");
            assert_eq!((&bytes[..length], from), (&b"17 who is here"[..], whom));
            let mut stream = TcpStream::connect(whom).expect("it is accepted");
            stream.set_read_timeout(PATIENCE).expect("it can wait");
            for question in [&b"18 what"[..], b"19 where"] {
                let length = u16::try_from(question.len()).expect("it is short");
                stream.write_all(&[&length.to_be_bytes()[..], question].concat()).expect("it is sent");
                let mut answer = vec![0; 2 + question.len() + 60_000];
                stream.read_exact(&mut answer).expect("an answer");
                assert_eq!(answer[2..], [question, &[b'.'; 60_000]].concat());
            }
        }
    };
    scene.program(ask).await;
    let counters = running.stop().await;
    assert_eq!(
        (counters.datagrams_out, counters.datagrams_in),
        (3, 9),
        "what is asked over TCP is counted when it is answered"
    );
    assert_eq!(counters.connections.accepted, 0, "none was carried out as a connection");
}

async fn echo(mut scene: Scene) {
    let client = scene.client().await;
    let running = scene.capture(Some(client));
    let ping = || {
        for (address, domain, protocol, kind) in
            [(TARGET, Domain::IPV4, Protocol::ICMPV4, [8, 0]), (TARGET_V6, Domain::IPV6, Protocol::ICMPV6, [128, 129])]
        {
            let socket = Socket::new(domain, Type::DGRAM, Some(protocol)).expect("the group may");
            socket.set_read_timeout(PATIENCE).expect("it can wait");
            let request = [&[kind[0], 0, 0, 0, 0, 0, 0, 5][..], b"over the river"].concat();
            socket.send_to(&request, &target(address, 0).into()).expect("it is sent");
            let mut bytes = [0; 100];
            let length = (&socket).read(&mut bytes).expect("a reply");
            assert_eq!(bytes[0], kind[1]);
            assert_eq!(bytes[6..length], request[6..], "sequence number and data");
        }
    };
    scene.program(ping).await;
    assert_eq!(running.stop().await.datagrams_in, 2);
}

async fn large_echo(mut scene: Scene) {
    let client = scene.client().await;
    let running = scene.capture(Some(client));
    let ping = || {
        for (address, domain, protocol, kind) in
            [(TARGET, Domain::IPV4, Protocol::ICMPV4, 8), (TARGET_V6, Domain::IPV6, Protocol::ICMPV6, 128)]
        {
            let socket = Socket::new(domain, Type::DGRAM, Some(protocol)).expect("the group may");
            socket.set_read_timeout(PATIENCE).expect("it can wait");
            let request = [&[kind, 0, 0, 0, 0, 0, 0, 5][..], &[7; 8_000]].concat();
            socket.send_to(&request, &target(address, 0).into()).expect("it is sent");
            let mut bytes = [0; 9_000];
            let length = (&socket).read(&mut bytes).expect("a reply");
            assert_eq!(bytes[6..length], request[6..], "sequence number and data");
        }
    };
    scene.program(ping).await;
    assert_eq!(running.stop().await.reassembled, 2);
}

async fn nobody_listens(mut scene: Scene) {
    let client = scene.client().await;
    let running = scene.capture(Some(client));
    let talk = || {
        [TARGET, TARGET_V6].map(|address| {
            let socket = socket(address.contains(':'));
            socket.connect(target(address, 9)).expect("there is a route");
            socket.send(b"x").expect("it is sent");
            socket.recv(&mut [0; 10]).expect_err("it is refused").kind()
        })
    };
    assert_eq!(scene.program(talk).await, [std::io::ErrorKind::ConnectionRefused; 2]);
    assert_eq!(running.stop().await.unreachable_datagrams, 2);
}

async fn no_way(mut scene: Scene) {
    let running = scene.capture(None);
    let talk = || {
        [TARGET, TARGET_V6].map(|address| {
            let socket = socket(address.contains(':'));
            socket.connect(target(address, 7)).expect("there is a route");
            socket.send(b"x").expect("it is sent");
            socket.recv(&mut [0; 10]).expect_err("a router answers").kind()
        })
    };
    assert_eq!(scene.program(talk).await, [std::io::ErrorKind::HostUnreachable, std::io::ErrorKind::PermissionDenied]);
    assert_eq!(running.stop().await.refused_packets, 2);
}

async fn others(mut scene: Scene) {
    let client = scene.client().await;
    let running = scene.capture(Some(client));
    let talk = || {
        let sctp = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(132))).expect("we may");
        sctp.connect(&target(TARGET, 0).into()).expect("there is a route");
        sctp.set_read_timeout(PATIENCE).expect("it can wait");
        (&sctp).write_all(b"a chunk of data").expect("it is sent");
        let refused = (&sctp).read(&mut [0; 100]).expect_err("a router answers").kind();
        socket(false).send_to(b"all of you", target("224.0.0.251", 5_353)).expect("it is sent");
        refused
    };
    assert_eq!(scene.program(talk).await, std::io::ErrorKind::HostUnreachable);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let counters = running.stop().await;
    assert_eq!((counters.refused_packets, counters.malformed), (1, 0), "the other protocol");
    assert!(counters.ignored >= 1, "what is for many");
    assert_eq!(counters.datagrams_out, 0);
}
