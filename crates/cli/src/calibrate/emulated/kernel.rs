//! Linux at both ends: two namespaces, a TUN device per path at the client and one at the server, and the kernel's own TCP
//! or MPTCP.

use super::{Done, PORT, Trial, client_addresses, failed, server_address, start_links};
use crate::calibrate::cases::Case;
use crate::calibrate::kernel_model::{READ_MEMORY, WRITE_MEMORY};
use crate::calibrate::meter::Meter;
use crate::scenario::Scenario;
use anabranch_net::device::open_tun;
use anabranch_net::emulate::raise_priority;
use anabranch_net::namespace::Namespace;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes that a program reads or writes at a time.
const BLOCK: usize = 256 * 1024;
/// Largest packet, bytes.
const MTU: u16 = 1500;
/// How often a blocked reader looks whether its run is over. The writer must sleep as long as the kernel lets it, as a wake-up
/// of its own would fill its buffer earlier; the reader's end ends it.
const TICK: Duration = Duration::from_millis(100);
/// The longest that the writer sleeps.
const LONG: Duration = Duration::from_secs(60);

/// What this machine lacks, if anything.
pub fn missing() -> Option<String> {
    let there = |path: &str| std::path::Path::new(path).exists();
    if !there("/proc/sys/net/mptcp/enabled") {
        return Some("this kernel has no MPTCP".to_owned());
    }
    if !there("/dev/net/tun") {
        return Some("this kernel has no TUN devices".to_owned());
    }
    if Command::new("ip").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Some("there is no program 'ip': install iproute2".to_owned());
    }
    Namespace::new().err().map(|error| format!("no network namespace can be made ({error}): run it as root"))
}

/// One run.
pub fn run(trial: &Trial<'_>, scenario: &Scenario) -> Result<Done, String> {
    let paths = trial.case.paths.len();
    let client = Namespace::new().map_err(failed("make a namespace"))?;
    let server = Namespace::new().map_err(failed("make a namespace"))?;
    let clients = within(&client, || set_up_client(paths))?;
    let end = within(&server, || set_up_server(paths))?;
    let relay = start_links(scenario, trial.seed, clients, end)?;
    let listener = within(&server, || listen(trial.case)).map_err(failed("listen"))?;
    let socket = within(&client, || socket(trial.case)).map_err(failed("make a socket"))?;
    let measured = transfer(socket, &listener, trial).map_err(failed("carry data"));
    let discarded = within(&server, || counter("MPTcpExt", "NoDSSInWindow"))?;
    let report = relay.stop().map_err(failed("stop the links"))?;
    Ok(Done { reading: measured?.reading(), report, discarded })
}

/// Does something inside a namespace.
fn within<T: Send>(namespace: &Namespace, work: impl FnOnce() -> io::Result<T> + Send) -> Result<T, String> {
    namespace.run(work).and_then(|outcome| outcome).map_err(failed("set up Linux"))
}

/// A device per path with its address, its own table of routes, and an endpoint of the path manager for each but the first.
fn set_up_client(paths: usize) -> io::Result<Vec<OwnedFd>> {
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

/// One device, behind which all of the client's addresses are.
fn set_up_server(paths: usize) -> io::Result<OwnedFd> {
    let device = open_tun("server", MTU)?;
    let mut words = format!("link set lo up\naddr add {}/32 dev server\nlink set server up\n", server_address());
    words.push_str("mptcp limits set subflows 8\n");
    for address in client_addresses(paths) {
        let _ = writeln!(words, "route add {address}/32 dev server");
    }
    set_up(&words)?;
    Ok(device)
}

/// What `ip` is to do in the caller's namespace, line by line, and the memory of its sockets.
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
fn counter(group: &str, name: &str) -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat")?;
    // Each group is a line of names and one of values.
    let mut lines = text.lines().filter_map(|line| line.split_once(':')).filter(|(known, _)| *known == group);
    let (names, values) = (lines.next(), lines.next());
    let place = names.and_then(|(_, names)| names.split_whitespace().position(|known| known == name));
    let value = place.and_then(|place| values?.1.split_whitespace().nth(place)?.parse().ok());
    Ok(value.unwrap_or(0))
}

fn new_socket(case: &Case) -> io::Result<Socket> {
    let protocol = if case.multipath() { Protocol::MPTCP } else { Protocol::TCP };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    socket.set_read_timeout(Some(TICK))?;
    socket.set_write_timeout(Some(LONG))?;
    // The end of a run resets the connection.
    socket.set_linger(Some(Duration::ZERO))?;
    Ok(socket)
}

fn listen(case: &Case) -> io::Result<Socket> {
    let socket = new_socket(case)?;
    if let Some(bytes) = case.receive_buffer {
        // Beyond the system's limit for ordinary programs, too.
        setsockopt(&socket, sockopt::RcvBufForce, &(bytes as usize))?;
    }
    socket.bind(&address(server_address(), PORT))?;
    socket.listen(1)?;
    Ok(socket)
}

fn socket(case: &Case) -> io::Result<Socket> {
    let socket = new_socket(case)?;
    let control = if case.congestion == "new_reno" { "reno" } else { case.congestion };
    socket.set_tcp_congestion(control.as_bytes())?;
    let source = client_addresses(1).pop().unwrap_or_else(server_address);
    socket.bind(&address(source, 0))?;
    Ok(socket)
}

fn address(host: IpAddr, port: u16) -> SockAddr {
    SocketAddr::new(host, port).into()
}

/// The client sends as much as it can; the server counts.
fn transfer(socket: Socket, listener: &Socket, trial: &Trial<'_>) -> io::Result<Meter> {
    let mut meter = Meter::new(Instant::now(), trial.span);
    let end = meter.end();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&socket, end));
        if let Some((mut stream, _)) = retry(end, || listener.accept())? {
            stream.set_read_timeout(Some(TICK))?;
            let mut block = vec![0; BLOCK];
            while let Some(read) = retry(end, || stream.read(&mut block))?.filter(|read| *read > 0) {
                meter.take(read, Instant::now());
            }
        }
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(meter)
    })
}

fn write_until(mut socket: &Socket, end: Instant) -> io::Result<()> {
    raise_priority();
    // It blocks until the handshake is over, or the writes' timeout has passed.
    retry(end, || match socket.connect(&address(server_address(), PORT)) {
        Err(error) if error.raw_os_error() == Some(nix::libc::EISCONN) => Ok(()),
        Err(error) if error.raw_os_error() == Some(nix::libc::EALREADY) => Err(ErrorKind::WouldBlock.into()),
        outcome => outcome,
    })?;
    let block = vec![0; BLOCK];
    loop {
        match retry(end, || socket.write(&block)) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            // The reader has what it wanted.
            Err(_) if Instant::now() >= end => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Tries until it can be done or the run is over, which gives nothing.
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

/// Whether it can be done later.
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(nix::libc::EINPROGRESS)
}
