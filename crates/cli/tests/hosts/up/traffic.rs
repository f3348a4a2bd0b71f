//! Connectivity of the host's programs while `up` runs, and after it ended.

use crate::up::scene::{Running, Scene, python, text, wait_until};
use std::process::Command;

/// Prints the client's address as the target's page sees it.
pub const PAGE: &str = "print(urllib.request.urlopen('http://198.51.100.2/', timeout=10).read().decode())";

/// The same over IPv6, which no uplink has.
pub const PAGE_V6: &str = "print(urllib.request.urlopen('http://[2001:db8:2::2]/', timeout=10).read().decode())";

/// Prints the answer to a datagram.
pub const DATAGRAM: &str = "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.connect(('198.51.100.2', 7))
for attempt in range(10):
    s.send(b'over the river')
    try:
        print(s.recv(100).decode())
        break
    except socket.timeout:
        pass
";

/// Resolves a name at the first router, which has no resolver.
pub const NAME: &str = "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.connect(('10.1.0.1', 53))
for attempt in range(10):
    s.send(b'\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x03any\\x04name\\x00\\x00\\x01\\x00\\x01')
    try:
        print(socket.inet_ntoa(s.recv(500)[-4:]))
        break
    except socket.timeout:
        pass
";

/// Prints the neighbour's echo.
pub const NEIGHBOUR: &str = "
s = socket.create_connection(('192.168.7.2', 7), timeout=5)
s.sendall(b'next door')
print(s.recv(100).decode())
";

pub fn is(expected: &str) -> Result<String, String> {
    Ok(expected.to_owned())
}

/// Peer addresses that the target sees: the server, or a router.
const BY_SERVER: &str = "198.51.100.1";

pub fn everything(udp: bool) {
    let scene = Scene::new(if udp { "everything-udp" } else { "everything" }, udp);
    let before = scene.state();
    assert_eq!(scene.python(PAGE), is("100.64.1.2"), "the old way");
    let past = scene.past();
    assert!(past > 0, "routers count");
    let up = scene.up(if udp { &["--udp"] } else { &[] });
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    assert_eq!(scene.python(PAGE_V6), is("2001:db8:2::1"));
    assert_eq!(scene.python(DATAGRAM), is("over the river"));
    assert_eq!(scene.python(NAME), is("198.51.100.2"));
    assert_eq!(scene.python(NEIGHBOUR), is("next door"));
    let size = "print(len(urllib.request.urlopen('http://198.51.100.2/3000000', timeout=30).read()))";
    assert_eq!(scene.python(size), is("3000000"));
    assert_eq!(scene.past(), past, "nothing leaves but to the server");
    let said = up.end_by("TERM");
    assert!(said.contains(" connections, "), "{said}");
    assert_eq!(scene.state(), before, "nothing is left");
    assert_eq!(scene.python(PAGE), is("100.64.1.2"), "the old way again");
}

pub fn killed() {
    let scene = Scene::new("killed", true);
    let before = scene.state();
    let up = scene.up(&["--udp"]);
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    up.end_by("KILL");
    assert_eq!(scene.python(PAGE), is("100.64.1.2"), "the old way, at once");
    let up = scene.up(&["--udp"]);
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    up.end_by("TERM");
    assert_eq!(scene.state(), before, "nothing is left");
}

pub fn kill_switch() {
    let scene = Scene::new("kill-switch", true);
    let before = scene.state();
    for signal in ["KILL", "TERM"] {
        let up = scene.up(&["--udp", "--kill-switch"]);
        assert_eq!(scene.python(PAGE), is(BY_SERVER));
        let past = scene.past();
        assert!(scene.down().contains("still runs"));
        up.end_by(signal);
        let error = scene.python(PAGE).expect_err("nothing goes out");
        assert!(error.contains("unreachable") || error.contains("No route"), "{error}");
        assert_eq!(scene.python(NEIGHBOUR), is("next door"));
        assert_eq!(scene.past(), past);
        assert_eq!(scene.down(), "the kill switch is off\n");
        assert_eq!(scene.python(PAGE), is("100.64.1.2"));
        assert_eq!(scene.state(), before, "nothing is left");
    }
}

/// Asks the target over IPv6 from ports of services, which are `begin` and some more; prints what answered.
const FROM_LOW_PORTS: &str = "
answered = []
for kind, port, service in [(2, begin, 7), (2, begin + 20000, 7), (2, begin + 1, 53), (1, begin, 7), (1, begin + 20000, 7)]:
    s = socket.socket(socket.AF_INET6, kind)
    s.settimeout(1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('::', port))
    try:
        s.connect(('2001:db8:2::2', service))
        s.send(bytes.fromhex('000701000001000000000000') + b'\\1a\\4test\\0\\0\\1\\0\\1')
        answered += [(kind, port, service)] if s.recv(100) else []
    except OSError:
        pass
print(len(answered), answered)";

/// Whether a service of the host's at this port answers somebody behind the server who asks over IPv6.
fn serves(scene: &Scene, port: u16) -> bool {
    let serve = format!(
        "import socket
s = socket.create_server(('::', {port}), family=socket.AF_INET6)
print('ready', flush=True)
s.settimeout(20)
s.accept()[0].send(b'welcome')"
    );
    let _serving = scene.on_host(|| Running::python(&serve));
    let ask = format!("s = socket.create_connection(('2001:db8:11::2', {port}), 5)\nprint(s.recv(9).decode())");
    python(&scene.target, &ask) == is("welcome")
}

pub fn kill_switch_over_ipv6() {
    let scene = Scene::new("kill-switch-over-ipv6", true);
    scene.give_ipv6();
    let before = scene.state();
    // Ports of connections are not used twice.
    for (signal, begin) in [("KILL", 123), ("TERM", 500)] {
        let from_low_ports = |more| scene.python(&format!("begin = {}\n{FROM_LOW_PORTS}", begin + more));
        let up = scene.up(&["--udp", "--kill-switch"]);
        let answered = from_low_ports(0).expect("it runs");
        assert!(answered.starts_with('5'), "through the tunnel: {answered}");
        assert!(serves(&scene, 8022), "while it runs");
        up.end_by(signal);
        assert_eq!(from_low_ports(100), is("0 []"), "{signal}");
        let error = scene.python(PAGE_V6).expect_err("nothing goes out");
        assert!(error.contains("unreachable") || error.contains("No route"), "{error}");
        assert!(serves(&scene, 8022), "after {signal}");
        assert_eq!(scene.down(), "the kill switch is off\n");
        assert_eq!(scene.state(), before, "nothing is left");
    }
}

pub fn kill_switch_and_a_name() {
    let scene = Scene::new("kill-switch-and-a-name", true);
    let before = scene.state();
    let uplinks = ["--uplink", "up0", "--uplink", "up1"];
    // Whether the uplinks are named or found, and with or without another kill switch.
    for (options, signal) in [
        (&["--udp", "--kill-switch"][..], "KILL"),
        (&[&["--udp", "--kill-switch"], &uplinks[..]].concat(), "TERM"),
        (&["--udp", "--kill-switch"], "TERM"),
        (&["--udp"], "TERM"),
    ] {
        let up = scene.up_by_name(options);
        wait_until("a page comes", || scene.python(PAGE) == is(BY_SERVER));
        up.end_by(signal);
    }
    assert_eq!(scene.python(PAGE), is("100.64.1.2"));
    assert_eq!(scene.state(), before, "nothing is left");
}

pub fn name_over_the_other_uplink() {
    let scene = Scene::new("name-over-the-other-uplink", true);
    scene.silence(0, true);
    let up = scene.up_by_name(&["--udp"]);
    wait_until("a page comes", || scene.python(PAGE) == is(BY_SERVER));
    up.end_by("TERM");
}

pub fn name_that_one_resolver_lies_of() {
    let scene = Scene::new("name-lied-of", true);
    let _liar = scene.liar();
    let began = std::time::Instant::now();
    let mut up = scene.up_by_name_of("nameserver 10.1.0.1\nnameserver 198.51.100.2\n", &["--udp"]);
    up.hear("the server server.test:4433 is at 203.0.113.1 now");
    wait_until("a page comes", || scene.python(PAGE) == is(BY_SERVER));
    // Two questions of every 30 s would take a minute.
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    up.end_by("TERM");
}

pub fn connection_before() {
    let scene = Scene::new("before", true);
    let before = scene.on_host(|| {
        use std::io::{Read as _, Write as _};
        let stream = std::net::TcpStream::connect("198.51.100.2:7").expect("it listens");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("it can");
        move || {
            let mut echoed = [0; 5];
            (&stream).write_all(b"still").and_then(|()| (&stream).read_exact(&mut echoed)).expect("it lives");
            assert_eq!(&echoed, b"still");
        }
    });
    before();
    let up = scene.up(&["--udp"]);
    before();
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    up.end_by("TERM");
    before();
}

pub fn uplinks_change() {
    let scene = Scene::new("changes", true);
    let up = scene.up(&["--udp"]);
    let mut download = scene.on_host(|| {
        let script = "
import urllib.request, time
page, count = urllib.request.urlopen('http://198.51.100.2/40000000', timeout=60), 0
while part := page.read(100000):
    count += len(part)
    time.sleep(0.01)
print(count)";
        let python = Command::new("python3").args(["-c", script]).stdout(std::process::Stdio::piped()).spawn();
        python.expect("python runs")
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    // The first uplink drops all packets from now on.
    scene.routers[0].run(|| crate::up::scene::ip("link set far down")).expect("it can be entered");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    // Bytes of the second uplink, of streams and of datagrams.
    let totals = || {
        let status = scene.status();
        let all = status["uplinks"].as_array().expect("a list");
        let second = all.iter().find(|uplink| uplink["name"] == "up1").expect("it is there");
        let number = |value: &serde_json::Value| value.as_u64().expect("a number");
        (number(&second["received_bytes"]), number(&second["datagrams"]["sent_bytes"]))
    };
    let before = totals();
    // The second gets another address.
    scene.on_host(|| {
        crate::up::scene::ip("address add 10.2.0.77/24 dev up1");
        crate::up::scene::ip("address delete 10.2.0.2/24 dev up1");
        crate::up::scene::ip("address replace 10.2.0.77/24 dev up1");
        crate::up::scene::ip("route replace default via 10.2.0.1 dev up1 metric 101");
    });
    wait_until("the new address has its rule", || scene.state().iter().any(|line| line.contains("from 10.2.0.77 ")));
    wait_until("a page comes by the new address", || scene.python(PAGE) == is(BY_SERVER));
    let after = totals();
    assert!(after.0 >= before.0 && after.1 >= before.1, "totals fall from {before:?} to {after:?}");
    let status = download.wait().expect("it ends");
    let mut count = String::new();
    std::io::Read::read_to_string(&mut download.stdout.take().expect("it was asked for"), &mut count).expect("text");
    assert!(status.success() && count.trim() == "40000000", "{status}: {count}");
    up.end_by("TERM");
}

pub fn gateway() {
    let scene = Scene::new("gateway", true);
    let before = scene.state();
    let past = scene.past();
    assert!(python(&scene.neighbour, PAGE).is_err(), "the host is no router");
    let up = scene.up(&["--udp", "--gateway", "lan0"]);
    assert_eq!(python(&scene.neighbour, PAGE), is(BY_SERVER));
    assert_eq!(python(&scene.neighbour, DATAGRAM), is("over the river"));
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    up.end_by("TERM");
    assert_eq!(scene.past(), past, "nothing leaves but to the server");
    assert_eq!(scene.state(), before, "nothing is left");
}

pub fn dry_run() {
    let scene = Scene::new("dry-run", false);
    let before = scene.state();
    let options = ["--gateway", "lan0", "--kill-switch", "--no-ipv6"];
    let mut command = scene.command(&options);
    let output = scene.on_host(|| command.arg("--dry-run").output().expect("the program runs"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(scene.state(), before, "nothing is changed");
    let mut shell = Command::new("sh");
    let by_hand = scene.on_host(|| shell.args(["-ec", &text(&output.stdout)]).output().expect("there is a shell"));
    assert!(by_hand.status.success(), "{}", text(&by_hand.stderr));
    let by_hand = scene.state();
    let other = Scene::new("dry-run-other", false);
    let up = other.up(&options);
    // A device without an owner is not running.
    let comparable = |state: Vec<String>| -> Vec<String> {
        let ours = state.into_iter().filter(|line| {
            ["lookup", "goto", "nop", "proto 198", "chain", "iifname", "oifname"].iter().any(|word| line.contains(word))
        });
        ours.map(|line| line.replace(" linkdown", "").trim_end().to_owned()).collect()
    };
    let (by_hand, by_us) = (comparable(by_hand), comparable(other.state()));
    up.end_by("TERM");
    let new: Vec<_> = by_us.iter().filter(|line| !by_hand.contains(line)).collect();
    let gone: Vec<_> = by_hand.iter().filter(|line| !by_us.contains(line)).collect();
    assert!(by_hand == by_us, "done, not printed: {new:#?}; printed, not done: {gone:#?}");
}
