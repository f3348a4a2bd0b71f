//! The kernel's sockets at both ends or at the sender: a program that writes each frame as a message when it is due,
//! and one that reads messages.

use super::ends::{Lasts, PORT, failed};
use super::judge::Judge;
use super::message;
use super::schedule::Frame;
use anabranch_emulate::{Hosts, address};
use anabranch_system::Namespace;
use anabranch_system::raise_priority;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes per read.
const BLOCK: usize = 64 * 1024;
/// Interval at which a blocked reader checks for the end.
const TICK: Duration = Duration::from_millis(50);
/// Timeout of connecting and of a write.
const PATIENCE: Duration = Duration::from_secs(15);

fn socket(multipath: bool) -> io::Result<Socket> {
    let protocol = if multipath { Protocol::MPTCP } else { Protocol::TCP };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    // Unsent data is dropped at the end.
    socket.set_linger(Some(Duration::ZERO))?;
    Ok(socket)
}

/// Connects from the client's address on a path; must be called in the client's namespace.
pub fn connect(multipath: bool, from: usize, to: IpAddr) -> io::Result<Socket> {
    let socket = socket(multipath)?;
    socket.bind(&SocketAddr::new(address::client(from as u8 + 1)[0], 0).into())?;
    socket.set_tcp_nodelay(true)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect(&SocketAddr::new(to, PORT).into())?;
    Ok(socket)
}

/// Linux at both ends: MPTCP, or TCP on the path with the index `single`.
pub fn run(single: Option<usize>, hosts: &Hosts, frames: &[Frame], lasts: Lasts) -> Result<Judge, String> {
    let multipath = single.is_none();
    let place = single.unwrap_or(0);
    let to = single.map_or(address::server()[0], |place| address::server_on(place as u8 + 1)[0]);
    let listen = || {
        let listener = socket(multipath)?;
        listener.bind(&SocketAddr::new(to, PORT).into())?;
        listener.listen(1)?;
        Ok(listener)
    };
    let inside = |host: &Namespace, work: &(dyn Fn() -> io::Result<Socket> + Sync)| {
        host.run(work).and_then(|outcome| outcome).map_err(failed("make a connection"))
    };
    let listener = inside(hosts.server(), &listen)?;
    let sender = inside(hosts.client(), &|| connect(multipath, place, to))?;
    let (receiver, _) = listener.accept().map_err(failed("accept a connection"))?;
    receiver.set_read_timeout(Some(TICK)).map_err(failed("set a socket"))?;
    let began = lasts.begins();
    let end = lasts.end(began);
    let judge = Judge::new(began, frames);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&sender, frames, began, end));
        let judge = read(&receiver, judge, end);
        // Unblocks a writer.
        drop(receiver);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if !judge.is_complete() && Instant::now() < end {
            written.map_err(failed("write"))?;
        }
        Ok(judge)
    })
}

/// Writes each frame when it is due, or as soon as the socket accepts it.
pub fn write(mut socket: &Socket, frames: &[Frame], began: Instant, end: Instant) -> io::Result<()> {
    raise_priority();
    for frame in frames {
        thread::sleep((began + frame.at).saturating_duration_since(Instant::now()));
        if Instant::now() >= end {
            break;
        }
        socket.write_all(&message::of(frame))?;
    }
    Ok(())
}

fn read(mut socket: &Socket, mut judge: Judge, end: Instant) -> Judge {
    raise_priority();
    let (mut block, mut messages) = (vec![0; BLOCK], message::Messages::default());
    while Instant::now() < end && !judge.is_complete() {
        match socket.read(&mut block) {
            Ok(0) => break,
            Ok(length) => {
                let now = Instant::now();
                let bytes = block.get(..length).unwrap_or_default();
                let Ok(complete) = messages.take(bytes) else { break };
                complete.into_iter().for_each(|number| judge.frame(number, now));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    judge
}
