//! `anabranch stream` with the kernel's TCP on loopback, which needs no privileges.

use anabranch_media::{ElementaryStream, clip};
use anabranch_wire::MessageHeader;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;

/// A new key.
fn key(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stream-{}-{name}.key", std::process::id()));
    let made = Command::new(env!("CARGO_BIN_EXE_anabranch")).arg("key").arg(&path).status().expect("the program runs");
    assert!(made.success());
    path
}

/// Option that sets the same key at both ends.
fn same_key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| format!("--key {}", key("same").display()))
}

/// With the same key, unless the arguments have an option for keys.
fn stream(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.arg("stream").args(words.split_whitespace());
    if !["--key", "--raw", "--unencrypted"].iter().any(|word| words.contains(word)) {
        command.args(same_key().split_whitespace());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(words: &str) -> Output {
    stream(words).output().expect("the program runs")
}

/// Runs it with this standard input.
fn run_with(words: &str, input: &[u8]) -> Output {
    let mut child = stream(words).stdin(Stdio::piped()).spawn().expect("the program runs");
    let mut pipe = child.stdin.take().expect("it is piped");
    // It may exit before it has read everything.
    let _ = pipe.write_all(input);
    drop(pipe);
    child.wait_with_output().expect("it ends")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("loopback").port()
}

/// A listening receiver, and its output.
struct Receiver {
    child: Child,
    said: BufReader<ChildStderr>,
    port: u16,
}

impl Receiver {
    fn start(words: &str) -> Self {
        let port = free_port();
        let mut child = stream(&format!("receive --listen {port} --kernel tcp {words}")).spawn().expect("it runs");
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it says where it listens");
        assert!(line.starts_with("listening on"), "{line}");
        Self { child, said, port }
    }

    /// Received data, standard error, and the exit code.
    fn end(mut self) -> (Vec<u8>, String, Option<i32>) {
        let (mut out, mut said) = (Vec::new(), String::new());
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_end(&mut out).expect("it can be read");
        }
        self.said.read_to_string(&mut said).expect("it is text");
        (out, said, self.child.wait().expect("it ends").code())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// H.264 pictures that cannot be decoded, after a parameter set.
fn pictures() -> Vec<u8> {
    let picture = |head: u8, first: u8, length: usize| {
        let mut bytes = vec![0, 0, 0, 1, head, first];
        bytes.resize(length, 0x55);
        bytes
    };
    let mut stream = vec![0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x0a];
    for _ in 0..10 {
        stream.extend(picture(0x65, 0b1000_1000, 5_000));
        stream.extend(picture(0x41, 0b1001_1000, 900));
        stream.extend(picture(0x01, 0b1001_1100, 300));
    }
    stream
}

fn assert_one_sentence(output: &Output, words: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.starts_with("error: ") && text.trim_end().lines().count() == 1 && text.contains(words), "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_stream_comes_out_as_it_went_in_and_both_ends_say_what_they_counted() {
    let receiver = Receiver::start("");
    let sent = run_with(&format!("send 127.0.0.1:{} --kernel tcp", receiver.port), &pictures());
    let text = String::from_utf8_lossy(&sent.stderr);
    assert_eq!(sent.status.code(), Some(0), "{text}");
    assert!(text.contains("of H.264 over TCP") && text.contains("pictures I 10, P 10, B 10"), "{text}");
    let (out, said, code) = receiver.end();
    assert_eq!((out == pictures(), code), (true, Some(0)), "{said}");
    assert!(said.contains("30 handed over: 30 on time, 0 late; 0 missing"), "{said}");
    assert!(said.contains("abandoned nothing") && said.contains("lo 100 %"), "{said}");
}

#[test]
fn a_stream_goes_without_encryption_only_if_both_ends_say_so() {
    let output = stream_without_key("receive --listen 5004 --kernel tcp");
    assert_one_sentence(&output, "without --key others could read the stream");
    let receiver = Receiver::start("--unencrypted");
    let sent = run_with(&format!("send 127.0.0.1:{} --kernel tcp --unencrypted", receiver.port), &pictures());
    assert_eq!(sent.status.code(), Some(0), "{}", String::from_utf8_lossy(&sent.stderr));
    let (out, said, code) = receiver.end();
    assert_eq!((out == pictures(), code), (true, Some(0)), "{said}");
}

fn stream_without_key(words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.arg("stream").args(words.split_whitespace()).stdin(Stdio::null());
    command.output().expect("the program runs")
}

#[test]
fn another_key_is_told_in_a_line_at_both_ends_and_the_receiver_waits_for_the_right_one() {
    let (keys, ours, others) = (key("keys"), key("ours"), key("others"));
    let line = std::fs::read_to_string(&ours).expect("it was written");
    std::fs::write(&keys, format!("camera {line}")).expect("it can be written");
    let receiver = Receiver::start(&format!("--keys {}", keys.display()));
    let send = |key: &Path| {
        run_with(&format!("send 127.0.0.1:{} --kernel tcp --key {}", receiver.port, key.display()), &pictures())
    };
    assert_one_sentence(&send(&others), "it has another key, or none");
    assert_eq!(send(&ours).status.code(), Some(0));
    let (out, said, code) = receiver.end();
    assert_eq!((out == pictures(), code), (true, Some(0)), "{said}");
    assert_eq!(said.matches("it does not prove the key: it has another one").count(), 1, "{said}");
}

#[test]
fn ends_of_which_one_does_not_encrypt_say_so() {
    let receiver = Receiver::start("");
    let send = |words: &str| run_with(&format!("send 127.0.0.1:{} --kernel tcp {words}", receiver.port), &pictures());
    let refused = send("--unencrypted");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("the receiver is gone; if it was started with --key FILE, give the key here too"), "{text}");
    assert_eq!(send("").status.code(), Some(0));
    let (_, said, code) = receiver.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("it does not encrypt the stream: give it the key with --key FILE"), "{said}");
    let receiver = Receiver::start("--unencrypted");
    let sent = run_with(&format!("send 127.0.0.1:{} --kernel tcp", receiver.port), &pictures());
    assert_one_sentence(&sent, "it has another key, or none");
    let (out, said, code) = receiver.end();
    assert_eq!((out.len(), code), (0, Some(1)), "{said}");
    assert!(said.contains("the sender encrypts the stream: give its key with --key FILE"), "{said}");
}

/// Sends through a proxy that applies `with` to the sender's data; returns that data and the receiver's output.
fn in_between(with: impl Fn(&mut Vec<u8>)) -> (Vec<u8>, Vec<u8>, String, Option<i32>) {
    let receiver = Receiver::start("");
    let between = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = between.local_addr().expect("it is bound");
    let sender = thread::spawn(move || run_with(&format!("send {address} --kernel tcp"), &pictures()));
    let (mut near, _) = between.accept().expect("the sender comes");
    let mut far = TcpStream::connect(("127.0.0.1", receiver.port)).expect("it listens");
    // The handshake: a header of 24 bytes, an identifier of 16, and 48, in each direction.
    let mut greeting = [0; 88];
    near.read_exact(&mut greeting).expect("the sender begins");
    far.write_all(&greeting).expect("it reads");
    far.read_exact(&mut greeting).expect("the receiver answers");
    near.write_all(&greeting).expect("it reads");
    let mut stream = vec![0; 30_000];
    near.read_exact(&mut stream).expect("it sends");
    let sent = stream.clone();
    with(&mut stream);
    far.write_all(&stream).expect("it reads");
    drop((near, far));
    let (out, said, code) = receiver.end();
    sender.join().expect("it ends");
    (sent, out, said, code)
}

#[test]
fn who_is_on_the_way_does_not_see_the_stream_and_cannot_cut_it_unnoticed() {
    let (sent, out, said, code) = in_between(|_| {});
    assert!(!sent.windows(16).any(|bytes| bytes == [0x55; 16]), "a picture is legible");
    assert!(!out.is_empty() && pictures().starts_with(&out) && code == Some(1), "{said}");
    assert!(said.contains("the connection ended before the stream did"), "{said}");
}

#[test]
fn who_is_on_the_way_cannot_change_the_stream_unnoticed() {
    // In the payload of the first message.
    let (_, out, said, code) = in_between(|stream| stream[100] ^= 1);
    assert_eq!((out.len(), code), (0, Some(1)), "{said}");
    assert!(said.contains("a message was changed on its way"), "{said}");
}

#[test]
fn a_stream_of_bare_bytes_comes_out_as_it_went_in() {
    let receiver = Receiver::start("--raw");
    let mut socket = TcpStream::connect(("127.0.0.1", receiver.port)).expect("it listens");
    socket.write_all(&pictures()).expect("it reads");
    drop(socket);
    let (out, said, code) = receiver.end();
    assert_eq!((out == pictures(), code), (true, Some(0)), "{said}");
}

/// Linux accepts further MPTCP subflows only while a socket listens on the port.
#[test]
fn the_port_stays_while_the_stream_goes_on_and_who_else_comes_is_turned_away() {
    let receiver = Receiver::start("--raw");
    let stream = pictures();
    let (begin, rest) = stream.split_at(stream.len() / 2);
    let mut socket = TcpStream::connect(("127.0.0.1", receiver.port)).expect("it listens");
    socket.write_all(begin).expect("it reads");
    let mut other = TcpStream::connect(("127.0.0.1", receiver.port)).expect("it still listens");
    other.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a timeout");
    let turned_away = other.read(&mut [0; 1]);
    assert!(matches!(turned_away, Ok(0)), "{turned_away:?}");
    socket.write_all(rest).expect("it reads on");
    drop(socket);
    let (out, said, code) = receiver.end();
    assert_eq!((out == stream, code), (true, Some(0)), "{said}");
}

#[test]
fn reports_have_the_fields_that_their_documentation_names() {
    let port = free_port();
    let sender = stream(&format!("send --listen {port} --kernel tcp --json")).stdin(Stdio::piped()).spawn();
    let mut sender = sender.expect("it runs");
    sender.stdin.take().expect("it is piped").write_all(&pictures()).expect("it reads");
    let receiver = loop {
        // The sender listens once it has data to send.
        let output = run(&format!("receive 127.0.0.1:{port} --kernel tcp --json --latency 1s"));
        if !String::from_utf8_lossy(&output.stderr).contains("no connection") {
            break output;
        }
    };
    let sender = sender.wait_with_output().expect("it ends");
    let read = |output: &Output| -> Value {
        let text = String::from_utf8_lossy(&output.stderr);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let (sent, received) = (read(&sender), read(&receiver));
    assert_eq!((&sent["schema"], &received["schema"]), (&Value::from(1), &Value::from(1)));
    assert_eq!((&sent["format"], &sent["messages"]), (&Value::from("H.264"), &Value::from(30)));
    assert_eq!((&sent["pictures"], &sent["dropped"]), (&Value::from(vec![10, 10, 10]), &Value::from(0)));
    assert_eq!((&received["protocol"], &received["latency_ms"]), (&Value::from("tcp"), &Value::from(1000.0)));
    assert_eq!((&received["messages"], &received["on_time"]), (&Value::from(30), &Value::from(30)));
    for reason in ["expired", "blocked", "overtaken", "withdrawn", "unframed"] {
        assert_eq!(received["given_up"][reason]["bytes"], 0, "{reason}");
    }
    assert_eq!((&received["bytes"], &received["paths"][0]["share"]), (&sent["bytes"], &Value::from(1.0)));
    assert_eq!(received["delay_ms"].as_array().map(Vec::len), Some(4));
}

#[test]
fn what_cannot_be_sent_is_named_in_one_sentence() {
    assert_one_sentence(&run("send 127.0.0.1:9 --kernel tcp"), "nothing came in");
    assert_one_sentence(&run_with("send 127.0.0.1:9 --kernel tcp", b"hello\n"), "neither MPEG-TS nor a raw H.264");
    assert_one_sentence(&run_with("send 127.0.0.1:9 --kernel tcp --input mpegts", b"hello\n"), "is not MPEG-TS");
    assert_one_sentence(
        &run_with("send 127.0.0.1:9 --kernel tcp", &pictures()),
        "is `anabranch stream receive` waiting",
    );
    assert_one_sentence(&run_with("send 127.0.0.1 --kernel tcp", &pictures()), "has no port: write it like");
    for url in ["srt://192.0.2.1:5004", "http://192.0.2.1:5004/live", "rtsp://host.example/live"] {
        assert_one_sentence(
            &run_with(&format!("send {url} --kernel tcp"), &pictures()),
            "' is a URL: write the host and",
        );
    }
    let output = run("receive --listen 10.1.1.2:5004 --kernel tcp");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a port alone is expected"), "{said}");
    assert_one_sentence(&run_with("send [::1] --kernel tcp", &pictures()), "'[::1]' has no port: write it like");
    assert_one_sentence(&run_with("send 2001:db8::5:1 --kernel tcp", &pictures()), "'2001:db8::5:1' has no port");
    let folder = std::fs::File::open("/").expect("there is one");
    let output = stream("send 127.0.0.1:9 --kernel tcp").stdin(folder).output().expect("the program runs");
    assert_one_sentence(&output, "cannot read standard input: Is a directory");
    assert_one_sentence(&run_with("send 127.0.0.1:66000 --kernel tcp", &pictures()), "a number from 1 to 65535");
    assert_one_sentence(&run_with("send --kernel tcp", &pictures()), "or --listen PORT to wait");
    assert_one_sentence(&run_with("send no.such.host.invalid:5004 --kernel tcp", &pictures()), "no address of");
}

#[test]
fn a_stream_that_is_cut_off_before_its_first_picture_or_is_another_than_was_said_is_not_sent() {
    let send = |words: &str, input: &[u8]| run_with(&format!("send 127.0.0.1:9 --kernel tcp {words}"), input);
    // A parameter set without a picture; MPEG-4 headers without a picture.
    assert_one_sentence(
        &send("", pictures().get(..8).expect("it is longer")),
        "has no picture of H.264: it is cut off",
    );
    assert_one_sentence(&send("", clip::MPEG4.get(..31).expect("it is longer")), "has no picture of MPEG-4");
    assert_one_sentence(&send("--input mpegts", &pictures()), "what comes in is H.264, not MPEG-TS");
    assert_one_sentence(&send("--input mpeg4", &pictures()), "what comes in is H.264, not MPEG-4");
    assert_one_sentence(&send("--input h264", clip::MPEG4), "what comes in is MPEG-4, not H.264");
}

#[test]
fn a_raw_file_is_held_back_to_its_rate_and_all_of_it_comes_in_time() {
    let receiver = Receiver::start("");
    let stream = ElementaryStream::read(clip::MPEG4).expect("the clip");
    let second: usize = stream.pictures.iter().take(30).map(|picture| picture.data.len()).sum();
    let sent = run_with(&format!("send 127.0.0.1:{} --kernel tcp --json", receiver.port), &clip::MPEG4[..second]);
    let report: Value = serde_json::from_slice(&sent.stderr).expect("it is JSON");
    // 30 pictures at 30 a second span 967 ms; the header may be one piece with the first.
    assert!(report["seconds"].as_f64().is_some_and(|seconds| seconds > 0.9), "{report}");
    let (out, said, code) = receiver.end();
    assert_eq!((out == clip::MPEG4[..second], code), (true, Some(0)), "{said}");
    assert!(said.contains("30 handed over") && said.contains("; 0 missing"), "{said}");
}

#[test]
fn a_latency_that_cannot_be_and_a_port_in_use_are_named_in_one_sentence() {
    for (latency, words) in [
        ("-300ms", "must not be negative"),
        ("300", "has no unit"),
        ("2min", "between 1 ms and 60 s"),
        ("0ms", "between 1 ms"),
    ] {
        for option in ["--latency ", "--latency="] {
            let output = run(&format!("receive --listen 5004 --kernel tcp {option}{latency}"));
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{text}");
            assert!(text.contains(words), "{text}");
        }
    }
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    assert_one_sentence(&run(&format!("receive --listen {port} --kernel tcp")), "another program listens on port");
}

#[test]
fn a_sender_that_is_not_ours_and_one_that_says_nothing_are_told_apart() {
    let receiver = Receiver::start("--unencrypted");
    TcpStream::connect(("127.0.0.1", receiver.port))
        .and_then(|mut socket| socket.write_all(&pictures()))
        .expect("it reads");
    let (_, said, code) = receiver.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("not framed in messages; say --raw"), "{said}");
    let receiver = Receiver::start("--unencrypted");
    drop(TcpStream::connect(("127.0.0.1", receiver.port)).expect("it listens"));
    let (_, said, code) = receiver.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("ended before anything of it came"), "{said}");
}

#[test]
fn whoever_closes_the_output_ends_the_stream_without_a_complaint() {
    let mut receiver = Receiver::start("");
    let port = receiver.port;
    drop(receiver.child.stdout.take());
    let sender = thread::spawn(move || run_with(&format!("send 127.0.0.1:{port} --kernel tcp"), &pictures()));
    let (_, said, code) = receiver.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("error") && !said.contains("panicked"), "{said}");
    sender.join().expect("it ends");
}

#[test]
fn a_disk_that_is_full_is_told_and_is_no_success() {
    let port = free_port();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let mut receiver = stream(&format!("receive --listen {port} --kernel tcp")).stdout(full).spawn().expect("it runs");
    let mut said = BufReader::new(receiver.stderr.take().expect("it is piped"));
    let mut text = String::new();
    said.read_line(&mut text).expect("it says where it listens");
    run_with(&format!("send 127.0.0.1:{port} --kernel tcp"), &pictures());
    said.read_to_string(&mut text).expect("it is text");
    assert_eq!(receiver.wait().expect("it ends").code(), Some(1), "{text}");
    let words = "error: the stream was interrupted: cannot write standard output: No space left on device";
    assert!(text.contains(words), "{text}");
}

#[test]
fn a_signal_ends_a_receiver_whose_output_nobody_reads() {
    let mut receiver = Receiver::start("--raw");
    let mut socket = TcpStream::connect(("127.0.0.1", receiver.port)).expect("it listens");
    // More than pipes and buffers hold: it blocks on the reader, and this test on it.
    socket.set_write_timeout(Some(std::time::Duration::from_secs(1))).expect("it is a socket");
    while socket.write_all(&[0x1a; 65_536]).is_ok() {}
    kill(Pid::from_raw(receiver.child.id() as i32), Signal::SIGINT).expect("it is there");
    assert_eq!(receiver.child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_signal_ends_both_ends_with_what_they_counted() {
    let receiver = Receiver::start("");
    let words = format!("send 127.0.0.1:{} --kernel tcp", receiver.port);
    let mut sender = stream(&words).stdin(Stdio::piped()).spawn().expect("it runs");
    let mut pipe = sender.stdin.take().expect("it is piped");
    pipe.write_all(&pictures()).expect("it reads");
    let mut first = [0; 8];
    let mut receiver = receiver;
    receiver.child.stdout.as_mut().expect("it is piped").read_exact(&mut first).expect("something comes out");
    kill(Pid::from_raw(sender.id() as i32), Signal::SIGINT).expect("it is there");
    let sent = sender.wait_with_output().expect("it ends");
    drop(pipe);
    let text = String::from_utf8_lossy(&sent.stderr);
    assert_eq!(sent.status.code(), Some(0), "{text}");
    assert!(text.contains("messages  "), "{text}");
    let (_, said, code) = receiver.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("handed over"), "{said}");
}

#[test]
fn a_stream_that_is_cut_off_in_the_midst_of_a_picture_comes_out_as_far_as_it_went() {
    let receiver = Receiver::start("");
    let whole = pictures();
    let cut = whole.get(..whole.len() - 2_100).expect("it is longer");
    let sent = run_with(&format!("send 127.0.0.1:{} --kernel tcp", receiver.port), cut);
    assert_eq!(sent.status.code(), Some(0), "{}", String::from_utf8_lossy(&sent.stderr));
    let (out, said, code) = receiver.end();
    assert_eq!((out == cut, code), (true, Some(0)), "{said}");
}

/// A sender in the middle of a stream whose receiver has just left, and the sender's input.
fn sender_whose_receiver_has_left() -> (Child, ChildStdin) {
    let mut receiver = Receiver::start("");
    let words = format!("send 127.0.0.1:{} --kernel tcp", receiver.port);
    let mut sender = stream(&words).stdin(Stdio::piped()).spawn().expect("it runs");
    let mut pipe = sender.stdin.take().expect("it is piped");
    pipe.write_all(&pictures()).expect("it reads");
    let mut first = [0; 8];
    receiver.child.stdout.as_mut().expect("it is piped").read_exact(&mut first).expect("something comes out");
    drop(receiver);
    (sender, pipe)
}

#[test]
fn a_receiver_that_is_killed_ends_the_sender_with_a_sentence() {
    let (sender, mut pipe) = sender_whose_receiver_has_left();
    // It detects this when it writes; until then the pipe accepts data.
    while pipe.write_all(&pictures()).is_ok() {
        thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_interrupted(&sender.wait_with_output().expect("it ends"));
}

#[test]
fn a_receiver_that_leaves_ends_the_sender_though_its_source_has_paused() {
    let (mut sender, pipe) = sender_whose_receiver_has_left();
    // The pipe stays open, and nothing more is written to it.
    let status = sender.wait().expect("it ends");
    drop(pipe);
    assert_eq!(status.code(), Some(1));
}

#[test]
fn who_connects_and_says_nothing_does_not_keep_the_sender_waiting() {
    let receiver = Receiver::start("");
    // With more than two of them, one after the other, the sender would have given up.
    let silent: Vec<TcpStream> =
        (0..3).map(|_| TcpStream::connect(("127.0.0.1", receiver.port)).expect("it listens")).collect();
    let sent = run_with(&format!("send 127.0.0.1:{} --kernel tcp", receiver.port), &pictures());
    assert_eq!(sent.status.code(), Some(0), "{}", String::from_utf8_lossy(&sent.stderr));
    let (out, said, code) = receiver.end();
    assert_eq!((out == pictures(), code), (true, Some(0)), "{said}");
    drop(silent);
}

#[test]
fn a_connection_that_ends_within_a_message_has_not_ended_the_stream() {
    let receiver = Receiver::start("--unencrypted");
    let mut socket = TcpStream::connect(("127.0.0.1", receiver.port)).expect("it listens");
    let header = MessageHeader { number: 0, importance: 0, length: 8, play_out: 0 };
    let message = [&header.encode().expect("it is short")[..], b"12345678"].concat();
    socket.write_all(&message).expect("it reads");
    socket.write_all(&message[..30]).expect("it reads");
    drop(socket);
    let (out, said, code) = receiver.end();
    assert_eq!((&out[..], code), (&b"12345678"[..], Some(1)), "{said}");
    assert!(said.contains("the stream was interrupted: the connection ended before the stream did"), "{said}");
}

#[test]
fn a_receiver_that_resets_the_connection_at_the_end_has_not_taken_the_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("it is bound").port();
    let words = format!("send 127.0.0.1:{port} --kernel tcp --unencrypted");
    let sender = thread::spawn(move || run_with(&words, &pictures()));
    let (mut socket, _) = listener.accept().expect("it connects");
    socket.read_to_end(&mut Vec::new()).expect("it ends its direction");
    socket2::SockRef::from(&socket).set_linger(Some(std::time::Duration::ZERO)).expect("it is a socket");
    drop(socket);
    assert_interrupted(&sender.join().expect("it ends"));
}

fn assert_interrupted(sent: &Output) {
    let text = String::from_utf8_lossy(&sent.stderr);
    assert_eq!(sent.status.code(), Some(1), "{text}");
    assert!(text.contains("error: the stream was interrupted: the receiver is gone"), "{text}");
}
