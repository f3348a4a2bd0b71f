//! The paper's mesh as eight hosts: traffic, captures and counters.

use crate::emulate::stage::{Ran, Stage};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::process::Command;

pub fn trials() -> Vec<Trial> {
    let name = "emulate::mesh::hosts_of_a_mesh_reach_each_other_and_all_is_captured_and_counted";
    vec![Trial::test(name, all_is_captured_and_counted)]
}

/// The test that needs the kernel's MPTCP.
pub fn multipath_trials() -> Vec<Trial> {
    vec![Trial::test("emulate::mesh::the_kernels_multipath_uses_all_channels", the_kernels_multipath_uses_all_channels)]
}

/// The test that needs `nft`.
pub fn masquerade_trials() -> Vec<Trial> {
    vec![Trial::test("emulate::mesh::our_multipath_uses_two_channels", our_multipath_uses_two_channels)]
}

/// Runs a command at M1 of the mesh with four radios.
fn run(name: &str, options: &[&str], command: &[&str]) -> (Stage, Ran) {
    let stage = Stage::new(name, "");
    let mut emulate = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    emulate.args(["emulate", "manet_homogeneous", "--json", "run.json"]).args(options).arg("--").args(command);
    let output = emulate.current_dir(stage.file("")).output().expect("the program runs");
    let ran = stage.ran(output);
    (stage, ran)
}

/// Bytes that a node's host sent on each channel.
fn sent(ran: &Ran, node: usize) -> Vec<u64> {
    let devices = ran.json["nodes"][node - 1]["devices"].as_array().expect("it has devices");
    devices.iter().map(|device| device["bytes_from_host"].as_u64().expect("a number")).collect()
}

fn all_is_captured_and_counted() -> Result<(), Failed> {
    let (stage, ran) =
        run("mesh", &["--pcap", "air.pcapng"], &["sh", "-c", "$ANABRANCH_AT_M8 ip -o -4 address show e3"]);
    assert_eq!(ran.code, 0, "{}", ran.complained);
    assert!(ran.said.contains("112.26.3.8/24"), "{}", ran.said);
    let nodes = ran.json["nodes"].as_array().expect("there are nodes");
    assert_eq!(nodes.len(), 8);
    for node in nodes {
        let status = &node["router"];
        assert!(status["sent_bytes"].as_u64() > Some(0), "{status}");
        assert_eq!(status["refused"], serde_json::json!({}), "{status}");
    }
    let file = std::fs::read(stage.file("air.pcapng")).expect("it was written");
    let mut kinds = Vec::new();
    let mut rest = file.as_slice();
    while let [k0, k1, k2, k3, l0, l1, l2, l3, ..] = *rest {
        kinds.push(u32::from_le_bytes([k0, k1, k2, k3]));
        rest = &rest[u32::from_le_bytes([l0, l1, l2, l3]) as usize..];
    }
    let count = |kind: u32| kinds.iter().filter(|one| **one == kind).count() as u64;
    assert_eq!(count(1), 32, "an interface for each device of each node");
    let frames: u64 = nodes.iter().flat_map(|node| node["devices"].as_array().expect("devices")).map(frames).sum();
    // ARP frames are not IP packets.
    assert!(count(6) > 100 && count(6) <= frames, "{} of {frames}", count(6));
    Ok(())
}

fn frames(device: &Value) -> u64 {
    ["frames_from_host", "frames_to_host"].iter().map(|key| device[key].as_u64().expect("a number")).sum()
}

fn the_kernels_multipath_uses_all_channels() -> Result<(), Failed> {
    uses_channels("mesh_kernel", "--kernel mptcp", 4)
}

/// Two lanes: all pairs of addresses are joined, and with four there would be more subflows than allowed.
fn our_multipath_uses_two_channels() -> Result<(), Failed> {
    uses_channels("mesh_ours", "--uplink e0 --uplink e1", 2)
}

/// Sends 3 MB with `anabranch perf`, both ends with `option`, and asserts the number of channels used.
fn uses_channels(name: &str, option: &str, channels: usize) -> Result<(), Failed> {
    let program = env!("CARGO_BIN_EXE_anabranch");
    let server = format!("'{program}' perf --server --one-off {option}");
    let client = format!(
        "for try in 1 2 3 4 5; do '{program}' perf 112.26.0.8 --bytes 3MB {option} && exit; sleep 1; done; exit 1"
    );
    let (_, ran) = run(name, &["--server", &server], &["sh", "-c", &client]);
    assert_eq!(ran.code, 0, "{}{}", ran.said, ran.complained);
    let sent = sent(&ran, 1);
    assert!(sent.iter().take(channels).all(|bytes| *bytes > 100_000), "{sent:?}\n{}", ran.said);
    Ok(())
}
