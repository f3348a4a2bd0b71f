//! Status of a running `run`.

use crate::run::scene::{Running, Scene, anabranch, text, trial};
use crate::run::straight::with_resolver;
use libtest_mimic::Trial;
use std::process::Command;

pub fn trials() -> Vec<Trial> {
    let trial = |name, work| trial("status", name, work);
    vec![
        trial("a_program_that_runs_has_its_uplinks_connections_and_flows_told", through),
        trial("without_a_server_its_uplinks_and_flows_are_told", straight),
    ]
}

/// A flow and a connection that stay open until a line is written.
const STAYS: &str = "
import sys
stream = socket.create_connection(('203.0.113.1', 8003), timeout=10)
stream.sendall(b'there')
assert stream.recv(10) == b'there' and talk('203.0.113.1', bytes(500))
print('ready', flush=True)
sys.stdin.readline()";

/// Runs it, and returns its `status` as JSON and as text.
fn shown(scene: &Scene, command: &mut Command) -> (serde_json::Value, String) {
    let directory = format!("{}.runtime", scene.key);
    std::fs::create_dir_all(&directory).expect("it can be made");
    let command = command.stdin(std::process::Stdio::piped()).env("XDG_RUNTIME_DIR", &directory);
    let mut running = scene.on_host(|| Running::new(command));
    assert_eq!(running.line(), "ready");
    let process = running.child.id();
    let ask = |json: &[&str]| {
        let mut status = anabranch(&["status"]);
        let output = status.args(json).env("XDG_RUNTIME_DIR", &directory).output().expect("the program runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let all: serde_json::Value = serde_json::from_str(&ask(&["--json"])).expect("it is JSON");
    let ours = all.as_array().expect("a list").iter().find(|one| one["process"] == process);
    (ours.unwrap_or_else(|| panic!("{process} is not told of: {all}")).clone(), ask(&[]))
}

fn check(status: &serde_json::Value, text: &str) {
    assert_eq!(status["command"], "run");
    assert_eq!(status["clients"]["now"], 1);
    let uplinks = status["uplinks"].as_array().expect("a list");
    let names: Vec<&str> = uplinks.iter().filter_map(|uplink| uplink["name"].as_str()).collect();
    assert_eq!(names, ["up0", "up1"]);
    let received = |uplink: &serde_json::Value| uplink["datagrams"]["received"].as_u64().unwrap_or_default();
    assert!(uplinks.iter().map(received).sum::<u64>() > 0, "{status}");
    let flows = status["flows"]["shown"].as_array().expect("a list");
    let flow = flows.iter().find(|flow| flow["outside"] == "203.0.113.1:8003").expect("the flow is there");
    assert_eq!((&flow["kind"], &flow["received_bytes"]), (&"udp".into(), &500.into()));
    assert!(text.contains("udp 198.18.0.1:") && text.contains(" -> 203.0.113.1:8003"), "{text}");
}

fn through(scene: &Scene) {
    let script = format!("{}{STAYS}", crate::run::datagrams::TALK);
    let (status, text) = shown(scene, &mut scene.command(&[], &["python3", "-c", &script]));
    check(&status, &text);
    assert_eq!(status["connections"]["shown"].as_array().map(Vec::len), Some(1), "{status}");
    assert!(text.contains("mptcp"), "{text}");
}

fn straight(scene: &Scene) {
    let script = format!("{}{STAYS}", crate::run::datagrams::TALK);
    let mut command = anabranch(&["run", "--", "python3", "-c", &script]);
    let (status, text) = shown(scene, &mut with_resolver(&scene.resolver(), &mut command));
    check(&status, &text);
}
