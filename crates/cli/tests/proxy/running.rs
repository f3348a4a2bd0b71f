//! The programs at work in a namespace, from the first line that they print to the last.

use crate::{anabranch, text};
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, work: fn()| {
        Trial::test(format!("running::{name}"), move || {
            let namespace = Namespace::new().expect("namespaces were there a moment ago");
            namespace.run(work).expect("it can be entered");
            Ok(())
        })
    };
    vec![trial("serve_ends_connections_of_this_host", serve), trial("proxy_reaches_a_server_of_this_host", proxy)]
}

/// A program of ours that runs.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn new(arguments: &[&str]) -> Self {
        let mut command = anabranch(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("the program runs");
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        Self { child, output }
    }

    /// The next line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it can be read");
        assert!(!line.is_empty(), "it has ended");
        line.trim().to_owned()
    }

    /// Asks it to end; returns what else it prints.
    fn end(mut self) -> String {
        run("kill", &["-TERM", &self.child.id().to_string()]);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it can be read");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0), "{rest}");
        rest
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, if all is well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program that must succeed; returns what it prints.
fn run(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().expect("the program is there");
    assert!(output.status.success(), "{program} {words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Answers each request with "over the river", on a socket of the kernel's; says when it listens.
const SERVER: &str = "
import http.server, socket, sys
class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(('0.0.0.0', 8000), Handler, False)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
        self.server_bind()
        self.server_activate()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'over the river')
    def log_message(self, *words):
        pass
server = Server()
print('listening', flush=True)
server.serve_forever()
";

/// The server in python; it ends when it is dropped.
fn web() -> Running {
    let mut command = Command::new("python3");
    let mut child = command.args(["-c", SERVER]).stdout(Stdio::piped()).spawn().expect("python runs");
    let output = BufReader::new(child.stdout.take().expect("it was asked for"));
    let mut web = Running { child, output };
    assert_eq!(web.line(), "listening");
    web
}

/// The IPv4 address and port that stand in `listening on ADDRESS: ...`.
fn address(line: &str) -> String {
    let words = line.strip_prefix("listening on ").expect("that is what is said first");
    words.split(": ").next().expect("an address").to_owned()
}

fn serve() {
    run("ip", &["link", "set", "lo", "up"]);
    let _web = web();
    let mut serve = Running::new(&["serve", "--local", "2", "--port", "4410", "--to", "127.0.0.1:8000", "--verbose"]);
    let lines: Vec<String> = (0..4).map(|_| serve.line()).collect();
    for line in lines.iter().filter(|line| !line.contains('[')) {
        let url = format!("http://{}/", address(line));
        assert_eq!(run("mptcpize", &["run", "curl", "--silent", "--show-error", &url]), "over the river");
        assert_eq!(run("curl", &["--silent", "--show-error", &url]), "over the river", "without MPTCP");
    }
    let rest = serve.end();
    assert!(rest.contains("-> 127.0.0.1:8000: finished"), "{rest}");
    assert!(rest.lines().last().expect("totals").starts_with("4 connections, "), "{rest}");
    assert!(!run("ip", &["address"]).contains("anabranch"), "nothing is left");
}

fn proxy() {
    run("ip", &["link", "set", "lo", "up"]);
    let _web = web();
    let mut proxy = Running::new(&["proxy", "--local", "2", "--listen", "127.0.0.1:0", "--listen", "[::1]:0"]);
    let (first, second) = (proxy.line(), proxy.line());
    // The host's own address on the first path.
    let addresses = run("ip", &["-4", "-oneline", "address", "show", "scope", "global"]);
    let host = addresses.split_whitespace().skip_while(|word| *word != "inet").nth(1).expect("an address");
    let url = format!("http://{}:8000/", host.split('/').next().expect("an address"));
    for (listening, scheme) in [(&first, "socks5h"), (&second, "socks5"), (&first, "http")] {
        let proxy = format!("{scheme}://{}", address(listening));
        let words = ["--silent", "--show-error", "--noproxy", "", "--proxytunnel", "--proxy", &proxy, &url];
        assert_eq!(run("curl", &words), "over the river");
    }
    let counters = run("nstat", &["-az", "MPTcpExtMPCapableACKRX"]);
    assert!(counters.contains(" 3 "), "the kernel accepted three as multipath: {counters}");
    assert!(proxy.end().starts_with("3 connections, "));
}
