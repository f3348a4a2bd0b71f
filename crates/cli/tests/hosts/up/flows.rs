//! Thousands of flows of datagrams at once through `up`, with the memory and the processor time that they take.
//!
//! There are `ANABRANCH_FLOWS` (default 2,000). What is not judged is printed.

use crate::program::Running;
use crate::soak::setting;
use crate::up::scene::{Room, Scene};
use std::process::{Command, Stdio};

const SCRIPT: &str = include_str!("flows.py");

/// How often each flow sends.
const ROUNDS: u64 = 5;

/// Connections that the server has room for beside the flows.
const CONNECTIONS: u64 = 512;

/// Resident memory of a process in kB.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel says it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Processor time that a process has used, user and system, in hundredths of a second.
fn processor(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

pub fn thousands() {
    let flows = setting("ANABRANCH_FLOWS", 2_000);
    let mut scene = Scene::new("flows", true);
    // Not even a quarter of these files is enough for a socket of each flow.
    let room = Room { files: (2 * flows).min(20_000), connections: CONNECTIONS };
    let serve = scene.restart_server_with(room);
    let up = scene.up(&["--udp"]);
    let target = || Running::new(Command::new("python3").args(["-c", SCRIPT, "echo", "9"]));
    let mut echo = scene.target.run(target).expect("it can be entered");
    assert_eq!(echo.line(), "ready");
    let processes = [up.child.id(), serve];
    let before = processes.map(|process| (memory(process), processor(process)));
    let mut program = scene.on_host(|| {
        let mut command = Command::new("python3");
        command.args(["-c", SCRIPT, "send", "198.51.100.2", "9", &flows.to_string(), &ROUNDS.to_string()]);
        Running::new(command.stdin(Stdio::piped()))
    });
    let line = program.line();
    let seen: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let number = |name: &str| seen[name].as_u64().expect("a number");
    let counted = scene.status()["flows"]["count"].as_u64();
    for (name, (process, (kilobytes, hundredths))) in ["up", "serve"].iter().zip(processes.iter().zip(before)) {
        let each = (memory(*process) as f64 - kilobytes as f64) / flows as f64;
        let time = (processor(*process) - hundredths) as f64 / 100.0;
        eprintln!("{name}: {each:.2} kB for each of {flows} flows, {time:.2} s of processor time");
    }
    drop(program.child.stdin.take());
    assert!(program.end().0.success());
    let dropped = ["datagrams_not_sent", "packets_over_the_queue", "packets_malformed"];
    let dropped = dropped.map(|name| scene.status()["engine"][name].as_u64());
    let totals = up.end_by("TERM");
    eprintln!("{line}\nup: {}\nserve: {}", totals.trim(), scene.end_server().trim());
    assert_eq!(dropped, [Some(0); 3], "{totals}");
    assert_eq!((number("silent"), number("wrong")), (0, 0), "each flow has its own answers: {line}");
    assert!(number("answered") * 10 >= number("sent") * 9, "{line}");
    assert!(number("call_answered") * 10 >= number("call_sent") * 9, "{line}");
    assert_eq!(counted, Some(flows + 1), "the status counts all flows");
}
