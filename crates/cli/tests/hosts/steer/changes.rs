//! What changes while connections exist: rules and roles by SIGHUP, names of interfaces, and addresses that are
//! deprecated.

use crate::program::{Running, ip};
use crate::steer::scene::{Scene, lives, trial, wait_for};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("paths_of_a_rule_that_is_taken_away_are_used_again", without_rule),
        trial("an_uplink_that_is_a_backup_no_more_is_used_again", without_backup),
        trial("backups_of_a_connection_that_is_left_alone_from_now_on_are_used_again", backup_left_alone),
        trial("a_rule_that_leaves_alone_counts_for_connections_that_exist", left_alone),
        trial("an_interface_that_is_renamed_has_its_new_name", renamed),
        trial("a_deprecated_address_keeps_its_paths_and_gets_no_new_ones", deprecated),
    ]
}

/// A daemon with a file of which the table `[steer]` is `first`, and what writes another and sends SIGHUP.
fn configured(scene: &Scene, first: &str) -> (Running, impl Fn(&Running, &str)) {
    let file = scene.directory.join("configuration.toml");
    let name = file.display().to_string();
    let write = move |table: &str| std::fs::write(&file, format!("[steer]\n{table}\n")).expect("it can be written");
    write(first);
    let daemon = scene.daemon(&["--config", &name]);
    (daemon, move |daemon: &Running, table: &str| {
        write(table);
        daemon.signal("HUP");
    })
}

fn without_rule(scene: &Scene) {
    are_used_without(scene, "rule = [\"port=7 uplinks=up1\"]", [("up0", "backup"), ("up1", "up")]);
}

fn without_backup(scene: &Scene) {
    are_used_without(scene, "backup = [\"up1\"]", [("up0", "up"), ("up1", "backup")]);
}

/// With a table the paths have these states; when it is empty both are used.
fn are_used_without(scene: &Scene, table: &str, states: [(&str, &str); 2]) {
    let (daemon, change) = configured(scene, table);
    let mut connection = scene.connection();
    scene.sees(&states);
    change(&daemon, "");
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    lives(&mut connection);
}

/// Nobody would use them otherwise, when the uplink before has gone.
fn backup_left_alone(scene: &Scene) {
    let (daemon, change) = configured(scene, "backup = [\"up1\"]");
    let mut connection = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "backup")]);
    change(&daemon, "backup = [\"up1\"]\nrule = [\"port=7 leave\"]");
    wait_for(|| scene.said().contains(": promote 10.2.0.2").then_some(()).ok_or_else(|| scene.said()));
    lives(&mut connection);
}

fn left_alone(scene: &Scene) {
    let (daemon, change) = configured(scene, "policy = \"full_mesh\"");
    let mut connection = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    change(&daemon, "rule = [\"port=7 leave\"]");
    wait_for(|| {
        let status = scene.status();
        let left = status["steered"]["events"]["connections_left_alone"] == 1 && status["connections"]["count"] == 0;
        left.then_some(()).ok_or_else(|| format!("{status:#}"))
    });
    lives(&mut connection);
    change(&daemon, "");
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    lives(&mut connection);
}

/// Recent kernels rename an interface that is up.
fn renamed(scene: &Scene) {
    let _daemon = scene.daemon(&[]);
    let mut connection = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    scene.on_host(|| ip("link set up1 name wan1"));
    let status = scene.sees(&[("up0", "up"), ("wan1", "up")]);
    assert_eq!(status["uplinks"][1]["name"], "wan1", "{status:#}");
    assert!(status["uplinks"][1]["sent_bytes"].as_u64() > Some(0), "{status:#}");
    lives(&mut connection);
}

/// As temporary addresses of IPv6 become after a day.
fn deprecated(scene: &Scene) {
    let _daemon = scene.daemon(&["--policy", "full_mesh"]);
    let mut connection = scene.connection();
    scene.sees(&[("up0", "up"), ("up1", "up")]);
    let prefer = |lifetime: &str| {
        scene.on_host(|| ip(&format!("address change 10.2.0.2/24 dev up1 valid_lft 3600 preferred_lft {lifetime}")));
    };
    prefer("0");
    let told = "10.2.0.2 is deprecated: no new path begins there";
    wait_for(|| scene.said().contains(told).then_some(()).ok_or_else(|| scene.said()));
    let mut second = scene.connection();
    wait_for(|| {
        let status = scene.status();
        if status["connections"]["count"] == 2 { Ok(()) } else { Err(format!("{status:#}")) }
    });
    // More than the half second for which an address without a route is kept.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let paths = |status: &serde_json::Value| {
        let shown = status["connections"]["shown"].as_array().cloned().unwrap_or_default();
        let up = |path: &&serde_json::Value| path["state"] == "up";
        let mut all: Vec<usize> = shown
            .iter()
            .map(|connection| connection["paths"].as_array().into_iter().flatten().filter(up).count())
            .collect();
        all.sort_unstable();
        all
    };
    let status = scene.status();
    assert_eq!(paths(&status), [1, 2], "{status:#}\n{}", scene.said());
    prefer("3600");
    wait_for(|| {
        let again = scene.said().matches("10.2.0.2 of up1 can be used").count() == 2;
        again.then_some(()).ok_or_else(|| scene.said())
    });
    // The second gets then what it was refused.
    let _third = scene.connection();
    wait_for(|| {
        let status = scene.status();
        if paths(&status) == [2, 2, 2] { Ok(()) } else { Err(format!("{status:#}\n{}", scene.said())) }
    });
    lives(&mut connection);
    lives(&mut second);
}
