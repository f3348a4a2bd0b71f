//! `up` without a server: connectivity of the host's programs with working and with failed uplinks.

use crate::up::scene::{Scene, ip, wait_until};
use crate::up::traffic::{DATAGRAM, NAME, NEIGHBOUR, PAGE, PAGE_V6, is};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;

/// The routers' addresses, as the target sees them.
const BY_FIRST: &str = "100.64.1.2";
const BY_SECOND: &str = "100.64.2.2";

/// Ten pages in sequence, each over its own connection, and the time of the slowest.
const PAGES: &str = "
slowest, seen = 0, set()
for n in range(10):
    began = time.monotonic()
    seen.add(urllib.request.urlopen('http://198.51.100.2/', timeout=20).read().decode())
    slowest = max(slowest, time.monotonic() - began)
print(*sorted(seen), slowest < 5)
";

pub fn everything() {
    let scene = Scene::new("straight", true);
    let before = scene.state();
    let up = scene.straight(&[]);
    let page = scene.python(PAGE).expect("it comes");
    assert!([BY_FIRST, BY_SECOND].contains(&page.as_str()), "{page}");
    assert_eq!(scene.python(DATAGRAM), is("over the river"));
    assert_eq!(scene.python(NAME), is("198.51.100.2"), "the router has no resolver, the host's has it");
    assert_eq!(scene.python(NEIGHBOUR), is("next door"));
    let error = scene.python(PAGE_V6).expect_err("no uplink has IPv6");
    assert!(error.contains("unreachable"), "{error}");
    let status = scene.status();
    assert_eq!((&status["command"], &status["uplinks"][0]["name"]), (&"up".into(), &"up0".into()), "{status}");
    assert!(status["flows"]["count"].as_u64() >= Some(1), "{status}");
    up.end_by("TERM");
    assert_eq!(scene.state(), before, "nothing is left");
}

pub fn as_its_unit_runs_it() {
    let scene = Scene::new("straight-unit", true);
    let before = scene.state();
    let place = std::env::temp_dir().join(format!("anabranch-unit-{}", std::process::id()));
    std::fs::create_dir(&place).expect("there is room");
    for (path, mode) in [(place.clone(), 0o755), (place.join("journal"), 0o777)] {
        std::fs::create_dir_all(&path).expect("there is room");
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    }
    let told = UnixDatagram::bind(place.join("notify")).expect("there is room");
    std::fs::set_permissions(place.join("notify"), Permissions::from_mode(0o777)).expect("it is ours");
    let state = || {
        let mut bytes = [0; 64];
        let length = told.recv(&mut bytes).expect("it is told");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let up = scene.as_a_unit(&place, &["--uplink", "up0", "--uplink", "up1", "--drain", "0"]);
    assert_eq!(state(), "READY=1");
    let page = scene.python(PAGE).expect("it comes");
    assert!([BY_FIRST, BY_SECOND].contains(&page.as_str()), "{page}");
    assert_eq!(scene.python(DATAGRAM), is("over the river"));
    up.end_by("TERM");
    assert_eq!(state(), "STOPPING=1");
    assert_eq!(scene.state(), before, "nothing is left");
    std::fs::remove_dir_all(&place).expect("it is ours");
}

pub fn silent_uplinks() {
    let scene = Scene::new("straight-silent", true);
    let up = scene.straight(&[]);
    for (dead, alive) in [(0, BY_SECOND), (1, BY_FIRST)] {
        let cut =
            |way: &str| scene.routers[dead].run(|| ip(&format!("link set far {way}"))).expect("it can be entered");
        cut("down");
        assert_eq!(scene.python(PAGES), is(&format!("{alive} True")), "router {dead} is dead");
        assert_eq!(scene.python(DATAGRAM), is("over the river"));
        assert_eq!(scene.python(NAME), is("198.51.100.2"));
        cut("up");
        scene.routers[dead].run(|| ip(&format!("route replace default via 100.64.{}.1", dead + 1))).expect("it can");
    }
    up.end_by("TERM");
}

pub fn carrier_and_address() {
    let scene = Scene::new("straight-carrier", true);
    let mut up = scene.straight(&[]);
    up.hear("uplink up0 can be used");
    scene.on_host(|| ip("link set up0 down"));
    up.hear("uplink up0 cannot be used any more");
    assert_eq!(scene.python(PAGES), is(&format!("{BY_SECOND} True")));
    scene.on_host(|| {
        ip("address add 10.2.0.77/24 dev up1");
        ip("address delete 10.2.0.2/24 dev up1");
        ip("address replace 10.2.0.77/24 dev up1");
        ip("route replace default via 10.2.0.1 dev up1 metric 101");
    });
    wait_until("the new address has its rule", || scene.state().iter().any(|line| line.contains("from 10.2.0.77 ")));
    wait_until("a page comes by the new address", || scene.python(PAGE) == is(BY_SECOND));
    assert_eq!(scene.python(DATAGRAM), is("over the river"));
    up.end_by("TERM");
    let mut up = scene.straight(&[]);
    up.hear("uplink up0 cannot be used");
    up.end_by("TERM");
}

/// The same over IPv6, and a datagram.
const PAGES_V6: &str = "
seen = set()
for n in range(10):
    seen.add(urllib.request.urlopen('http://[2001:db8:2::2]/', timeout=20).read().decode())
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.settimeout(1)
s.connect(('2001:db8:2::2', 7))
for attempt in range(10):
    s.send(b'over the river')
    try:
        print(*sorted(seen), s.recv(100).decode())
        break
    except socket.timeout:
        pass
";

pub fn over_ipv6() {
    let scene = Scene::new("straight-ipv6", true);
    scene.give_ipv6();
    // The routers translate IPv6 too.
    let (first, second) = ("2001:db8:a1::2", "2001:db8:a2::2");
    assert_eq!(scene.python(PAGE_V6), is(first), "without up");
    let before = scene.state();
    let up = scene.straight(&[]);
    let page = scene.python(PAGE_V6).expect("it comes");
    assert!([first, second].contains(&page.as_str()), "{page}");
    for (dead, alive) in [(0, second), (1, first)] {
        scene.silence(dead, true);
        assert_eq!(scene.python(PAGES_V6), is(&format!("{alive} over the river")), "router {dead} is dead");
        scene.silence(dead, false);
    }
    up.end_by("TERM");
    assert_eq!(scene.state(), before, "nothing is left");
}

pub fn portal() {
    let scene = Scene::new("straight-portal", true);
    let _portal = scene.portal(0);
    // The page has the client's address: a router's.
    let probe = ["--probe", "http://198.51.100.2/", "--probe-answer", "100.64."];
    let mut up = scene.straight(&probe);
    up.hear("uplink up0 leads to a portal: it is not used until that is gone");
    assert_eq!(scene.python(PAGES), is(&format!("{BY_SECOND} True")));
    assert_eq!(scene.python(DATAGRAM), is("over the river"));
    assert_eq!(scene.python(NAME), is("198.51.100.2"));
    assert_eq!(scene.status()["uplinks"][0]["portal"], true, "{}", scene.status());
    scene.end_portal(0);
    up.hear("the portal of uplink up0 is gone: it is used again");
    scene.routers[1].run(|| ip("link set far down")).expect("it can be entered");
    assert_eq!(scene.python(PAGES), is(&format!("{BY_FIRST} True")));
    assert_eq!(scene.python(DATAGRAM), is("over the river"));
    up.end_by("TERM");
}

pub fn roles_change() {
    let scene = Scene::new("straight-roles", true);
    let configured = |first: &str, second: &str, more: &str| {
        let roles = [("up0", first), ("up1", second)];
        let tables = roles.map(|(name, role)| format!("[[uplink]]\ninterface = \"{name}\"\nrole = \"{role}\"\n"));
        scene.file("anabranch.toml", &format!("{}[up]\ndrain = 0\n{more}", tables.concat()))
    };
    let configuration = |first: &str, second: &str| configured(first, second, "");
    let file = configuration("primary", "backup");
    let mut up = scene.configured(&file);
    assert_eq!(scene.python(PAGES), is(&format!("{BY_FIRST} True")));
    let mut download = scene.on_host(|| {
        let script = "
import urllib.request, time
page, count = urllib.request.urlopen('http://198.51.100.2/20000000', timeout=60), 0
while part := page.read(100000):
    count += len(part)
    time.sleep(0.02)
print(count)";
        let mut python = std::process::Command::new("python3");
        python.args(["-c", script]).stdout(std::process::Stdio::piped()).spawn().expect("python runs")
    });
    configuration("backup", "primary");
    up.signal("HUP");
    up.hear("the configuration was read again");
    wait_until("the other uplink is the first choice", || scene.python(PAGE) == is(BY_SECOND));
    assert_eq!(scene.status()["uplinks"][0]["role"], "backup");
    configuration("primary", "unknown");
    up.signal("HUP");
    up.hear("the configuration stays as it was");
    configured("backup", "primary", "idle = 7\nverbose = true\n");
    up.signal("HUP");
    up.hear("counts from now on; a restart is needed for idle\n");
    let mut count = String::new();
    std::io::Read::read_to_string(&mut download.stdout.take().expect("it was asked for"), &mut count).expect("text");
    assert!(download.wait().expect("it ends").success() && count.trim() == "20000000", "{count}");
    up.end_by("TERM");
}
