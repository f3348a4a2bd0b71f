//! User-space WireGuard between the two hosts for comparison: it too encrypts, and reads packets from a TUN device.

use crate::scene::{Program, ip, run_in};
use anabranch_system::Namespace;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The server's address in the tunnel.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const PORT: u16 = 51_820;

/// One end: its number in addresses, and its key pair; the private key is this byte 32 times.
struct End {
    number: u8,
    private: &'static str,
    public: &'static str,
}

const CLIENT: End =
    End { number: 1, private: "01", public: "a4e09292b651c278b9772c569f5fa9bb13d906b46ab68c9df9dc2b4409f8a209" };
const SERVING: End =
    End { number: 2, private: "02", public: "ce8d3ad1ccb633ec7b70c17814a5c76ecd029685050d344745ba05870e587d59" };

/// Starts both ends.
pub fn start(client: &Namespace, server: &Namespace, program: &Path) -> (Program, Program) {
    (one(client, program, &CLIENT, &SERVING), one(server, program, &SERVING, &CLIENT))
}

fn one(host: &Namespace, program: &Path, end: &End, other: &End) -> Program {
    // The name is also that of its control socket, which both hosts see.
    let name = format!("abbench{}", end.number);
    let started = Program::start_silent(host, program, &["--foreground", &name]);
    let mut socket = connect(&name);
    let text = format!(
        "set=1\nprivate_key={}\nlisten_port={PORT}\npublic_key={}\nendpoint=10.1.1.{}:{PORT}\nallowed_ip=10.9.0.0/24\n\n",
        end.private.repeat(32),
        other.public,
        other.number
    );
    socket.write_all(text.as_bytes()).expect("it listens");
    let answer = BufReader::new(&socket).lines().next().and_then(Result::ok);
    assert_eq!(answer.as_deref(), Some("errno=0"), "it does not take its settings");
    run_in(host, || {
        ip(&format!("addr add 10.9.0.{}/24 dev {name}", end.number));
        ip(&format!("link set {name} mtu 1420 up"));
    });
    started
}

/// The socket appears shortly after the start.
fn connect(name: &str) -> UnixStream {
    let path = format!("/var/run/wireguard/{name}.sock");
    for _ in 0..100 {
        if let Ok(socket) = UnixStream::connect(&path) {
            return socket;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{path}: nobody listens");
}
