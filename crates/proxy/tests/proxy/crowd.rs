//! Very many connections at a time. `ANABRANCH_CROWD=10000` says how many; what a few show in seconds is enough for every
//! day. Clients, target and server are processes of their own: each has its own descriptors, and its own memory to measure.

use crate::scene::{kernel_address, limits, proxy_at, scene, server, stack, via};
use anabranch_proxy::{AllowList, Destination, Forward, Key, ProxyCounters, Via};
use anabranch_system::descriptor;
use libtest_mimic::Trial;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;

/// Connections if nothing is said.
const FEW: usize = 500;
/// Connections that are being opened at a time.
const AT_ONCE: usize = 256;
/// Where the proxy listens: the namespace has nobody else.
const PROXY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1080);
/// Tells a process of this program that it is not the test itself, and what it is.
const ROLE: &str = "ANABRANCH_CROWD_ROLE";

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, served: bool| {
        Trial::test(format!("crowd::{name}"), move || {
            scene(300, move || crowd(count(), served));
            Ok(())
        })
    };
    vec![trial("straight_to_a_multipath_server", false), trial("through_a_server_with_a_key", true)]
}

fn count() -> usize {
    std::env::var("ANABRANCH_CROWD").ok().and_then(|text| text.parse().ok()).unwrap_or(FEW)
}

/// Plays the part that this process has, if it has one.
pub fn play() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let words: Vec<&str> = role.split(' ').collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        match words[..] {
            ["echo", kind] => echo(kind == "multipath"),
            ["server", key] => serve(Path::new(key)).await,
            ["proxy"] => carry(None).await,
            ["proxy", key] => carry(Some(Path::new(key))).await,
            ["clients", count] => {
                let target = SocketAddr::new(kernel_address(0), 7);
                let mut sockets = open_all(count.parse().expect("a number"), PROXY, target).await;
                said().await;
                echo_all(&mut sockets).await;
                said().await;
            }
            _ => panic!("no such part: {role}"),
        }
        said().await;
    });
    true
}

/// Waits for a word, or for the end of the test.
async fn said() {
    writeln!(std::io::stdout(), "ready").expect("somebody listens");
    let listen = || std::io::stdin().read_line(&mut String::new());
    tokio::task::spawn_blocking(listen).await.expect("it does not panic").expect("it can be read");
}

/// A process that plays a part until this is dropped.
struct Actor(Child, Arc<Mutex<BufReader<std::process::ChildStdout>>>);

impl Actor {
    async fn new(role: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("it runs"));
        let mut child =
            command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs once more");
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        let actor = Self(child, Arc::new(Mutex::new(output)));
        actor.ready().await;
        actor
    }

    /// Waits until it has done its part.
    async fn ready(&self) {
        let output = Arc::clone(&self.1);
        let listen = move || {
            let mut line = String::new();
            output.lock().expect("nobody panics").read_line(&mut line).expect("it can be read");
            line
        };
        let line = tokio::task::spawn_blocking(listen).await.expect("it does not panic");
        assert_eq!(line, "ready\n", "an actor has failed");
    }

    /// Its resident memory, bytes.
    fn memory(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it lives");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("there is a line");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
    }

    /// Lets it go on.
    fn say(&mut self) {
        writeln!(self.0.stdin.as_mut().expect("it was asked for"), "go on").expect("it listens");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets this process have a descriptor for each connection.
fn descriptors(wanted: usize) {
    let wanted = wanted as u64 + 100;
    let allowed = descriptor::allow(wanted).expect("it can be asked");
    assert!(allowed >= wanted, "{allowed} descriptors are not enough: raise ulimit -n");
}

async fn crowd(count: usize, served: bool) {
    let _echo = Actor::new(if served { "echo plain" } else { "echo multipath" }).await;
    let directory = crate::program::Directory::new();
    let key_file = directory.file("key");
    let key = Key::generate().expect("random numbers");
    key.write(Path::new(&key_file)).expect("it can be written");
    let mut processes = Vec::new();
    if served {
        processes.push(Actor::new(&format!("server {key_file}")).await);
    }
    processes.push(Actor::new(&if served { format!("proxy {key_file}") } else { "proxy".to_owned() }).await);
    let before: Vec<u64> = processes.iter().map(Actor::memory).collect();

    let start = Instant::now();
    let mut clients = Actor::new(&format!("clients {count}")).await;
    let set_up = start.elapsed();
    // Acknowledgements, and buffers that are returned.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let each = |(actor, before): (&Actor, &u64)| actor.memory().saturating_sub(*before) / count as u64;
    let each: Vec<u64> = processes.iter().zip(&before).map(each).collect();
    // All of them still work.
    let start = Instant::now();
    clients.say();
    clients.ready().await;
    let echoed = start.elapsed();
    drop(clients);
    for mut actor in processes.into_iter().rev() {
        // It ends, and looks at its counters.
        actor.say();
        actor.ready().await;
    }
    eprintln!(
        "{count} connections {}: {:.0} set up per second, memory each {each:?} bytes, one echo of all in {:.2} s",
        if served { "through a server with a key (server, proxy)" } else { "straight to a multipath server" },
        count as f64 / set_up.as_secs_f64(),
        echoed.as_secs_f64()
    );
}

/// The part of the proxy, on path 0.
async fn carry(key: Option<&Path>) {
    descriptors(count());
    let via = key.map_or(Via::Direct, |key| via(1, &Key::read(key).expect("a key")));
    let running = proxy_at(PROXY, &stack(0..1), via, Forward::Requested, limits());
    said().await;
    all_is_well(running.stop().await);
}

/// The part of the server, on path 1.
async fn serve(key: &Path) {
    descriptors(count());
    let key = Key::read(key).expect("a key");
    let running = server(&stack(1..2), Some(&key), Destination::Named(AllowList::default()), limits());
    said().await;
    all_is_well(running.stop().await);
}

/// All connections were carried at a time and none failed. How they end is up to the clients, who just go.
fn all_is_well(counters: ProxyCounters) {
    assert_eq!((counters.accepted, counters.most), (count() as u64, count() as u64), "{counters}");
    let failures = counters.over_limit + counters.failed + counters.tampered + counters.unproven;
    assert_eq!(failures + counters.accept_errors + counters.too_slow, 0, "{counters}");
}

/// The part of the clients: each sends eight bytes and gets them back.
async fn open_all(count: usize, proxy: SocketAddr, target: SocketAddr) -> Vec<TcpStream> {
    descriptors(count);
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let open = |number| tokio::spawn(open(number, proxy, target, Arc::clone(&turns)));
    let opening: Vec<_> = (0..count).map(open).collect();
    let mut sockets = Vec::with_capacity(count);
    for task in opening {
        sockets.push(task.await.expect("it does not panic"));
    }
    sockets
}

async fn open(number: usize, proxy: SocketAddr, target: SocketAddr, turns: Arc<Semaphore>) -> TcpStream {
    let _turn = turns.acquire().await.expect("it stays open");
    let mut socket = TcpStream::connect(proxy).await.expect("it listens");
    let SocketAddr::V4(target) = target else { panic!("this test is about IPv4") };
    let mut words = vec![5, 1, 0, 5, 1, 0, 1];
    words.extend_from_slice(&target.ip().octets());
    words.extend_from_slice(&target.port().to_be_bytes());
    words.extend_from_slice(&(number as u64).to_be_bytes());
    socket.write_all(&words).await.expect("it is open");
    let mut reply = [0; 12];
    socket.read_exact(&mut reply).await.expect("a reply");
    assert_eq!(reply[3], 0, "connection {number}");
    assert_eq!(socket.read_u64().await.expect("the echo comes"), number as u64);
    socket
}

/// Eight bytes more over each.
async fn echo_all(sockets: &mut [TcpStream]) {
    for (number, socket) in sockets.iter_mut().enumerate() {
        socket.write_all(&(number as u64).to_be_bytes()).await.expect("it is open");
    }
    for (number, socket) in sockets.iter_mut().enumerate() {
        assert_eq!(socket.read_u64().await.expect("the echo comes"), number as u64);
    }
}

/// The part of the target: sends back what it gets, on a socket of the kernel's MPTCP or of plain TCP.
fn echo(multipath: bool) {
    descriptors(count());
    let any = SocketAddr::from(([0, 0, 0, 0], 7));
    let listener = if multipath {
        let socket = crate::kernel::mptcp_socket(any);
        socket.bind(&any.into()).expect("the port is free");
        socket.listen(4_096).expect("it can listen");
        socket.set_nonblocking(true).expect("it is open");
        TcpListener::from_std(socket.into()).expect("it is a listener")
    } else {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(any).expect("the port is free");
        socket.listen(4_096).expect("it can listen")
    };
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.expect("there are descriptors");
            tokio::spawn(async move {
                let mut buffer = [0; 64];
                while let Ok(read @ 1..) = socket.read(&mut buffer).await {
                    if socket.write_all(&buffer[..read]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
}
