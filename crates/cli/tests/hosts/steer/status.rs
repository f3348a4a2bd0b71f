//! What is told of a daemon.

use crate::program::{anabranch, text};
use crate::steer::scene::{Scene, lives, trial, wait_for};
use libtest_mimic::Trial;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("connections_paths_and_decisions_are_told", told),
        trial("a_closed_subflow_is_remembered", closed),
        trial("a_server_without_mptcp_is_warned_of", fallback),
    ]
}

fn told(scene: &Scene) {
    let _daemon = scene.daemon(&["--status", "127.0.0.1:9100"]);
    let mut connection = scene.connection();
    let status = scene.sees(&[("up0", "up"), ("up1", "up")]);
    lives(&mut connection);
    assert_eq!((&status["command"], &status["connections"]["count"]), (&"steer".into(), &1.into()));
    assert_eq!(status["steered"]["policy"], "goodput_trial");
    assert_eq!(status["connections"]["shown"][0]["remote"], "203.0.113.1:7");
    let open = &status["steered"]["decisions"][0];
    assert!(open["what"].as_str().is_some_and(|what| what.contains(": open 10.2.0.2 to 203.0.113.1:7")), "{status}");
    assert!(open["why"].as_str().is_some_and(|why| why.starts_with("Change; ")), "{status}");
    let names: Vec<&str> =
        status["uplinks"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["up0", "up1"]);
    assert!(
        status["uplinks"][1]["subflows"] == 1 && status["uplinks"][1]["sent_packets"].as_u64() > Some(0),
        "{status}"
    );
    let output = anabranch(&["status", "--journal"]).arg(&scene.directory).output().expect("it runs");
    let words = text(&output.stdout);
    for part in [
        "policy goodput_trial, path manager userspace, 1 connections",
        "203.0.113.1:7",
        "kernel's mptcp",
        ": open 10.2.0.2",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let metrics = wait_for(|| {
        let text = scene.on_host(metrics);
        let (sent, refused) =
            (value(&text, "commands_total{kind=\"open\"}"), value(&text, "events_total{kind=\"commands_refused\"}"));
        // The kernel refuses to join a connection that has begun but carried nothing, which is tried again.
        if sent == refused + 1 { Ok(text) } else { Err(text) }
    });
    for line in ["anabranch_connections 1", "anabranch_uplink_subflows{uplink=\"up1\"} 1"] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
}

/// A metric of `steer` among all.
fn value(metrics: &str, name: &str) -> u64 {
    let found = metrics.lines().find_map(|line| line.strip_prefix("anabranch_steer_")?.strip_prefix(name));
    found.unwrap_or_else(|| panic!("{name}: {metrics}")).trim().parse().expect("it is a number")
}

fn metrics() -> String {
    let mut stream = TcpStream::connect("127.0.0.1:9100").expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// The second path goes and comes back.
fn closed(scene: &Scene) {
    let _daemon = scene.daemon(&[]);
    let mut connection = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    scene.on_host(|| crate::program::ip("link set up1 down"));
    let status = scene.sees(&[("up0", "up")]);
    let paths = status["connections"]["shown"][0]["paths"].as_array().expect("a list");
    assert!(paths.iter().any(|path| path["state"].as_str().is_some_and(|state| state.contains(" s ago"))), "{status}");
    lives(&mut connection);
}

/// A server of TCP answers the SYN without MP_CAPABLE.
fn fallback(scene: &Scene) {
    let _daemon = scene.daemon(&[]);
    let script = "import socket; l = socket.create_server(('203.0.113.1', 9)); print('ready', flush=True); l.accept()[0].recv(1)";
    let mut command = std::process::Command::new("python3");
    let mut server = scene.in_world(|| crate::program::Running::new(command.args(["-c", script])));
    assert_eq!(server.line(), "ready");
    let script = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(('203.0.113.1', 9)); s.recv(1)";
    let mut command = std::process::Command::new("python3");
    let _client = scene.on_host(|| crate::program::Running::new(command.args(["-c", script])));
    let status = wait_for(|| {
        let status = scene.status();
        if status["steered"]["lost"]["server"] == 1 { Ok(status) } else { Err(format!("{status:#}")) }
    });
    let warnings = status["steered"]["warnings"].to_string();
    assert!(warnings.contains("a server answered without MPTCP"), "{warnings}");
}
