//! Our receiver abandons what an unmodified kernel sends too late: at data level, and on the subflow as well. The kernel
//! sees the loss, and its connection goes on.

use crate::field::in_both_families;
use crate::middlebox::{Middlebox, Way};
use crate::pair::ours;
use crate::scene::{Hosts, Scene, blocking, pattern};
use anabranch_mptcp::stats::ConnectionStats;
use anabranch_mptcp::{BufferSize, ConnectionConfig, Record};
use anabranch_policy::rate::Rate;
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::Duration as Span;
use anabranch_sim::LinkConfig;
use anabranch_sim::link::LossModel;
use anabranch_stack::Stream;
use anabranch_wire::{Flags, Packet, SeqNumber};
use libtest_mimic::Trial;
use socket2::Socket;
use std::io::Write;
use std::net::Shutdown;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    in_both_families(
        "abandoning",
        &[
            ("at_data_level_the_kernel_repeats_the_segment_until_it_comes_and_goes_on", at_data_level),
            ("on_the_subflow_the_kernel_has_seen_the_loss_and_repeats_nothing_more", on_the_subflow),
            ("over_three_lossy_paths_at_data_level_no_subflow_stays_behind", three_paths_at_data_level),
            ("over_three_lossy_paths_on_the_subflow_too_no_subflow_stays_behind", three_paths_on_the_subflow),
        ],
    )
}

/// What the kernel writes: so much each 5 ms.
const CHUNK: usize = 4_000;
const CHUNKS: usize = 700;
/// The segment after so many with data on the first path is lost, with all its copies there.
const LOST: usize = 150;

/// The segment that is lost.
#[derive(Debug, Default)]
struct Loss {
    count: usize,
    range: Option<(SeqNumber, SeqNumber)>,
    /// When it and its copies came by.
    copies: Vec<Instant>,
    /// They pass.
    over: bool,
}

fn lose_one(middlebox: &Middlebox) -> Arc<Mutex<Loss>> {
    let loss = Arc::new(Mutex::new(Loss::default()));
    let state = Arc::clone(&loss);
    middlebox.obey(move |way, packet: Packet| {
        if way != Way::ToUs || packet.segment.payload.is_empty() {
            return vec![packet];
        }
        let mut loss = state.lock().expect("nobody panicked with it");
        loss.count += 1;
        let range = (packet.segment.seq, packet.segment.seq + packet.segment.payload.len() as u32);
        if loss.count == LOST {
            loss.range = Some(range);
        }
        let is_it = loss.range.is_some_and(|lost| range.0.before(lost.1) && range.1.after(lost.0));
        if is_it {
            loss.copies.push(Instant::now());
        }
        if is_it && !loss.over { Vec::new() } else { vec![packet] }
    });
    loss
}

/// The slow start threshold that the kernel reports of its subflow on the first path, if it has one by now.
fn ssthresh(peer: String) -> Option<u64> {
    let output = Command::new("ss").args(["-Htin", "dst", &peer]).output().expect("ss is there where ip is");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace().find_map(|word| word.strip_prefix("ssthresh:").map(str::to_owned));
    words.map(|number| number.parse().expect("a number"))
}

struct Outcome {
    loss: Loss,
    stats: ConnectionStats,
    /// The gaps, and when each was read.
    gaps: Vec<(u64, u64, Reason, Instant)>,
    ssthresh: [Option<u64>; 2],
    /// When the last byte was written, and read.
    written: Instant,
    read: Instant,
}

/// Our address as `ss` wants it.
fn peer_of(hosts: &Hosts) -> String {
    let address = hosts.our_address().ip();
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// Reads to the end; what comes must be what was written at its place.
async fn read_all(stream: &Stream) -> (Vec<(u64, u64, Reason, Instant)>, Instant) {
    let sent = pattern(CHUNK * CHUNKS);
    let (mut gaps, mut offset) = (Vec::new(), 0);
    while let Some(record) = stream.read_record().await.expect("the connection does not break") {
        assert_eq!(record.offset(), offset);
        match &record {
            Record::Bytes { bytes, .. } => {
                let place = offset as usize;
                assert!(sent.get(place..place + bytes.len()) == Some(&bytes[..]), "other bytes at {place}");
            }
            Record::Gap { length, reason, .. } => gaps.push((offset, *length, *reason, Instant::now())),
            Record::Message { .. } => panic!("there are no messages"),
        }
        offset = record.end();
    }
    assert_eq!(offset, sent.len() as u64);
    (gaps, Instant::now())
}

fn write_all(mut socket: Socket) -> (Socket, Instant) {
    for chunk in pattern(CHUNK * CHUNKS).chunks(CHUNK) {
        socket.write_all(chunk).expect("the kernel can write");
        std::thread::sleep(Duration::from_millis(5));
    }
    (socket, Instant::now())
}

fn run(v6: bool, words: &str, ends_after: Option<Duration>) -> Outcome {
    let mut scene = Scene::new(1, v6).links(10, 0.0);
    scene.combination.apply(words).expect("policies of ours");
    scene.run(|hosts| async move {
        let (stream, socket) = hosts.the_kernel_opens(hosts.config()).await;
        let loss = lose_one(&hosts.middleboxes[0]);
        let peer = peer_of(&hosts);
        let work = async {
            let (socket, written) = blocking(move || write_all(socket)).await;
            let after = ssthresh(peer.clone());
            blocking(move || socket.shutdown(Shutdown::Write).map(|()| socket)).await.expect("it can close");
            (after, written)
        };
        let watch = async {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let mut loss = loss.lock().expect("nobody panicked with it");
                let begun = loss.copies.first().copied();
                if let (Some(begun), Some(span)) = (begun, ends_after)
                    && begun.elapsed() > span
                {
                    loss.over = true;
                }
            }
        };
        let before = ssthresh(peer_of(&hosts));
        let both = async { tokio::join!(work, read_all(&stream)) };
        let ((after, written), (gaps, read)) = tokio::select! {
            outcome = both => outcome,
            () = watch => unreachable!("it watches for ever"),
        };
        let stats = stream.stats().expect("it is there until it is dropped");
        stream.close();
        let loss = std::mem::take(&mut *loss.lock().expect("nobody panicked with it"));
        Outcome { loss, stats, gaps, ssthresh: [before, after], written, read }
    })
}

/// What holds at both levels.
fn check(outcome: &Outcome) {
    let Outcome { loss, stats, gaps, ssthresh, written, read } = outcome;
    let (start, end) = loss.range.expect("a segment was lost");
    let [(_, length, Reason::Expired, at)] = gaps[..] else { panic!("{gaps:?}") };
    assert_eq!(length, u64::from(end - start), "only what was lost is abandoned");
    assert_eq!((stats.abandoned.expired.gaps, stats.abandoned.expired.bytes), (1, length));
    assert_eq!(stats.bytes_delivered, (CHUNK * CHUNKS) as u64 - length);
    // 150 ms after what came behind it, with time for a busy machine.
    let waited = at - loss.copies[0];
    assert!((Duration::from_millis(140)..Duration::from_millis(700)).contains(&waited), "{waited:?}");
    assert_eq!(ssthresh[0], None, "nothing was lost yet");
    assert!(ssthresh[1].is_some_and(|segments| segments < 1_000), "the kernel saw no loss: {ssthresh:?}");
    // The stream goes on at the rate at which it is written.
    assert!(*read - *written < Duration::from_secs(2), "{:?}", *read - *written);
}

fn at_data_level(v6: bool) {
    let outcome = run(v6, "reliability=spe,reliability.latency=150", Some(Duration::from_millis(400)));
    check(&outcome);
    eprintln!("{} copies, ssthresh {:?}", outcome.loss.copies.len() - 1, outcome.ssthresh[1]);
    assert!(outcome.loss.copies.len() > 1, "the kernel repeats it");
    let length = outcome.gaps[0].1;
    assert_eq!((outcome.stats.late_bytes_received, outcome.stats.skipped_bytes), (length, 0));
}

fn on_the_subflow(v6: bool) {
    let words = "reliability=spe,reliability.latency=150,reliability.level=subflow";
    let outcome = run(v6, words, None);
    check(&outcome);
    eprintln!("{} copies, ssthresh {:?}", outcome.loss.copies.len() - 1, outcome.ssthresh[1]);
    assert_eq!(outcome.stats.skipped_bytes, outcome.gaps[0].1);
    assert!(!outcome.stats.skipping_is_off);
    // What was under way when the acknowledgement went over it.
    let after = outcome.gaps[0].3 + Duration::from_millis(300);
    assert!(outcome.loss.copies.iter().all(|copy| *copy < after), "the kernel goes on repeating it");
}

/// What the kernel writes over three paths, as fast as it can.
const MUCH: usize = 6_000_000;
/// Our receive buffer there.
const BUFFER: u64 = 1 << 20;

/// What `ss` says of the kernel's subflow on each path: slow start threshold, and segments that are not acknowledged.
fn subflows(hosts: &Hosts) -> Vec<(Option<u64>, Option<u64>)> {
    let of = |path: u8| {
        let peer = ours(path, hosts.v6);
        let peer = if peer.is_ipv6() { format!("[{peer}]") } else { peer.to_string() };
        let output = Command::new("ss").args(["-Htin", "dst", &peer]).output().expect("ss is there where ip is");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = |name: &str| text.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
        (number("ssthresh:"), number("unacked:"))
    };
    (0..3).map(of).collect()
}

/// The windows that we told the kernel on all paths, bytes.
fn windows(hosts: &Hosts) -> Vec<u64> {
    let ours = hosts.middleboxes.iter().flat_map(|middlebox| middlebox.seen(|seen| seen.way == Way::ToKernel));
    let ours: Vec<_> = ours.map(|seen| seen.packet.segment).collect();
    let scale = ours.iter().find_map(|segment| segment.options.window_scale).expect("it is offered with the SYN");
    let told = ours.iter().filter(|segment| !segment.flags.contains(Flags::SYN));
    told.map(|segment| u64::from(segment.window) << scale).collect()
}

/// 8 Mbit/s each, 10 to 40 ms either way, one packet in fifty lost on the way to us.
fn three_paths(v6: bool, level: &str) -> ConnectionStats {
    let mut scene = Scene::new(3, v6);
    for (nth, links) in scene.links.iter_mut().enumerate() {
        let link = LinkConfig::new(Rate::from_bits_per_second(8_000_000), Span::from_millis([10, 20, 40][nth]), 60);
        *links = [LinkConfig { loss: vec![LossModel::Uniform(0.02)], ..link.clone() }, link];
    }
    let words = format!("reliability=spe,reliability.latency=20,reliability.level={level}");
    scene.combination.apply(&words).expect("policies of ours");
    scene.run(|hosts| async move {
        let config = ConnectionConfig { receive_buffer: BufferSize::Fixed(BUFFER), ..hosts.config() };
        let (stream, mut socket) = hosts.the_kernel_opens(config).await;
        let writing = blocking(move || socket.write_all(&pattern(MUCH)).map(|()| socket));
        let reading = read_exactly(&stream);
        let (socket, (gaps, bytes)) = tokio::join!(writing, reading);
        let stats = stream.stats().expect("it is there until it is dropped");
        assert_eq!((stats.abandoned.total().gaps, stats.abandoned.total().bytes), (gaps, bytes));
        assert_eq!(stats.bytes_delivered + bytes, MUCH as u64);
        assert!(gaps > 0, "nothing was abandoned");
        let used = stream.paths().iter().filter(|path| path.subflow.bytes_received > MUCH as u64 / 20).count();
        assert_eq!(used, 3, "each path carries its part");
        // Each subflow has seen losses, and gets rid of all that it has.
        let mut last = subflows(&hosts);
        while last.iter().any(|(_, unacked)| unacked.is_some()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            last = subflows(&hosts);
        }
        assert!(last.iter().all(|(ssthresh, _)| ssthresh.is_some_and(|segments| segments < 1_000)), "{last:?}");
        let largest = windows(&hosts).into_iter().max();
        assert!(largest.is_some_and(|window| window <= BUFFER), "{largest:?}");
        drop(socket.expect("the kernel can write"));
        stream.close();
        eprintln!("{gaps} gaps of {bytes} bytes, {} skipped, {last:?}", stats.skipped_bytes);
        stats
    })
}

/// Reads so many bytes; what comes must be what was written at its place. Returns how many gaps there were, and their bytes.
async fn read_exactly(stream: &Stream) -> (u64, u64) {
    let sent = pattern(MUCH);
    let (mut gaps, mut missing, mut offset) = (0, 0, 0);
    while offset < MUCH as u64 {
        let record = stream.read_record().await.expect("the connection does not break").expect("it is not the end");
        assert_eq!(record.offset(), offset);
        match &record {
            Record::Bytes { bytes, .. } => {
                let place = offset as usize;
                assert!(sent.get(place..place + bytes.len()) == Some(&bytes[..]), "other bytes at {place}");
            }
            Record::Gap { length, .. } => (gaps, missing) = (gaps + 1, missing + length),
            Record::Message { .. } => panic!("there are no messages"),
        }
        offset = record.end();
    }
    (gaps, missing)
}

fn three_paths_at_data_level(v6: bool) {
    assert_eq!(three_paths(v6, "data").skipped_bytes, 0);
}

fn three_paths_on_the_subflow(v6: bool) {
    let stats = three_paths(v6, "subflow");
    assert!(!stats.skipping_is_off && stats.skipped_bytes as f64 <= 0.05 * MUCH as f64, "{stats:?}");
}
