//! Programs that send datagrams, and path diagnostics such as ping and traceroute.

use crate::programs::Test;
use crate::programs::scene::text;
use crate::programs::town::{TARGET, TARGET_V6, Town, Way};

pub const TESTS: &[Test] = &[
    ("dig_gets_answers_of_all_sizes_over_udp_and_tcp", &["dig"], dig),
    ("ping_gets_replies_of_all_sizes", &["ping"], ping),
    ("ping_says_that_a_host_or_a_network_is_not_there", &["ping"], ping_nobody),
    ("traceroute_gets_to_its_target", &["traceroute"], traceroute),
    ("iperf3_sends_datagrams_both_ways_also_large_ones", &["iperf3"], iperf3),
    ("a_call_has_no_gaps_in_either_direction", &["python3"], call),
    ("a_datagram_to_a_port_where_nobody_listens_is_refused", &["python3"], refused),
];

fn dig(town: &Town, way: Way) {
    let ask = |words: &[&str]| town.run(way, &[&["dig", "@192.0.2.53", "+tries=4", "+time=2"][..], words].concat());
    assert_eq!(ask(&["+short", "town.example"]), "198.51.100.2\n");
    assert_eq!(ask(&["+short", "+tcp", "town.example"]), "198.51.100.2\n");
    assert_eq!(ask(&["+short", "+noedns", "town.example"]), "198.51.100.2\n");
    // As the resolver is configured: the sizes of UDP answers, and none above the limit of the query.
    for (name, words, by, length) in [
        ("1200.example", &["+bufsize=1232"][..], "(UDP)", 1_200),
        ("3000.example", &["+bufsize=4096"], "(UDP)", 3_000),
        ("3000.example", &["+bufsize=1232"], "(TCP)", 3_000),
        ("1200.example", &["+noedns"], "(TCP)", 1_200),
        ("60000.example", &["+tcp"], "(TCP)", 60_000),
    ] {
        let said = ask(&[words, &["TXT", name]].concat());
        let size = said.lines().find_map(|line| line.strip_prefix(";; MSG SIZE  rcvd: ")?.parse::<usize>().ok());
        let size = size.unwrap_or_else(|| panic!("{said}"));
        assert!(said.contains(by) && said.contains("status: NOERROR"), "{said}");
        assert!((length - 300..=length).contains(&size), "{name} {words:?}: {size}");
    }
}

fn ping(town: &Town, way: Way) {
    for address in [TARGET, TARGET_V6] {
        for size in ["56", "1300", "1373", "8000"] {
            let said = town.run(way, &["ping", "-n", "-c", "3", "-i", "0.2", "-W", "5", "-s", size, address]);
            assert!(said.contains(" 0% packet loss"), "{said}");
        }
    }
}

fn ping_nobody(town: &Town, way: Way) {
    for (address, words) in [
        ("198.51.100.77", "Host Unreachable"),
        ("203.0.113.99", "Net Unreachable"),
        ("2001:db8:2::77", "Address unreachable"),
        ("2001:db8:9::1", "No route"),
    ] {
        let output = town.try_to(way, &["ping", "-n", "-c", "2", "-W", "5", address]);
        let said = text(&output.stdout);
        assert!(output.status.code() == Some(1) && said.contains(words), "{address}: {said}");
    }
}

fn traceroute(town: &Town, way: Way) {
    let said = town.run(way, &["traceroute", "-n", "-q", "1", "-N", "1", "-w", "3", "-m", "6", TARGET]);
    assert!(said.lines().skip(1).any(|line| line.contains(TARGET)), "{said}");
}

fn iperf3(town: &Town, way: Way) {
    for words in
        [&["-b", "5M"][..], &["-b", "5M", "-R"], &["-b", "5M", "-l", "8000"], &["-b", "5M", "-l", "8000", "-R"]]
    {
        let said = town.iperf3(way, &[&["-u", "-t", "1"][..], words].concat());
        let summary = said.lines().find(|line| line.contains("receiver")).unwrap_or_default();
        let (lost, all) = summary
            .split_whitespace()
            .find_map(|word| word.split_once('/')?.1.parse().ok().zip(word.split('/').next()))
            .map(|(all, lost): (u32, &str)| (lost.parse::<u32>().unwrap_or(all), all))
            .unwrap_or_default();
        // On a busy machine some are lost.
        assert!(all >= 50 && lost * 10 < all, "{words:?}: {said}");
    }
}

/// Packets of a call in both directions: 50 per second of 200 bytes, and 100 of 1,200, for two seconds; counts losses
/// and measures jitter.
const CALL: &str = "
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('198.51.100.2', 7))
s.settimeout(0.001)
begin, sent, seen, last, swapped, jitter, before = time.monotonic(), 0, 0, -1, 0, 0.0, None
def take():
    global seen, last, swapped, jitter, before
    try:
        number, stamp = struct.unpack('!Id', s.recv(2000)[:12])
    except (socket.timeout, ConnectionError):
        return
    transit = time.monotonic() - stamp
    jitter += (abs(transit - before) - jitter) / 16 if before is not None else 0
    seen, swapped, last, before = seen + 1, swapped + (number < last), max(last, number), transit
while sent < 300:
    if time.monotonic() - begin >= sent / 150:
        s.send(struct.pack('!Id', sent, time.monotonic()) + bytes(188 if sent % 3 else 1188))
        sent += 1
    take()
end = time.monotonic() + 3
while seen < sent and time.monotonic() < end:
    take()
print(sent - seen, swapped, f'{jitter * 1000:.1f}')";

fn call(town: &Town, way: Way) {
    let said = town.run(way, &["python3", "-c", CALL]);
    let words: Vec<&str> = said.split_whitespace().collect();
    let [lost, swapped, _jitter] = words[..] else { panic!("{said}") };
    // A datagram before the session is established may be lost. The delay depends on the machine.
    assert!(lost.parse::<u32>().is_ok_and(|lost| lost <= 10), "lost, swapped, jitter in ms: {said}");
    assert!(swapped.parse::<u32>().is_ok_and(|swapped| swapped <= 10), "lost, swapped, jitter in ms: {said}");
}

const REFUSED: &str = "
import socket
for address in ['198.51.100.2', '2001:db8:2::2']:
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((address, 9))
    s.settimeout(0.5)
    for attempt in range(20):
        # A host tells of one port a second.
        try:
            s.send(b'anybody')
            s.recv(10)
        except ConnectionRefusedError:
            print('refused')
            break
        except socket.timeout:
            pass";

fn refused(town: &Town, way: Way) {
    assert_eq!(town.run(way, &["python3", "-c", REFUSED]), "refused\nrefused\n");
}
