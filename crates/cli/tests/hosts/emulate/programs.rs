//! Programs on the paths: the kernel's MPTCP, Anabranch, captures.

use crate::emulate::stage::{Stage, path};
use libtest_mimic::{Failed, Trial};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "emulate::programs::a_capture_has_what_left_and_what_arrived",
            a_capture_has_what_left_and_what_arrived,
        ),
        Trial::test(
            "emulate::programs::without_any_right_our_stack_uses_both_paths_inside_udp",
            without_any_right_inside_udp,
        ),
        Trial::test("emulate::programs::routes_have_the_congestion_control", routes_have_the_congestion_control),
    ]
}

/// The test that needs `nft` for the stack's masquerading.
pub fn masquerade_trials() -> Vec<Trial> {
    let name = "emulate::programs::our_stack_uses_both_paths_by_its_own_devices";
    vec![Trial::test(name, our_stack_uses_both_paths_by_its_own_devices)]
}

/// The test that needs the kernel's MPTCP, and `nft` for the stack's masquerading.
pub fn stack_trials() -> Vec<Trial> {
    let name = "emulate::programs::our_stack_is_not_reset_by_linux_when_parts_of_long_packets_are_lost";
    vec![Trial::test(name, our_stack_is_not_reset_by_linux_when_parts_of_long_packets_are_lost)]
}

/// The tests that need the kernel's MPTCP.
pub fn multipath_trials() -> Vec<Trial> {
    vec![
        Trial::test("emulate::programs::the_kernels_multipath_uses_both_paths_ipv4", || both_paths("10.0.0.2")),
        Trial::test("emulate::programs::the_kernels_multipath_uses_both_paths_ipv6", || both_paths("fd00::2")),
        Trial::test("emulate::programs::left_alone_the_kernel_uses_one_path", left_alone_the_kernel_uses_one_path),
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

/// Long packets of which the path drops parts: retransmissions must have the mapping of the whole, or Linux resets the
/// subflow.
fn our_stack_is_not_reset_by_linux_when_parts_of_long_packets_are_lost() -> Result<(), Failed> {
    let link = "rate = \"12 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"30 packets\"\nloss = \"1 %\"";
    let stage = Stage::new("long_packets", &(path("A", link) + &path("B", link)));
    let this = env!("CARGO_BIN_EXE_anabranch");
    let journal = stage.file("journal");
    let client = format!(
        "'{this}' perf 10.0.0.2 --time 4 --journal '{}' >&2 && $ANABRANCH_AT_SERVER cat /proc/net/netstat",
        journal.display()
    );
    let server = format!("'{this}' perf --server --kernel mptcp");
    let ran = stage.run(&["--server", &server, "--port", "5201"], &["sh", "-c", &client]);
    assert_eq!(ran.code, 0, "{}", ran.complained);
    let mut lines = ran.said.lines().filter(|line| line.starts_with("MPTcpExt:"));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut counters = names.split_whitespace().zip(values.split_whitespace());
    let found = counters.find(|(name, _)| *name == "DSSNotMatching");
    assert_eq!(found, Some(("DSSNotMatching", "0")), "{}", ran.complained);
    for link in ["A/0/forward", "B/0/forward"] {
        assert!(ran.link(link, "delivered_bytes") > 1_000_000, "{link}: {}", ran.complained);
    }
    Ok(())
}

fn our_stack_uses_both_paths_by_its_own_devices() -> Result<(), Failed> {
    perf_on_both_paths("ours", "", &[])
}

/// Runs without capabilities, as an unprivileged user.
const POWERLESS: &[&str] = &["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"];

fn without_any_right_inside_udp() -> Result<(), Failed> {
    perf_on_both_paths("udp", "--udp", POWERLESS)
}

/// Sends 4 MB with `anabranch perf`; both ends have `option`, and the client's command starts with `before`.
fn perf_on_both_paths(name: &str, option: &str, before: &[&str]) -> Result<(), Failed> {
    let program = env!("CARGO_BIN_EXE_anabranch");
    let server = format!("{} '{program}' perf --server --one-off {option}", before.join(" "));
    let client = format!(
        "for try in 1 2 3 4 5; do '{program}' perf 10.0.0.2 --bytes 4MB {option} && exit; sleep 1; done; exit 1"
    );
    let ran = two_paths(name).run(&["--server", &server], &[before, &["sh", "-c", &client]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.said, ran.complained);
    assert!(ran.said.contains("stream 0: mptcp"), "{}", ran.said);
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
