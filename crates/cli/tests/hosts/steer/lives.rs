//! What becomes of connections and settings when a daemon ends, is killed, or reads its configuration again.

use crate::program::ip;
use crate::steer::scene::{Scene, lives, trial, wait_for};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_killed_daemon_leaves_connections_alive_and_the_next_adopts_them_and_restores_the_setting", killed),
        trial("a_hang_up_keeps_live_connections", hang_up),
        trial("a_default_route_that_is_renewed_closes_no_path", renewed),
        trial("endpoints_that_a_killed_daemon_changed_are_put_back_by_the_next_start", endpoints),
        trial("endpoints_are_put_back_at_the_end", endpoints_at_the_end),
        trial("an_endpoint_is_put_back_when_the_connections_for_which_it_was_changed_have_ended", unused_endpoint),
        trial("backups_of_a_daemon_that_has_ended_or_was_killed_are_used_again", backups),
    ]
}

fn killed(scene: &Scene) {
    let before = scene.path_manager();
    let daemon = scene.daemon(&[]);
    let mut connection = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    assert_ne!(scene.path_manager(), before);
    daemon.signal("KILL");
    daemon.end();
    lives(&mut connection);
    assert_ne!(scene.path_manager(), before, "nobody has restored it");
    let next = scene.daemon(&[]);
    let status = scene.sees(&[("up0", "up"), ("up1", "up")]);
    assert!(
        status["connections"]["shown"][0]["protocol"].as_str().is_some_and(|said| said.contains("adopted")),
        "{status}"
    );
    assert_eq!(status["steered"]["events"]["connections_adopted"], 1);
    lives(&mut connection);
    next.end_by("TERM");
    assert_eq!(scene.path_manager(), before);
    lives(&mut connection);
}

/// As clients of DHCP do: they remove the route and set it again. That of the other uplink is gone for good, and told.
fn renewed(scene: &Scene) {
    let _daemon = scene.daemon(&[]);
    let mut connection = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    let route = |change: &str, net: u8, metric: u8| {
        scene.on_host(|| ip(&format!("route {change} default via 10.{net}.0.1 metric {metric}")));
    };
    route("del", 1, 100);
    route("add", 1, 100);
    route("del", 2, 101);
    scene.sees(&[("up0", "up")]);
    wait_for(|| scene.said().contains("10.2.0.2 cannot be used").then_some(()).ok_or_else(|| scene.said()));
    assert!(!scene.said().contains("10.1.0.2 cannot be used"), "{}", scene.said());
    lives(&mut connection);
}

fn hang_up(scene: &Scene) {
    let file = scene.directory.join("configuration.toml");
    let write =
        |policy: &str| std::fs::write(&file, format!("[steer]\npolicy = \"{policy}\"\n")).expect("it can be written");
    write("full_mesh");
    let daemon = scene.daemon(&["--config", &file.display().to_string()]);
    let mut connection = scene.connection();
    let status = scene.sees(&[("up0", "up"), ("up1", "up")]);
    assert_eq!(status["steered"]["policy"], "full_mesh");
    write("goodput_trial");
    daemon.signal("HUP");
    let status = wait_for(|| {
        let status = scene.status();
        if status["steered"]["policy"] == "goodput_trial" { Ok(status) } else { Err(format!("{status:#}")) }
    });
    assert_eq!(status["connections"]["count"], 1);
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    lives(&mut connection);
    write("nonsense");
    daemon.signal("HUP");
    wait_for(|| scene.said().contains("stays as it was").then_some(()).ok_or_else(|| scene.said()));
    lives(&mut connection);
}

/// The second uplink is a backup by its endpoint.
const RESERVE: [&str; 4] = ["--path-manager", "kernel", "--backup", "up1"];

fn endpoints(scene: &Scene) {
    let daemon = scene.daemon(&RESERVE);
    let mut connection = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "backup")]);
    scene.has_backups(&["10.2.0.2"]);
    daemon.signal("KILL");
    daemon.end();
    lives(&mut connection);
    scene.has_backups(&["10.2.0.2"]);
    let _next = scene.daemon(&["--path-manager", "kernel"]);
    scene.has_backups(&[]);
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    lives(&mut connection);
}

/// As a backup by a rule, which no other connection has.
fn unused_endpoint(scene: &Scene) {
    let _daemon = scene.daemon(&["--path-manager", "kernel", "--rule", "port=7 uplinks=up0"]);
    let connection = scene.connection();
    scene.has_backups(&["10.2.0.2"]);
    drop(connection);
    scene.has_backups(&[]);
    let told = "10.2.0.2: its endpoint is no backup any more";
    wait_for(|| scene.said().contains(told).then_some(()).ok_or_else(|| scene.said()));
}

/// Without a path that works, whoever is next sees them so.
fn backups(scene: &Scene) {
    for signal in ["TERM", "KILL"] {
        let daemon = scene.daemon(&["--backup", "up1"]);
        let mut connection = scene.connection();
        scene.sees(&[("up0", "up"), ("up1", "backup")]);
        daemon.signal(signal);
        daemon.end();
        let next = scene.daemon(&[]);
        scene.sees(&[("up0", "up"), ("up1", "up")]);
        lives(&mut connection);
        assert_eq!(scene.said().contains(": promote "), signal == "KILL", "{}", scene.said());
        next.end_by("TERM");
    }
}

fn endpoints_at_the_end(scene: &Scene) {
    let daemon = scene.daemon(&RESERVE);
    let mut connection = scene.connection();
    scene.has_backups(&["10.2.0.2"]);
    daemon.end_by("TERM");
    scene.has_backups(&[]);
    lives(&mut connection);
}
