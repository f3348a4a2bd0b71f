//! OSPF packets that we encode, dissected by tshark: every field has the expected value, all checksums are good, and
//! there are no warnings.

#[allow(dead_code)]
mod ospf_strategies;

use anabranch_wire::ip::IpHeader;
use anabranch_wire::ospf::lls::{MdrHello, MdrMetric, MdrMetrics};
use anabranch_wire::ospf::{
    ALL_SPF_ROUTERS, AreaId, Body, Compatibility, DSCP, HOP_LIMIT, Hello, InstanceId, Integrity, InterfaceId, Lls,
    Options, PROTOCOL_OSPF, Packet, RouterId, Tlv,
};
use anabranch_wire::pcapng::{PacketNote, Writer};
use anabranch_wire::{Ecn, ospf::authentication::SecurityAssociation};
use ospf_strategies::packet_in_family;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const SUMMED: Integrity = Integrity::Checksum { source: SOURCE, destination: ALL_SPF_ROUTERS };

/// Wireshark counts comment, chat, note, warning and error in steps of 0x200000.
const WARNING: u32 = 0x60_0000;

fn in_ipv6(payload: &[u8]) -> Vec<u8> {
    let (source, destination) = (SOURCE.into(), ALL_SPF_ROUTERS.into());
    let header = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: DSCP, hop_limit: HOP_LIMIT };
    let mut bytes = Vec::new();
    header.emit(PROTOCOL_OSPF, payload.len(), &mut bytes).unwrap();
    bytes.extend(payload);
    bytes
}

fn encoded(packet: &Packet) -> Vec<u8> {
    let mut payload = Vec::new();
    packet.encode(SUMMED, Compatibility::default(), &mut payload).unwrap();
    in_ipv6(&payload)
}

fn capture(name: &str, packets: &[Vec<u8>]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), "anabranch tests").unwrap();
    let interface = writer.add_interface("radio", "").unwrap();
    for (i, bytes) in packets.iter().enumerate() {
        writer.write_packet(interface, 1_000_000 * i as u64, bytes, PacketNote::default()).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// The output of tshark for the packets; `None` without tshark.
fn tshark(path: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("tshark").args(["-n", "-r"]).arg(path).args(arguments).output().ok()?;
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("tshark writes UTF-8"))
}

/// The columns that tshark prints for each packet; `None` without tshark.
fn dissect(path: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut arguments = vec!["-T", "fields", "-E", "separator=;", "-E", "occurrence=a"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let text = tshark(path, &arguments)?;
    Some(text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect())
}

/// Asserts that tshark reads all packets as OSPFv3 without warnings; `None` without tshark.
fn assert_no_complaint(path: &Path, count: usize) -> Option<()> {
    let rows = dissect(path, &["ospf.version", "_ws.malformed", "_ws.expert.severity", "_ws.expert.message"])?;
    assert_eq!(rows.len(), count);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row[..2], ["3", ""], "packet {i} of {}", path.display());
        for (severity, message) in row[2].split(',').zip(row[3].split(',')).filter(|(severity, _)| !severity.is_empty())
        {
            assert!(severity.parse::<u32>().unwrap() < WARNING, "packet {i}: {message}");
        }
    }
    Some(())
}

/// Asserts that tshark computes the same checksums, which only its text output shows.
fn assert_checksums(path: &Path, count: usize) {
    let text = tshark(path, &["-V", "-O", "ospf"]).expect("tshark was there a moment ago");
    assert_eq!(text.matches("[correct]").count(), count);
    assert_eq!(text.matches("incorrect").count(), 0);
}

fn mesh_hello() -> Packet {
    let mdr_hello = MdrHello { sequence: 0x1234, differential: true, init: 1, dependent: 1, ..MdrHello::default() };
    let metric = MdrMetric { default: 3, metrics: MdrMetrics::Named(vec![(RouterId(0x0a63_0004), 9); 2]) };
    let hello = Hello {
        interface: InterfaceId(7),
        priority: 5,
        options: Options::V6 | Options::E | Options::R | Options::AF,
        hello_interval: 2,
        router_dead_interval: 6,
        designated_router: RouterId(0x0a63_0001),
        backup_designated_router: RouterId(0x0a63_0002),
        neighbors: vec![RouterId(0x0a63_0003), RouterId(0x0a63_0004)],
    };
    Packet {
        router: RouterId(0x0a63_0001),
        area: AreaId(0),
        instance: InstanceId::IPV4,
        body: Body::Hello(hello),
        lls: Some(Lls { tlvs: vec![Tlv::MdrHello(mdr_hello), Tlv::MdrMetric(metric)] }),
    }
}

#[test]
fn tshark_reads_a_hello_of_a_mesh_as_we_wrote_it() {
    let path = capture("ospf_hello.pcapng", &[encoded(&mesh_hello())]);
    let expected = [
        ("ospf.msg", "1"),
        ("ospf.srcrouter", "10.99.0.1"),
        ("ospf.instance_id", "64"),
        ("ospf.v3.options", "0x000313"),
        ("ospf.hello.hello_interval", "2"),
        ("ospf.hello.router_dead_interval", "6"),
        ("ospf.hello.router_priority", "5"),
        ("ospf.hello.designated_router", "10.99.0.1"),
        ("ospf.hello.backup_designated_router", "10.99.0.2"),
        ("ospf.hello.active_neighbor", "10.99.0.3,10.99.0.4"),
        // In bytes: the block's four, four and eight, four and sixteen.
        ("ospf.lls.data_length", "36"),
        ("ospf.tlv_type", "14,16"),
        ("ospf.tlv_length", "8,16"),
        ("ipv6.hlim", "1"),
        ("ipv6.tclass.dscp", "48"),
    ];
    let fields: Vec<&str> = expected.iter().map(|(field, _)| *field).collect();
    let Some(rows) = dissect(&path, &fields) else {
        eprintln!("skipped: tshark is not installed");
        return;
    };
    for ((field, value), column) in expected.iter().zip(&rows[0]) {
        assert_eq!(column, value, "{field}");
    }
    assert_no_complaint(&path, 1).expect("tshark was there a moment ago");
    assert_checksums(&path, 1);
}

/// Removes TLVs of link-local signalling that need padding: tshark 4.0 takes the padding for another TLV and fails. RFC
/// 5613, section 2.3, requires it.
fn unpadded(mut packet: Packet) -> Packet {
    for tlv in packet.lls.iter_mut().flat_map(|lls| &mut lls.tlvs) {
        match tlv {
            Tlv::MdrMetric(MdrMetric { metrics: MdrMetrics::Named(named), .. }) => named.truncate(named.len() / 2 * 2),
            Tlv::MdrMetric(MdrMetric { metrics: MdrMetrics::InOrder(metrics), .. }) => {
                metrics.truncate(metrics.len() / 2 * 2);
            }
            Tlv::Unknown { value, .. } => value.truncate(value.len() / 4 * 4),
            Tlv::MdrHello(_) | Tlv::MdrDescription(_) | Tlv::Ipv6Mtu(_) => {}
        }
    }
    packet
}

#[test]
fn tshark_has_no_complaint_about_a_thousand_packets_of_all_kinds() {
    let mut runner = TestRunner::deterministic();
    let mut some = || packet_in_family().new_tree(&mut runner).expect("no value is refused").current();
    let packets: Vec<Packet> = (0..1_000).map(|_| unpadded(some())).collect();
    let bytes: Vec<Vec<u8>> = packets.iter().map(encoded).collect();
    let path = capture("ospf_thousand.pcapng", &bytes);
    if assert_no_complaint(&path, packets.len()).is_none() {
        eprintln!("skipped: tshark is not installed");
        return;
    }
    assert_checksums(&path, packets.len());
}

#[test]
fn tshark_finds_the_authentication_trailer() {
    let association = SecurityAssociation::new(258, Default::default(), b"secret".to_vec());
    let mut payload = Vec::new();
    // After link-local signalling tshark 4.0 does not find the trailer: it looks at the start of the former.
    let hello = Packet { lls: None, ..mesh_hello() };
    hello
        .encode_authenticated(SOURCE, &association, 0x0000_0001_0000_0002, Compatibility::default(), &mut payload)
        .unwrap();
    let path = capture("ospf_trailer.pcapng", &[in_ipv6(&payload)]);
    let fields =
        ["ospf.v3.options", "ospf.at.auth_type", "ospf.at.auth_data_len", "ospf.at.sa_id", "ospf.at.crypto_seq_nbr"];
    let Some(rows) = dissect(&path, &fields) else {
        eprintln!("skipped: tshark is not installed");
        return;
    };
    assert_eq!(rows[0], ["0x000513", "1", "48", "0x0102", "4294967298"]);
    assert_no_complaint(&path, 1).expect("tshark was there a moment ago");
}
