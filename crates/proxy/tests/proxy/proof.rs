//! Clients that do not prove the key: turned away in silence, counted, and no burden.

use crate::program::{curl, output, there_is};
use crate::scene::{
    PORT, Running, connection, limits, one_listener, proxy, run_server, scene, server, stack, stack_address, via,
};
use anabranch_proxy::noise::{Initiator, MESSAGE, Message};
use anabranch_proxy::{
    About, Answer, Destination, Forward, Journal, Key, Keys, Limits, Outcome, Priorities, ServerTerms, ask,
};
use anabranch_stack::Stack;
use bytes::BytesMut;
use libtest_mimic::Trial;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub fn trials() -> Vec<Trial> {
    let test = |name: &str, work: fn()| {
        Trial::test(format!("proof::{name}"), move || {
            work();
            Ok(())
        })
    };
    let curl = there_is("curl");
    if !curl {
        eprintln!("skipped: proof::another_key: there is no curl");
    }
    vec![
        test("another_key", another_key).with_ignored_flag(!curl),
        test("who_asks_with_the_key_is_no_stranger_and_with_another_is", asked),
        test("who_knows_the_key_and_gives_up_before_it_asks_has_left_and_is_no_stranger", gives_up),
        test("a_full_server_says_so_to_who_proves_the_key_and_to_nobody_else", full),
        test("garbage_silence_and_half_a_message", garbage),
        test("who_does_not_prove_the_key_in_time_leaves_nothing_in_the_stack", too_late),
        test("who_is_cut_at_the_end_is_told_of", cut),
        test("that_there_is_no_room_is_told", no_room),
        test("a_line_about_who_has_not_proven_the_key_says_so", strangers),
        test("who_has_not_proven_the_key_has_a_small_window_and_then_a_large_one", window),
        test("a_recorded_conversation_opens_nothing", replay),
        test("a_changed_record_and_a_cut_stream_end_in_a_reset", tampered),
    ]
}

fn key() -> Key {
    Key::generate().expect("random numbers")
}

fn address() -> SocketAddr {
    SocketAddr::new(stack_address(1), PORT)
}

/// A listener of the kernel's that counts who comes.
async fn target() -> (TcpListener, Destination) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    (listener, Destination::Fixed(address.into()))
}

/// Whether nobody has come to the target.
async fn untouched(listener: &TcpListener) -> bool {
    tokio::time::timeout(Duration::from_millis(100), listener.accept()).await.is_err()
}

fn another_key() {
    scene(60, || async {
        let (near, far, ours, theirs) = (stack(0..1), stack(1..2), key(), key());
        let (listener, destination) = target().await;
        let serve = server(&far, Some(&ours), destination, limits());
        let (wrong, running) = proxy(&near, via(1, &theirs), limits());
        let url = format!("http://{}/", listener.local_addr().expect("it has an address"));
        let refused = output(&["curl", "--silent", "--proxy", &format!("socks5h://{wrong}"), &url]).await;
        assert_eq!(refused.status.code(), Some(97));
        assert!(untouched(&listener).await);
        assert_eq!(running.stop().await.unproven, 1);
        // The right key still works.
        let (right, running) = proxy(&near, via(1, &ours), limits());
        let web = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("the server connects");
            let mut head = [0; 4_096];
            let read = socket.read(&mut head).await.expect("a request");
            assert!(read > 0);
            socket.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok").await.expect("it is read");
        });
        assert_eq!(curl("socks5h", right, &url).await, b"ok");
        web.await.expect("it ends well");
        assert_eq!(running.stop().await.finished, 1);
        let serve = serve.stop().await;
        // Who is refused tries once more, since it may have been somebody else who refused.
        assert_eq!((serve.accepted, serve.unproven, serve.finished), (3, 2, 1), "{serve}");
    });
}

/// All that a server says to somebody who sends this.
async fn answer_to(bytes: &[u8], close: bool) -> Vec<u8> {
    let mut socket = TcpStream::connect(address()).await.expect("it listens");
    socket.write_all(bytes).await.expect("it is open");
    if close {
        socket.shutdown().await.expect("it is open");
    }
    let mut answer = Vec::new();
    // It ends in a reset, or in peace.
    let _ = socket.read_to_end(&mut answer).await;
    answer
}

fn asked() {
    scene(60, || async {
        let (near, far, ours, theirs) = (stack(0..1), stack(1..2), key(), key());
        let (listener, destination) = target().await;
        let serve = server(&far, Some(&ours), destination, limits());
        let question =
            async |key: &Key| ask(&near, stack_address(0), (&address().into(), None), key, &connection()).await;
        assert_eq!(question(&ours).await, Answer::Proven);
        assert_eq!(question(&theirs).await, Answer::Unproven);
        assert!(untouched(&listener).await);
        let serve = serve.stop().await;
        assert_eq!((serve.accepted, serve.unproven, serve.asked, serve.left_early), (2, 1, 1, 0), "{serve}");
    });
}

fn gives_up() {
    scene(60, || async {
        let (_near, far, key) = (stack(0..1), stack(1..2), key());
        let (listener, destination) = target().await;
        let serve = server(&far, Some(&key), destination, limits());
        // As a client that is ended before the answer to its first message comes.
        let mut client = Client::new(&key).await;
        client.socket.shutdown().await.expect("it is open");
        let mut rest = Vec::new();
        let _ = client.socket.read_to_end(&mut rest).await;
        assert!(untouched(&listener).await);
        let serve = serve.stop().await;
        assert_eq!((serve.accepted, serve.unproven, serve.left_early), (1, 0, 1), "{serve}");
    });
}

fn full() {
    scene(60, || async {
        let (near, far, ours, theirs) = (stack(0..1), stack(1..2), key(), key());
        let (listener, destination) = target().await;
        let serve = server(&far, Some(&ours), destination, Limits { connections: 1, ..limits() });
        let (place, running) = one_listener(&near, via(1, &ours), Forward::ServerDefault, limits());
        let first = TcpStream::connect(place).await.expect("it listens");
        let _taken = listener.accept().await.expect("the first has room");
        let question =
            async |key: &Key| ask(&near, stack_address(0), (&address().into(), None), key, &connection()).await;
        assert_eq!(question(&ours).await, Answer::Full);
        assert_eq!(question(&theirs).await, Answer::Unproven);
        let (http, asking) = proxy(&near, via(1, &ours), limits());
        let mut second = TcpStream::connect(http).await.expect("it listens");
        second.write_all(b"CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n").await.expect("it is open");
        let mut said = String::new();
        second.read_to_string(&mut said).await.expect("it is told");
        assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("as many connections as it may have"), "{said}");
        drop(second);
        let asking = asking.stop().await;
        assert_eq!((asking.failed, asking.unproven), (1, 0), "{asking}");
        drop((first, running.stop().await));
        let serve = serve.stop().await;
        assert_eq!((serve.accepted, serve.over_limit, serve.unproven), (1, 3, 0), "{serve}");
    });
}

fn garbage() {
    scene(60, || async {
        let (_near, far, key) = (stack(0..1), stack(1..2), key());
        let (listener, destination) = target().await;
        let limits = Limits { negotiation: Duration::from_millis(500), ..limits() };
        let serve = server(&far, Some(&key), destination, limits);
        let web = b"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: a long one, of more than 48 bytes\r\n\r\n";
        assert!(answer_to(web, false).await.is_empty(), "nothing is said to who speaks HTTP");
        assert!(answer_to(&[5, 1, 0], true).await.is_empty(), "nor to who leaves early");
        assert!(answer_to(&[0x55; MESSAGE], false).await.is_empty(), "nor to who guesses");
        assert!(answer_to(b"", false).await.is_empty(), "nor to who says nothing");
        assert!(answer_to(&[0x55; MESSAGE - 1], false).await.is_empty(), "nor to who says too little");
        let (_, message) = Initiator::new(&key).expect("random numbers");
        assert_eq!(answer_to(&message, false).await.len(), MESSAGE, "who proves the key gets its answer");
        assert!(untouched(&listener).await);
        let serve = serve.stop().await;
        assert_eq!((serve.accepted, serve.unproven, serve.left_early, serve.too_slow), (6, 2, 1, 3), "{serve}");
    });
}

fn too_late() {
    scene(60, || async {
        let (_near, far, key) = (stack(0..1), stack(1..2), key());
        let (_listener, destination) = target().await;
        let limits = Limits { negotiation: Duration::from_millis(500), ..limits() };
        let serve = server(&far, Some(&key), destination, limits);
        let (_, message) = Initiator::new(&key).expect("random numbers");
        let mut kept = Vec::new();
        for said in [&b""[..], &[0x55; MESSAGE - 1], &message] {
            let mut socket = TcpStream::connect(address()).await.expect("it listens");
            socket.write_all(said).await.expect("it is open");
            // None of them closes.
            kept.push(socket);
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
        assert_eq!(far.connection_count(), 3);
        tokio::time::sleep(Duration::from_millis(750)).await;
        assert_eq!(far.connection_count(), 0);
        drop(kept);
        assert_eq!(serve.stop().await.too_slow, 3);
    });
}

/// What a server's journal is told.
type Lines = Arc<Mutex<Vec<(About, Outcome)>>>;

/// A server with a journal.
fn told(stack: &Stack, key: &Key, destination: Destination, limits: Limits) -> (Running, Lines) {
    let lines = Lines::default();
    let told = Arc::clone(&lines);
    let journal: Journal = Arc::new(move |about, outcome, _| told.lock().unwrap().push((about, outcome)));
    let terms = ServerTerms { keys: Some(Keys::one(key.clone())), destination, priorities: Priorities::default() };
    (run_server(stack, terms, limits, Some(journal)), lines)
}

fn no_room() {
    scene(60, || async {
        let (_near, far, key) = (stack(0..1), stack(1..2), key());
        let (_listener, destination) = target().await;
        let (serve, lines) = told(&far, &key, destination, Limits { connections: 0, ..limits() });
        answer_to(&[0x55; MESSAGE], false).await;
        assert_eq!(serve.stop().await.over_limit, 1);
        assert_eq!(*lines.lock().unwrap(), [(About::NoRoom, Outcome::OverLimit)]);
    });
}

fn cut() {
    scene(60, || async {
        let (near, far, key) = (stack(0..1), stack(1..2), key());
        let (listener, destination) = target().await;
        let (serve, lines) = told(&far, &key, destination, limits());
        let (place, running) = one_listener(&near, via(1, &key), Forward::ServerDefault, limits());
        let _client = TcpStream::connect(place).await.expect("it listens");
        let _target = listener.accept().await.expect("it is reached");
        let _stranger = TcpStream::connect(address()).await.expect("it listens");
        tokio::time::sleep(Duration::from_millis(250)).await;
        assert_eq!(serve.stop().await.stopped, 2);
        let mut lines = lines.lock().unwrap();
        lines.sort_by_key(|(about, _)| *about != About::Client);
        assert_eq!(*lines, [(About::Client, Outcome::Stopped), (About::Stranger, Outcome::Stopped)]);
        drop(running);
    });
}

fn strangers() {
    scene(60, || async {
        let (near, far, ours, theirs) = (stack(0..1), stack(1..2), key(), key());
        let (_listener, destination) = target().await;
        let limits = Limits { negotiation: Duration::from_millis(500), ..limits() };
        let (serve, lines) = told(&far, &ours, destination, limits);
        answer_to(&[5, 1, 0], true).await;
        answer_to(b"", false).await;
        for (key, answer) in [(&theirs, Answer::Unproven), (&ours, Answer::Proven)] {
            let asked = ask(&near, stack_address(0), (&address().into(), None), key, &connection()).await;
            assert_eq!(asked, answer);
        }
        serve.stop().await;
        let (stranger, client) = (About::Stranger, About::Client);
        let expected = [
            (stranger, Outcome::LeftEarly),
            (stranger, Outcome::TooSlow),
            (stranger, Outcome::Unproven),
            (client, Outcome::Asked),
        ];
        assert_eq!(*lines.lock().unwrap(), expected);
    });
}

/// A client by hand.
struct Client {
    socket: TcpStream,
    records: anabranch_proxy::noise::Records,
    /// All that it has sent.
    sent: Vec<u8>,
}

impl Client {
    async fn new(key: &Key) -> Self {
        let mut socket = TcpStream::connect(address()).await.expect("it listens");
        let (initiator, message) = Initiator::new(key).expect("random numbers");
        socket.write_all(&message).await.expect("it is open");
        let mut answer: Message = [0; MESSAGE];
        socket.read_exact(&mut answer).await.expect("it proves the key");
        let records = initiator.finish(&answer).expect("the same key");
        Self { socket, records, sent: message.to_vec() }
    }

    async fn send(&mut self, plain: &[u8]) {
        let mut sealed = BytesMut::new();
        self.records.seal(plain, &mut sealed);
        self.sent.extend_from_slice(&sealed);
        self.socket.write_all(&sealed).await.expect("it is open");
    }
}

/// The request for the server's own target.
const REQUEST: &[u8] = &[0];

fn replay() {
    scene(60, || async {
        let (_near, far, key) = (stack(0..1), stack(1..2), key());
        let (listener, destination) = target().await;
        let serve = server(&far, Some(&key), destination, limits());
        let mut client = Client::new(&key).await;
        client.send(REQUEST).await;
        client.send(b"pay 100 to the ferryman").await;
        let (mut socket, _) = listener.accept().await.expect("the server connects");
        let mut text = [0; 23];
        socket.read_exact(&mut text).await.expect("the text comes");
        assert_eq!(&text, b"pay 100 to the ferryman");
        let recorded = client.sent.clone();
        drop((client, socket));
        // The whole of it, at once and then in two parts.
        let answer = answer_to(&recorded, false).await;
        assert!(answer.is_empty() || answer.len() == MESSAGE, "a handshake at most");
        let mut again = TcpStream::connect(address()).await.expect("it listens");
        again.write_all(&recorded[..MESSAGE]).await.expect("it is open");
        let mut answer = [0; MESSAGE];
        again.read_exact(&mut answer).await.expect("the message is good");
        again.write_all(&recorded[MESSAGE..]).await.expect("it is open");
        let mut rest = Vec::new();
        let _ = again.read_to_end(&mut rest).await;
        assert!(rest.is_empty());
        assert!(untouched(&listener).await, "nothing is done for a recording");
        let serve = serve.stop().await;
        assert_eq!((serve.accepted, serve.unproven), (3, 2), "{serve}");
    });
}

/// The peer's window on the kernel's connections to the server, in bytes.
async fn windows() -> Vec<u32> {
    let told = output(&["ss", "--tcp", "--info", "--no-header", "dst", &address().to_string()]).await;
    let told = String::from_utf8(told.stdout).expect("text");
    let word = |word: &str| word.strip_prefix("snd_wnd:")?.parse().ok();
    told.split_whitespace().filter_map(word).collect()
}

fn window() {
    scene(60, || async {
        let (_near, far, key) = (stack(0..1), stack(1..2), key());
        let (listener, destination) = target().await;
        let serve = server(&far, Some(&key), destination, limits());
        let mut client = Client::new(&key).await;
        let small = windows().await;
        assert!(matches!(small[..], [bytes] if bytes <= 4_096), "{small:?}");
        client.send(REQUEST).await;
        let (_socket, _) = listener.accept().await.expect("the server connects");
        let large = windows().await;
        assert!(matches!(large[..], [bytes] if bytes > 100_000), "{large:?}");
        drop(client);
        serve.stop().await;
    });
}

fn tampered() {
    scene(60, || async {
        let (_near, far, key) = (stack(0..1), stack(1..2), key());
        let (listener, destination) = target().await;
        let serve = server(&far, Some(&key), destination, limits());
        // A record that is changed on the way, and a stream that ends without the record that says so.
        for cut in [false, true] {
            let mut client = Client::new(&key).await;
            client.send(REQUEST).await;
            client.send(b"first").await;
            let (mut socket, _) = listener.accept().await.expect("the server connects");
            let mut text = [0; 5];
            socket.read_exact(&mut text).await.expect("the text comes");
            if cut {
                client.socket.shutdown().await.expect("it is open");
            } else {
                let mut sealed = BytesMut::new();
                client.records.seal(b"second", &mut sealed);
                let last = sealed.len() - 1;
                sealed[last] ^= 1;
                client.socket.write_all(&sealed).await.expect("it is open");
            }
            let mut rest = Vec::new();
            let outcome = socket.read_to_end(&mut rest).await;
            let reset = outcome.expect_err("nobody may take this for the whole").kind();
            assert_eq!((reset, rest.len()), (std::io::ErrorKind::ConnectionReset, 0));
        }
        let serve = serve.stop().await;
        assert_eq!((serve.accepted, serve.tampered), (2, 2), "{serve}");
    });
}
