//! What strangers can do with a raw socket: floods of SYNs, and mutations of what they overheard. Nothing of it may do more
//! than move counters.

use crate::kernel::connect;
use crate::pair::{attach, config, ours, with_stack_for};
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::combination::Combination;
use anabranch_policy::time::Duration as Span;
use anabranch_sim::random::RandomStream;
use anabranch_stack::{Stack, Stream};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys};
use anabranch_wire::{Checksum, Ecn, Flags, IpHeader, MptcpOption, Packet, Segment, SeqNumber};
use libtest_mimic::Trial;
use socket2::{Domain, Protocol, Socket, Type};
use std::future::Future;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PORT: u16 = 7;
/// How long the mutating replay goes on; `ANABRANCH_HOSTILE_SECONDS` makes it longer.
const SECONDS: u64 = 4;

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn()| {
        Trial::test(format!("hostile::{name}"), move || {
            test();
            Ok(())
        })
    };
    vec![
        trial("ten_thousand_syns_that_nobody_completes_keep_nobody_out", ten_thousand_syns),
        trial("a_mutating_replay_moves_counters_and_nothing_else", mutating_replay),
    ]
}

/// As `pair::with_paths` does, with time for the replay and for what it leaves behind.
fn with_two_paths<F: Future<Output = ()>>(seconds: u64, test: impl FnOnce(Stack) -> F + Send) {
    let path_manager = Combination::default().build_path_manager().expect("the default exists");
    with_stack_for(Duration::from_secs(seconds + 180), path_manager, |stack| async move {
        for path in [0, 1] {
            attach(&stack, path, false);
        }
        test(stack).await;
    });
}

fn settings() -> ConnectionConfig {
    let mut config = config(&Combination::default());
    config.tcp.time_wait = Span::from_millis(50);
    config.tcp.fin_wait_2 = Span::from_millis(500);
    config.survive_without_subflows = Span::from_secs(2);
    config.tcp.syn_attempts = 2;
    // A victim whose kernel was told that it is over says nothing any more, and who has nothing to send would wait for it without
    // limit (RFC 9293, section 3.8.4).
    config.tcp.keepalive = Some(Span::from_secs(10));
    config.tcp.keepalive_interval = Span::from_secs(1);
    config.tcp.keepalive_probes = 5;
    config
}

/// Sends IP packets as they are, from whatever address they say.
struct Raw(Socket);

impl Raw {
    fn new() -> Self {
        // IPPROTO_RAW: the header is in the packet; its checksum is filled in.
        Self(Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).expect("we are root"))
    }

    /// What the kernel itself does not want to send is no test of ours.
    fn send(&self, packet: &[u8]) -> bool {
        self.0.send_to(packet, &SocketAddr::new(ours(0, false), 0).into()).is_ok()
    }
}

/// A SYN from a host that will not hear the answer: plain, with MP_CAPABLE, or with an MP_JOIN for a token that nobody has.
fn syn(luck: &mut RandomStream) -> Vec<u8> {
    let bits = luck.bits32();
    let mut segment = Segment {
        source_port: 1_024 + (bits >> 17) as u16,
        destination_port: PORT,
        seq: SeqNumber(luck.bits32()),
        flags: Flags::SYN,
        window: 65_535,
        ..Segment::default()
    };
    match bits % 3 {
        0 => {}
        1 => {
            let flags = CapableFlags { hmac_sha256: true, ..CapableFlags::default() };
            let capable = MptcpOption::Capable { version: 1, flags, keys: CapableKeys::None };
            segment.options.mptcp.extend(Some(capable));
        }
        _ => segment.options.mptcp.extend(Some(MptcpOption::JoinSyn {
            backup: false,
            address_id: 1,
            token: luck.bits32(),
            nonce: luck.bits32(),
        })),
    }
    let source = Ipv4Addr::new(10, 0, 0, 3 + (bits >> 8) as u8 % 250).into();
    let ip = IpHeader { source, destination: ours(0, false), ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
    let mut bytes = Vec::new();
    Packet { ip, segment }.emit(&mut bytes).expect("it is well-formed");
    bytes
}

fn ten_thousand_syns() {
    with_two_paths(0, |stack| async move {
        serve(&stack, PORT);
        let flood = tokio::task::spawn_blocking(|| {
            let (raw, mut luck) = (Raw::new(), RandomStream::new(1, "flood"));
            let send = |at: u32| {
                // No faster than the device's queue of 500 packets is emptied.
                if at.is_multiple_of(128) {
                    std::thread::sleep(Duration::from_millis(2));
                }
                raw.send(&syn(&mut luck))
            };
            (0..10_000).map(send).filter(|sent| *sent).count()
        });
        let mut served = 0;
        while !flood.is_finished() || served < 10 {
            echoed(SocketAddr::new(ours(0, false), PORT)).await;
            served += 1;
        }
        assert_eq!(flood.await.expect("it does not panic"), 10_000, "SYNs sent");
        let counters = stack.counters().endpoint;
        assert!(counters.evicted_handshakes > 1_000, "two thirds of them want a connection: {counters:?}");
        assert!(counters.refused_joins > 1_000, "a third of them joins: {counters:?}");
        assert!(stack.connection_count() < 4_096 + 100, "{} connections", stack.connection_count());
    });
}

/// Accepts for ever and sends back what is read.
fn serve(stack: &Stack, port: u16) {
    let listener = stack.listen(port, settings()).expect("the port is free");
    tokio::spawn(async move {
        while let Some(stream) = listener.accept().await {
            tokio::spawn(echo(stream));
        }
    });
}

async fn echo(stream: Stream) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    // The connection under attack may end.
    let _ = tokio::io::copy(&mut reader, &mut writer).await;
    let _ = writer.shutdown().await;
}

/// A connection of the kernel's that must work.
async fn echoed(address: SocketAddr) {
    let text = connect(address, |mut socket| {
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("it can wait");
        socket.write_all(b"over the river").expect("it is read");
        socket.shutdown(std::net::Shutdown::Write).expect("it is open");
        let mut text = Vec::new();
        socket.read_to_end(&mut text).expect("it is sent back");
        text
    });
    assert_eq!(text.done().await, b"over the river");
}

fn mutating_replay() {
    let seconds = std::env::var("ANABRANCH_HOSTILE_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().expect("ANABRANCH_HOSTILE_SECONDS is a number"));
    let end = Instant::now() + Duration::from_secs(seconds);
    with_two_paths(seconds, |stack| async move {
        serve(&stack, PORT);
        let over = Arc::new(AtomicBool::new(false));
        let attack = tokio::task::spawn_blocking({
            let over = Arc::clone(&over);
            move || replay(&over)
        });
        // One connection after the other is overheard and attacked, and may well die of it.
        let victims = tokio::task::spawn_blocking({
            let over = Arc::clone(&over);
            move || be_attacked(&over)
        });
        let witness = witness(&stack, end).await;
        over.store(true, Ordering::Relaxed);
        let (sent, (victims, unharmed)) = (attack.await.expect("no panic"), victims.await.expect("no panic"));
        let counters = stack.counters();
        eprintln!("{sent} packets, {victims} victims, {unharmed} unharmed, {witness} bytes witnessed, {counters:?}");
        assert!(sent > 1_000 * seconds, "{sent} packets are no attack");
        assert!(counters.endpoint.unknown > 0, "strangers' segments are counted: {counters:?}");
        echoed(SocketAddr::new(ours(0, false), PORT)).await;
        // All that is left of the victims goes.
        while stack.connection_count() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if Instant::now() > end + Duration::from_secs(150) {
                panic!("connections are left: {:#?}", stack.connections(8));
            }
        }
    });
}

/// A transfer on the other path, which nobody overhears, goes on all the time and arrives unchanged.
async fn witness(stack: &Stack, end: Instant) -> u64 {
    let mut config = settings();
    config.max_subflows = 1;
    let listener = stack.listen(PORT + 1, config).expect("the port is free");
    let address = SocketAddr::new(ours(1, false), PORT + 1);
    let client = connect(address, move |mut socket| {
        let (mut sent, mut block) = (0_u64, vec![0; 65_536]);
        while Instant::now() < end {
            for (at, byte) in block.iter_mut().enumerate() {
                *byte = ((sent + at as u64) % 251) as u8;
            }
            socket.write_all(&block).expect("it is read");
            sent += block.len() as u64;
            std::thread::sleep(Duration::from_millis(2));
        }
        sent
    });
    let mut stream = listener.accept().await.expect("the stack is up");
    let (mut received, mut block) = (0_u64, vec![0; 65_536]);
    loop {
        let length = stream.read(&mut block).await.expect("nobody touches it");
        if length == 0 {
            break;
        }
        let right =
            block.iter().take(length).enumerate().all(|(at, byte)| *byte == ((received + at as u64) % 251) as u8);
        assert!(right, "the bytes after {received} are not those that were sent");
        received += length as u64;
    }
    stream.shutdown().await.expect("it is open");
    assert_eq!(received, client.done().await);
    received
}

/// Connections of the kernel's, one after the other. Returns how many, and how many of them succeeded.
fn be_attacked(over: &AtomicBool) -> (u64, u64) {
    let address = SocketAddr::new(ours(0, false), PORT);
    let (mut all, mut unharmed) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        all += 1;
        unharmed += u64::from(one_victim(address).is_ok());
    }
    (all, unharmed)
}

fn one_victim(address: SocketAddr) -> std::io::Result<()> {
    let mut socket = crate::kernel::mptcp_socket(address);
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    socket.set_write_timeout(Some(Duration::from_secs(1)))?;
    socket.connect_timeout(&address.into(), Duration::from_secs(1))?;
    let mut block = [7; 10_000];
    for _ in 0..50 {
        socket.write_all(&block)?;
        socket.read_exact(&mut block)?;
    }
    Ok(())
}

/// Overhears what is sent to our stack on the first path, and sends it again, changed. Returns how many packets.
fn replay(over: &AtomicBool) -> u64 {
    const ALL: u16 = 3; // ETH_P_ALL
    let ears = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(i32::from(ALL.to_be()))));
    let mut ears = ears.expect("we are root");
    ears.set_read_timeout(Some(Duration::from_millis(10))).expect("it can wait");
    let (raw, mut luck) = (Raw::new(), RandomStream::new(7, "mutations"));
    let (mut overheard, mut sent) = (vec![0; 65_536], 0);
    let mut memory: Vec<Vec<u8>> = Vec::new();
    while !over.load(Ordering::Relaxed) {
        if let Ok(length) = ears.read(&mut overheard) {
            let packet = &overheard[..length.min(1_400)];
            if packet.len() >= 40 && packet[16..20] == [10, 0, 0, 2] && packet[12..16] == [10, 0, 0, 1] {
                // A place of its own for the first ones, then a random one.
                if memory.len() < 256 {
                    memory.push(packet.to_vec());
                } else {
                    memory[luck.bits32() as usize % 256] = packet.to_vec();
                }
            }
        }
        // No faster than the device's queue is emptied.
        std::thread::sleep(Duration::from_micros(200));
        for _ in 0..16 {
            if !memory.is_empty() {
                let chosen = &memory[luck.bits32() as usize % memory.len()];
                sent += u64::from(raw.send(&mutation(chosen, &mut luck)));
            }
        }
    }
    sent
}

/// A packet that is nearly the one overheard.
fn mutation(packet: &[u8], luck: &mut RandomStream) -> Vec<u8> {
    let mut packet = packet.to_vec();
    for _ in 0..1 + luck.bits32() % 4 {
        let bits = luck.bits32();
        let last = packet.len() as u32;
        match bits % 8 {
            // A bit, anywhere behind the IP header.
            0 | 1 => packet[(20 + (bits >> 6) % (last - 20)) as usize] ^= 1 << ((bits >> 3) & 7),
            // A byte of the TCP header or its options.
            2 | 3 => packet[(20 + (bits >> 11) % (last - 20).min(60)) as usize] = (bits >> 3) as u8,
            // A sequence number near the right one.
            4 => packet[26..28].copy_from_slice(&((bits >> 8) as u16).to_be_bytes()),
            // Another acknowledgement.
            5 => packet[30..32].copy_from_slice(&((bits >> 8) as u16).to_be_bytes()),
            // An MPTCP option of a random kind where options begin.
            6 if last > 60 => {
                let option = [30, 4 + (bits >> 8) as u8 % 24, (bits >> 16) as u8, (bits >> 24) as u8];
                packet[40..44].copy_from_slice(&option);
            }
            // Cut short.
            _ => packet.truncate((40 + (bits >> 3) % (last - 39)) as usize),
        }
    }
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    if !luck.bits32().is_multiple_of(4) {
        correct(&mut packet);
    }
    packet
}

/// Makes the TCP checksum right, so that the packet is looked at.
fn correct(packet: &mut [u8]) {
    packet[36..38].copy_from_slice(&[0, 0]);
    let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1).into(), ours(0, false));
    let ip = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
    let mut checksum = Checksum::new();
    checksum.add_pseudo_header(&ip, 6, packet.len() as u32 - 20);
    checksum.add_bytes(&packet[20..]);
    let sum = checksum.finish();
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
}
