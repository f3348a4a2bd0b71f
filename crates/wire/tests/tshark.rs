//! Packets that we emit, dissected by tshark: a capture of every option has no warnings and the expected values.

use anabranch_wire::mptcp::{
    CapableFlags, CapableKeys, DataAck, DataSequence, Dss, Mapping, MptcpOption, dss_checksum,
};
use anabranch_wire::pcapng::{Direction, PacketNote, Writer};
use anabranch_wire::tcp::{Flags, SackBlock, SackBlocks, Segment, TcpOptions, Timestamps};
use anabranch_wire::{Ecn, IpHeader, Packet, SeqNumber, UdpPacket, udp};
use bytes::Bytes;
use core::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);
const PAYLOAD: &[u8] = b"an odd number of bytes.";
const A: u64 = 0x0102_0304_0506_0708;
const B: u64 = 0x1112_1314_1516_1718;

/// A packet and the fields that tshark must print with their values.
struct Case {
    packet: Packet,
    expected: Vec<(&'static str, String)>,
}

fn case(flags: Flags, options: TcpOptions, expected: &[(&'static str, &str)]) -> Case {
    let payload = if flags.contains(Flags::PSH) { PAYLOAD } else { b"" };
    let segment = Segment {
        source_port: 40_000,
        destination_port: 80,
        seq: SeqNumber(1_000),
        ack: SeqNumber(if flags.contains(Flags::ACK) { 2_000 } else { 0 }),
        flags,
        window: 65_535,
        urgent: 0,
        options,
        payload: Bytes::from_static(payload),
    };
    let ip = IpHeader {
        source: [192, 0, 2, 1].into(),
        destination: [198, 51, 100, 2].into(),
        ecn: Ecn::Capable0,
        dscp: 46,
        hop_limit: 64,
    };
    let expected = expected.iter().map(|(field, value)| (*field, value.to_string())).collect();
    Case { packet: Packet { ip, segment }, expected }
}

fn with_times(mptcp: Vec<MptcpOption>) -> TcpOptions {
    let timestamps = Some(Timestamps { value: 1_111, echo: 2_222 });
    TcpOptions { timestamps, mptcp, ..TcpOptions::default() }
}

fn with_dss(dss: Dss) -> TcpOptions {
    TcpOptions { dss: Some(dss), ..with_times(vec![]) }
}

fn capable(keys: CapableKeys) -> MptcpOption {
    let flags = CapableFlags { checksum_required: true, hmac_sha256: true, ..CapableFlags::default() };
    MptcpOption::Capable { version: 1, flags, keys }
}

fn handshake() -> Vec<Case> {
    let syn = |option| TcpOptions {
        maximum_segment_size: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        ..with_times(vec![option])
    };
    let first_data = CapableKeys::BothWithData { sender: A, receiver: B, length: 23, checksum: Some(0xbeef) };
    let (token, nonce) = (0xa1a2_a3a4, 0xb1b2_b3b4);
    let mut sack = SackBlocks::new();
    sack.push(SackBlock { start: SeqNumber(3_000), end: SeqNumber(4_000) });
    sack.push(SackBlock { start: SeqNumber(5_000), end: SeqNumber(6_000) });
    vec![
        case(
            Flags::SYN,
            syn(capable(CapableKeys::None)),
            &[
                ("tcp.options.mss_val", "1460"),
                ("tcp.options.wscale.shift", "7"),
                ("tcp.options.timestamp.tsval", "1111"),
                ("tcp.options.timestamp.tsecr", "2222"),
                ("tcp.options.mptcp.version", "1"),
                ("tcp.options.mptcp.checksumreq.flags", "1"),
                ("tcp.options.mptcp.sha256.flag", "1"),
                ("tcp.options.mptcp.nomoresubflows.flag", "0"),
            ],
        ),
        case(SYN_ACK, syn(capable(CapableKeys::Receiver(B))), &[("tcp.options.mptcp.sendkey", &B.to_string())]),
        case(
            Flags::ACK,
            with_times(vec![capable(CapableKeys::Both { sender: A, receiver: B })]),
            &[("tcp.options.mptcp.sendkey", &A.to_string()), ("tcp.options.mptcp.recvkey", &B.to_string())],
        ),
        case(
            Flags::ACK | Flags::PSH,
            with_times(vec![capable(first_data)]),
            &[("tcp.options.mptcp.datalvllen", "23"), ("tcp.options.mptcp.checksum", "0xbeef")],
        ),
        case(
            Flags::SYN,
            syn(MptcpOption::JoinSyn { backup: true, address_id: 5, token, nonce }),
            &[
                ("tcp.options.mptcp.backup.flag", "1"),
                ("tcp.options.mptcp.addrid", "5"),
                ("tcp.options.mptcp.recvtok", &token.to_string()),
                ("tcp.options.mptcp.sendrand", &nonce.to_string()),
            ],
        ),
        case(
            SYN_ACK,
            syn(MptcpOption::JoinSynAck { backup: false, address_id: 6, truncated_hmac: A, nonce }),
            &[("tcp.options.mptcp.addrid", "6"), ("tcp.options.mptcp.sendtrunchmac", &A.to_string())],
        ),
        case(
            Flags::ACK,
            with_times(vec![MptcpOption::JoinAck { hmac: [0x5a; 20] }]),
            &[("tcp.options.mptcp.sendhmac", &"5a".repeat(20))],
        ),
        case(
            Flags::ACK,
            TcpOptions { sack, ..with_times(vec![]) },
            &[("tcp.options.sack_le", "3000,5000"), ("tcp.options.sack_re", "4000,6000")],
        ),
    ]
}

fn data() -> Vec<Case> {
    let short = Mapping { data_seq: DataSequence::Short(77), subflow_seq: 24, length: 23, checksum: None };
    let checksum = dss_checksum(B, 24, 23, [PAYLOAD]);
    let long = Mapping { data_seq: DataSequence::Long(B), checksum: Some(checksum), ..short };
    vec![
        case(
            Flags::ACK,
            with_dss(Dss { data_ack: Some(DataAck::Short(99)), ..Dss::default() }),
            &[("tcp.options.mptcp.rawdataack", "99")],
        ),
        case(
            Flags::ACK | Flags::PSH,
            with_dss(Dss { data_ack: Some(DataAck::Long(A)), mapping: Some(short), data_fin: true }),
            &[
                ("tcp.options.mptcp.rawdataack", &A.to_string()),
                ("tcp.options.mptcp.rawdataseqno", "77"),
                ("tcp.options.mptcp.subflowseqno", "24"),
                ("tcp.options.mptcp.datalvllen", "23"),
                ("tcp.options.mptcp.datafin.flag", "1"),
                ("tcp.options.mptcp.checksum", ""),
            ],
        ),
        case(
            Flags::ACK | Flags::PSH,
            with_dss(Dss { data_ack: Some(DataAck::Short(99)), mapping: Some(long), data_fin: false }),
            &[
                ("tcp.options.mptcp.rawdataseqno", &B.to_string()),
                ("tcp.options.mptcp.datafin.flag", "0"),
                // Wireshark 4.0 does not show the checksum of a DSS, so only its position is checked here: the payload
                // follows it.
                ("tcp.payload", &hex(PAYLOAD)),
            ],
        ),
    ]
}

fn signal(flags: Flags, option: MptcpOption, expected: &[(&'static str, &str)]) -> Case {
    case(flags, with_times(vec![option]), expected)
}

fn signals() -> Vec<Case> {
    let (v4, v6): (IpAddr, IpAddr) = ([203, 0, 113, 9].into(), "2001:db8::9".parse().unwrap());
    let mut cases = vec![
        signal(
            Flags::ACK,
            MptcpOption::RemoveAddress { address_ids: vec![4, 7, 8] },
            &[("tcp.options.mptcp.addrid", "4,7,8")],
        ),
        signal(Flags::ACK, MptcpOption::Priority { backup: true }, &[("tcp.options.mptcp.backup.flag", "1")]),
        signal(Flags::ACK, MptcpOption::Fail { data_seq: A }, &[("tcp.options.mptcp.rawdataseqno", &A.to_string())]),
        signal(Flags::ACK, MptcpOption::FastClose { key: B }, &[("tcp.options.mptcp.recvkey", &B.to_string())]),
        signal(
            Flags::RST | Flags::ACK,
            MptcpOption::TcpReset { transient: true, flags: 0, reason: 2 },
            &[("tcp.options.mptcp.flag_T.flag", "1"), ("tcp.options.mptcp.rst_reason", "0x02")],
        ),
        signal(
            Flags::ACK,
            MptcpOption::Experimental { flags: 8, experiment: 0x1234, data: vec![1, 2] },
            &[("tcp.options.mptcp.subtype", "15")],
        ),
    ];
    for (address, port, truncated_hmac) in [v4, v6]
        .into_iter()
        .flat_map(|a| [None, Some(443)].into_iter().flat_map(move |p| [None, Some(A)].map(|h| (a, p, h))))
    {
        let option = MptcpOption::AddAddress { address_id: 3, address, port, truncated_hmac };
        let (field, other) = match address {
            IpAddr::V4(_) => ("tcp.options.mptcp.ipv4", "tcp.options.mptcp.ipv6"),
            IpAddr::V6(_) => ("tcp.options.mptcp.ipv6", "tcp.options.mptcp.ipv4"),
        };
        let port = port.map_or(String::new(), |port| port.to_string());
        let hmac = truncated_hmac.map_or(String::new(), |hmac| hmac.to_string());
        let echo = if truncated_hmac.is_none() { "1" } else { "0" };
        cases.push(signal(
            Flags::ACK,
            option,
            &[
                ("tcp.options.mptcp.addrid", "3"),
                (field, &address.to_string()),
                (other, ""),
                ("tcp.options.mptcp.port", &port),
                ("tcp.options.mptcp.addaddrtrunchmac", &hmac),
                ("tcp.options.mptcp.echo", echo),
            ],
        ));
    }
    cases
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every case over IPv4 and over IPv6.
fn cases() -> Vec<Case> {
    let all = || [handshake(), data(), signals()].into_iter().flatten();
    let over_v6 = all().map(|mut case| {
        case.packet.ip.source = "2001:db8::1".parse().unwrap();
        case.packet.ip.destination = "2001:db8::2".parse().unwrap();
        case
    });
    all().chain(over_v6).collect()
}

/// Runs tshark over a capture, with checksums verified; returns a line for each packet, fields separated by `;`. `None`
/// without tshark.
fn dissect(capture: &Path, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    for preference in [
        "ip.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "tcp.analyze_sequence_numbers:FALSE",
    ] {
        command.args(["-o", preference]);
    }
    command.args(["-n", "-r"]).arg(capture).args(["-T", "fields", "-E", "separator=;", "-E", "occurrence=a"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().ok()?;
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("tshark writes UTF-8").lines().map(str::to_owned).collect())
}

fn capture(name: &str, packets: &[Vec<u8>]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), "anabranch tests").unwrap();
    let interfaces = ["wifi", "cellular"].map(|name| writer.add_interface(name, "of the test").unwrap());
    for (i, bytes) in packets.iter().enumerate() {
        let comment = format!("packet {i}");
        let note = PacketNote { direction: Some(Direction::Outbound), comment: Some(&comment) };
        writer.write_packet(interfaces[i % 2], 1_500_000_001 * i as u64, bytes, note).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn emitted(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).unwrap();
    bytes
}

/// Wireshark counts comment, chat, note, warning and error in steps of 0x200000.
const WARNING: u32 = 0x60_0000;

/// Every reset has the first. The second comes from Wireshark 4.0, which counts NOPs over the whole header, consecutive
/// or not: two before the timestamps and two after a DSS, as in Linux's layout, are four.
const EXPECTED_WARNINGS: [&str; 2] =
    ["Connection reset (RST)", "4 NOP in a row - a router may have removed some options"];

/// Asserts that tshark finds the packets well-formed, with good checksums, no errors and no other warnings.
fn assert_no_complaint(path: &Path, count: usize) -> Option<()> {
    let fields = ["_ws.malformed", "ip.checksum.status", "tcp.checksum.status", "udp.checksum.status"];
    let lines = dissect(path, &[&fields[..], &["_ws.expert.severity", "_ws.expert.message"]].concat())?;
    assert_eq!(lines.len(), count);
    for (i, line) in lines.iter().enumerate() {
        let columns: Vec<&str> = line.split(';').collect();
        assert_eq!(columns[0], "", "packet {i} is malformed");
        // 1 is "good"; IPv6 headers have no checksum.
        assert!(columns[1] == "1" || columns[1].is_empty(), "packet {i}: IP checksum");
        assert_eq!([columns[2], columns[3]].concat(), "1", "packet {i}: TCP or UDP checksum");
        let (severities, messages) = (columns[4].split(','), columns[5].split(','));
        assert_eq!(severities.clone().count(), messages.clone().count(), "packet {i}: {line}");
        for (severity, message) in severities.zip(messages).filter(|(severity, _)| !severity.is_empty()) {
            let bad = severity.parse::<u32>().unwrap() >= WARNING;
            assert!(!bad || EXPECTED_WARNINGS.contains(&message), "packet {i}: {message}");
        }
    }
    Some(())
}

#[test]
fn tshark_reads_every_option_as_we_wrote_it() {
    let cases = cases();
    let packets: Vec<Vec<u8>> = cases.iter().map(|case| emitted(&case.packet)).collect();
    let path = capture("options.pcapng", &packets);
    let mut fields: Vec<&str> = cases.iter().flat_map(|case| case.expected.iter().map(|(field, _)| *field)).collect();
    fields.sort_unstable();
    fields.dedup();
    let Some(lines) = dissect(&path, &fields) else {
        eprintln!("skipped: tshark is not installed");
        return;
    };
    for (i, (case, line)) in cases.iter().zip(&lines).enumerate() {
        let columns: Vec<&str> = line.split(';').collect();
        for (field, value) in &case.expected {
            let column = fields.binary_search(field).unwrap();
            assert_eq!(columns[column], value, "{field} of packet {i}: {:?}", case.packet.segment.options);
        }
    }
    assert_no_complaint(&path, cases.len()).expect("tshark was there a moment ago");
}

#[test]
fn tshark_reads_the_capture_file_as_we_wrote_it() {
    let cases = cases();
    let mut bytes = Vec::new();
    let ip = cases[0].packet.ip;
    let datagram = UdpPacket { ip, source_port: 9_000, destination_port: 9_001, payload: udp::zeros(333) };
    datagram.emit(&mut bytes).unwrap();
    let path = capture("file.pcapng", &[bytes, emitted(&cases[0].packet)]);
    let fields =
        ["frame.time_epoch", "frame.interface_name", "frame.comment", "frame.packet_flags_direction", "udp.length"];
    let more = ["ip.dsfield.dscp", "ip.dsfield.ecn", "ip.flags.df", "ip.ttl"];
    let Some(lines) = dissect(&path, &[&fields[..], &more].concat()) else {
        eprintln!("skipped: tshark is not installed");
        return;
    };
    assert_eq!(
        lines,
        ["0.000000000;wifi;packet 0;0x00000002;341;46;2;1;64", "1.500000001;cellular;packet 1;0x00000002;;46;2;1;64",]
    );
    assert_no_complaint(&path, 2).expect("tshark was there a moment ago");
}
