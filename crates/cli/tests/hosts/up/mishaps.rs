//! `up` with a server, while something happens to an uplink, the server, or a process.

use crate::program::complaint;
use crate::up::scene::{Running, Scene, command, ip, wait_until};
use crate::up::traffic::{DATAGRAM, NAME, PAGE, is};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The server's address, as the target sees it.
const BY_SERVER: &str = "198.51.100.1";

const DAY: i64 = 86_400;

/// From 2026 to 1972.
const TO_THE_PAST: i64 = -20_000 * DAY;

/// A page with its bytes counted.
const DOWNLOAD: &str = "print(len(urllib.request.urlopen('http://198.51.100.2/3000000', timeout=30).read()))";

pub fn portal() {
    let scene = Scene::new("server-portal", false);
    let _portal = scene.portal(0);
    let mut starts = scene.command(&["--probe", "http://198.51.100.2/", "--probe-answer", "100.64."]);
    let mut up = scene.on_host(|| Running::new(starts.stderr(Stdio::piped())));
    up.hear("uplink up0 leads to a portal: it is not used until that is gone");
    wait_until("a page comes", || scene.python(PAGE) == is(BY_SERVER));
    let before = scene.received("up0");
    assert_eq!(scene.python(DOWNLOAD), is("3000000"));
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    assert_eq!(scene.python(DATAGRAM), is("over the river"));
    assert_eq!(scene.python(NAME), is("198.51.100.2"));
    let received = scene.received("up0") - before;
    assert!(received < 100_000, "{received} bytes came by the uplink with the portal");
    assert_eq!(scene.status()["uplinks"][0]["portal"], true, "{}", scene.status());
    scene.end_portal(0);
    up.hear("the portal of uplink up0 is gone: it is used again");
    scene.silence(1, true);
    assert_eq!(scene.python(DOWNLOAD), is("3000000"));
    assert_eq!(scene.python(DATAGRAM), is("over the river"));
    up.end_by("TERM");
}

pub fn device_is_removed() {
    let scene = Scene::new("device-removed", true);
    let mut up = scene.up(&["--udp"]);
    scene.on_host(|| ip("link delete anabranch0-0"));
    up.hear("error: another program has removed the device anabranch0-0");
    assert_eq!(up.end().0.code(), Some(2));
    // It has removed the rest.
    let rules = scene.on_host(|| command("ip", "rule show"));
    assert!(!rules.contains("proto 198"), "{rules}");
}

/// All rules, and our routes. Rules of the same priority are shown in the order in which they were set.
fn rules_and_routes(scene: &Scene, family: &str) -> BTreeSet<String> {
    let show = |what: &str| command("ip", &format!("{family} {what}"));
    let shown = scene.on_host(|| show("rule show") + &show("route show table all proto 198"));
    shown.lines().map(str::to_owned).collect()
}

pub fn rules_are_removed(udp: bool) {
    let scene = Scene::new(&format!("rules-removed-{udp}"), udp);
    let mut up = scene.up(if udp { &["--udp"] } else { &[] });
    let shown = || ["-4", "-6"].map(|family| rules_and_routes(&scene, family));
    let before = shown();
    // As `systemd-networkd` does when it starts.
    let flush = ["rule flush", "-6 rule flush", "route flush table all", "-6 route flush table all"];
    for step in flush {
        scene.on_host(|| ip(&format!("{step} proto 198")));
    }
    up.hear("another program removed rules or routes of the default route: ");
    wait_until("the rules are back", || shown() == before);
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    up.end_by("TERM");
    let left = shown();
    assert!(!left.iter().flatten().any(|rule| rule.contains("proto 198")), "{left:?}");
}

pub fn rules_are_removed_without_ipv6() {
    let scene = Scene::new("rules-removed-without-ipv6", false);
    let mut up = scene.up(&[]);
    let shown = || rules_and_routes(&scene, "-4");
    let before = shown();
    scene.on_host(|| std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").expect("it can be switched off"));
    up.hear("not complete, which is tried again each second: `ip address add fd61:6e61:6272:");
    for step in ["-4 rule flush", "-4 route flush table all"] {
        scene.on_host(|| ip(&format!("{step} proto 198")));
    }
    wait_until("the rules are back", || shown() == before);
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    up.end_by("TERM");
}

pub fn key_changes() {
    let scene = Scene::new("key-changes", true);
    let file = scene.file("anabranch.toml", "[up]\n");
    let mut up = scene.up(&["--udp", "--config", &file]);
    up.signal("HUP");
    up.hear("the configuration was read again and counts from now on\n");
    let other = scene.place.join("other");
    assert!(scene.anabranch(&["key", &other.display().to_string()]).status().expect("the program runs").success());
    std::fs::rename(other, scene.place.join("key")).expect("it is there");
    up.signal("HUP");
    up.hear("counts from now on; a restart is needed for key\n");
    std::fs::write(scene.place.join("key"), "no key").expect("it is there");
    up.signal("HUP");
    up.hear("the configuration stays as it was: ");
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    up.end_by("TERM");
}

/// As OpenVPN's `redirect-gateway def1`.
pub fn halves() {
    let scene = Scene::new("halves", false);
    let half = |half: &str| scene.on_host(|| ip(&format!("route add {half} dev lan0")));
    half("128.0.0.0/1");
    let mut up = scene.on_host(|| Running::new(scene.command(&[]).stderr(Stdio::piped())));
    up.hear("which is not carried: 128.0.0.0/1 by lan0");
    half("0.0.0.0/1");
    up.hear("which is not carried: 0.0.0.0/1 by lan0, 128.0.0.0/1 by lan0");
    for half in ["0.0.0.0/1", "128.0.0.0/1"] {
        scene.on_host(|| ip(&format!("route delete {half}")));
    }
    up.hear("no other route takes much");
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    up.end_by("TERM");
}

pub fn no_terminal() {
    let scene = Scene::new("no-terminal", true);
    let before = scene.state();
    // A kill switch would stay.
    let mut command = scene.command(&["--udp", "--kill-switch", "--live"]);
    let output = scene.on_host(|| command.output().expect("the program runs"));
    assert!(complaint(&output).starts_with("error: --live: this needs a terminal"));
    assert_eq!(scene.state(), before);
}

pub fn server_is_silent() {
    let scene = Scene::new("server-is-silent", true);
    let mut up = scene.up(&["--udp"]);
    scene.signal_server("STOP");
    up.hear("does not answer over up0, up1; it is asked again");
    scene.signal_server("CONT");
    up.hear("answers over up0, up1");
    up.end_by("TERM");
}

pub fn udp_at_one_end() {
    for udp in [false, true] {
        let scene = Scene::new(&format!("udp-at-one-end-{udp}"), !udp);
        let options: &[&str] = if udp { &["--udp"] } else { &[] };
        let mut up = scene.on_host(|| Running::new(scene.command(options).stderr(Stdio::piped())));
        up.hear("answers for datagrams, not for streams: only one end has --udp");
        up.end_by("TERM");
    }
}

pub fn named_twice() {
    let scene = Scene::new("named-twice", true);
    let up = scene.up(&["--udp", "--uplink", "up0"]);
    assert_eq!(scene.python(PAGE), is(BY_SERVER));
    up.end_by("TERM");
}

pub fn server_is_this_host() {
    let scene = Scene::new("server-is-here", true);
    let key = scene.place.join("key");
    for server in ["10.1.0.2:4433", "127.0.0.1:4433"] {
        let mut up = scene.anabranch(&["up", "--server", server, "--dry-run", "--key"]);
        let said = scene.on_host(|| complaint(&up.arg(&key).output().expect("the program runs")));
        assert!(said.contains("the server is this host"), "{said}");
    }
}

/// Slows both uplinks, so that a download needs both.
fn slow(scene: &Scene) {
    for router in &scene.routers {
        let limit = || command("tc", "qdisc add dev near root tbf rate 20mbit burst 32k limit 200k");
        router.run(limit).expect("it can be entered");
    }
}

pub fn server_restarts() {
    let mut scene = Scene::new("server-restarts", true);
    slow(&scene);
    let state = scene.place.join("state").display().to_string();
    // What comes by the second uplink of a download, before and after a restart.
    let mut by_second = |role: &[&str]| {
        let up = scene.up(&[&["--udp"], role].concat());
        let received = [false, true].map(|restart| {
            if restart {
                scene.restart_server(true);
                wait_until("a page comes", || scene.python(PAGE) == is(BY_SERVER));
            }
            let before = scene.received("up1");
            assert_eq!(scene.python(DOWNLOAD), is("3000000"));
            assert_eq!(scene.python(DATAGRAM), is("over the river"));
            scene.received("up1") - before
        });
        // The quota is updated once a second.
        if role.contains(&"--quota") {
            let used = || scene.status()["uplinks"][1]["quota_used_bytes"].as_u64();
            wait_until("all is counted", || used() >= Some(received.iter().sum()));
        }
        up.end_by("TERM");
        received
    };
    // Not zero: on a busy machine the other uplink may be unresponsive for a moment.
    let received = by_second(&["--backup", "up1"]);
    assert!(received.iter().all(|received| *received < 1_000_000), "a backup: {received:?}");
    let received = by_second(&["--metered", "up1", "--quota", "up1=500kB/month", "--state", &state]);
    assert!(received[0] > 500_000 && received[1] < 1_000_000, "metered: {received:?}");
}

/// A download at about 4 MB/s through these proxies of Python's.
fn download(scene: &Scene, bytes: u32, proxies: &str) -> Child {
    scene.on_host(|| {
        let script = format!(
            "
import urllib.request, time
opener = urllib.request.build_opener(urllib.request.ProxyHandler({proxies}))
page, count = opener.open('http://198.51.100.2/{bytes}', timeout=60), 0
while part := page.read(100000):
    count += len(part)
    time.sleep(0.02)
print(count)"
        );
        Command::new("python3").args(["-c", &script]).stdout(Stdio::piped()).spawn().expect("python runs")
    })
}

/// The number of bytes of a download that succeeds.
fn finished(running: &mut Child) -> String {
    let mut count = String::new();
    running.stdout.take().expect("it was asked for").read_to_string(&mut count).expect("text");
    assert!(running.wait().expect("it ends").success(), "{count}");
    count.trim().to_owned()
}

pub fn suspended() {
    let scene = Scene::new("suspended", true);
    let up = scene.up(&["--udp"]);
    for end in ["up", "serve"] {
        let signal = |signal: &str| if end == "up" { up.signal(signal) } else { scene.signal_server(signal) };
        let mut running = download(&scene, 20_000_000, "{}");
        std::thread::sleep(Duration::from_secs(1));
        signal("STOP");
        std::thread::sleep(Duration::from_secs(10));
        signal("CONT");
        assert_eq!(scene.python(PAGE), is(BY_SERVER), "after {end} was stopped");
        assert_eq!(scene.python(DATAGRAM), is("over the river"), "after {end} was stopped");
        assert_eq!(finished(&mut running), "20000000", "{end}");
    }
    up.end_by("TERM");
}

/// A step of one end's clock during a download through `up` and one through `proxy`; then new flows of each kind.
fn step(scene: &Scene, end: &str, seconds: i64) {
    let mut downloads = ["{}", "{'http': 'http://127.0.0.1:1080'}"].map(|proxies| download(scene, 8_000_000, proxies));
    std::thread::sleep(Duration::from_secs(1));
    let before = scene.status()["now"].as_i64().expect("a time");
    scene.clocks().set(end, seconds);
    if end == "host" {
        let moved = scene.status()["now"].as_i64().expect("a time") - before;
        assert!(moved.abs() > 300 * DAY, "the clock was set: {moved} s");
    }
    assert_eq!(scene.python(PAGE), is(BY_SERVER), "{end}: {seconds}");
    assert_eq!(scene.python(DATAGRAM), is("over the river"), "{end}: {seconds}");
    assert_eq!(scene.python(NAME), is("198.51.100.2"), "{end}: {seconds}");
    for running in &mut downloads {
        assert_eq!(finished(running), "8000000", "{end}: {seconds}");
    }
}

pub fn clock_is_set() {
    let scene = Scene::with_clocks("clock", true);
    slow(&scene);
    let state = scene.place.join("state").display().to_string();
    let options = ["--udp", "--metered", "up1", "--quota", "up1=5GB/day", "--state", &state];
    let used = || scene.status()["uplinks"][1]["quota_used_bytes"].as_u64().expect("it is counted");
    let up = scene.up(&options);
    let mut proxy = scene.on_host(|| {
        let mut command =
            scene.anabranch(&["proxy", "--udp", "--server", "203.0.113.1:4433", "--listen", "127.0.0.1:1080"]);
        command.arg("--key").arg(scene.place.join("key")).arg("--journal").arg(scene.place.join("journal-proxy"));
        Running::new(command.stderr(Stdio::piped()))
    });
    proxy.hear("answers over");
    // The quota is updated once a second.
    let download_once = || assert_eq!(scene.python(DOWNLOAD), is("3000000"));
    download_once();
    std::thread::sleep(Duration::from_secs(2));
    let today = used();
    assert!(today > 500_000, "both uplinks carry it: {today}");
    for (end, seconds) in [("host", 400 * DAY), ("host", TO_THE_PAST), ("server", TO_THE_PAST)] {
        step(&scene, end, seconds);
    }
    std::thread::sleep(Duration::from_secs(2));
    scene.clocks().set("host", 0);
    std::thread::sleep(Duration::from_secs(2));
    assert!(used() >= today, "{today} bytes were used before the clock was set, {} after", used());
    up.end_by("TERM");
    // Both ends begin anew, decades apart.
    let up = scene.up(&options);
    download_once();
    assert_eq!(scene.python(DATAGRAM), is("over the river"));
    assert!(used() >= today, "{today} bytes were used before the clock was set, {} after a restart", used());
    up.end_by("TERM");
    proxy.end_by("TERM");
}
