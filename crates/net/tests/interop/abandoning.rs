//! Our receiver gives up what an unmodified kernel sends too late: at data level, and on the subflow as well. The kernel
//! sees the loss, and its connection goes on.

use crate::field::in_both_families;
use crate::middlebox::{Middlebox, Way};
use crate::scene::{Hosts, Scene, blocking, pattern};
use anabranch_mptcp::Record;
use anabranch_mptcp::stats::ConnectionStats;
use anabranch_net::Stream;
use anabranch_policy::reliability::Reason;
use anabranch_wire::{Packet, SeqNumber};
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
    assert_eq!(length, u64::from(end - start), "only what was lost is given up");
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
    assert!(!outcome.stats.skips_no_more);
    // What was under way when the acknowledgement went over it.
    let after = outcome.gaps[0].3 + Duration::from_millis(300);
    assert!(outcome.loss.copies.iter().all(|copy| *copy < after), "the kernel goes on repeating it");
}
