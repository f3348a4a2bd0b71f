//! A run on two lossy paths, analysed independently: tshark's interpretation of the capture agrees with the run.

mod pair;

use anabranch_mptcp::{CloseCause, Event};
use anabranch_policy::time::Duration;
use anabranch_wire::Packet;
use anabranch_wire::pcapng::{Direction, PacketNote, Writer};
use pair::{Fate, Pair, address, config, pattern};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

const BYTES: usize = 400_000;

/// Packets at the client's interfaces: nanoseconds, direction, packet.
type Seen = Vec<(u64, Direction, Packet)>;

/// A transfer from client to server with announcements, a join, loss on both paths and an orderly end, as the client
/// sees it.
fn run() -> Seen {
    let seen: Rc<RefCell<Seen>> = Rc::default();
    let mut pair = Pair::new(2);
    let (log, mut count) = (Rc::clone(&seen), 0_u32);
    let delay = pair.delay[0];
    pair.judge = Box::new(move |from, now, packet| {
        // Only every 40th data segment is lost, so that the client receives everything from the server.
        count += u32::from(!packet.segment.payload.is_empty());
        let lost = !packet.segment.payload.is_empty() && count.is_multiple_of(40);
        let (at, direction) = match from {
            0 => (now, Direction::Outbound),
            _ => (now + delay, Direction::Inbound),
        };
        log.borrow_mut().push((at.as_nanos(), direction, packet.clone()));
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    let id = pair.connect(config(), config());
    assert_eq!(pair.write_all(0, id, &pattern(BYTES), Duration::from_secs(30)), 0);
    pair.run(Duration::from_secs(10));
    let server = pair.accepted().unwrap();
    for (host, id) in [(0, id), (1, server)] {
        pair.hosts[host].close(pair.now, id).unwrap();
        pair.settle();
        pair.run(Duration::from_secs(1));
    }
    assert_eq!(pair.received[1], pattern(BYTES));
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)));
    drop(pair);
    let mut seen = Rc::into_inner(seen).expect("the pair is gone").into_inner();
    seen.sort_by_key(|(at, ..)| *at);
    seen
}

fn capture(name: &str, seen: &Seen) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), "anabranch tests").unwrap();
    let interfaces = [0, 1].map(|path| writer.add_interface(&format!("path{path}"), "of the client").unwrap());
    for (at, direction, packet) in seen {
        let local = if *direction == Direction::Outbound { packet.ip.source } else { packet.ip.destination };
        let interface = interfaces[usize::from(local == address(0, 1))];
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).unwrap();
        writer.write_packet(interface, *at, &bytes, PacketNote { direction: Some(*direction), comment: None }).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// Runs tshark's full analysis on a capture; returns a row of columns per packet, or `None` without tshark.
fn dissect(capture: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    for preference in [
        "ip.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
        "mptcp.analyze_mptcp:TRUE",
        "tcp.analyze_sequence_numbers:TRUE",
        "mptcp.relative_sequence_numbers:TRUE",
        "mptcp.analyze_mappings:TRUE",
        "mptcp.intersubflows_retransmission:TRUE",
    ] {
        command.args(["-o", preference]);
    }
    // Two passes: later findings apply to earlier packets.
    command.args(["-2", "-n", "-r"]).arg(capture).args(["-T", "fields", "-E", "separator=;", "-E", "occurrence=a"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().ok()?;
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("tshark writes UTF-8");
    Some(text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect())
}

/// Wireshark counts comment, chat, note, warning and error in steps of 0x200000.
const ERROR: u32 = 0x80_0000;

#[test]
fn tshark_finds_one_connection_of_two_subflows_without_error() {
    let seen = run();
    let path = capture("two_paths.pcapng", &seen);
    let Some(rows) = dissect(&path, &["_ws.malformed", "_ws.expert.severity", "_ws.expert.message", "mptcp.stream"])
    else {
        eprintln!("skipped: tshark is not installed");
        return;
    };
    assert_eq!(rows.len(), seen.len());
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row[0], "", "packet {i} is malformed");
        let errors = row[1].split(',').filter(|severity| severity.parse::<u32>().is_ok_and(|s| s >= ERROR)).count();
        assert_eq!(errors, 0, "packet {i}: {}", row[2]);
        assert_eq!(row[3], "0", "packet {i} belongs to another MPTCP connection");
    }
    let fields = ["tcp.stream", "tcp.checksum.status", "ip.checksum.status", "tcp.options.mptcp.subtype"];
    let rows = dissect(&path, &fields).expect("tshark was there a moment ago");
    let streams: BTreeSet<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert!(streams.len() >= 2, "{streams:?}");
    assert!(rows.iter().all(|row| row[1] == "1" && row[2] == "1"), "checksums are good");
    let subtypes: BTreeSet<&str> = rows.iter().flat_map(|row| row[3].split(',')).filter(|s| !s.is_empty()).collect();
    // MP_CAPABLE, MP_JOIN, DSS, ADD_ADDR: no others are needed.
    assert_eq!(subtypes, BTreeSet::from(["0", "1", "2", "3"]));
}

#[test]
fn tsharks_sequence_analysis_agrees_with_what_happened() {
    let seen = run();
    let path = capture("two_paths_again.pcapng", &seen);
    let analysis = [
        "mptcp.connection.echoed_key_mismatch",
        "mptcp.connection.missing_algorithm",
        "mptcp.connection.unsupported_algorithm",
        "mptcp.dss.infinite_mapping",
        "tcp.analysis.lost_segment",
        "tcp.analysis.ack_lost_segment",
        "tcp.analysis.zero_window",
        "tcp.analysis.reused_ports",
    ];
    let Some(rows) = dissect(&path, &analysis) else {
        eprintln!("skipped: tshark is not installed");
        return;
    };
    for (column, name) in analysis.iter().enumerate() {
        let found = rows.iter().filter(|row| !row[column].is_empty()).count();
        assert_eq!(found, 0, "{name}");
    }
    let fields = [
        "tcp.srcport",
        "tcp.stream",
        "tcp.len",
        "tcp.analysis.retransmission",
        "mptcp.dss.missing_mapping",
        "mptcp.expected_idsn",
        "tcp.options.mptcp.rawdataseqno",
        "tcp.options.mptcp.rawdataack",
        "mptcp.dsn",
    ];
    let rows = dissect(&path, &fields).expect("tshark was there a moment ago");
    let from_client = |row: &&Vec<String>| row[0] != pair::PORT.to_string();
    // The client's initial number, as tshark derives it from the key. Absolute numbers are used: on joined subflows
    // Wireshark 4.0 shows numbers relative to the wrong side's.
    let initial = rows.iter().filter(from_client).find_map(|row| row[5].parse::<u64>().ok()).expect("from the key");
    let relative = |text: &str| text.parse::<u64>().ok().filter(|number| *number > u64::from(u32::MAX));
    let relative = |text: &str| relative(text).map(|number| number.wrapping_sub(initial));
    // 0 is the SYN, data starts at 1, DATA_FIN follows the data, and its acknowledgement is one more.
    let acks: Vec<u64> = rows.iter().filter(|row| !from_client(row)).filter_map(|row| relative(&row[7])).collect();
    assert_eq!(acks.iter().max(), Some(&(BYTES as u64 + 2)));
    let numbers: Vec<u64> = rows.iter().filter(from_client).filter_map(|row| relative(&row[6])).collect();
    assert_eq!(numbers.iter().max(), Some(&(BYTES as u64 + 1)));
    let on_initial = |row: &&Vec<String>| row[1] == "0" && row[2] != "0";
    let first = rows.iter().filter(from_client).filter(on_initial).find_map(|row| row[8].parse::<u64>().ok());
    assert_eq!(first, Some(1), "MP_CAPABLE with data maps it to the beginning");
    // It also reports missing mappings on bare acknowledgements and FINs after the last data, where there is nothing to
    // map.
    let unmapped = rows.iter().filter(|row| !row[4].is_empty() && row[2] != "0").count();
    assert_eq!(unmapped, 0, "payload without a mapping");
    // As many retransmissions as losses at least, and not many more.
    let data = |row: &&Vec<String>| row[2] != "0";
    let lost = rows.iter().filter(data).count() / 40;
    let again = rows.iter().filter(from_client).filter(|row| !row[3].is_empty()).count();
    assert!(lost >= 5 && again >= lost && again <= 3 * lost, "{again} retransmissions for {lost} losses");
    let streams: BTreeSet<&str> = rows.iter().filter(from_client).filter(data).map(|row| row[1].as_str()).collect();
    assert!(streams.len() >= 2, "data on both subflows: {streams:?}");
}
