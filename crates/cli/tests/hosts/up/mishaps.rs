//! `up` with a server, while something happens to an uplink, the server, or a process.

use crate::up::scene::{Running, Scene, command, wait_until};
use crate::up::traffic::{DATAGRAM, NAME, PAGE, is};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The server's address, as the target sees it.
const BY_SERVER: &str = "198.51.100.1";

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

pub fn server_restarts() {
    let mut scene = Scene::new("server-restarts", true);
    for router in &scene.routers {
        let limit = || command("tc", "qdisc add dev near root tbf rate 20mbit burst 32k limit 200k");
        router.run(limit).expect("it can be entered");
    }
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
        let used = scene.status()["uplinks"][1]["quota_used_bytes"].as_u64();
        up.end_by("TERM");
        (received, used)
    };
    // Not zero: on a busy machine the other uplink may be unresponsive for a moment.
    let (received, _) = by_second(&["--backup", "up1"]);
    assert!(received.iter().all(|received| *received < 1_000_000), "a backup: {received:?}");
    let (received, used) = by_second(&["--metered", "up1", "--quota", "up1=500kB/month", "--state", &state]);
    assert!(received[0] > 500_000 && received[1] < 1_000_000, "metered: {received:?}");
    assert!(used >= Some(received[0] + received[1]), "{used:?} of {received:?}");
}

/// A download of 20 MB at about 4 MB/s.
fn download(scene: &Scene) -> Child {
    scene.on_host(|| {
        let script = "
import urllib.request, time
page, count = urllib.request.urlopen('http://198.51.100.2/20000000', timeout=60), 0
while part := page.read(100000):
    count += len(part)
    time.sleep(0.02)
print(count)";
        Command::new("python3").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("python runs")
    })
}

pub fn suspended() {
    let scene = Scene::new("suspended", true);
    let up = scene.up(&["--udp"]);
    for end in ["up", "serve"] {
        let signal = |signal: &str| if end == "up" { up.signal(signal) } else { scene.signal_server(signal) };
        let mut running = download(&scene);
        std::thread::sleep(Duration::from_secs(1));
        signal("STOP");
        std::thread::sleep(Duration::from_secs(10));
        signal("CONT");
        assert_eq!(scene.python(PAGE), is(BY_SERVER), "after {end} was stopped");
        assert_eq!(scene.python(DATAGRAM), is("over the river"), "after {end} was stopped");
        let mut count = String::new();
        std::io::Read::read_to_string(&mut running.stdout.take().expect("it was asked for"), &mut count).expect("text");
        assert!(running.wait().expect("it ends").success() && count.trim() == "20000000", "{end}: {count}");
    }
    up.end_by("TERM");
}
