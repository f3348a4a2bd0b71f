//! Two namespaces: ours, with two uplinks, and the world, which is both router and server.
//!
//! ```text
//!   ours                                        world
//!   up0  10.1.0.2, fd01::2  ------------------  10.1.0.1, fd01::1  down0
//!   up1  10.2.0.2, fd02::2  ------------------  10.2.0.1, fd02::1  down1
//!                                               203.0.113.1, 2001:db8::1 (behind the router)
//! ```

use crate::kernel::{ip, mptcp_listener, sysctl};
use anabranch_attach::{Attached, Attachment, HostError, HostOptions, Tunnels, Uplinks, attach};
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::view::SubflowState;
use anabranch_stack::{StackConfig, Stream};
use anabranch_system::Namespace;
use socket2::Socket;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The server's port.
pub const PORT: u16 = 7;

/// Timeout of any operation.
const DEADLINE: Duration = Duration::from_secs(60);

/// Both uplinks.
pub const BOTH: &[&str] = &["up0", "up1"];

pub struct Scene {
    pub ours: Namespace,
    pub world: Namespace,
    journal: PathBuf,
}

impl Scene {
    pub fn new() -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let journal = std::env::temp_dir().join(format!("anabranch-host-{}-{number}", std::process::id()));
        std::fs::create_dir(&journal).expect("there is room for a directory");
        let scene = Self { ours: namespace(), world: namespace(), journal };
        scene.in_ours(|| ip("link set lo up"));
        scene.in_world(|| {
            ip("link set lo up");
            ip("address add 203.0.113.1/32 dev lo");
            ip("address add 2001:db8::1/128 dev lo nodad");
            ip("mptcp limits set subflows 8 add_addr_accepted 8");
        });
        scene.add_uplink(0);
        scene.add_uplink(1);
        scene.settle();
        scene
    }

    /// The directory of the journal.
    pub fn journal(&self) -> &Path {
        &self.journal
    }

    pub fn in_ours<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.ours.run(work).expect("the namespace can be entered")
    }

    pub fn in_world<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.world.run(work).expect("the namespace can be entered")
    }

    /// Adds an uplink, with addresses and routes.
    pub fn add_uplink(&self, n: u8) {
        let net = n + 1;
        let world = format!("/proc/{}/fd/{}", std::process::id(), self.world.file().as_raw_fd());
        self.in_ours(|| ip(&format!("link add up{n} type veth peer name down{n} netns {world}")));
        self.in_world(|| {
            ip(&format!("address add 10.{net}.0.1/24 dev down{n}"));
            ip(&format!("address add fd0{net}::1/64 dev down{n} nodad"));
            ip(&format!("link set down{n} up"));
        });
        self.in_ours(|| {
            // Without link-local addresses, whose duplicate detection would change the state later.
            sysctl(&format!("ipv6.conf.up{n}.addr_gen_mode"), "1");
            ip(&format!("link set up{n} up"));
        });
        self.address_uplink(n, 2);
        self.route_uplink(n);
    }

    pub fn address_uplink(&self, n: u8, host: u8) {
        let net = n + 1;
        self.in_ours(|| {
            ip(&format!("address add 10.{net}.0.{host}/24 dev up{n}"));
            ip(&format!("address add fd0{net}::{host}/64 dev up{n} nodad"));
        });
    }

    pub fn route_uplink(&self, n: u8) {
        let net = n + 1;
        self.in_ours(|| {
            ip(&format!("route add default via 10.{net}.0.1 dev up{n} metric {}", 100 + n));
            ip(&format!("-6 route add default via fd0{net}::1 dev up{n} metric {}", 100 + n));
        });
    }

    /// The uplinks of this scene, by name.
    pub fn uplinks(&self, ports: &[u16]) -> Uplinks {
        Self::uplinks_noted_in(&self.journal, ports)
    }

    /// The same, for a program without the scene.
    pub fn uplinks_noted_in(journal: &Path, ports: &[u16]) -> Uplinks {
        Uplinks {
            interfaces: BOTH.iter().map(|name| (*name).to_owned()).collect(),
            ports: ports.to_vec(),
            options: HostOptions { mtu: None, journal: Some(journal.to_owned()) },
        }
    }

    /// Runs `test` in our namespace within a runtime.
    pub fn run<T: Send, F: Future<Output = T>>(&self, test: impl FnOnce() -> F + Send) -> T {
        self.in_ours(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { tokio::time::timeout(DEADLINE, test()).await.expect("the test ends in a minute") })
        })
    }

    /// A kernel socket that echoes one connection.
    pub fn echo(&self, v6: bool) -> SocketAddr {
        let listener: Socket = self.in_world(|| mptcp_listener(v6, PORT));
        std::thread::spawn(move || {
            use std::io::{Read, Write};
            let Ok((mut socket, _)) = listener.accept() else { return };
            let mut bytes = vec![0; 65_536];
            while let Ok(length @ 1..) = socket.read(&mut bytes) {
                if socket.write_all(&bytes[..length]).is_err() {
                    return;
                }
            }
        });
        let address = if v6 { "2001:db8::1" } else { "203.0.113.1" };
        SocketAddr::new(address.parse::<IpAddr>().expect("an address"), PORT)
    }

    /// Waits until the kernel's own reactions are over.
    fn settle(&self) {
        let mut before = self.state();
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.state();
            if now == before && !now.iter().any(|line| line.contains("tentative") || line.contains("linkdown")) {
                return;
            }
            before = now;
        }
    }

    /// The visible state of our host's network.
    pub fn state(&self) -> Vec<String> {
        self.in_ours(state)
    }

    /// Asserts that our host's network is unchanged.
    pub fn assert_as_before(&self, before: &[String]) {
        let now = self.state();
        let new: Vec<&String> = now.iter().filter(|line| !before.contains(line)).collect();
        let gone: Vec<&String> = before.iter().filter(|line| !now.contains(line)).collect();
        assert!(now == before, "new: {new:#?}\ngone: {gone:#?}");
        assert_eq!(std::fs::read_dir(&self.journal).expect("it is there").count(), 0, "the journal is gone");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // It should be empty: the tests check that.
        let _ = std::fs::remove_dir_all(&self.journal);
    }
}

fn namespace() -> Namespace {
    Namespace::new().expect("namespaces were there a moment ago")
}

/// The output of a command.
pub fn output(program: &str, words: &str) -> String {
    let output = Command::new(program).args(words.split_whitespace()).output().expect("the program runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The visible state of the network in the calling thread's namespace.
pub fn state() -> Vec<String> {
    let mut state = String::new();
    for words in ["rule", "-6 rule", "-details route show table all", "-6 -details route show table all", "address"] {
        state += &output("ip", words);
    }
    state += &output("nft", "list ruleset");
    for family in ["ipv4", "ipv6"] {
        let root = format!("/proc/sys/net/{family}/conf");
        let mut devices: Vec<_> = std::fs::read_dir(&root).expect("it is there").flatten().map(|d| d.path()).collect();
        devices.sort();
        for device in devices {
            for key in ["forwarding", "force_forwarding", "rp_filter", "accept_ra"] {
                if let Ok(value) = std::fs::read_to_string(device.join(key)) {
                    state += &format!("{}/{key} = {}\n", device.display(), value.trim());
                }
            }
        }
    }
    state.lines().map(str::to_owned).collect()
}

pub fn config() -> ConnectionConfig {
    ConnectionConfig::new(Policies::of(&Combination::default()).expect("a combination of ours"))
}

/// Attaches a stack with the default path manager.
pub async fn attached(uplinks: Uplinks) -> Result<Attached, HostError> {
    attached_to(&Attachment::Uplinks(uplinks)).await
}

/// The same inside UDP, over all uplinks.
pub async fn tunnelled(server: &str) -> Result<Attached, HostError> {
    let server: SocketAddr = server.parse().expect("an address and a port");
    attached_to(&Attachment::Tunnels(Tunnels { server: server.into(), interfaces: Vec::new() })).await
}

async fn attached_to(attachment: &Attachment) -> Result<Attached, HostError> {
    let path_manager = Combination::default().build_path_manager().expect("the default exists");
    attach(attachment, StackConfig::new(path_manager)).await
}

/// Sends `bytes` to an echo server until `enough`, and compares.
pub async fn exchange_until(stream: &mut Stream, mut enough: impl FnMut(&Stream) -> bool) {
    let mut block = vec![0; 32_768];
    let mut round = 0_u32;
    loop {
        round = round.wrapping_add(1);
        for (at, byte) in block.iter_mut().enumerate() {
            *byte = (at as u32).wrapping_mul(31).wrapping_add(round) as u8;
        }
        stream.write_all(&block).await.expect("the connection lives");
        let mut echoed = vec![0; block.len()];
        stream.read_exact(&mut echoed).await.expect("the connection lives");
        assert!(echoed == block, "what came back in round {round} is not what was sent");
        if enough(stream) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Exchanges data until the connection has subflows on exactly these uplinks.
pub async fn exchange_until_on(stream: &mut Stream, uplinks: &[&str]) {
    exchange_until(stream, |stream| carrying(stream) == uplinks).await;
}

/// The uplinks on which a connection has a subflow that carries data, in order.
pub fn carrying(stream: &Stream) -> Vec<String> {
    let paths = stream.paths();
    let mut names: Vec<String> = paths
        .into_iter()
        .filter(|path| path.subflow.view.state == SubflowState::Established)
        .map(|path| path.name)
        .collect();
    names.sort();
    // A peer may use both address families of an uplink.
    names.dedup();
    names
}
