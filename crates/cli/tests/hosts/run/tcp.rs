//! TCP of unmodified programs.

use crate::run::scene::{Running, SERVER, Scene, anabranch, command, text, trial};
use crate::run::straight::with_resolver;
use libtest_mimic::Trial;
use std::process::Stdio;

pub fn trials() -> Vec<Trial> {
    let trial = |name, work| trial("tcp", name, work);
    vec![
        trial("a_download_is_whole_and_comes_over_both_uplinks", download),
        trial("a_target_of_ipv6_is_reached", ipv6),
        trial("a_program_without_libraries_is_carried_too", static_program),
        trial("a_refused_connection_is_seen_as_refused", refused),
        trial("a_target_without_a_route_is_seen_as_such", no_route),
        trial("a_server_that_is_down_is_no_refusal_of_the_target_and_is_told_of_once", server_down),
        trial("of_several_addresses_of_a_server_the_one_that_answers_is_used", several_addresses),
        trial("the_name_of_a_server_is_found_over_the_uplink_that_answers", name_over_the_other_uplink),
        trial("of_several_addresses_of_a_server_a_proxy_uses_the_one_that_answers_too", several_for_a_proxy),
        trial("a_server_whose_name_gets_another_address_is_followed", moved_server),
        trial("a_server_is_reached_at_another_port_that_is_forwarded_to_it", forwarded_port),
        trial("measurements_and_streams_too_reach_a_port_that_is_forwarded", other_commands_forwarded),
        trial("a_proxy_that_runs_inside_reaches_the_server_through_it", proxy_inside),
        trial("the_end_of_one_direction_leaves_the_other_open", half_close),
        trial("a_reset_of_the_target_is_seen_as_a_reset", reset),
        trial("a_thousand_flows_at_a_time_are_carried", thousand),
        trial("with_one_uplink_dead_from_the_start_every_connection_is_made", dead_uplink),
    ]
}

const GET: &str = "http://203.0.113.1:8000";

fn download(scene: &Scene) {
    for n in [0, 1] {
        scene.in_world(|| command("tc", &format!("qdisc add dev down{n} root tbf rate 40mbit burst 32k limit 200k")));
    }
    let check = format!("curl --silent --show-error {GET}/8000000 | sha256sum");
    let output = scene.run(&[], &["sh", "-c", &check]);
    let expected =
        scene.in_world(|| command("curl", &format!("--silent {GET}/8000000 --output {}.expected", scene.key)));
    let expected = expected + &command("sha256sum", &format!("{}.expected", scene.key));
    assert_eq!(text(&output.stdout)[..64], expected[..64], "{}", text(&output.stderr));
    for uplink in ["up0", "up1"] {
        let received = scene.received(uplink);
        assert!(received > 1_000_000, "{uplink} has carried {received} bytes");
    }
}

fn ipv6(scene: &Scene) {
    let output = scene.run(&[], &["curl", "--silent", "--show-error", "http://[2001:db8::1]:8000/5"]);
    assert_eq!(output.stdout, [0, 1, 2, 3, 4], "{}", text(&output.stderr));
}

/// Connects to the target and prints its answer.
const STATIC: &str = r#"
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(8001) };
    inet_pton(AF_INET, "203.0.113.1", &to.sin_addr);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (struct sockaddr *)&to, sizeof to)) return 1;
    write(s, "hello", 5);
    shutdown(s, SHUT_WR);
    char text[200] = {0};
    for (int n, at = 0; (n = read(s, text + at, sizeof text - 1 - at)) > 0; at += n) ;
    puts(text);
}
"#;

fn static_program(scene: &Scene) {
    let (source, program) = (format!("{}.c", scene.key), format!("{}.static", scene.key));
    std::fs::write(&source, STATIC).expect("it can be written");
    let built = std::process::Command::new("cc").args(["-static", "-o", &program, &source]).output();
    if !built.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no compiler for programs without shared libraries");
        return;
    }
    let output = scene.run(&[], &[&program]);
    assert!(text(&output.stdout).starts_with("5 2cf24dba5fb0a30e"), "{}{}", text(&output.stdout), text(&output.stderr));
}

fn refused(scene: &Scene) {
    let script = "
import socket
for address in ['203.0.113.1', '2001:db8::1']:
    try:
        socket.create_connection((address, 81), timeout=20)
    except OSError as error:
        print(type(error).__name__)";
    assert_eq!(scene.python(script), "ConnectionRefusedError\nConnectionRefusedError");
}

fn no_route(scene: &Scene) {
    let script = "
import errno, socket
try:
    socket.create_connection(('198.51.100.1', 80), timeout=20)
except OSError as error:
    print(errno.errorcode[error.errno])";
    assert_eq!(scene.python(script), "ENETUNREACH");
}

fn server_down(scene: &Scene) {
    let script = "
import errno, socket
try:
    socket.create_connection(('203.0.113.1', 8003), timeout=60)
except OSError as error:
    print(errno.errorcode[error.errno])";
    // No server listens there.
    let command = ["run", "--server", "10.1.0.1:4999", "--key", &scene.key, "--", "python3", "-c", script];
    let output = scene.on_host(|| crate::run::scene::anabranch(&command).output().expect("the program runs"));
    assert_eq!(text(&output.stdout), "EHOSTUNREACH\n", "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert_eq!((said.lines().count(), said.contains("does not answer over up0, up1")), (1, true), "{said}");
}

/// Anabranch with a server whose name has three addresses, of which the last in the file answers. The uplinks have no IPv6, so
/// that the resolver puts the first of the file last. The second is before the third: one bit more is as in the uplink's own
/// address (RFC 6724, section 5, rule 9).
fn with_three_addresses(scene: &Scene, words: &[&str]) -> std::process::Command {
    let hosts = format!("{}.hosts", scene.key);
    std::fs::write(&hosts, "2001:db8:9::9 vps.test\n10.1.0.3 vps.test\n10.2.0.1 vps.test\n").expect("there is room");
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, &hosts, env!("CARGO_BIN_EXE_anabranch")]).args(words);
    command
}

fn several_addresses(scene: &Scene) {
    let words = ["run", "--server", "vps.test:4433", "--key", &scene.key, "--", "curl", "--silent", "--max-time", "10"];
    let mut command = with_three_addresses(scene, &words);
    let output = scene.on_host(|| command.arg(format!("{GET}/3")).output().expect("the program runs"));
    assert_eq!(output.stdout, [0, 1, 2], "{}", text(&output.stderr));
}

fn several_for_a_proxy(scene: &Scene) {
    let words = ["proxy", "--udp", "--server", "vps.test:4433", "--key", &scene.key, "--listen", "127.0.0.1:1080"];
    let output = scene.on_host(|| {
        let mut proxy = Running::new(&mut with_three_addresses(scene, &words));
        assert!(proxy.line().starts_with("listening on 127.0.0.1:1080"));
        let words = ["--silent", "--max-time", "10", "--proxy", "127.0.0.1:1080"];
        let output = std::process::Command::new("curl").args(words).arg(format!("{GET}/3")).output();
        proxy.end_by("TERM");
        output.expect("curl runs")
    });
    assert_eq!(output.stdout, [0, 1, 2], "{}", text(&output.stderr));
}

fn name_over_the_other_uplink(scene: &Scene) {
    let rules = format!("{}.dead", scene.key);
    let drop = "table inet dead { chain in { type filter hook input priority 0; iifname \"down0\" drop; }; }";
    std::fs::write(&rules, drop).expect("there is room");
    scene.in_world(|| command("nft", &format!("-f {rules}")));
    let named = ["--server", "vps.test:4433", "--key", &scene.key];
    let script = "
import urllib.request
print(urllib.request.urlopen('http://203.0.113.1:8000/3', timeout=20).read().hex())";
    let mut run = anabranch(&["run"]);
    let mut run = with_resolver(&scene.resolver(), run.args(named).args(["--", "python3", "-c", script]));
    let output = scene.on_host(|| run.output().expect("the program runs"));
    assert_eq!(text(&output.stdout).trim(), "000102", "{}", text(&output.stderr));
    let mut proxy = anabranch(&["proxy", "--udp", "--listen", "127.0.0.1:1080"]);
    let mut proxy = with_resolver(&scene.resolver(), proxy.args(named));
    let mut proxy = scene.on_host(|| Running::new(proxy.stderr(Stdio::piped())));
    assert!(proxy.line().starts_with("listening on 127.0.0.1:1080"));
    proxy.end_by("TERM");
}

/// Runs a script with a server that is named in the file `KEY.hosts` only.
fn with_named_server(scene: &Scene, script: &str) -> (String, Running) {
    let (hosts, resolver) = (format!("{}.hosts", scene.key), format!("{}.none", scene.key));
    // Nobody answers there, which is known at once.
    std::fs::write(&resolver, "nameserver 127.0.0.1\n").expect("there is room");
    let mount = "mount --bind \"$0\" /etc/hosts && mount --bind \"$1\" /etc/resolv.conf && shift && exec \"$@\"";
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", mount, &hosts, &resolver, env!("CARGO_BIN_EXE_anabranch")]);
    command.args(["run", "--server", "vps.test:4433", "--key", &scene.key, "--", "python3", "-c", script]);
    let running = scene.on_host(|| Running::new(command.stderr(Stdio::piped())));
    (hosts, running)
}

fn moved_server(scene: &Scene) {
    let script = "
import time, urllib.request
def get():
    try:
        return urllib.request.urlopen('http://203.0.113.1:8000/3', timeout=5).read().hex()
    except OSError:
        return None
print(get(), flush=True)
while get():
    time.sleep(0.2)
print('lost', flush=True)
while not (found := get()):
    time.sleep(0.2)
print(found, flush=True)";
    std::fs::write(format!("{}.hosts", scene.key), "10.1.0.1 vps.test\n").expect("there is room");
    let (hosts, mut run) = with_named_server(scene, script);
    assert_eq!(run.line(), "000102");
    let rules = format!("{}.moved", scene.key);
    let drop = "table ip moved { chain in { type filter hook input priority 0; ip daddr 10.1.0.1 udp dport 4433-4434 drop; }; }";
    std::fs::write(&rules, drop).expect("there is room");
    scene.in_world(|| command("nft", &format!("-f {rules}")));
    std::fs::write(hosts, "10.2.0.1 vps.test\n").expect("there is room");
    assert_eq!(run.line(), "lost");
    run.hear("the server vps.test:4433 is at 10.2.0.1 now");
    assert_eq!(run.line(), "000102");
    assert!(run.end().0.success());
}

fn forwarded_port(scene: &Scene) {
    let rules = format!("{}.forward", scene.key);
    let forward = "table ip forward { chain in { type nat hook prerouting priority dstnat; udp dport 9999 redirect to :4433; }; }";
    std::fs::write(&rules, forward).expect("there is room");
    scene.in_world(|| command("nft", &format!("-f {rules}")));
    let get = format!("{GET}/3");
    let words = ["run", "--server", "10.1.0.1:9999", "--datagram-port", "4434", "--key", &scene.key, "--", "curl"];
    let output = scene.on_host(|| anabranch(&words).args(["--silent", "--max-time", "10", &get]).output());
    let output = output.expect("the program runs");
    assert_eq!(output.stdout, [0, 1, 2], "{}", text(&output.stderr));
}

fn other_commands_forwarded(scene: &Scene) {
    let rules = format!("{}.forward", scene.key);
    let forward = "table ip forward { chain in { type nat hook prerouting priority dstnat; \
        udp dport 9998 redirect to :5201; udp dport 9997 redirect to :5004; }; }";
    std::fs::write(&rules, forward).expect("there is room");
    let stands = |words: &str| {
        scene.in_world(|| {
            let mut command = anabranch(&words.split(' ').collect::<Vec<_>>());
            Running::new(command.stdin(Stdio::null()).stderr(Stdio::piped()))
        })
    };
    scene.in_world(|| command("nft", &format!("-f {rules}")));
    let _perf = stands("perf --server --udp --one-off");
    let mut receiver = stands("stream receive --listen 5004 --udp --raw");
    receiver.hear("listening on port 5004");
    let measured =
        scene.on_host(|| anabranch(&["perf", "10.1.0.1", "--port", "9998", "--udp", "--time", "1"]).output());
    let measured = measured.expect("the program runs");
    assert!(measured.status.success(), "{}", text(&measured.stderr));
    // A transport stream, which has a packet each 188 bytes.
    let file = format!("{}.ts", scene.key);
    let packet = [&[0x47, 0x01, 0x00, 0x10][..], &[7; 184]].concat();
    std::fs::write(&file, packet.repeat(50)).expect("there is room");
    let send = ["stream", "send", "10.1.0.1:9997", "--udp", "--raw", "--input", "mpegts"];
    let file = std::fs::File::open(file).expect("it is there");
    let sent = scene.on_host(|| anabranch(&send).stdin(file).output()).expect("the program runs");
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert_eq!(receiver.end().1.len(), 50 * 188);
}

fn proxy_inside(scene: &Scene) {
    let program = env!("CARGO_BIN_EXE_anabranch");
    let proxy = [program, "proxy", "--udp", "--server", SERVER, "--key", &scene.key, "--listen", "127.0.0.1:0"];
    let output = scene.run(&[], &[&["timeout", "5"][..], &proxy].concat());
    let said = text(&output.stderr);
    assert!(said.contains("answers over bond0"), "{said}");
}

fn half_close(scene: &Scene) {
    let script = "
import hashlib, socket
data = bytes(range(256)) * 12_000
s = socket.create_connection(('203.0.113.1', 8001), timeout=20)
s.sendall(data)
s.shutdown(socket.SHUT_WR)
answer = b''
while part := s.recv(1000):
    answer += part
print(answer.decode() == f'{len(data)} {hashlib.sha256(data).hexdigest()}')";
    assert_eq!(scene.python(script), "True");
}

fn reset(scene: &Scene) {
    let script = "
import socket
s = socket.create_connection(('203.0.113.1', 8002), timeout=20)
s.sendall(b'x')
try:
    print(s.recv(10))
except OSError as error:
    print(type(error).__name__)";
    assert_eq!(scene.python(script), "ConnectionResetError");
}

fn thousand(scene: &Scene) {
    let script = "
import asyncio
async def one(n, meet):
    reader, writer = await asyncio.open_connection('203.0.113.1', 8003)
    await meet.wait()
    data = n.to_bytes(4, 'big') * 256
    writer.write(data)
    good = await reader.readexactly(len(data)) == data
    writer.close()
    return good
async def all():
    meet = asyncio.Barrier(1000)
    print(sum(await asyncio.gather(*(one(n, meet) for n in range(1000)))))
asyncio.run(asyncio.wait_for(all(), 60))";
    assert_eq!(scene.python(script), "1000");
}

/// Routes the first uplink to a router that does not exist, without notification.
pub fn kill_first_uplink(scene: &Scene) {
    let nobody = "neighbour replace 10.1.0.1 lladdr 02:00:00:00:00:99 dev up0 nud permanent";
    scene.on_host(|| command("ip", nobody));
}

fn dead_uplink(scene: &Scene) {
    kill_first_uplink(scene);
    let script = "
import socket
for n in range(20):
    s = socket.create_connection(('203.0.113.1', 8003), timeout=10)
    s.sendall(b'there')
    assert s.recv(10) == b'there'
    s.close()
print('all')";
    assert_eq!(scene.python(script), "all");
}
