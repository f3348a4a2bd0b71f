//! Linux at one end of the links: a network namespace with one TUN device per path (client) or one device (server), and
//! greedy senders and receivers in it.

use super::trial::{PORT, client_addresses, failed, server_address};
use crate::calibrate::meter::Meter;
use anabranch_lab::kernel_model::{READ_MEMORY, WRITE_MEMORY};
use anabranch_stack::device::open_tun;
use anabranch_system::{Namespace, Need, raise_priority};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes per read or write.
const BLOCK: usize = 256 * 1024;
/// MTU of the devices, bytes.
const MTU: u16 = 1500;
/// Interval at which a blocked reader checks for the end of its run. The writer must block as long as the kernel lets
/// it, since a timeout would refill its buffer earlier; it ends when the reader closes.
const TICK: Duration = Duration::from_millis(100);
/// Maximum blocking time of the writer.
const LONG: Duration = Duration::from_secs(60);

/// Missing requirements on this machine, if any.
pub fn missing() -> Option<String> {
    anabranch_system::missing(&[Need::Mptcp, Need::Tun, Need::Programs(&["ip"]), Need::Namespaces])
}

/// Runs `work` inside a network namespace.
pub fn within<T: Send>(namespace: &Namespace, work: impl FnOnce() -> io::Result<T> + Send) -> Result<T, String> {
    namespace.run(work).and_then(|outcome| outcome).map_err(failed("set up Linux"))
}

/// Creates one device per path with address and routing table, and a path manager endpoint for each except the first.
pub fn set_up_client(paths: usize) -> io::Result<Vec<OwnedFd>> {
    let (mut words, server) = (String::from("link set lo up\n"), server_address());
    let mut devices = Vec::new();
    for (path, address) in client_addresses(paths).into_iter().enumerate() {
        let (name, table) = (format!("path{path}"), 100 + path);
        devices.push(open_tun(&name, MTU)?);
        let _ = writeln!(words, "addr add {address}/32 dev {name}\nlink set {name} up");
        let _ =
            writeln!(words, "route add {server}/32 dev {name} table {table}\nrule add from {address} table {table}");
        if path > 0 {
            let _ = writeln!(words, "mptcp endpoint add {address} dev {name} subflow");
        } else {
            let _ = writeln!(words, "route add {server}/32 dev {name} src {address}\nmptcp limits set subflows 8");
        }
    }
    set_up(&words)?;
    Ok(devices)
}

/// Creates one device that routes to all of the client's addresses.
pub fn set_up_server(paths: usize) -> io::Result<OwnedFd> {
    let device = open_tun("server", MTU)?;
    let mut words = format!("link set lo up\naddr add {}/32 dev server\nlink set server up\n", server_address());
    words.push_str("mptcp limits set subflows 8\n");
    for address in client_addresses(paths) {
        let _ = writeln!(words, "route add {address}/32 dev server");
    }
    set_up(&words)?;
    Ok(device)
}

/// Runs `ip` commands in the caller's namespace, one per line, and sets the socket memory.
fn set_up(words: &str) -> io::Result<()> {
    let list = |values: [u64; 3]| values.map(|value| value.to_string()).join(" ");
    std::fs::write("/proc/sys/net/ipv4/tcp_rmem", list(READ_MEMORY))?;
    std::fs::write("/proc/sys/net/ipv4/tcp_wmem", list(WRITE_MEMORY))?;
    let mut command = Command::new("ip");
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(words.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("ip: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// A counter of the caller's namespace; 0 if this kernel does not have it.
pub fn counter(group: &str, name: &str) -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat")?;
    // Each group has a line of names and a line of values.
    let mut lines = text.lines().filter_map(|line| line.split_once(':')).filter(|(known, _)| *known == group);
    let (names, values) = (lines.next(), lines.next());
    let place = names.and_then(|(_, names)| names.split_whitespace().position(|known| known == name));
    let value = place.and_then(|place| values?.1.split_whitespace().nth(place)?.parse().ok());
    Ok(value.unwrap_or(0))
}

/// Socket settings.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Whether to use MPTCP; else plain TCP.
    pub multipath: bool,
    /// Requested receive buffer, bytes; none: automatic.
    pub receive_buffer: Option<u64>,
    /// The kernel's name of the congestion control.
    pub congestion: &'a str,
}

impl Settings<'_> {
    fn socket(&self) -> io::Result<Socket> {
        let protocol = if self.multipath { Protocol::MPTCP } else { Protocol::TCP };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        socket.set_read_timeout(Some(TICK))?;
        socket.set_write_timeout(Some(LONG))?;
        // Closing at the end of a run resets the connection.
        socket.set_linger(Some(Duration::ZERO))?;
        if let Some(bytes) = self.receive_buffer {
            // Exceeds the system's limit for unprivileged programs.
            setsockopt(&socket, sockopt::RcvBufForce, &(bytes as usize))?;
        }
        socket.set_tcp_congestion(self.congestion.as_bytes())?;
        Ok(socket)
    }

    /// A listener in the server's namespace.
    pub fn listen(&self) -> io::Result<Socket> {
        let socket = self.socket()?;
        socket.bind(&address(server_address(), PORT))?;
        socket.listen(1)?;
        Ok(socket)
    }

    /// A client socket on the first path, in the client's namespace.
    pub fn client(&self) -> io::Result<Socket> {
        let socket = self.socket()?;
        let source = client_addresses(1).pop().unwrap_or_else(server_address);
        socket.bind(&address(source, 0))?;
        Ok(socket)
    }
}

fn address(host: IpAddr, port: u16) -> SockAddr {
    SocketAddr::new(host, port).into()
}

/// Accepts the client's connection; none if there is none before `end`.
pub fn accept(listener: &Socket, end: Instant) -> io::Result<Option<Socket>> {
    let Some((stream, _)) = retry(end, || listener.accept())? else { return Ok(None) };
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(LONG))?;
    stream.set_linger(Some(Duration::ZERO))?;
    Ok(Some(stream))
}

/// Connects the client's socket.
pub fn connect(socket: &Socket, end: Instant) -> io::Result<()> {
    // It blocks until the handshake is complete or the write timeout expires.
    retry(end, || match socket.connect(&address(server_address(), PORT)) {
        Err(error) if error.raw_os_error() == Some(nix::libc::EISCONN) => Ok(()),
        Err(error) if error.raw_os_error() == Some(nix::libc::EALREADY) => Err(ErrorKind::WouldBlock.into()),
        outcome => outcome,
    })?;
    Ok(())
}

/// Reads and counts until the run is over.
pub fn read_until(mut stream: &Socket, meter: &mut Meter) -> io::Result<()> {
    let (mut block, end) = (vec![0; BLOCK], meter.end());
    while let Some(read) = retry(end, || stream.read(&mut block))?.filter(|read| *read > 0) {
        meter.take(read, Instant::now());
    }
    Ok(())
}

/// Writes as much as possible until the run is over.
pub fn write_until(mut socket: &Socket, end: Instant) -> io::Result<()> {
    raise_priority();
    let block = vec![0; BLOCK];
    loop {
        match retry(end, || socket.write(&block)) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            // The reader has closed at the end.
            Err(_) if Instant::now() >= end => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Retries until success, or until the run is over, which returns none.
fn retry<T>(end: Instant, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    while Instant::now() < end {
        match attempt() {
            Ok(done) => return Ok(Some(done)),
            Err(error) if waits(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Whether the operation can be retried.
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(nix::libc::EINPROGRESS)
}
