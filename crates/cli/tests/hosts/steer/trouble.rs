//! A permission that is missing, and more than a daemon can hear.

use crate::program::{Running, complaint};
use crate::steer::scene::{Scene, lives, trial, wait_for};
use libtest_mimic::Trial;
use std::process::{Command, Stdio};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("without_the_capability_it_says_so_in_one_line", refused),
        trial("it_keeps_one_capability", capabilities),
        trial("a_second_daemon_in_a_network_namespace_is_refused", second),
        trial("a_path_manager_that_another_program_chooses_is_changed_back", another_path_manager),
        trial("mptcp_that_is_switched_off_meanwhile_is_told", switched_off),
        trial("that_its_lines_of_json_are_lost_is_told_at_once", full),
        trial("a_thousand_connections_a_second_open_and_close", churn),
        trial("events_that_were_lost_are_made_up_for", overrun),
    ]
}

fn refused(scene: &Scene) {
    let inner = scene.command(&[]);
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set", "-net_admin", "--inh-caps", "-net_admin"])
        .arg(inner.get_program())
        .args(inner.get_args());
    let output = scene.on_host(|| command.output().expect("setpriv is there"));
    assert!(complaint(&output).contains("CAP_NET_ADMIN"), "{output:?}");
}

/// The first goes on, and so does its setting.
fn second(scene: &Scene) {
    let before = scene.path_manager();
    let _first = scene.daemon(&[]);
    let during = scene.path_manager();
    assert_ne!(during, before);
    let inner = scene.command(&[]);
    let mut command = Command::new("timeout");
    command.arg("20").arg(inner.get_program()).args(inner.get_args());
    let output = scene.on_host(|| command.output().expect("timeout is there"));
    assert!(complaint(&output).contains("another `anabranch steer` is at work"), "{output:?}");
    assert_eq!(scene.path_manager(), during);
    let mut connection = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    lives(&mut connection);
}

fn another_path_manager(scene: &Scene) {
    let before = scene.path_manager();
    let daemon = scene.daemon(&[]);
    let during = scene.path_manager();
    scene.on_host(|| std::fs::write("/proc/sys/net/mptcp/pm_type", "0").expect("root may"));
    wait_for(|| (scene.path_manager() == during).then_some(()).ok_or_else(|| scene.said()));
    let told = "another program gave new connections the path manager kernel: they have userspace again";
    wait_for(|| scene.said().contains(told).then_some(()).ok_or_else(|| scene.said()));
    let mut connection = scene.connection();
    let status = scene.sees(&[("up0", "up"), ("up1", "up")]);
    assert_eq!(status["steered"]["warnings"][0], told);
    lives(&mut connection);
    daemon.end_by("TERM");
    assert_eq!(scene.path_manager(), before);
}

fn switched_off(scene: &Scene) {
    let _daemon = scene.daemon(&[]);
    scene.on_host(|| std::fs::write("/proc/sys/net/mptcp/enabled", "0").expect("root may"));
    wait_for(|| scene.said().contains("MPTCP was switched off").then_some(()).ok_or_else(|| scene.said()));
    scene.on_host(|| std::fs::write("/proc/sys/net/mptcp/enabled", "1").expect("root may"));
    wait_for(|| scene.said().contains("MPTCP is switched on again").then_some(()).ok_or_else(|| scene.said()));
}

fn full(scene: &Scene) {
    let inner = scene.command(&["--json"]);
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" > /dev/full"]).arg(inner.get_program()).args(inner.get_args());
    let mut daemon = scene.on_host(|| Running::new(command.stderr(Stdio::piped())));
    daemon.hear("decisions are lost, since standard output cannot be written: No space left on device");
}

fn capabilities(scene: &Scene) {
    let daemon = scene.daemon(&[]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.child.id())).expect("it runs");
    for set in ["CapPrm", "CapEff"] {
        let line = status.lines().find(|line| line.starts_with(set)).expect("it is told");
        // CAP_NET_ADMIN is number 12 of capabilities(7).
        assert_eq!(line.split_whitespace().nth(1), Some("0000000000001000"), "{line}");
    }
}

/// Resident memory of a process, kB.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is told");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

fn churn(scene: &Scene) {
    let daemon = scene.daemon(&[]);
    let mut connection = scene.connection();
    let opened = scene.churn(1_000, 5);
    eprintln!("{opened} connections in 5 s, {} kB of memory", memory(daemon.child.id()));
    assert!(opened > 100, "{opened}");
    wait_for(|| {
        let status = scene.status();
        if status["connections"]["count"] == 1 { Ok(()) } else { Err(format!("{}", status["connections"]["count"])) }
    });
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    lives(&mut connection);
    assert!(memory(daemon.child.id()) < 50_000);
    // It decides about the next too.
    drop(connection);
    let mut next = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    lives(&mut next);
}

/// The daemon stands still while more happens than its queue holds.
fn overrun(scene: &Scene) {
    let daemon = scene.daemon(&[]);
    daemon.signal("STOP");
    let mut opened = 0;
    // An event takes less than 1 kB of the queue of 4 MB, a connection at least three events.
    while opened < 6_000 {
        opened += scene.churn(2_000, 4);
    }
    let mut connection = scene.connection();
    daemon.signal("CONT");
    wait_for(|| scene.said().contains("events were lost").then_some(()).ok_or_else(|| scene.said()));
    let status = scene.sees(&[("up0", "up"), ("up1", "up")]);
    assert!(status["steered"]["events"]["event_overruns"].as_u64() > Some(0), "{status}");
    assert_eq!(status["connections"]["count"], 1);
    lives(&mut connection);
}
