//! The network: a client with three uplinks, each behind its own NAT, and a remote server.
//!
//! ```text
//!   client                 NATs                core                     server
//!   up0 10.1.0.2 ----- 10.1.0.1 | 203.0.113.2 ----- 203.0.113.1
//!   up1 10.2.0.2 ----- 10.2.0.1 | 203.0.113.10 ---- 203.0.113.9    198.51.100.1 ----- 198.51.100.2
//!   up2 10.3.0.2 ----- 10.3.0.1 | 203.0.113.18 ---- 203.0.113.17
//!                                                  192.0.2.80: where programs want to go
//! ```

use anabranch_system::Namespace;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Number of uplinks.
pub const UPLINKS: usize = 3;
/// Address of the server.
pub const SERVER: &str = "198.51.100.2";
/// Address of the programs' target.
pub const TARGET: [u8; 4] = [192, 0, 2, 80];

/// Port of an access point's own web server, which redirects everybody,
pub const LOGIN: u16 = 8080;
/// and of one that accepts connections and says nothing.
pub const MUTE: u16 = 8081;

pub struct Town {
    pub client: Namespace,
    pub nats: [Namespace; UPLINKS],
    pub core: Namespace,
    pub server: Namespace,
}

impl Town {
    /// Builds it without faults.
    pub fn new() -> Self {
        let town = Self {
            client: namespace(),
            nats: std::array::from_fn(|_| namespace()),
            core: namespace(),
            server: namespace(),
        };
        at(&town.core, &["address add 192.0.2.80/32 dev lo"]);
        forward(&town.core);
        cable(&town.core, "inside", "198.51.100.1/24", &town.server, "eth0", "198.51.100.2/24");
        at(&town.server, &["route add default via 198.51.100.1"]);
        for (n, nat) in town.nats.iter().enumerate() {
            let (net, wan) = (n + 1, n * 8);
            forward(nat);
            let (ours, near) = (format!("10.{net}.0.1/24"), format!("10.{net}.0.2/24"));
            cable(nat, "lan", &ours, &town.client, &format!("up{n}"), &near);
            let (ours, far) = (format!("203.0.113.{}/29", wan + 2), format!("203.0.113.{}/29", wan + 1));
            cable(nat, "wan", &ours, &town.core, &format!("nat{n}"), &far);
            town.way_out(n);
            catch(nat);
            nft(nat, "table ip nat { chain out { type nat hook postrouting priority 100; oifname wan masquerade; }; }");
            town.route(n);
        }
        town.settle();
        town
    }

    /// Waits until the kernel has detected all carriers.
    fn settle(&self) {
        let cut = |host: &Namespace| {
            let links = || Command::new("ip").args(["-oneline", "link", "show"]).output().expect("ip runs").stdout;
            let links = String::from_utf8_lossy(&host.run(links).expect("it can be entered")).into_owned();
            links.lines().any(|link| link.contains("NO-CARRIER") || link.contains("state DOWN"))
        };
        while cut(&self.client) || cut(&self.server) {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The way of an access point to the Internet.
    pub fn way_out(&self, n: usize) {
        at(&self.nats[n], &[&format!("route replace default via 203.0.113.{}", n * 8 + 1)]);
    }

    /// The client's default route over an uplink, which disappears with its carrier.
    pub fn route(&self, n: usize) {
        at(&self.client, &[&format!("route replace default via 10.{}.0.1 dev up{n} metric {}", n + 1, 100 + n)]);
    }
}

fn namespace() -> Namespace {
    let namespace = Namespace::new().expect("namespaces were there a moment ago");
    at(&namespace, &["link set lo up"]);
    namespace
}

fn forward(host: &Namespace) {
    let write = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("it is a namespace of ours");
    host.run(write).expect("it can be entered");
}

/// Listens for connections that the access point redirects to itself.
fn catch(nat: &Namespace) {
    for port in [LOGIN, MUTE] {
        let listen = || TcpListener::bind(("0.0.0.0", port)).expect("the port is free");
        let listener = nat.run(listen).expect("it can be entered");
        thread::spawn(move || listener.incoming().flatten().for_each(|socket| entertain(socket, port)));
    }
}

fn entertain(mut socket: TcpStream, port: u16) {
    thread::spawn(move || {
        if port == LOGIN {
            // Only a request is answered, whatever it says.
            let page = b"HTTP/1.1 302 Found\r\nLocation: http://login.example/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = socket.read(&mut [0; 4_096]).and_then(|_| socket.write_all(page));
        } else {
            let _ = socket.read_to_end(&mut Vec::new());
        }
    });
}

fn cable(one: &Namespace, name: &str, address: &str, other: &Namespace, other_name: &str, other_address: &str) {
    let place = format!("/proc/{}/fd/{}", std::process::id(), other.file().as_raw_fd());
    at(one, &[&format!("link add {name} type veth peer name {other_name} netns {place}")]);
    for (host, name, address) in [(one, name, address), (other, other_name, other_address)] {
        at(host, &[&format!("address add {address} dev {name}"), &format!("link set {name} up")]);
    }
}

/// Runs `ip` commands on a host.
pub fn at(host: &Namespace, commands: &[&str]) {
    for words in commands {
        run(host, "ip", &words.split(' ').collect::<Vec<_>>());
    }
}

/// Adds rules to the packet filter of a host.
pub fn nft(host: &Namespace, text: &str) {
    run(host, "nft", &[text]);
}

fn run(host: &Namespace, program: &str, words: &[&str]) {
    let run = || Command::new(program).args(words).output().expect("the program is there");
    let output = host.run(run).expect("it can be entered");
    assert!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}
