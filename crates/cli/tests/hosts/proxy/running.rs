//! The programs running in a namespace, from their first to their last line of output.

use crate::program::{Running, anabranch, directory, text};
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, work: fn()| {
        Trial::test(format!("proxy::running::{name}"), move || {
            let namespace = Namespace::new().expect("namespaces were there a moment ago");
            namespace.run(work).expect("it can be entered");
            Ok(())
        })
    };
    vec![
        trial("serve_ends_connections_of_this_host", serve),
        trial("a_second_signal_ends_at_once_what_is_let_finish", second_signal),
        trial("proxy_reaches_a_server_of_this_host", proxy),
        trial("proxy_says_in_a_line_what_its_server_answers_and_waits_for_one_that_is_down", server_is_asked),
        trial("a_program_that_runs_tells_how_it_does_over_http_and_to_status", told),
        trial("a_hang_up_has_the_configuration_read_again_and_breaks_nothing", hang_up),
        trial("each_client_has_its_own_key_and_is_shut_out_when_that_is_taken_from_the_file", clients),
        trial("a_download_ends_soon_after_its_server_was_killed_and_started_again", server_restarts),
    ]
}

fn started(arguments: &[&str]) -> Running {
    Running::new(&mut anabranch(arguments))
}

/// Runs a program that must succeed; returns its output.
fn run(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().expect("the program is there");
    assert!(output.status.success(), "{program} {words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Answers each request with "over the river" on a kernel socket; prints a line when it listens.
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

/// The Python server; killed on drop.
fn web() -> Running {
    let mut command = Command::new("python3");
    let mut web = Running::new(command.args(["-c", SERVER]));
    assert_eq!(web.line(), "listening");
    web
}

/// The IPv4 address and port in `listening on ADDRESS: ...`.
fn address(line: &str) -> String {
    let words = line.strip_prefix("listening on ").expect("that is what is said first");
    words.split(": ").next().expect("an address").to_owned()
}

fn serve() {
    run("ip", &["link", "set", "lo", "up"]);
    let _web = web();
    let mut serve = started(&["serve", "--local", "2", "--port", "4410", "--to", "127.0.0.1:8000", "--verbose"]);
    let lines: Vec<String> = (0..4).map(|_| serve.line()).collect();
    for line in lines.iter().filter(|line| !line.contains('[')) {
        let url = format!("http://{}/", address(line));
        assert_eq!(run("mptcpize", &["run", "curl", "--silent", "--show-error", &url]), "over the river");
        assert_eq!(run("curl", &["--silent", "--show-error", &url]), "over the river", "without MPTCP");
    }
    let rest = serve.end_by("TERM");
    assert!(rest.contains("-> 127.0.0.1:8000: finished"), "{rest}");
    assert!(rest.lines().last().expect("totals").starts_with("4 connections, "), "{rest}");
    assert!(!run("ip", &["address"]).contains("anabranch"), "nothing is left");
}

fn second_signal() {
    run("ip", &["link", "set", "lo", "up"]);
    let _web = web();
    let place = directory("proxy-second-signal").display().to_string();
    let serve = ["serve", "--port", "4410", "--to", "127.0.0.1:8000"];
    for words in [&serve[..], &["proxy", "--listen", "127.0.0.1:0"]] {
        for signal in ["TERM", "INT"] {
            let common = ["--local", "2", "--drain", "3600", "--journal", &place];
            let mut running = started(&[words, &common].concat());
            let line = running.line();
            let mut client = std::net::TcpStream::connect(address(&line)).expect("it listens");
            if words[0] == "serve" {
                client.write_all(b"GET / HTTP/1.1\r\n").expect("it is open");
            }
            std::thread::sleep(std::time::Duration::from_millis(500));
            running.signal(signal);
            std::thread::sleep(std::time::Duration::from_secs(1));
            assert!(running.child.try_wait().expect("it can be asked").is_none(), "{words:?}: it has an hour");
            let began = std::time::Instant::now();
            running.signal(signal);
            let (status, rest) = running.end();
            assert!(status.success() && rest.contains("1 stopped"), "{words:?} {signal}: {status}: {rest}");
            assert!(began.elapsed().as_secs() < 10, "{words:?} {signal}: {:?}", began.elapsed());
        }
    }
    assert!(!run("ip", &["address"]).contains("anabranch"), "nothing is left");
}

fn proxy() {
    run("ip", &["link", "set", "lo", "up"]);
    let _web = web();
    let mut proxy = started(&["proxy", "--local", "2", "--listen", "127.0.0.1:0", "--listen", "[::1]:0"]);
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
    assert!(proxy.end_by("TERM").starts_with("3 connections, "));
}

/// A running Anabranch command, and its standard error.
fn speaking(arguments: &[&str]) -> (Running, BufReader<ChildStderr>) {
    speaking_of(anabranch(arguments))
}

/// Like [`speaking`], for a command.
fn speaking_of(mut command: Command) -> (Running, BufReader<ChildStderr>) {
    let mut running = Running::new(command.stderr(Stdio::piped()));
    let errors = running.errors.take().expect("it was asked for");
    (running, errors)
}

/// The next line of standard error, without its time.
fn event(errors: &mut BufReader<ChildStderr>) -> String {
    let mut line = String::new();
    errors.read_line(&mut line).expect("it can be read");
    let (time, text) = line.trim().split_once(' ').expect("a time, and what happened");
    assert!(time.len() == 20 && time.ends_with('Z'), "{line}");
    text.to_owned()
}

fn told() {
    run("ip", &["link", "set", "lo", "up"]);
    let _web = web();
    let place = directory("proxy-told").display().to_string();
    let words = ["serve", "--local", "2", "--port", "4410", "--to", "127.0.0.1:8000", "--journal", &place];
    let mut serve = started(&[&words[..], &["--status", "127.0.0.1:0"]].concat());
    let lines: Vec<String> = (0..5).map(|_| serve.line()).collect();
    let client = std::net::TcpStream::connect(address(&lines[0])).expect("it serves");
    let url = lines[4].strip_prefix("status at ").expect("that is what is said last");
    let get = |url: &str| run("curl", &["--silent", "--show-error", "--fail", "--noproxy", "*", url]);
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    let status = loop {
        let status = read(&get(url));
        if status["connections"]["shown"][0]["paths"][0]["state"] == "up" {
            break status;
        }
    };
    assert_eq!((&status["command"], &status["clients"]["accepted"]), (&"serve".into(), &1.into()), "{status:#}");
    let uplinks = status["uplinks"].as_array().expect("a list");
    assert_eq!(uplinks.iter().filter(|uplink| uplink["up"] == true).count(), 2, "{status:#}");
    let busy = uplinks.iter().find(|uplink| uplink["subflows"] == 1).expect("the client came by one");
    assert!(busy["received_packets"].as_u64().expect("a number") >= 2, "{status:#}");
    let metrics = get(&url.replace("/status", "/metrics"));
    assert!(metrics.contains("anabranch_clients 1\n") && metrics.contains("anabranch_uplink_up{uplink="), "{metrics}");
    let ask = |more: &[&str]| {
        let output = anabranch(&[&["status", "--journal", &place], more].concat()).output().expect("the program runs");
        assert!(output.stderr.is_empty() || !output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(ask(&[]).starts_with(&format!("serve (process {}, ", serve.child.id())), "{}", ask(&[]));
    assert_eq!(read(&ask(&["--json"]))[0]["process"], serve.child.id());
    drop(client);
    serve.end_by("TERM");
    assert_eq!(ask(&["--json"]).trim(), "[]");
    assert_eq!(std::fs::read_dir(&place).map_or(0, Iterator::count), 0, "nothing is left");
    // A killed command leaves a socket without a listener, which is ignored.
    let mut serve = started(&words);
    serve.line();
    drop(serve);
    assert_eq!(ask(&["--json"]).trim(), "[]");
}

fn hang_up() {
    run("ip", &["link", "set", "lo", "up"]);
    let _web = web();
    let place = directory("proxy-hang_up");
    let (key, other, file) = (new_key(&place, "key"), new_key(&place, "other"), place.join("anabranch.toml"));
    let write =
        |text: &str| std::fs::write(&file, format!("[serve]\nudp = true\nsocks = true\n{text}")).expect("written");
    write("port = 4443\nkey = \"key\"\nallow = \"127.0.0.1:1\"\n");
    let told = std::os::unix::net::UnixDatagram::bind(place.join("notify")).expect("a socket");
    let mut command = anabranch(&["serve", "--config", &file.display().to_string()]);
    command.env("NOTIFY_SOCKET", place.join("notify"));
    let (serve, mut hears) = speaking_of(command);
    let state = || {
        let mut bytes = [0; 64];
        let length = told.recv(&mut bytes).expect("it is told");
        text(&bytes[..length])
    };
    assert_eq!(state(), "READY=1");
    let proxy =
        |key: &str| started(&["proxy", "--udp", "--server", "127.0.0.1:4443", "--key", key, "--listen", "127.0.0.1:0"]);
    let mut old = proxy(&key);
    let through = format!("socks5h://{}", address(&old.line()));
    let get = |through: &str| {
        let words = ["--silent", "--max-time", "10", "--proxy", through, "http://127.0.0.1:8000/"];
        Command::new("curl").args(words).output().expect("curl runs")
    };
    assert!(!get(&through).status.success(), "that port is not allowed yet");
    let hang_up = || run("kill", &["-HUP", &serve.child.id().to_string()]);
    write("port = 4443\nkey = \"key\"\nallow = \"127.0.0.1:8000\"\n");
    hang_up();
    assert_eq!(event(&mut hears), "the configuration was read again and counts for new connections");
    assert_eq!(text(&get(&through).stdout), "over the river");
    // An open connection survives reloads.
    let mut held = std::net::TcpStream::connect(through.trim_start_matches("socks5h://")).expect("it listens");
    held.write_all(b"CONNECT 127.0.0.1:8000 HTTP/1.1\r\n\r\n").expect("it reads");
    let mut accepted = [0; 512];
    let length = held.read(&mut accepted).expect("it answers");
    assert!(accepted[..length].starts_with(b"HTTP/1.1 200"), "{}", text(&accepted[..length]));
    write("port = 4443\nkey = \"key\"\nallow = \"nonsense\"\n");
    hang_up();
    let line = event(&mut hears);
    assert!(line.starts_with("the configuration stays as it was: ") && line.contains("anabranch.toml:6:9"), "{line}");
    write("port = 4443\nkey = \"key\"\npolicy = \"nonsense\"\n");
    hang_up();
    let line = event(&mut hears);
    assert!(line.starts_with("the configuration stays as it was: ") && line.contains("nonsense"), "{line}");
    std::fs::write(&file, "[serve]\nudp = true\nkey = \"key\"\nport = 4443\n").expect("written");
    hang_up();
    assert_eq!(event(&mut hears), "the configuration stays as it was: [serve] also needs 'to'");
    assert_eq!(text(&get(&through).stdout), "over the river");
    write("port = 4444\nkey = \"other\"\nidle = 7\nbackup = \"lo\"\n");
    hang_up();
    let line = event(&mut hears);
    assert!(line.ends_with("; a restart is needed for port, backup"), "{line}");
    assert!(!get(&through).status.success(), "the key has changed");
    let mut new = proxy(&other);
    let through = format!("socks5h://{}", address(&new.line()));
    // Without rules the server's own host is not allowed: the server has proved the key, and reports this.
    assert_eq!(get(&through).status.code(), Some(97));
    held.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it is still there");
    let mut page = String::new();
    held.read_to_string(&mut page).expect("it is still there");
    assert!(page.ends_with("over the river"), "{page}");
    for program in [old, new, serve] {
        program.end_by("TERM");
    }
    assert_eq!(state(), "STOPPING=1");
    // The time of --drain, 5 s, and half a minute.
    assert_eq!(state(), "EXTEND_TIMEOUT_USEC=35000000");
}

fn clients() {
    run("ip", &["link", "set", "lo", "up"]);
    let _web = web();
    let place = directory("proxy-clients");
    let (ann, bob, keys) = (new_key(&place, "ann.key"), new_key(&place, "bob.key"), place.join("keys"));
    let line = |name: &str, key: &str| format!("{name} {}", std::fs::read_to_string(key).expect("it is ours"));
    std::fs::write(&keys, line("ann", &ann) + &line("bob", &bob)).expect("it can be written");
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let file = place.join("anabranch.toml");
    let table = "[serve]\nport = 4443\nudp = true\nto = \"127.0.0.1:8000\"\nkeys = \"keys\"\nverbose = true\nstatus = \"127.0.0.1:9410\"\n";
    std::fs::write(&file, table).expect("it can be written");
    let (mut serve, mut hears) = speaking(&["serve", "--config", &file.display().to_string()]);
    serve.line();
    let words = |key: &str| {
        let words = ["proxy", "--udp", "--server", "127.0.0.1:4443", "--forward", "0", "--key", key];
        words.map(str::to_owned)
    };
    let start = |key: &str| {
        let mut proxy = started(&words(key).each_ref().map(String::as_str));
        let url = format!("http://{}/", address(&proxy.line()));
        (proxy, url)
    };
    let (anns, bobs) = (start(&ann), start(&bob));
    let get = |url: &str| Command::new("curl").args(["--silent", "--max-time", "10", url]).output().expect("curl runs");
    assert_eq!(text(&get(&anns.1).stdout), "over the river");
    assert_eq!(text(&get(&bobs.1).stdout), "over the river");
    std::fs::write(&keys, line("bob", &bob)).expect("it can be written");
    run("kill", &["-HUP", &serve.child.id().to_string()]);
    event(&mut hears);
    assert!(!get(&anns.1).status.success(), "her key was taken from the file");
    assert_eq!(text(&get(&bobs.1).stdout), "over the river");
    let metrics = run("curl", &["--silent", "http://127.0.0.1:9410/metrics"]);
    assert!(metrics.contains("anabranch_key_connections_total{key=\"bob\"} 2"), "{metrics}");
    assert!(metrics.contains("anabranch_key_bytes_total{key=\"bob\",direction=\"down\"} "), "{metrics}");
    anns.0.end_by("TERM");
    bobs.0.end_by("TERM");
    let rest = serve.end_by("TERM");
    assert!(rest.contains(" (ann) -> 127.0.0.1:8000: finished"), "{rest}");
    assert_eq!(rest.matches(" (bob) -> 127.0.0.1:8000: finished").count(), 2, "{rest}");
    assert!(rest.contains("does not prove the key"), "{rest}");
}

fn new_key(place: &Path, name: &str) -> String {
    let file = place.join(name).display().to_string();
    assert!(anabranch(&["key", &file]).output().expect("the program runs").status.success());
    file
}

fn server_is_asked() {
    run("ip", &["link", "set", "lo", "up"]);
    let place = directory("proxy-server_is_asked");
    let (key, other) = (new_key(&place, "key"), new_key(&place, "other"));
    let proxy = |key: &str| {
        speaking(&["proxy", "--udp", "--server", "127.0.0.1:4443", "--key", key, "--listen", "127.0.0.1:0"])
    };
    let (running, mut says) = proxy(&key);
    assert!(event(&mut says).starts_with("the server 127.0.0.1:4443 does not answer over udp"));
    let (serve, mut hears) = speaking(&["serve", "--udp", "--port", "4443", "--socks", "--key", &key]);
    assert_eq!(event(&mut says), "the server 127.0.0.1:4443 answers over udp");
    let (stranger, mut says) = proxy(&other);
    assert!(event(&mut says).starts_with("the server 127.0.0.1:4443 does not prove the key"));
    assert!(event(&mut hears).contains("the peer does not prove the key"));
    for program in [running, stranger, serve] {
        program.end_by("TERM");
    }
}

fn server_restarts() {
    run("ip", &["link", "set", "lo", "up"]);
    let place = directory("proxy-server_restarts");
    let key = new_key(&place, "key");
    std::fs::write(place.join("file"), vec![7; 100_000_000]).expect("it can be written");
    std::fs::write(place.join("page"), "over the river").expect("it can be written");
    let words = ["-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory"];
    let mut command = Command::new("python3");
    let _web = Running::new(command.args(words).arg(&place).stderr(Stdio::null()));
    while std::net::TcpStream::connect("127.0.0.1:8000").is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let start = || {
        let allowed = "127.0.0.1:8000";
        started(&["serve", "--udp", "--port", "4443", "--socks", "--allow", allowed, "--key", &key])
    };
    let mut serve = start();
    serve.line();
    let mut proxy =
        started(&["proxy", "--udp", "--server", "127.0.0.1:4443", "--key", &key, "--listen", "127.0.0.1:0"]);
    let through = format!("socks5h://{}", address(&proxy.line()));
    let url = "http://127.0.0.1:8000/file";
    let words =
        ["--silent", "--limit-rate", "5M", "--max-time", "75", "--output", "/dev/null", "--proxy", &through, url];
    let mut download = Command::new("curl").args(words).spawn().expect("curl runs");
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(download.try_wait().expect("it can be asked").is_none(), "it is to be in the middle");
    drop(serve);
    let mut serve = start();
    serve.line();
    let code = download.wait().expect("curl ends").code();
    // 28 would be curl's timeout.
    assert!(matches!(code, Some(18 | 56)), "{code:?}");
    let page = "http://127.0.0.1:8000/page";
    assert_eq!(run("curl", &["--silent", "--proxy", &through, page]), "over the river");
}
