//! `anabranch perf` with the kernel's sockets on loopback, which needs no privileges.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

fn perf(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.arg("perf").args(words.split_whitespace()).stdin(Stdio::null());
    command
}

fn run(words: &str) -> Output {
    perf(words).output().expect("the program runs")
}

/// A server on a free port, killed on drop.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(words: &str) -> Self {
        // Another program may take the port before the server does.
        (0..5).find_map(|_| Self::try_start(words)).expect("a port stays free")
    }

    fn try_start(words: &str) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("loopback").port();
        let mut command = perf(&format!("--server --kernel tcp --port {port} {words}"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program runs");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        output.read_line(&mut line).expect("it says where it listens");
        let server = Self { child, port };
        if line.is_empty() {
            return None;
        }
        assert!(line.starts_with("listening on"), "{line}");
        // Drains the pipe so that it never fills.
        thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn assert_one_sentence(output: &Output, words: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.starts_with("error: ") && text.trim_end().lines().count() == 1 && text.contains(words), "{text}");
}

#[test]
fn a_report_has_the_fields_that_its_documentation_names() {
    let mut server = Server::start("--one-off");
    let words =
        format!("127.0.0.1 --port {} --kernel tcp --bidirectional --time 0.5 --interval 0.25 --json", server.port);
    let output = run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(report["schema"], 1);
    assert_eq!(report["client"]["stack"], "tcp");
    assert_eq!(report["server"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["plan"]["direction"], "both");
    assert_eq!(report["streams"][0]["protocol"], "tcp");
    for way in ["up", "down"] {
        for end in ["sent", "received"] {
            let side = &report[way][end];
            assert!(side["bytes"].as_u64() > Some(0) && side["bits_per_second"].as_f64() > Some(0.0), "{side}");
            assert_eq!(side["intervals"][0]["omitted"], false);
            let path = &side["intervals"][0]["paths"][0];
            assert_eq!((&path["name"], &path["share"]), (&Value::from("lo"), &Value::from(1.0)), "{path}");
            assert_eq!(path["rtt_ms"].is_f64(), end == "sent", "{path}");
            assert_eq!(side["paths"][0]["retransmitted"].is_u64(), end == "sent", "{side}");
        }
    }
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn people_get_a_line_per_interval_and_path_and_a_summary() {
    let server = Server::start("");
    let output = run(&format!("127.0.0.1 --port {} --kernel tcp -R --time 0.5 --interval 0.25", server.port));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for words in ["down  all", "0.0 lo to 127.0.0.1", "stream 0: tcp", "server: tcp on", "  received"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_sink_that_ends_before_the_test_is_over_interrupts_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("it is bound").port();
    let sink = thread::spawn(move || {
        for _ in 0..2 {
            drop(listener.accept().expect("it connects"));
        }
    });
    for length in ["--time 30", "--bytes 1GB"] {
        let output = run(&format!("127.0.0.1 --port {port} --kernel tcp --sink {length}"));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("the test was interrupted: the server ended the connections"), "{text}");
    }
    sink.join().expect("it ends");
}

#[test]
fn a_server_that_is_not_there_or_of_another_kind_and_a_port_in_use_are_named_in_one_sentence() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("it is bound").port();
    assert_one_sentence(&run(&format!("--server --kernel tcp --port {port}")), "cannot listen on");
    let other = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("it connects");
        socket.write_all(b"SSH-2.0-OpenSSH_10.0\r\n").expect("it reads");
        // Until the peer closes.
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let client = format!("127.0.0.1 --port {port} --kernel tcp");
    assert_one_sentence(&run(&client), "is not `anabranch perf --server`");
    other.join().expect("it ends");
    assert_one_sentence(&run(&client), "no connection to 127.0.0.1");
    assert_one_sentence(&run("127.0.0.1 --kernel tcp --congestion no_such"), "'no_such'");
    assert_one_sentence(&run("127.0.0.1:0 --kernel tcp"), "'127.0.0.1:0': the host needs a port from 1 to 65535");
    assert_one_sentence(&run("127.0.0.1 --kernel tcp --time 0"), "between 0.1 and 86400 seconds");
    assert_one_sentence(&run("no.such.host.invalid --kernel tcp"), "no address of 'no.such.host.invalid'");
}

/// Passes connections on to a server; ends the second, which is the test's stream, after some bytes of it.
fn cut_the_stream_short(server: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for limit in [u64::MAX, 1 << 20] {
            let (near, _) = listener.accept().expect("it connects");
            let far = TcpStream::connect(("127.0.0.1", server)).expect("the server listens");
            for (from, to) in [(&near, &far), (&far, &near)] {
                let [from, mut to] = [from, to].map(|socket| socket.try_clone().expect("a descriptor"));
                thread::spawn(move || {
                    // Whichever end is first ends the connection.
                    let _ = std::io::copy(&mut (&from).take(limit), &mut to);
                    let _ = from.shutdown(Shutdown::Both);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    port
}

#[test]
fn a_stream_that_is_lost_interrupts_the_test() {
    let server = Server::start("");
    for length in ["--time 30", "--bytes 1GB", "--time 30 --reverse"] {
        let port = cut_the_stream_short(server.port);
        let output = run(&format!("127.0.0.1 --port {port} --kernel tcp {length}"));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{length}: {text}");
        assert!(text.contains("the test was interrupted: "), "{length}: {text}");
    }
}

#[test]
fn a_server_for_one_test_ends_with_it_though_it_is_interrupted() {
    let mut server = Server::start("--one-off");
    let output = run(&format!("127.0.0.1 --port {} --kernel tcp --time 30", cut_the_stream_short(server.port)));
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn what_goes_wrong_at_a_server_is_told_beside_its_json() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("loopback").port();
    let mut command = perf(&format!("--server --kernel tcp --json --port {port}"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let mut server = Server { child, port };
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(server.child.try_wait().expect("it can be asked").is_none(), "another program took the port");
        thread::sleep(Duration::from_millis(10));
    }
    let mut line = String::new();
    BufReader::new(server.child.stderr.take().expect("it is piped")).read_line(&mut line).expect("text");
    assert!(line.starts_with("127.0.0.1:") && line.contains("dropped, "), "{line}");
    drop(server.child.kill());
    let mut results = String::new();
    server.child.stdout.take().expect("it is piped").read_to_string(&mut results).expect("text");
    assert_eq!(results, "");
}

#[test]
fn a_server_inside_udp_says_the_port_that_clients_name() {
    let port = UdpSocket::bind("[::]:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let mut child = perf(&format!("--server --udp --port {port}")).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("text");
    drop(Server { child, port });
    assert_eq!(line, format!("listening on port {port} (UDP) of every address\n"));
}

#[test]
fn a_name_and_an_address_may_have_a_port() {
    let server = Server::start("");
    for host in ["localhost", "127.0.0.1"] {
        let output = run(&format!("{host}:{} --kernel tcp --time 0.1", server.port));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn both_ways_each_sender_says_how_much_arrived_of_what_it_sent() {
    let server = Server::start("");
    for _ in 0..3 {
        let words = format!("127.0.0.1 --port {} --kernel tcp --bidirectional --bytes 20MB --json", server.port);
        let report: Value = serde_json::from_slice(&run(&words).stdout).expect("JSON");
        for way in ["up", "down"] {
            for end in ["sent", "received"] {
                assert_eq!(report[way][end]["bytes"], 20_000_000, "{way} {end}");
            }
        }
    }
}

#[test]
fn a_test_that_is_over_within_the_omitted_time_measures_nothing_and_says_so() {
    let server = Server::start("");
    let output = run(&format!("127.0.0.1 --port {} --kernel tcp --bytes 100kB --omit 5", server.port));
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("all of it was sent within the omitted seconds"), "{text}");
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).expect("it is there");
}

/// Sends a signal in the middle of a test of a minute; the client prints intervals.
fn stop_in_the_middle(words: &str) -> Output {
    let mut child = perf(&format!("{words} --kernel tcp --time 60 --interval 0.1"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut text = String::new();
    // Intervals of 0.1 s, or nothing with JSON.
    if words.contains("--json") {
        thread::sleep(Duration::from_millis(700));
    } else {
        while text.matches("  all ").count() < 3 {
            assert_ne!(output.read_line(&mut text).expect("text"), 0, "{text}");
        }
    }
    signal(&child, Signal::SIGINT);
    output.read_to_string(&mut text).expect("text");
    let rest = child.wait_with_output().expect("it ends");
    Output { stdout: text.into_bytes(), ..rest }
}

#[test]
fn a_client_that_is_told_to_end_reports_what_it_has_measured() {
    let server = Server::start("");
    for (words, ways) in [("", &["up"][..]), ("--reverse", &["down"]), ("--bidirectional", &["up", "down"])] {
        let words = format!("127.0.0.1 --port {} {words}", server.port);
        let output = stop_in_the_middle(&format!("{words} --json"));
        assert_eq!(output.status.code(), Some(1), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
        assert_eq!(report["interrupted"], "client");
        for way in ways {
            for end in ["sent", "received"] {
                let side = &report[way][end];
                assert!(side["bytes"].as_u64() > Some(0) && side["seconds"].as_f64() < Some(60.0), "{side}");
            }
        }
        let output = stop_in_the_middle(&words);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("interrupted at the client") && text.contains("\n  received"), "{text}");
    }
}

#[test]
fn a_client_of_another_server_that_is_told_to_end_reports_what_it_has_measured() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("it is bound").port();
    let sink = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("it connects");
        // Until it is reset.
        let _ = std::io::copy(&mut socket, &mut std::io::sink());
    });
    let output = stop_in_the_middle(&format!("127.0.0.1 --port {port} --sink --json"));
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["interrupted"], &report["up"]["received"]), (&Value::from("client"), &Value::Null));
    assert!(report["up"]["sent"]["bytes"].as_u64() > Some(0), "{report}");
    sink.join().expect("it ends");
}

#[test]
fn a_server_that_is_told_to_end_reports_its_tests_and_so_do_their_clients() {
    for (way, words) in [("up", ""), ("down", "--reverse")] {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("loopback").port();
        let mut command = perf(&format!("--server --kernel tcp --json --port {port}"));
        let child = command.stdout(Stdio::piped()).spawn().expect("the program runs");
        let mut server = Server { child, port };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.child.try_wait().expect("it can be asked").is_none(), "another program took the port");
            thread::sleep(Duration::from_millis(10));
        }
        let client = perf(&format!("127.0.0.1 --port {port} --kernel tcp --time 60 --interval 0.1 {words} --json"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        thread::sleep(Duration::from_millis(700));
        signal(&server.child, Signal::SIGTERM);
        let output = client.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
        assert_eq!(report["interrupted"], "server");
        assert!(report[way]["received"]["bytes"].as_u64() > Some(0), "{report}");
        assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
        let mut line = String::new();
        server.child.stdout.take().expect("it is piped").read_to_string(&mut line).expect("text");
        let line: Value = serde_json::from_str(&line).expect("a line of JSON");
        assert_eq!(line["interrupted"], "server");
        let side = if way == "up" { &line["received"] } else { &line["sent"] };
        assert!(side["bytes"].as_u64() > Some(0), "{line}");
    }
}
