//! Programs: sequential short connections, and long downloads, with each byte compared.

use crate::soak::town::TARGET;
use anabranch_system::Namespace;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The target's port.
pub const PORT: u16 = 80;
/// Address of the proxy.
pub const PROXY: &str = "127.0.0.1:1080";
/// Longer than the allowed time of any connection.
pub const PATIENCE: Duration = Duration::from_secs(70);
/// Bytes of a short answer.
pub const SHORT: u32 = 2_000;
/// Bytes of a download, which takes about four seconds.
const LONG: u32 = 8_000_000;
/// A download is sent in blocks with pauses.
const PIECE: u32 = 40_000;
const PAUSE: Duration = Duration::from_millis(20);

/// History of a connection.
#[derive(Debug)]
pub struct Record {
    pub begun: Instant,
    pub ended: Instant,
    /// Arrival of the target's first byte.
    pub answered: Option<Instant>,
    pub outcome: Result<(), String>,
}

#[derive(Clone, Default)]
pub struct Records(Arc<Mutex<Vec<Record>>>);

impl Records {
    fn push(&self, record: Record) {
        self.0.lock().expect("nobody panics with it").push(record);
    }

    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.0.lock().expect("nobody panics with it"))
    }
}

/// The byte at an offset of an answer.
fn octet(at: u32) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 24) as u8
}

/// Answers requests of four bytes with as many bytes as they ask for, on the core's host.
pub fn target(core: &Namespace) {
    let listen = || TcpListener::bind(SocketAddr::from((TARGET, PORT))).expect("the address is there");
    let listener = core.run(listen).expect("it can be entered");
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // Clients may disconnect.
            thread::spawn(move || answer(socket));
        }
    });
}

fn answer(mut socket: TcpStream) -> io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    for begin in (0..length).step_by(PIECE as usize) {
        let octets: Vec<u8> = (begin..length.min(begin + PIECE)).map(octet).collect();
        socket.write_all(&octets)?;
        if length > PIECE {
            thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// Starts programs on the client's host that run until `over`.
pub fn programs(client: &Namespace, over: &Arc<AtomicBool>) -> (Vec<JoinHandle<()>>, Records, Records) {
    let (short, long) = (Records::default(), Records::default());
    let program = |length: u32, pause: Duration, records: &Records| {
        let (over, records, client) = (Arc::clone(over), records.clone(), client.clone());
        thread::spawn(move || {
            let run = || {
                while !over.load(Ordering::Relaxed) {
                    records.push(fetch(length));
                    thread::sleep(pause);
                }
            };
            client.run(run).expect("it can be entered");
        })
    };
    let shorts = (0..4).map(|_| program(SHORT, Duration::from_millis(50), &short));
    let threads = shorts.chain((0..2).map(|_| program(LONG, Duration::ZERO, &long))).collect();
    (threads, short, long)
}

/// Requests `length` bytes from the target through the proxy.
fn fetch(length: u32) -> Record {
    let begun = Instant::now();
    let mut answered = None;
    let outcome = exchange(length, &mut answered);
    Record { begun, ended: Instant::now(), answered, outcome: outcome.map_err(|error| error.to_string()) }
}

fn exchange(length: u32, answered: &mut Option<Instant>) -> io::Result<()> {
    let mut socket = TcpStream::connect(PROXY)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    // RFC 1928: no authentication; CONNECT to an IPv4 address.
    socket.write_all(&[5, 1, 0])?;
    socket.read_exact(&mut [0; 2])?;
    let [a, b, c, d] = TARGET;
    socket.write_all(&[5, 1, 0, 1, a, b, c, d, 0, PORT as u8])?;
    let mut reply = [0; 10];
    socket.read_exact(&mut reply)?;
    if reply[1] != 0 {
        return Err(io::Error::other(format!("SOCKS5 reply {}", reply[1])));
    }
    socket.write_all(&length.to_be_bytes())?;
    let (mut bytes, mut at) = (vec![0; 65_536], 0);
    loop {
        let read = socket.read(&mut bytes)?;
        answered.get_or_insert_with(Instant::now);
        for byte in &bytes[..read] {
            if *byte != octet(at) {
                return Err(io::Error::other(format!("octet {at} is another")));
            }
            at += 1;
        }
        match read {
            0 if at == length => return Ok(()),
            0 => return Err(io::Error::other(format!("cut at {at} of {length}"))),
            _ => {}
        }
    }
}
