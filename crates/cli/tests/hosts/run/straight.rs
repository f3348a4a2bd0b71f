//! Without a server: each connection and each flow uses an uplink that answers, directly to its target.

use crate::run::datagrams::TALK;
use crate::run::scene::{Scene, anabranch, command, ip, text, trial};
use crate::run::tcp::kill_first_uplink;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let trial = |name, work| trial("straight", name, work);
    vec![
        trial("without_a_server_everything_goes_straight_to_its_target", everything),
        trial("with_a_silent_uplink_each_connection_flow_and_question_takes_the_other", silent_uplink),
        trial("ipv6_goes_straight_to_its_target_over_the_uplink_that_answers", over_ipv6),
        trial("after_a_loss_of_carrier_the_other_uplink_is_used_and_a_new_address_too", carrier_and_address),
        trial("a_refused_connection_is_seen_as_refused_and_one_without_a_route_as_such", refused),
        trial("without_an_uplink_run_says_so", no_uplink),
    ]
}

/// A program that uses names, datagrams and streams within a user's patience.
const DAY: &str = "
import time
began = time.monotonic()
for n in range(10):
    assert socket.gethostbyname(f'n{n}.example') == '203.0.113.1'
    s = socket.create_connection(('203.0.113.1', 8003), timeout=10)
    s.sendall(b'there')
    assert s.recv(10) == b'there'
    s.close()
assert all(talk('203.0.113.1', bytes(n)) for n in range(1, 41))
print('all', time.monotonic() - began < 20)";

fn day() -> String {
    format!("{TALK}{DAY}")
}

fn everything(scene: &Scene) {
    assert_eq!(scene.straight(&day()), "all True");
    scene.in_world(|| std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0").expect("it can be set"));
    let echo = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
s.settimeout(5)
s.sendto(b'\\x08\\0\\0\\0\\0\\0\\0\\7over the river', ('203.0.113.1', 0))
print(s.recv(100)[7:])";
    scene.on_host(|| std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0").expect("it can be set"));
    assert_eq!(scene.straight(echo), "b'\\x07over the river'");
}

fn silent_uplink(scene: &Scene) {
    kill_first_uplink(scene);
    assert_eq!(scene.straight(&day()), "all True");
}

fn over_ipv6(scene: &Scene) {
    for n in [1, 2] {
        scene.in_world(|| ip(&format!("address add 2001:db8:1{n}::1/64 dev down{} nodad", n - 1)));
        scene.on_host(|| {
            ip(&format!("address add 2001:db8:1{n}::2/64 dev up{} nodad", n - 1));
            ip(&format!("route add default via 2001:db8:1{n}::1 dev up{} metric 10{n}", n - 1));
        });
    }
    let script = format!(
        "{TALK}
for n in range(10):
    s = socket.create_connection(('2001:db8::1', 8003), timeout=10)
    s.sendall(b'there')
    assert s.recv(10) == b'there'
    s.close()
print(all(talk('2001:db8::1', bytes(n)) for n in range(1, 41)))"
    );
    assert_eq!(scene.straight(&script), "True");
    let nobody = "neighbour replace 2001:db8:11::1 lladdr 02:00:00:00:00:99 dev up0 nud permanent";
    scene.on_host(|| command("ip", nobody));
    assert_eq!(scene.straight(&script), "True", "the first uplink is dead");
}

fn carrier_and_address(scene: &Scene) {
    let script = format!(
        "{}
import sys
print('ready', flush=True)
sys.stdin.readline()
{DAY}",
        day()
    );
    let mut command = anabranch(&["run", "--", "python3", "-c", &script]);
    let resolver = scene.resolver();
    let running = scene.on_host(|| {
        use std::io::Write as _;
        let mut running =
            crate::run::scene::Running::new(with_resolver(&resolver, &mut command).stdin(std::process::Stdio::piped()));
        assert_eq!((running.line().as_str(), running.line().as_str()), ("all True", "ready"));
        ip("link set up0 down");
        ip("address add 10.2.0.77/24 dev up1");
        ip("address delete 10.2.0.2/24 dev up1");
        ip("address replace 10.2.0.77/24 dev up1");
        ip("route replace default via 10.2.0.1 dev up1 metric 101");
        writeln!(running.child.stdin.as_ref().expect("it was asked for"), "go").expect("it listens");
        running
    });
    let (status, rest) = running.end();
    assert!(status.success() && rest.trim() == "all True", "{status}: {rest}");
}

/// The command in its own mount namespace, with this resolver configuration.
pub fn with_resolver(resolver: &str, command: &mut std::process::Command) -> std::process::Command {
    let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
    let mut outer = std::process::Command::new("unshare");
    outer.args(["--mount", "sh", "-c", script, resolver]).arg(command.get_program()).args(command.get_args());
    outer
}

fn refused(scene: &Scene) {
    let script = "
import errno, socket
for address in ['203.0.113.1', '2001:db8::99']:
    try:
        socket.create_connection((address, 81), timeout=20)
    except OSError as error:
        print(errno.errorcode[error.errno])";
    // The uplinks have no IPv6.
    assert_eq!(scene.straight(script), "ECONNREFUSED\nENETUNREACH");
}

fn no_uplink(scene: &Scene) {
    let output = scene.on_host(|| {
        for n in [0, 1] {
            command("ip", &format!("route delete default via 10.{}.0.1", n + 1));
        }
        anabranch(&["run", "--", "true"]).output().expect("the program runs")
    });
    let errors = text(&output.stderr);
    assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
    assert!(errors.contains("default route"), "{errors}");
}
