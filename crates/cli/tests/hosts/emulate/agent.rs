//! Agents: small programs run on the paths by the tests, which send and receive, and print results.

use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// First argument that runs this executable as an agent.
pub const NAME: &str = "agent";

/// Port of all agents.
pub const PORT: u16 = 4_000;

/// Timeout of receiving.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a task: its name and arguments.
pub fn run(task: &[String]) {
    let words: Vec<&str> = task.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().expect("a number");
    let address = |word: &str| word.parse::<IpAddr>().expect("an address");
    match words.as_slice() {
        ["echo"] => echo(),
        ["ping", from, to, count] => ping(address(from), address(to), number(count) as u32),
        ["stream", from, to, count, length, gap] => {
            let gap = Duration::from_micros(number(gap));
            stream(address(from), address(to), number(count) as u32, number(length) as usize, gap);
        }
        ["sink", file] => sink(file),
        ["swallow"] => swallow(),
        ["pictures", count] => pictures(number(count) as u32),
        ["packets", count] => packets(number(count) as u32),
        ["send", to, bytes] => send(address(to), number(bytes)),
        _ => panic!("no such task: {task:?}"),
    }
}

fn any(v6: bool) -> SocketAddr {
    let any: IpAddr = if v6 { "::".parse() } else { "0.0.0.0".parse() }.expect("an address");
    SocketAddr::new(any, PORT)
}

/// A dual-stack socket.
fn both_families() -> UdpSocket {
    UdpSocket::bind(any(true)).expect("the port is free")
}

fn echo() {
    let socket = both_families();
    let mut buffer = [0; 2_000];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).expect("it is open");
        // The path may be down.
        let _ = socket.send_to(&buffer[..length], from);
    }
}

/// Sends probes in sequence; prints the RTT in µs of each that is answered from the server's own address.
fn ping(from: IpAddr, to: IpAddr, count: u32) {
    let socket = UdpSocket::bind((from, 0)).expect("the address is ours");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    for probe in 0..count {
        let sent = Instant::now();
        socket.send_to(&probe.to_be_bytes(), (to, PORT)).expect("there is a route");
        let mut answer = [0; 4];
        while let Ok((4, answerer)) = socket.recv_from(&mut answer) {
            if u32::from_be_bytes(answer) == probe && anabranch_emulate::address::server().contains(&answerer.ip()) {
                let line = format!("{}\n", sent.elapsed().as_micros());
                std::io::stdout().write_all(line.as_bytes()).expect("somebody reads");
                break;
            }
        }
    }
}

/// Sends numbered packets of `length` bytes, including the IP header, at fixed times.
fn stream(from: IpAddr, to: IpAddr, count: u32, length: usize, gap: Duration) {
    let socket = UdpSocket::bind((from, 0)).expect("the address is ours");
    let headers = if from.is_ipv6() { 48 } else { 28 };
    let mut packet = vec![0; length - headers];
    let start = Instant::now();
    for number in 0..count {
        std::thread::sleep((start + gap * number).saturating_duration_since(Instant::now()));
        packet[..4].copy_from_slice(&number.to_be_bytes());
        socket.send_to(&packet, (to, PORT)).expect("there is a route");
    }
    // Packets in flight must arrive before the paths are removed.
    std::thread::sleep(PATIENCE);
}

/// Writes each arrival as a line: number, and µs since the first.
fn sink(file: &str) {
    let socket = both_families();
    let mut lines = std::fs::File::create(file).expect("the file can be written");
    let mut buffer = [0; 2_000];
    let mut first = None;
    loop {
        let length = socket.recv(&mut buffer).expect("it is open");
        let passed = first.get_or_insert_with(Instant::now).elapsed().as_micros();
        let number = buffer[..length].first_chunk().map_or(0, |number| u32::from_be_bytes(*number));
        writeln!(lines, "{number} {passed}").expect("the file can be written");
    }
}

fn multipath(v6: bool) -> Socket {
    let domain = if v6 { Domain::IPV6 } else { Domain::IPV4 };
    Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP)).expect("the kernel has MPTCP")
}

/// Reads a connection to its end and answers with the number of bytes.
fn swallow() {
    let listener = multipath(true);
    listener.bind(&any(true).into()).expect("the port is free");
    listener.listen(1).expect("it can listen");
    loop {
        let (mut connection, _) = listener.accept().expect("it listens");
        let bytes = std::io::copy(&mut connection, &mut std::io::sink()).expect("the connection lives");
        connection.write_all(&bytes.to_be_bytes()).expect("the client reads");
    }
}

fn send(to: IpAddr, bytes: u64) {
    let mut connection = multipath(to.is_ipv6());
    connection.connect(&SocketAddr::new(to, PORT).into()).expect("the server listens");
    std::io::copy(&mut std::io::repeat(7).take(bytes), &mut connection).expect("the connection lives");
    connection.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut answer = [0; 8];
    connection.read_exact(&mut answer).expect("the server answers");
    assert_eq!(u64::from_be_bytes(answer), bytes);
}

/// Interval of pictures.
const FRAME: Duration = Duration::from_millis(20);

/// An H.264 picture that cannot be decoded: of nine pictures one is I, two are P and six B. It has its number inside,
/// one digit per byte, and padding.
pub fn picture(number: u32) -> Vec<u8> {
    let (head, first, length) = match number % 9 {
        0 => (0x65, 0b1000_1000, 6_000),
        1 | 4 => (0x41, 0b1001_1000, 3_000),
        _ => (0x01, 0b1001_1100, 1_500),
    };
    let mut bytes = vec![0, 0, 0, 1, head, first];
    bytes.extend(format!("{number:06}").bytes());
    bytes.resize(length, 0x55);
    bytes
}

/// Writes pictures to standard output one by one.
fn pictures(count: u32) {
    for number in 0..count {
        std::io::stdout().write_all(&picture(number)).expect("somebody reads");
        std::thread::sleep(FRAME);
    }
}

/// A transport stream packet with its number inside.
pub fn packet(number: u32) -> Vec<u8> {
    let mut bytes = vec![0x47, 0x01, 0x00, 0x10 | (number & 0x0f) as u8];
    bytes.extend(number.to_be_bytes());
    bytes.resize(188, 0x55);
    bytes
}

/// Writes transport stream packets to standard output, several at a time.
fn packets(count: u32) {
    const TOGETHER: u32 = 14;
    for first in (0..count).step_by(TOGETHER as usize) {
        let packets: Vec<u8> = (first..(first + TOGETHER).min(count)).flat_map(packet).collect();
        std::io::stdout().write_all(&packets).expect("somebody reads");
        std::thread::sleep(FRAME);
    }
}
