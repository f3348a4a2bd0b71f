//! Datagrams of programs.

use crate::run::scene::{Scene, text, trial};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let trial = |name, work| trial("datagrams", name, work);
    vec![
        trial("udp_comes_back_from_its_target", udp),
        trial("udp_goes_on_while_an_uplink_is_dead", dead_uplink),
        trial("names_are_those_of_the_server", names),
        trial("questions_for_names_over_tcp_are_answered_too", names_over_tcp),
        trial("an_echo_comes_back", echo),
    ]
}

/// Retransmits after half a second, as datagram programs do: at first there is no session.
pub const TALK: &str = "
import socket
def talk(address, data):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.5)
    for attempt in range(40):
        s.sendto(data, (address, 8003))
        try:
            answer, sender = s.recvfrom(2000)
            return answer == data and sender[:2] == (address, 8003)
        except TimeoutError:
            pass
";

fn udp(scene: &Scene) {
    let script =
        format!("{TALK}print(all(talk(a, bytes(n)) for a in ['203.0.113.1', '2001:db8::1'] for n in [1, 1352]))");
    assert_eq!(scene.python(&script), "True");
}

fn dead_uplink(scene: &Scene) {
    crate::run::tcp::kill_first_uplink(scene);
    let script = format!("{TALK}print(all(talk('203.0.113.1', bytes(500)) for n in range(50)))");
    assert_eq!(scene.python(&script), "True");
}

fn names(scene: &Scene) {
    let get = ["curl", "--silent", "--show-error", "--max-time", "20", "http://anywhere.example:8000/3"];
    let output = scene.run(&[], &get);
    assert_eq!(output.stdout, [0, 1, 2], "{}", text(&output.stderr));
}

fn names_over_tcp(scene: &Scene) {
    let script = r"
import socket, struct
question = b'\x12\x34\1\0\0\1\0\0\0\0\0\0' + b'\3www\7example\0' + b'\0\1\0\1'
for attempt in range(10):
    s = socket.create_connection(('192.0.2.53', 53), timeout=2)
    s.sendall(struct.pack('!H', len(question)) + question)
    try:
        answer = s.recv(1000)
        break
    except TimeoutError:
        pass
print(answer[2:4] == question[:2], socket.inet_ntoa(answer[-4:]))";
    assert_eq!(scene.python(script), "True 203.0.113.1");
}

fn echo(scene: &Scene) {
    scene.in_world(|| std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0").expect("it can be set"));
    let script = r"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
s.settimeout(0.5)
for attempt in range(40):
    s.sendto(b'\x08\0\0\0\0\0\0\7over the river', ('203.0.113.1', 0))
    try:
        reply = s.recv(100)
        break
    except TimeoutError:
        pass
print(reply[0], reply[7:])";
    assert_eq!(scene.python(script), "0 b'\\x07over the river'");
}
