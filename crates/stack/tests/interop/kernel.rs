//! The kernel's end: what it must have, how it is set up, and its sockets.

use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Command;

/// The kernel's version, e.g. (6, 12).
pub fn release() -> (u32, u32) {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is there");
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().expect("a number"), numbers.next().expect("another"))
}

/// Runs `ip WORDS` in the calling thread's namespace.
pub fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A socket of the kernel's MPTCP.
pub fn mptcp_socket(address: SocketAddr) -> Socket {
    Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::MPTCP)).expect("the kernel has MPTCP")
}

/// A listening socket of the kernel's MPTCP on a port of all its addresses of a family, as a server should have: joins
/// come to any of them.
pub fn mptcp_listener(v6: bool, port: u16) -> Socket {
    let any: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let address = SocketAddr::new(any, port);
    let listener = mptcp_socket(address);
    listener.bind(&address.into()).expect("the port is free");
    listener.listen(128).expect("it can listen");
    listener
}

/// Runs `work` with the next connection that the kernel accepts, on a thread of its own.
pub fn accept<T: Send + 'static>(listener: Socket, work: impl FnOnce(Socket) -> T + Send + 'static) -> Work<T> {
    spawn(move || work(listener.accept().expect("a connection comes").0))
}

/// Connects to `address` over the kernel's MPTCP and runs `work` with the socket, on a thread of its own.
pub fn connect<T: Send + 'static>(address: SocketAddr, work: impl FnOnce(Socket) -> T + Send + 'static) -> Work<T> {
    spawn(move || {
        let socket = mptcp_socket(address);
        socket.connect(&address.into()).expect("somebody listens");
        work(socket)
    })
}

/// Work with the kernel's blocking sockets, on a thread in the same namespace.
pub struct Work<T>(tokio::task::JoinHandle<T>);

impl<T> Work<T> {
    /// What came out of it. Panics as it did.
    pub async fn done(self) -> T {
        self.0.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Work<T> {
    Work(tokio::task::spawn_blocking(work))
}

/// Reads to the end of the stream and sends it back, then closes.
pub fn echo(mut socket: Socket) {
    let mut text = Vec::new();
    socket.read_to_end(&mut text).expect("the stream ends");
    socket.write_all(&text).expect("it is read");
}

/// A setting of the calling thread's namespace, e.g. `mptcp.checksum_enabled`.
pub fn sysctl(name: &str, value: &str) {
    let path = format!("/proc/sys/net/{}", name.replace('.', "/"));
    std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// A counter of the kernel's MPTCP in the calling thread's namespace, e.g. `MPJoinAckRx`.
pub fn counter(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").expect("/proc is there");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("MPTcpExt:"));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = pairs.find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no counter {name}"));
    value.parse().expect("a counter is a number")
}
