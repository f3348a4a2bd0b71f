//! A router's changes to its host, and their complete removal.

use crate::kernel::ip;
use crate::scene::{DEADLINE, Running, config, same, wait_for};
use anabranch_router::{Family, MeshInterface, Question, RouteConfig, RouteDaemon, RouteError, TABLE};
use anabranch_system::{Namespace, Need, missing};
use libtest_mimic::Trial;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Environment variable that makes this program the router to be killed.
const CHILD: &str = "ANABRANCH_ROUTE_CHILD";

pub fn trials() -> Vec<Trial> {
    let filtered: [(&str, fn()); 2] = [
        ("host::hellos_and_acknowledgments_have_priority", hellos_and_acknowledgments_have_priority),
        ("host::a_firewall_that_drops_what_is_forwarded_is_told", a_firewall_that_drops_what_is_forwarded_is_told),
    ];
    let no_filter = missing(&[Need::Programs(&["nft"])]);
    if let Some(reason) = &no_filter {
        filtered.iter().for_each(|(name, _)| eprintln!("skipped: {name}: {reason}"));
    }
    let tests: [(&str, fn()); 14] = [
        ("host::what_a_router_set_is_gone_when_it_ends", what_a_router_set_is_gone_when_it_ends),
        ("host::what_a_killed_router_left_is_removed_by_the_next", what_a_killed_router_left_is_removed_by_the_next),
        ("host::two_routers_do_not_share_a_table", two_routers_do_not_share_a_table),
        ("host::wrong_interfaces_are_told_in_a_sentence", wrong_interfaces_are_told_in_a_sentence),
        ("host::networks_that_cannot_be_advertised_are_told", networks_that_cannot_be_advertised_are_told),
        (
            "host::a_network_with_link_local_addresses_is_not_routed_whoever_tells_it",
            a_network_with_link_local_addresses_is_not_routed_whoever_tells_it,
        ),
        (
            "host::a_network_of_the_mesh_does_not_hide_a_link_that_is_in_it",
            a_network_of_the_mesh_does_not_hide_a_link_that_is_in_it,
        ),
        ("host::no_privilege_is_told_in_a_sentence", no_privilege_is_told_in_a_sentence),
        ("host::an_interface_that_goes_and_comes_is_used_again", an_interface_that_goes_and_comes_is_used_again),
        ("host::a_hosts_own_default_route_is_preferred", a_hosts_own_default_route_is_preferred),
        ("host::an_interface_that_was_away_forwards_again", an_interface_that_was_away_forwards_again),
        (
            "host::settings_that_another_program_changes_are_set_again",
            settings_that_another_program_changes_are_set_again,
        ),
        (
            "host::a_setting_that_cannot_be_set_again_does_not_end_the_router",
            a_setting_that_cannot_be_set_again_does_not_end_the_router,
        ),
        (
            "host::an_interface_whose_mtu_was_too_small_for_ipv6_is_used_again",
            an_interface_whose_mtu_was_too_small_for_ipv6_is_used_again,
        ),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let filtered = filtered.map(|entry| trial(entry).with_ignored_flag(no_filter.is_some()));
    tests.into_iter().map(trial).chain(filtered).collect()
}

fn namespace() -> Namespace {
    let namespace = Namespace::new().expect("namespaces were there a moment ago");
    namespace.run(|| ip("link set lo up")).expect("it can be entered");
    namespace
}

pub fn inside<T: Send>(namespace: &Namespace, work: impl FnOnce() -> T + Send) -> T {
    namespace.run(work).expect("it can be entered")
}

/// Two namespaces with a link between them: `e0` in both, numbers 1 and 2.
pub fn pair() -> [Namespace; 2] {
    use std::os::fd::AsRawFd;
    let (one, two) = (namespace(), namespace());
    let there = format!("/proc/{}/fd/{}", std::process::id(), two.file().as_raw_fd());
    inside(&one, || ip(&format!("link add e0 type veth peer name e0 netns {there}")));
    for (number, namespace) in [(1, &one), (2, &two)] {
        inside(namespace, || furnish(number));
    }
    let pair = [one, two];
    pair.iter().for_each(settled);
    pair
}

fn furnish(number: u8) {
    for key in ["all", "default", "e0"] {
        let key = format!("/proc/sys/net/ipv6/conf/{key}/accept_dad");
        std::fs::write(key, "0").expect("it is there");
    }
    ip(&format!("address add 10.9.0.{number}/24 dev e0"));
    ip(&format!("address add 10.9.9.{number}/32 dev lo"));
    ip("link set e0 up");
}

pub fn journal(namespace: &str) -> PathBuf {
    std::env::temp_dir().join(format!("anabranch-route-{}-{namespace}", std::process::id()))
}

/// A router on `e0` that changes kernel settings where necessary.
fn with_settings(name: &str) -> RouteConfig {
    let families = vec![Family::Ipv6, Family::Ipv4];
    RouteConfig { families, keep_settings: false, journal: Some(journal(name)), ..config(Family::Ipv4, 1) }
}

/// All state that a router may change, as printed by `ip`.
pub fn state(namespace: &Namespace) -> Vec<String> {
    let look = || {
        let mut text = String::new();
        for words in ["rule", "-6 rule", "route show table all", "-6 route show table all"] {
            let output = Command::new("ip").args(words.split_whitespace()).output().expect("ip runs");
            text += &String::from_utf8_lossy(&output.stdout);
        }
        for key in [
            "ipv4/conf/e0/forwarding",
            "ipv4/conf/e0/accept_redirects",
            "ipv6/conf/e0/force_forwarding",
            "ipv6/conf/all/forwarding",
            "ipv6/conf/e0/accept_redirects",
        ] {
            let value = std::fs::read_to_string(format!("/proc/sys/net/{key}")).unwrap_or_default();
            text += &format!("{key} {value}\n");
        }
        text.lines().map(str::to_owned).collect()
    };
    inside(namespace, look)
}

/// Waits until the link is up and the kernel's own reactions are over.
fn settled(namespace: &Namespace) {
    wait_for("the link to be up", || {
        let look =
            || Command::new("ip").args(["-6", "-o", "address", "show", "dev", "e0", "up", "scope", "link"]).output();
        let text = String::from_utf8_lossy(&inside(namespace, look).expect("ip runs").stdout).into_owned();
        let there = text.contains("fe80:") && !text.contains("tentative");
        let state = inside(namespace, || std::fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default());
        let routes = self::state(namespace);
        let quiet = !routes.iter().any(|line| line.contains("linkdown"));
        if there && quiet && state.contains("e0") { Ok(()) } else { Err(routes) }
    });
}

/// Waits until each has a route to the other's loopback.
pub fn routed(pair: &[Namespace; 2]) {
    for (namespace, other) in pair.iter().zip([2, 1]) {
        let wanted = format!("10.9.9.{other} via 10.9.0.{other} dev e0");
        wait_for("the route to the neighbour", || {
            let found = state(namespace);
            let ours = |line: &&String| line.contains("e0");
            let shown: Vec<String> = found.iter().filter(ours).cloned().collect();
            if found.iter().any(|line| line.starts_with(&wanted)) { Ok(()) } else { Err((other, shown)) }
        });
    }
}

/// RFC 4222, 2, recommendation 1: the kernel and wireless drivers are told which packets may wait.
fn hellos_and_acknowledgments_have_priority() {
    let pair = pair();
    let filter = |words: &str| {
        let run = || Command::new("nft").args(words.split_whitespace()).output().expect("nft runs");
        let output = inside(&pair[0], run);
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    filter("add table inet seen");
    filter("add chain inet seen out { type filter hook output priority 0 ; }");
    // By the type of the packet, the second byte of the header, and skb->priority.
    let (urgent, ordinary) = ([1, 5], [2, 3, 4]);
    for (types, priority) in [(&urgent[..], "0:106"), (&ordinary[..], "0:104")] {
        for kind in types {
            let packet = format!("meta l4proto 89 @th,8,8 {kind}");
            filter(&format!("add rule inet seen out {packet} meta priority {priority} counter accept"));
        }
    }
    filter("add rule inet seen out meta l4proto 89 counter comment others");
    let routers = pair.each_ref().map(|namespace| Running::start(namespace, config(Family::Ipv4, 1)));
    routed(&pair);
    wait_for("all types of packets at their priorities", || {
        let rules = filter("list table inet seen");
        let counters: Vec<&str> = rules.lines().filter(|line| line.contains("counter packets")).collect();
        let (others, types) = counters.split_last().expect("there are rules");
        assert!(others.contains("packets 0 "), "{rules}");
        let silent = types.iter().any(|line| line.contains("packets 0 "));
        if types.len() == 5 && !silent { Ok(()) } else { Err(rules) }
    });
    drop(routers);
}

fn what_a_router_set_is_gone_when_it_ends() {
    let pair = pair();
    let before = pair.each_ref().map(state);
    let routers = [("end-1", &pair[0]), ("end-2", &pair[1])]
        .map(|(name, namespace)| Running::start(namespace, with_settings(name)));
    routed(&pair);
    let during = state(&pair[0]);
    assert!(during.contains(&"ipv4/conf/e0/forwarding 1".to_owned()), "{during:#?}");
    assert!(during.iter().any(|line| line.contains("lookup 199 suppress_prefixlength 0")), "{during:#?}");
    for router in routers {
        router.stop().expect("it ends well");
    }
    for (namespace, before) in pair.iter().zip(before) {
        let mut now = state(namespace);
        let mut gone = before.clone();
        gone.retain(|line| !now.contains(line));
        now.retain(|line| !before.contains(line));
        assert!(now.is_empty() && gone.is_empty(), "new: {now:#?}\ngone: {gone:#?}");
    }
    for name in ["end-1", "end-2"] {
        // The directory that the test named stays, empty.
        std::fs::remove_dir(journal(name)).expect("it is there and empty");
    }
}

/// Whether this process is the router to be killed.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs that router, in the namespace in which it was started.
pub fn child() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut config = with_settings("killed");
    // The parent's directory, since the default depends on the process.
    config.journal = std::env::var_os(CHILD).map(PathBuf::from);
    let work = async {
        let daemon = RouteDaemon::start(config).await?;
        daemon.run(std::future::pending()).await
    };
    runtime.block_on(work).expect("it runs until it is killed");
}

/// A router in a process of its own.
pub struct Killed(Child);

impl Killed {
    /// Starts it in a namespace, on `e0` in both families.
    pub fn start(namespace: &Namespace, journal: &std::path::Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        // With mounts of its own, which a test may change.
        let mut command = Command::new("unshare");
        command.arg("--mount").arg(program);
        command.env(CHILD, journal).stdin(Stdio::null());
        Self(inside(namespace, || command.spawn()).expect("it starts"))
    }

    /// Runs mount or umount among its mounts.
    fn mount(&self, namespace: &Namespace, words: &[&str]) {
        let mounts = format!("--mount=/proc/{}/ns/mnt", self.0.id());
        let status = inside(namespace, || Command::new("nsenter").arg(mounts).args(words).status());
        assert!(status.expect("nsenter runs").success(), "{words:?}");
    }

    /// Kills it without a goodbye.
    pub fn kill(mut self) {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGKILL).expect("it runs");
        self.0.wait().expect("it ran");
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may already be dead.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn what_a_killed_router_left_is_removed_by_the_next() {
    let pair = pair();
    let before = state(&pair[0]);
    let other = Running::start(&pair[1], with_settings("other"));
    let child = Killed::start(&pair[0], &journal("killed"));
    routed(&pair);
    child.kill();
    let left = state(&pair[0]);
    assert!(left.iter().any(|line| line.contains("proto 199")), "{left:#?}");
    // The next router has another table and still cleans up.
    let next = RouteConfig { table: TABLE + 1, journal: Some(journal("killed")), ..with_settings("killed") };
    let next = Running::start(&pair[0], next);
    wait_for("what was left to be gone", || {
        let found = state(&pair[0]);
        if found.iter().any(|line| line.contains("199 ") && line.contains("lookup 199 ")) { Err(found) } else { Ok(()) }
    });
    next.stop().expect("it ends well");
    drop(other);
    wait_for("the host to be as before", || same(state(&pair[0]), before.clone()));
    for name in ["killed", "other"] {
        std::fs::remove_dir(journal(name)).expect("it is there and empty");
    }
}

fn two_routers_do_not_share_a_table() {
    let pair = pair();
    let first = Running::start(&pair[0], config(Family::Ipv4, 1));
    wait_for("the first", || if first.ask(Question::Status).is_null() { Err(()) } else { Ok(()) });
    let second = Running::start(&pair[0], config(Family::Ipv4, 1));
    let error = second.stop().expect_err("the table is taken");
    assert!(matches!(error, RouteError::AlreadyRuns { table: TABLE }), "{error}");
    first.stop().expect("it ends well");
    let none = inside(&pair[0], || anabranch_router::ask(TABLE, Question::Status));
    assert!(matches!(none, Err(RouteError::NotRunning { .. })), "{none:?}");
}

fn start(namespace: &Namespace, config: RouteConfig) -> Result<(), RouteError> {
    let begun = std::time::Instant::now();
    let outcome = Running::start(namespace, config).stop();
    assert!(begun.elapsed() < DEADLINE);
    outcome
}

fn wrong_interfaces_are_told_in_a_sentence() {
    let namespace = namespace();
    let with = |name: &str| RouteConfig {
        interfaces: vec![MeshInterface { name: name.to_owned(), point_to_point: false, cost: None }],
        ..config(Family::Ipv6, 0)
    };
    let said = |config| start(&namespace, config).expect_err("it cannot be").to_string();
    assert_eq!(said(with("wlan7")), "there is no network interface 'wlan7': there are lo");
    assert_eq!(said(with("lo")), "'lo' cannot be an interface of the mesh: it is the loopback interface");
    assert_eq!(said(config(Family::Ipv6, 0)), "name at least one interface with --interface: there are lo");
    inside(&namespace, || {
        ip("link add e0 type veth peer name e1");
        std::fs::write("/proc/sys/net/ipv6/conf/e0/addr_gen_mode", "1").expect("it is there");
        ip("link set e1 up");
        ip("link set e0 up");
    });
    wait_for("the link to be up", || {
        let state = inside(&namespace, || Command::new("ip").args(["link", "show", "dev", "e0"]).output());
        let text = String::from_utf8_lossy(&state.expect("ip runs").stdout).into_owned();
        if text.contains("state UP") { Ok(()) } else { Err(text) }
    });
    let said = said(with("e0"));
    assert!(said.starts_with("'e0' has no link-local IPv6 address, which the protocol needs"), "{said}");
}

fn networks_that_cannot_be_advertised_are_told() {
    let pair = pair();
    let said = |network: &str, length| {
        let networks = vec![(network.parse().expect("an address"), length)];
        start(&pair[0], RouteConfig { networks, ..config(Family::Ipv4, 1) }).expect_err("it cannot be").to_string()
    };
    assert_eq!(said("224.0.0.0", 4), "--network 224.0.0.0/4 cannot be advertised: it is of multicast");
    assert_eq!(
        said("2001:db8::", 32),
        "--network 2001:db8::/32 cannot be advertised: its address family is not routed"
    );
}

/// Our table comes before the main one: a route there to f000::/4, in which fe80::/10 is, would take all link-local packets
/// of the host.
fn a_network_with_link_local_addresses_is_not_routed_whoever_tells_it() {
    let pair = pair();
    inside(&pair[1], || {
        ip("link add lan type veth peer name far");
        for address in ["f000::1/4", "fd01::1/64"] {
            ip(&format!("address add {address} dev lan nodad"));
        }
        ip("link set lan up");
        ip("link set far up");
    });
    let teller = RouteConfig { passive: vec!["lan".to_owned()], ..config(Family::Ipv6, 1) };
    let routers = [Running::start(&pair[0], config(Family::Ipv6, 1)), Running::start(&pair[1], teller)];
    wait_for("the other network of that router", || {
        let found = state(&pair[0]);
        if found.iter().any(|line| line.starts_with("fd01::/64 via")) { Ok(()) } else { Err(found) }
    });
    let told = routers[0].ask(Question::Routes);
    assert!(told.to_string().contains("f000::/4"), "it was told: {told}");
    let found = state(&pair[0]);
    assert!(!found.iter().any(|line| line.starts_with("f000::/4")), "{found:#?}");
}

/// Our table comes before the main one, in which the link's network is.
fn a_network_of_the_mesh_does_not_hide_a_link_that_is_in_it() {
    let pair = pair();
    inside(&pair[0], || {
        ip("link add lan type veth peer name far");
        ip("address add 10.77.0.1/24 dev lan");
        ip("link set lan up");
        ip("link set far up");
    });
    let networks = vec![("10.0.0.0".parse().expect("an address"), 8), ("10.77.0.9".parse().expect("an address"), 32)];
    let teller = RouteConfig { networks, ..config(Family::Ipv4, 1) };
    let router = Running::start(&pair[0], config(Family::Ipv4, 1));
    let _other = Running::start(&pair[1], teller);
    let leads = |to: &str, over: &str| {
        let get = || Command::new("ip").args(["route", "get", to]).output().expect("ip runs");
        let way = String::from_utf8_lossy(&inside(&pair[0], get).stdout).into_owned();
        if way.contains(over) { Ok(()) } else { Err(way) }
    };
    wait_for("the way to the network", || leads("10.78.0.5", "via 10.9.0.2 dev e0"));
    assert_eq!(leads("10.77.0.5", "dev lan"), Ok(()));
    // A host of the mesh in the link's network is more specific than both.
    assert_eq!(leads("10.77.0.9", "via 10.9.0.2 dev e0"), Ok(()));
    inside(&pair[0], || ip("link set lan down"));
    wait_for("the way without the link", || leads("10.77.0.5", "via 10.9.0.2 dev e0"));
    inside(&pair[0], || ip("link set lan up"));
    wait_for("the link", || leads("10.77.0.5", "dev lan"));
    let status = router.ask(Question::Status);
    assert_eq!((&status["routes_and_rules_restored"], &status["routes_refused_by_the_kernel"]), (&0.into(), &0.into()));
    router.stop().expect("it ends well");
    let found = state(&pair[0]);
    assert!(!found.iter().any(|line| line.contains("proto 199")), "{found:#?}");
}

fn no_privilege_is_told_in_a_sentence() {
    let namespace = namespace();
    inside(&namespace, || ip("link add e0 type veth peer name e1"));
    // Capabilities are per thread: this one drops its own.
    let outcome = inside(&namespace, || {
        drop_capabilities();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(RouteDaemon::start(config(Family::Ipv6, 1))).map(drop)
    });
    assert!(matches!(outcome, Err(RouteError::NoPermission)), "{outcome:?}");
}

/// Drops the calling thread's capabilities.
#[allow(unsafe_code)]
fn drop_capabilities() {
    use nix::libc;
    let mut header: [u32; 2] = [0x2008_0522, 0];
    let data = [0_u32; 6];
    // SAFETY: capset(2), version 3: a header and two sets of three words, which it reads.
    let outcome = unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), data.as_ptr()) };
    assert_eq!(outcome, 0, "capabilities can always be dropped");
}

fn an_interface_that_goes_and_comes_is_used_again() {
    let pair = pair();
    let routers = pair.each_ref().map(|namespace| Running::start(namespace, config(Family::Ipv4, 1)));
    routed(&pair);
    inside(&pair[0], || ip("link set e0 down"));
    wait_for("the route to be gone", || {
        let found = state(&pair[0]);
        if found.iter().any(|line| line.contains("proto 199") && line.contains(" via ")) { Err(found) } else { Ok(()) }
    });
    inside(&pair[0], || ip("link set e0 up"));
    routed(&pair);
    // Recreated under the same name.
    inside(&pair[0], || ip("link delete e0"));
    link_again(&pair);
    routed(&pair);
    drop(routers);
}

/// Makes the link between two namespaces anew.
fn link_again(pair: &[Namespace; 2]) {
    let there = {
        use std::os::fd::AsRawFd;
        format!("/proc/{}/fd/{}", std::process::id(), pair[1].file().as_raw_fd())
    };
    inside(&pair[0], || ip(&format!("link add e0 type veth peer name e0 netns {there}")));
    for (number, namespace) in [(1, &pair[0]), (2, &pair[1])] {
        inside(namespace, || {
            ip("address flush dev lo scope global");
            furnish(number);
        });
    }
}

/// The settings of `e0` by which a router forwards, if the kernel has them: IPv6's came with Linux 6.17.
const FORWARDING: [&str; 2] = ["net/ipv4/conf/e0/forwarding", "net/ipv6/conf/e0/force_forwarding"];

/// Waits until `e0` forwards both families.
fn forwards(namespace: &Namespace) {
    wait_for("e0 to forward", || {
        let read = |key: &str| std::fs::read_to_string(format!("/proc/sys/{key}"));
        let values: Vec<String> = inside(namespace, || FORWARDING.iter().filter_map(|key| read(key).ok()).collect());
        if values.iter().all(|value| value == "1\n") { Ok(()) } else { Err(values) }
    });
}

/// Like a wireless card that is pulled out and put in again: its settings are those of any new interface.
fn an_interface_that_was_away_forwards_again() {
    let pair = pair();
    let router = Running::start(&pair[0], with_settings("away"));
    forwards(&pair[0]);
    inside(&pair[0], || ip("link delete e0"));
    wait_for("the router to see that", || same(router.ask(Question::Status)["interfaces_lost"].as_u64(), Some(1)));
    link_again(&pair);
    forwards(&pair[0]);
    let status = router.ask(Question::Status);
    assert_eq!(status["settings_restored"], 0, "no other program did anything");
    router.stop().expect("it ends well");
    std::fs::remove_dir(journal("away")).expect("it is there and empty");
}

fn a_firewall_that_drops_what_is_forwarded_is_told() {
    let pair = pair();
    inside(&pair[0], || {
        let chain =
            "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0 ; policy drop ; }";
        let status = Command::new("nft").arg(chain).status().expect("nft runs");
        assert!(status.success());
    });
    let (tell, heard) = std::sync::mpsc::channel();
    let router =
        Running::start_telling(&pair[0], with_settings("barrier"), move |news| drop(tell.send(news.to_owned())));
    let told = heard.recv_timeout(DEADLINE).expect("it tells at the start");
    assert!(told.contains("(policy of the nftables chain ip filter FORWARD)"), "{told}");
    router.stop().expect("it ends well");
    std::fs::remove_dir(journal("barrier")).expect("it is there and empty");
}

fn settings_that_another_program_changes_are_set_again() {
    let pair = pair();
    let before = state(&pair[0]);
    let (tell, heard) = std::sync::mpsc::channel();
    let config = with_settings("changed");
    let router = Running::start_telling(&pair[0], config, move |news| drop(tell.send(news.to_owned())));
    forwards(&pair[0]);
    inside(&pair[0], || {
        for key in FORWARDING {
            let path = format!("/proc/sys/{key}");
            std::fs::metadata(&path).map_or(Ok(()), |_| std::fs::write(path, "0")).expect("it can be written");
        }
    });
    wait_for("the router to see that", || {
        let restored = router.ask(Question::Status)["settings_restored"].as_u64();
        if restored > Some(0) { Ok(()) } else { Err(restored) }
    });
    forwards(&pair[0]);
    let told: Vec<String> = heard.try_iter().collect();
    assert!(told.iter().any(|news| news.starts_with("another program changed net.ipv")), "{told:#?}");
    router.stop().expect("it ends well");
    assert_eq!(state(&pair[0]), before);
    std::fs::remove_dir(journal("changed")).expect("it is there and empty");
}

fn a_setting_that_cannot_be_set_again_does_not_end_the_router() {
    let pair = pair();
    let other = Running::start(&pair[1], with_settings("writable"));
    let mut child = Killed::start(&pair[0], &journal("read-only"));
    routed(&pair);
    forwards(&pair[0]);
    let path = format!("/proc/sys/{}", FORWARDING[0]);
    child.mount(&pair[0], &["mount", "-o", "bind,ro", &path, &path]);
    inside(&pair[0], || std::fs::write(&path, "0")).expect("it can be written among our mounts");
    // Longer than it takes to see that, and to try again.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(inside(&pair[0], || std::fs::read_to_string(&path)).expect("it is there"), "0\n");
    assert!(child.0.try_wait().expect("it is our child").is_none(), "the router has ended");
    child.mount(&pair[0], &["umount", &path]);
    forwards(&pair[0]);
    child.kill();
    drop(other);
    for name in ["read-only", "writable"] {
        std::fs::remove_dir_all(journal(name)).expect("it is there");
    }
}

/// The kernel ends IPv6 on an interface whose MTU is below 1,280, and begins anew when it is that again.
fn an_interface_whose_mtu_was_too_small_for_ipv6_is_used_again() {
    let pair = pair();
    let routers = pair.each_ref().map(|namespace| Running::start(namespace, config(Family::Ipv4, 1)));
    routed(&pair);
    inside(&pair[0], || ip("link set e0 mtu 1200"));
    wait_for("the routers to see that", || same(routers[1].ask(Question::Neighbors), serde_json::json!([])));
    inside(&pair[0], || ip("link set e0 mtu 1500"));
    routed(&pair);
    drop(routers);
}

fn a_hosts_own_default_route_is_preferred() {
    let pair = pair();
    let gateway = RouteConfig {
        networks: vec![("0.0.0.0".parse().expect("an address"), 0), ("192.0.2.0".parse().expect("an address"), 24)],
        ..config(Family::Ipv4, 1)
    };
    let routers = [Running::start(&pair[0], config(Family::Ipv4, 1)), Running::start(&pair[1], gateway)];
    let way = |to: &str| {
        let get = || Command::new("ip").args(["route", "get", to]).output().expect("ip runs");
        String::from_utf8_lossy(&inside(&pair[0], get).stdout).into_owned()
    };
    wait_for("the mesh's default route", || {
        let way = way("203.0.113.1");
        if way.contains("via 10.9.0.2") { Ok(()) } else { Err(way) }
    });
    inside(&pair[0], || ip("route add default via 10.9.0.77 dev e0"));
    assert!(way("203.0.113.1").contains("via 10.9.0.77"), "{}", way("203.0.113.1"));
    assert!(way("192.0.2.1").contains("via 10.9.0.2"), "{}", way("192.0.2.1"));
    drop(routers);
}
