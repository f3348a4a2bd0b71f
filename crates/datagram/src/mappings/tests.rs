//! Mappings with real sockets of the host.

use super::*;
use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn mappings(limits: Limits, nameservers: Vec<SocketAddr>) -> (Mappings, mpsc::UnboundedReceiver<(u64, Back)>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let deliver = move |client, back| _ = sender.send((client, back));
    let allow: Allow = Arc::new(|target: SocketAddr| target.port() != 9);
    (Mappings::new(allow, nameservers, limits, Arc::new(deliver)), receiver)
}

fn udp(inside: u16, outside: SocketAddr, payload: &'static [u8]) -> Datagram {
    let inside = SocketAddr::new([10, 0, 0, 1].into(), inside);
    Datagram { kind: Kind::Udp, inside, outside, payload: Bytes::from_static(payload) }
}

async fn target() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
    let address = socket.local_addr().expect("it is bound");
    (socket, address)
}

async fn received(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 64];
    let (length, from) = socket.recv_from(&mut buffer).await.expect("the socket is open");
    (buffer[..length].to_vec(), from)
}

#[tokio::test]
async fn one_inside_address_is_one_address_outside_whatever_the_target() {
    let (mut mappings, mut answers) = mappings(Limits::default(), Vec::new());
    let ((one, first), (other, second)) = (target().await, target().await);
    mappings.forward(at(0), 1, &udp(7, first, b"a"));
    mappings.forward(at(0), 1, &udp(7, second, b"b"));
    mappings.forward(at(0), 1, &udp(8, second, b"c"));
    let (from_one, from_other, third) = (received(&one).await, received(&other).await, received(&other).await);
    assert_eq!((&from_one.0[..], &from_other.0[..], &third.0[..]), (&b"a"[..], &b"b"[..], &b"c"[..]));
    assert_eq!(from_one.1.port(), from_other.1.port());
    assert_ne!(from_one.1.port(), third.1.port());
    one.send_to(b"answer", from_one.1).await.expect("it can be sent");
    assert_eq!(answers.recv().await, Some((1, Back::Datagram(udp(7, first, b"answer")))));
}

#[tokio::test]
async fn what_is_not_allowed_is_not_sent_also_in_another_dress() {
    let (mut mappings, _answers) = mappings(Limits::default(), Vec::new());
    for outside in ["192.0.2.1:9", "[::ffff:192.0.2.1]:9", "192.0.2.1:0"] {
        mappings.forward(at(0), 1, &udp(7, outside.parse().expect("an address"), b"x"));
    }
    assert_eq!((mappings.counters.not_allowed, mappings.counters.not_taken), (3, 0));
    let refused: Vec<_> = core::iter::from_fn(|| mappings.poll_refused()).collect();
    // Port 0 is invalid.
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(|(client, said)| *client == 1 && said.reason == Reason::Prohibited), "{refused:?}");
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_told_of_and_the_next_datagram_still_goes() {
    let (mut mappings, mut answers) = mappings(Limits::default(), Vec::new());
    let (one, first) = target().await;
    let (closed, second) = target().await;
    drop(closed);
    mappings.forward(at(0), 1, &udp(7, second, b"anybody"));
    let inside = SocketAddr::new([10, 0, 0, 1].into(), 7);
    let (kind, reason, by) = (Kind::Udp, Reason::Port, second.ip());
    let said = Unreachable { kind, inside, outside: second, by, reason, head: *b"anyb" };
    assert_eq!(answers.recv().await, Some((1, Back::Unreachable(said))));
    for payload in [b"a", b"b"] {
        mappings.forward(at(0), 1, &udp(7, second, b"anybody"));
        // The answer is in the kernel before the call returns.
        mappings.forward(at(0), 1, &udp(7, first, payload));
        assert_eq!(received(&one).await.0, payload);
    }
}

#[tokio::test]
async fn a_large_datagram_goes_out_and_comes_back_whole() {
    let (mut mappings, mut answers) = mappings(Limits::default(), Vec::new());
    let (one, first) = target().await;
    let payload = Bytes::from(vec![7; 65_507]);
    let large = Datagram { payload, ..udp(7, first, b"") };
    mappings.forward(at(0), 1, &large);
    let mut buffer = vec![0; 1 << 16];
    let (length, from) = one.recv_from(&mut buffer).await.expect("the socket is open");
    one.send_to(&buffer[..length], from).await.expect("it can be sent");
    assert_eq!(answers.recv().await, Some((1, Back::Datagram(large))));
}

#[test]
fn messages_are_told_in_the_words_of_the_session() {
    let error = |kind, code, info| SocketError {
        target: "192.0.2.1:33434".parse().expect("an address"),
        by: Some([192, 0, 2, 9].into()),
        kind,
        code,
        info,
        quoted: 8,
    };
    let key = |kind, ipv6, resolver, identifier| {
        let inside = SocketAddr::new([10, 0, 0, 1].into(), 7);
        Key { client: 1, kind, inside, ipv6, resolver, identifier }
    };
    let udp = key(Kind::Udp, false, None, None);
    for (kind, code, info, reason) in [
        (3, 0, 0, Some(Reason::Network)),
        (3, 1, 0, Some(Reason::Host)),
        (3, 3, 0, Some(Reason::Port)),
        (3, 4, 1_280, Some(Reason::TooBig(1_280))),
        (3, 4, 1 << 16, None),
        (3, 13, 0, Some(Reason::Prohibited)),
        (11, 0, 0, Some(Reason::HopLimit)),
        (12, 0, 0, None),
    ] {
        let said = said(&udp, &error(kind, code, info), b"abcdefgh");
        assert_eq!(said.map(|said| said.reason), reason, "{kind} {code}");
    }
    let ipv6 = key(Kind::Udp, true, None, None);
    for (kind, code, reason) in [(1, 3, Reason::Host), (1, 4, Reason::Port), (2, 0, Reason::TooBig(1_300))] {
        let said = said(&ipv6, &error(kind, code, 1_300), b"");
        assert_eq!(said.map(|said| (said.reason, said.head)), Some((reason, [0; 4])));
    }
    let echo = said(&key(Kind::Echo, false, None, Some([1, 2])), &error(3, 1, 0), &[8, 0, 9, 9, 7, 7, 0, 5]);
    assert_eq!(echo.map(|said| (said.head, said.outside.port())), Some(([1, 2, 0, 5], 0)));
    let asked = "203.0.113.53:53".parse().expect("an address");
    let dns = said(&key(Kind::Dns, false, Some(asked), None), &error(3, 3, 0), b"who?");
    assert_eq!(dns.map(|said| (said.outside, said.by)), Some((asked, asked.ip())));
}

#[tokio::test]
async fn who_was_not_sent_to_does_not_get_in() {
    let (mut mappings, mut answers) = mappings(Limits::default(), Vec::new());
    let (one, first) = target().await;
    mappings.forward(at(0), 1, &udp(7, first, b"a"));
    let (_, from) = received(&one).await;
    let stranger = UdpSocket::bind("127.0.0.2:0").await.expect("a port is free");
    stranger.send_to(b"stranger", from).await.expect("it can be sent");
    one.send_to(b"answer", from).await.expect("it can be sent");
    assert_eq!(answers.recv().await, Some((1, Back::Datagram(udp(7, first, b"answer")))));
}

#[tokio::test]
async fn mappings_are_bounded_and_end_after_two_minutes() {
    let limits = Limits { mappings_per_client: 2, mappings: 3, ..Limits::default() };
    let (mut mappings, _answers) = mappings(limits, Vec::new());
    let (_one, first) = target().await;
    let mut remarks = Vec::new();
    for inside in 1..=4 {
        remarks.extend(mappings.forward(at(0), 1, &udp(inside, first, b"a")));
        remarks.extend(mappings.forward(at(0), 2, &udp(inside, first, b"a")));
    }
    assert_eq!(remarks, [Remark::NoRoom], "it is told of once");
    assert_eq!((mappings.len(), mappings.counters.no_room), (3, 5));
    mappings.forward(at(60), 1, &udp(1, first, b"a"));
    mappings.sweep(at(119));
    assert_eq!(mappings.len(), 3);
    mappings.sweep(at(120));
    assert_eq!(mappings.len(), 1);
    mappings.forward(at(120), 1, &udp(9, first, b"a"));
    assert_eq!(mappings.len(), 2);
    mappings.forget(1);
    assert_eq!((mappings.len(), mappings.count_by_client.len()), (0, 0));
}

#[tokio::test]
async fn one_key_does_not_keep_what_there_is_from_the_others() {
    let limits = Limits { mappings: 4, ..Limits::default() };
    let (mut mappings, _answers) = mappings(limits, Vec::new());
    let (_one, first) = target().await;
    // Two clients have the key of one, which take all.
    for (client, owner) in [(1, "busy"), (2, "busy"), (3, "other")] {
        mappings.introduce(client, Some(owner.into()));
    }
    for (client, inside) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        mappings.forward(at(u64::from(inside)), client, &udp(inside, first, b"a"));
    }
    assert_eq!(mappings.poll_crowd(), None);
    for inside in 1..=3 {
        mappings.forward(at(3), 3, &udp(inside, first, b"a"));
    }
    // With two of four each key has its share.
    assert_eq!((mappings.count_by_client.get(&3), mappings.counters.no_room), (Some(&2), 1));
    assert_eq!(mappings.poll_crowd(), Some(Crowd { owner: Some("busy".into()), count: 3 }));
    // Those used last stay.
    let left = mappings.mappings.keys().filter(|key| key.client != 3).map(|key| key.inside.port());
    assert_eq!(left.collect::<Vec<_>>(), [2, 2]);
    mappings.forward(at(3), 1, &udp(3, first, b"a"));
    assert_eq!((mappings.count_by_client.get(&3), mappings.counters.no_room), (Some(&2), 2));
}

#[tokio::test]
async fn where_there_is_no_room_idle_mappings_of_the_same_client_make_some() {
    let limits = Limits { mappings: 3, ..Limits::default() };
    let (mut mappings, _answers) = mappings(limits, Vec::new());
    let (_one, first) = target().await;
    for (client, inside) in [(1, 1), (1, 2), (2, 1)] {
        mappings.forward(at(0), client, &udp(inside, first, b"a"));
    }
    mappings.forward(at(5), 1, &udp(2, first, b"a"));
    mappings.forward(at(9), 1, &udp(3, first, b"a"));
    assert_eq!((mappings.counters.made, mappings.counters.no_room), (3, 1));
    mappings.forward(at(10), 1, &udp(3, first, b"a"));
    assert_eq!((mappings.counters.made, mappings.len()), (4, 3));
    // The remaining resolver answers, or another takes its port.
    mappings.forward(at(12), 1, &udp(4, first, b"a"));
    assert_eq!((mappings.counters.made, mappings.counters.no_room), (4, 2));
}

#[tokio::test]
async fn a_question_goes_to_the_servers_resolver_and_asked_again_to_the_next() {
    let ((one, first), (other, second)) = (target().await, target().await);
    let (mut mappings, mut answers) = mappings(Limits::default(), vec![first, second]);
    let question = Datagram { kind: Kind::Dns, ..udp(7, "198.51.100.53:53".parse().expect("an address"), b"who") };
    mappings.forward(at(0), 1, &question);
    received(&one).await;
    mappings.forward(at(5), 1, &question);
    let (_, from) = received(&other).await;
    other.send_to(b"he", from).await.expect("it can be sent");
    let answer = Datagram { payload: Bytes::from_static(b"he"), ..question };
    assert_eq!(answers.recv().await, Some((1, Back::Datagram(answer))));
    mappings.sweep(at(35));
    assert_eq!(mappings.len(), 0);
}

#[test]
fn nameservers_are_read_as_resolv_conf_has_them() {
    let text = "# one\nnameserver 192.0.2.1\n nameserver 2001:db8::1 \nsearch x\nnameserver bad\nnameserver 1.1.1.1\nnameserver 2.2.2.2";
    let found: Vec<String> = nameservers(text).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["192.0.2.1:53", "[2001:db8::1]:53", "1.1.1.1:53"]);
    assert_eq!(nameservers(""), ["127.0.0.1:53".parse().expect("an address")]);
}
