//! Programs on the paths: the kernel's MPTCP, anabranch itself, captures.

use crate::stage::{Stage, path};
use libtest_mimic::{Failed, Trial};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("programs::a_capture_has_what_left_and_what_arrived", a_capture_has_what_left_and_what_arrived),
        Trial::test("programs::routes_have_the_congestion_control", routes_have_the_congestion_control),
    ]
}

/// Those that need the kernel's MPTCP.
pub fn multipath_trials() -> Vec<Trial> {
    vec![
        Trial::test("programs::the_kernels_multipath_uses_both_paths_ipv4", || both_paths("10.0.0.2")),
        Trial::test("programs::the_kernels_multipath_uses_both_paths_ipv6", || both_paths("fd00::2")),
        Trial::test("programs::left_alone_the_kernel_uses_one_path", left_alone_the_kernel_uses_one_path),
    ]
}

fn two_paths(name: &str) -> Stage {
    let link = "rate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"100 packets\"";
    Stage::new(name, &(path("A", link) + &path("B", link)))
}

fn both_paths(server: &str) -> Result<(), Failed> {
    let stage = two_paths(if server.contains(':') { "both_v6" } else { "both_v4" });
    let ran = stage.agents(&[], &["swallow"], &["send", server, "4000000"]);
    for link in ["A/0/forward", "B/0/forward"] {
        let bytes = ran.link(link, "delivered_bytes");
        assert!(bytes > 1_000_000, "{link} carried {bytes} bytes:\n{}", ran.complained);
    }
    Ok(())
}

fn left_alone_the_kernel_uses_one_path() -> Result<(), Failed> {
    let ran = two_paths("alone").agents(&["--no-mptcp-setup"], &["swallow"], &["send", "10.0.0.2", "500000"]);
    assert_eq!(ran.link("B/0/forward", "offered_packets"), 0);
    assert!(ran.link("A/0/forward", "delivered_bytes") > 500_000);
    Ok(())
}

fn a_capture_has_what_left_and_what_arrived() -> Result<(), Failed> {
    let stage = Stage::one_path("capture", "rate = \"10 Mbit/s\"\nloss = \"50 %\"\nloss_direction = \"forward\"");
    let words = ["stream", "10.0.1.1", "10.0.0.2", "100", "200", "1000"];
    let ran = stage.agents(&["--pcap", "paths.pcapng"], &["sink", "arrived"], &words);
    let arrived = ran.link("A/0/forward", "delivered_packets");
    assert!(arrived > 10 && arrived < 90, "{arrived}");
    let file = std::fs::read(stage.file("paths.pcapng")).expect("it was written");
    let mut blocks = Vec::new();
    let mut rest = file.as_slice();
    while let [k0, k1, k2, k3, l0, l1, l2, l3, ..] = *rest {
        blocks.push(u32::from_le_bytes([k0, k1, k2, k3]));
        rest = &rest[u32::from_le_bytes([l0, l1, l2, l3]) as usize..];
    }
    let count = |kind: u32| blocks.iter().filter(|block| **block == kind).count() as u64;
    assert_eq!(count(1), 2, "an interface for the path and one for the server");
    assert_eq!(count(6), 100 + arrived, "what left the client and what reached the server");
    Ok(())
}

fn routes_have_the_congestion_control() -> Result<(), Failed> {
    let stage = two_paths("congestion");
    let ran = stage.run(&["--kernel-congestion", "reno"], &["ip", "route", "show", "table", "all", "type", "unicast"]);
    assert_eq!(ran.code, 0, "{}", ran.complained);
    let lines: Vec<&str> = ran.said.lines().filter(|line| line.contains(" dev ")).collect();
    assert!(lines.len() >= 6 && lines.iter().all(|line| line.contains("congctl reno")), "{}", ran.said);
    Ok(())
}
