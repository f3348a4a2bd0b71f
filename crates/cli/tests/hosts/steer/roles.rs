//! Uplinks with roles, and rules for certain connections.

use crate::program::{complaint, text};
use crate::steer::scene::{Scene, lives, trial, wait_for};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_backup_is_used_when_no_other_uplink_works", backup),
        trial("a_metered_uplink_is_used_until_its_quota_is_spent", quota),
        trial("a_connection_that_a_rule_leaves_alone_has_one_subflow", left_alone),
        trial("a_connection_that_stays_on_the_host_is_left_alone", loopback),
        trial("a_rule_by_user_chooses_uplinks", of_a_user),
        trial("the_check_explains_roles_and_rules", explained),
        trial("an_interface_that_is_not_there_is_told", absent),
        trial("a_backup_that_is_no_uplink_is_refused", stranger),
        trial("that_no_address_can_be_used_is_told_with_the_reason", no_address),
        trial("an_address_without_an_endpoint_is_told_where_only_endpoints_count", without_endpoint),
    ]
}

fn backup(scene: &Scene) {
    let _daemon = scene.daemon(&["--backup", "up1"]);
    let mut connection = scene.connection();
    let status = scene.sees(&[("up0", "up"), ("up1", "backup")]);
    assert_eq!((&status["uplinks"][0]["role"], &status["uplinks"][1]["role"]), (&"primary".into(), &"backup".into()));
    let carried = |status: &serde_json::Value| status["connections"]["shown"][0]["paths"][1]["sent_bytes"].as_u64();
    let before = carried(&status);
    lives(&mut connection);
    assert_eq!(carried(&scene.status()), before, "the primary works");
    scene.on_host(|| crate::program::ip("link set up0 down"));
    lives(&mut connection);
}

/// The traffic of the second uplink before the daemon begins does not count, and each byte of the connection does.
fn quota(scene: &Scene) {
    let state = scene.directory.join("state").display().to_string();
    let _daemon = scene.daemon(&["--metered", "up1", "--quota", "up1=40kB/day", "--state", &state]);
    let mut connection = scene.connection();
    let status = scene.sees(&[("up0", "up"), ("up1", "up")]);
    assert_eq!(
        (&status["uplinks"][1]["role"], &status["uplinks"][1]["quota_bytes"]),
        (&"metered".into(), &40_000.into())
    );
    scene.on_host(|| crate::program::command("ping", "-q -c 30 -i 0.02 -s 1000 -I up1 203.0.113.1"));
    scene.sees(&[("up0", "up"), ("up1", "backup")]);
    assert!(scene.said().contains("uplink up1 has used its quota"), "{}", scene.said());
    lives(&mut connection);
}

fn left_alone(scene: &Scene) {
    let _daemon = scene.daemon(&["--rule", "to=203.0.113.0/24 port=8 policy=full_mesh", "--rule", "port=7 leave"]);
    let mut connection = scene.connection();
    lives(&mut connection);
    let status = wait_for(|| {
        let status = scene.status();
        if status["steered"]["events"]["connections_left_alone"] == 1 { Ok(status) } else { Err(format!("{status:#}")) }
    });
    assert_eq!(status["connections"]["count"], 0);
    assert!(!scene.said().contains(": open "), "{}", scene.said());
}

fn loopback(scene: &Scene) {
    let _daemon = scene.daemon(&[]);
    let mut echo = scene.on_host(|| {
        crate::program::ip("link set lo up");
        let mut serve = scene.serve();
        assert_eq!(serve.line(), "ready");
        serve
    });
    for address in ["127.0.0.1", "10.1.0.2"] {
        let mut connection = scene.connection_to(address);
        lives(&mut connection);
    }
    // Both ends of each.
    let status = wait_for(|| {
        let status = scene.status();
        let left_alone = status["steered"]["events"]["connections_left_alone"].as_u64();
        if left_alone >= Some(4) { Ok(status) } else { Err(format!("{status:#}")) }
    });
    assert_eq!(status["connections"]["count"], 0, "{status:#}");
    assert!(!scene.said().contains(": open ") && !scene.said().contains(": announce "), "{}", scene.said());
    echo.child.kill().expect("it runs");
}

/// Both uplinks have a subflow, as the route leads over the first; it is a backup.
fn of_a_user(scene: &Scene) {
    let _daemon = scene.daemon(&["--rule", "user=root uplinks=up1"]);
    let mut connection = scene.connection();
    scene.sees(&[("up0", "backup"), ("up1", "up")]);
    lives(&mut connection);
}

fn explained(scene: &Scene) {
    let mut command =
        scene.command(&["--check", "--metered", "up1", "--quota", "up1=5GB/month", "--rule", "port=22 leave"]);
    let output = scene.on_host(|| command.output().expect("it runs"));
    let words = text(&output.stdout);
    for part in [
        "address 10.1.0.2 of up0, primary",
        "address 10.2.0.2 of up1, metered, with a quota of 5000000000 octets",
        "rule: connections to port 22 are left alone",
    ] {
        assert!(words.contains(part), "{part}: {words}{}", text(&output.stderr));
    }
}

/// A misspelled name of a metered uplink would cost money, one of an uplink or in a rule all but one path.
fn absent(scene: &Scene) {
    let options = ["--uplink", "up9", "--uplink", "up8", "--metered", "up8", "--rule", "port=22 uplinks=up7"];
    let told = |words: &str, name: &str| words.contains(&format!("there is no interface {name} yet: known are "));
    let mut command = scene.command(&[&options[..], &["--check"]].concat());
    let checked = text(&scene.on_host(|| command.output().expect("it runs")).stdout);
    let _daemon = scene.daemon(&options);
    for name in ["up7", "up8", "up9"] {
        assert!(told(&checked, name), "{name}: {checked}");
        assert!(told(&scene.said(), name), "{name}: {}", scene.said());
    }
}

/// It would never be used.
fn stranger(scene: &Scene) {
    let mut command = scene.command(&["--check", "--uplink", "up0", "--backup", "up1"]);
    let output = scene.on_host(|| command.output().expect("it runs"));
    assert!(complaint(&output).contains("up1 is none of the uplinks that are named: add --uplink up1"), "{output:?}");
}

/// Nothing would ever happen, and nothing would say why.
fn without_endpoint(scene: &Scene) {
    scene.on_host(|| crate::program::ip("mptcp endpoint delete id 2"));
    let sentence = "10.2.0.2 has no endpoint: ";
    let checked = |path_manager: &str| {
        let mut command = scene.command(&["--check", "--path-manager", path_manager]);
        text(&scene.on_host(|| command.output().expect("it runs")).stdout)
    };
    let kernel = checked("kernel");
    assert!(
        kernel.contains(sentence) && kernel.contains("`ip mptcp endpoint add 10.2.0.2 dev up1 subflow`"),
        "{kernel}"
    );
    assert!(!kernel.contains("10.1.0.2 has no"), "{kernel}");
    assert!(!checked("userspace").contains(sentence));
    let _daemon = scene.daemon(&["--path-manager", "kernel"]);
    assert!(scene.said().contains(sentence), "{}", scene.said());
}

/// As on a router of a mesh, whose default route is in another table.
fn no_address(scene: &Scene) {
    scene.on_host(|| {
        crate::program::ip("route del default dev up0");
        crate::program::ip("route del default dev up1");
    });
    let sentence =
        "no address can be used yet: no interface has a default route in the main table; --uplink names others";
    let mut command = scene.command(&["--check"]);
    let checked = text(&scene.on_host(|| command.output().expect("it runs")).stdout);
    assert!(checked.contains(sentence), "{checked}");
    let daemon = scene.daemon(&[]);
    assert!(scene.said().contains(sentence), "{}", scene.said());
    daemon.end_by("TERM");
    let _daemon = scene.daemon(&["--uplink", "up0"]);
    assert!(!scene.said().contains("no address can be used"), "{}", scene.said());
}
