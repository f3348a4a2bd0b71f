//! Roles of uplinks with a server: which of them carry traffic.

use crate::run::scene::{Scene, command, text, trial};
use crate::run::tcp::kill_first_uplink;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let trial = |name, work| trial("roles", name, work);
    vec![
        trial("a_metered_uplink_carries_until_its_quota_is_used_up_and_that_is_known_after_a_restart", quota),
        trial("a_backup_carries_streams_and_datagrams_only_while_no_other_works", backup),
    ]
}

/// A download of 8 MB, then datagrams.
fn load() -> String {
    format!(
        "{}
import urllib.request
assert len(urllib.request.urlopen('http://203.0.113.1:8000/8000000', timeout=60).read()) == 8_000_000
print(all(talk('203.0.113.1', bytes(1000)) for n in range(50)))",
        crate::run::datagrams::TALK
    )
}

/// Runs it, and returns the bytes received over the second uplink.
fn by_second(scene: &Scene, options: &[&str]) -> u64 {
    let before = scene.received("up1");
    let output = scene.run(options, &["python3", "-c", &load()]);
    assert_eq!(text(&output.stdout).trim(), "True", "{}", text(&output.stderr));
    scene.received("up1") - before
}

fn limit(scene: &Scene) {
    for n in [0, 1] {
        scene.in_world(|| command("tc", &format!("qdisc add dev down{n} root tbf rate 20mbit burst 32k limit 200k")));
    }
}

fn quota(scene: &Scene) {
    limit(scene);
    let state = format!("{}.state", scene.key);
    let uplinks = ["--uplink", "up0", "--uplink", "up1", "--metered", "up1"];
    let options = [&uplinks[..], &["--quota", "up1=1MB/month", "--state", &state]].concat();
    let first = by_second(scene, &options);
    assert!(first > 1_000_000, "it carries up to its quota: {first}");
    let second = by_second(scene, &options);
    // Not zero: on a busy machine the other uplink may be unresponsive for a moment.
    assert!(second < 700_000, "it is a backup from then on: {second}");
    let larger = [&uplinks[..], &["--quota", "up1=1GB/month", "--state", &state]].concat();
    let third = by_second(scene, &larger);
    assert!(third > 1_000_000, "the quota is larger now: {third}");
}

fn backup(scene: &Scene) {
    limit(scene);
    for role in ["--backup", "--metered"] {
        let received = by_second(scene, &["--uplink", "up0", "--uplink", "up1", role, "up1"]);
        // Without roles it would carry half. It carries a little if the other uplink is unresponsive for a moment on a
        // busy machine.
        assert!(received < 2_000_000, "{role}: {received}");
    }
    kill_first_uplink(scene);
    let received = by_second(scene, &["--uplink", "up0", "--uplink", "up1", "--backup", "up1"]);
    assert!(received > 8_000_000, "no other works: {received}");
}
