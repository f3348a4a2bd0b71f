//! Nothing is left after the program, however it ends; state of other programs is untouched.

use crate::kernel::ip;
use crate::scene::{PORT, Scene, attached, output, tunnelled};
use anabranch_attach::{Attachment, HostError, asked_to_end, listen_for_the_end, plan};
use libtest_mimic::Trial;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Environment variable that makes the test program a child: the journal's directory.
const CHILD: &str = "ANABRANCH_TEST_HOST_CHILD";

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 12] = [
        ("left_behind::nothing_after_sigterm", after_sigterm),
        ("left_behind::nothing_after_kill_and_the_next_start", after_kill),
        ("left_behind::two_instances_do_not_disturb_each_other", two_instances),
        ("left_behind::what_others_made_is_left_alone", others),
        ("left_behind::a_plan_changes_nothing_and_is_what_is_done", dry_run),
        ("left_behind::a_port_in_use_is_named", port_in_use),
        ("left_behind::an_interface_that_is_not_there_is_named", no_interface),
        ("left_behind::uplinks_without_an_address_of_the_servers_kind_are_told", other_family),
        ("left_behind::a_journal_that_cannot_be_written_changes_nothing", no_journal),
        ("left_behind::without_room_for_the_journal_nothing_changes", no_room),
        ("left_behind::without_the_right_to_it_nothing_changes", no_right),
        ("left_behind::without_nft_nothing_changes", no_nft),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

/// Whether this process is the child that attaches a stack and waits.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Attaches a stack, reports that, and waits to be told to end.
pub fn child() {
    let journal = std::env::var_os(CHILD).expect("we are a child");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut uplinks = Scene::uplinks_noted_in(Path::new(&journal), &[]);
        uplinks.ports = std::env::args().filter_map(|word| word.parse().ok()).collect();
        listen_for_the_end().expect("signals can be heard");
        let attached = attached(uplinks).await;
        let said = attached.as_ref().map_or_else(ToString::to_string, |_| "attached".to_owned());
        std::io::stdout().write_all(format!("{said}\n").as_bytes()).expect("the test reads");
        let Ok(attached) = attached else { return };
        asked_to_end().await.expect("signals can be heard");
        attached.detach().await.expect("all is undone");
    });
}

/// A child whose stack is attached.
fn start(scene: &Scene, ports: &[u16]) -> Child {
    let mut child = scene.in_ours(|| {
        let mut command = Command::new(std::env::current_exe().expect("we run"));
        command.args(ports.iter().map(u16::to_string)).env(CHILD, scene.journal()).stdout(Stdio::piped());
        command.spawn().expect("it can run again")
    });
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("it is piped");
    BufReader::new(output).read_line(&mut line).expect("it says something");
    assert_eq!(line, "attached\n");
    child
}

/// The error of a child that cannot attach its stack, with `words` before its command.
fn complaint(scene: &Scene, words: &[&str], path: Option<&str>) -> String {
    let before = scene.state();
    let output = scene.in_ours(|| {
        let us = std::env::current_exe().expect("we run");
        let mut command = match words.split_first() {
            Some((program, words)) => {
                let mut command = Command::new(program);
                command.args(words).arg(us);
                command
            }
            None => Command::new(us),
        };
        command.envs(path.map(|path| ("PATH", path)));
        command.env(CHILD, scene.journal()).output().expect("it can run")
    });
    scene.assert_as_before(&before);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn end(mut child: Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it lives");
    let status = child.wait().expect("it ends");
    assert_eq!(status.success(), signal == Signal::SIGTERM, "{status}");
}

fn after_sigterm() {
    let scene = Scene::new();
    let before = scene.state();
    let child = start(&scene, &[PORT]);
    assert_ne!(scene.state(), before);
    end(child, Signal::SIGTERM);
    scene.assert_as_before(&before);
}

fn after_kill() {
    let scene = Scene::new();
    let before = scene.state();
    for _ in 0..2 {
        end(start(&scene, &[PORT]), Signal::SIGKILL);
    }
    assert_ne!(scene.state(), before, "a killed program cannot clean up");
    assert_eq!(output_in(&scene, "ip", "link show type tun"), "", "but its devices are gone");
    end(start(&scene, &[PORT]), Signal::SIGTERM);
    scene.assert_as_before(&before);
}

fn output_in(scene: &Scene, program: &str, words: &str) -> String {
    scene.in_ours(|| output(program, words))
}

fn two_instances() {
    let scene = Scene::new();
    let before = scene.state();
    let first = start(&scene, &[PORT]);
    let only_first = scene.state();
    let second = start(&scene, &[PORT + 1]);
    let both = scene.state();
    // It was already open for the first, and stays open for the second.
    end(first, Signal::SIGTERM);
    let only_second = scene.state();
    assert!(only_second.iter().any(|line| line.contains("ipv4/conf/up0/forwarding = 1")));
    assert!(only_second.iter().any(|line| line.contains("anabranch_1")));
    assert!(only_second.iter().all(|line| both.contains(line)));
    let third = start(&scene, &[PORT]);
    end(second, Signal::SIGKILL);
    end(third, Signal::SIGTERM);
    // The killed child's changes stay until the next start.
    end(start(&scene, &[PORT]), Signal::SIGTERM);
    scene.assert_as_before(&before);
    assert_ne!(only_first, both);
}

fn others() {
    let scene = Scene::new();
    scene.in_ours(|| {
        ip("rule add priority 198 from 198.18.0.2 lookup 4242");
        ip("-6 rule add priority 198 iif up0 lookup 4242");
        ip("route add unreachable 192.0.2.0/24 table 198180001");
        ip("route add unreachable 192.0.2.0/24 table 4242 protocol 198");
        output("nft", "add table inet anabranch_1");
        output("nft", "add table inet anabranch_mine");
        output("nft", "add table ip anabranch_2");
        ip("link add anabranch3-0 type veth peer name foreign");
        ip("route add 198.18.4.0/24 dev up0");
        std::fs::write("/proc/sys/net/ipv4/conf/up1/forwarding", "1").expect("we may");
    });
    let before = scene.state();
    let child = start(&scene, &[PORT]);
    end(child, Signal::SIGKILL);
    end(start(&scene, &[PORT]), Signal::SIGTERM);
    scene.assert_as_before(&before);
}

fn dry_run() {
    let scene = Scene::new();
    let before = scene.state();
    let attachment = Attachment::Uplinks(scene.uplinks(&[PORT]));
    let plan = scene.in_ours(|| plan(&attachment)).expect("there is nothing in the way");
    scene.assert_as_before(&before);
    let commands: String = plan.steps.iter().map(|step| format!("{step}\n")).collect();
    // The printed commands have the same effect as the setup.
    scene.in_ours(|| {
        let shell = Command::new("sh").args(["-ec", &commands]).output().expect("there is a shell");
        assert!(shell.status.success(), "{}\n{commands}", String::from_utf8_lossy(&shell.stderr));
    });
    let by_hand = scene.state();
    let other = Scene::new();
    let child = start(&other, &[PORT]);
    let by_us = other.state();
    end(child, Signal::SIGTERM);
    // Link names and hardware addresses differ between two scenes, and a device that is not held open is not running.
    let comparable = |state: Vec<String>| -> Vec<String> {
        let words = ["rule", "lookup", "proto 198", "forwarding", "chain", "dnat", "masquerade", "drop"];
        let lines = state.into_iter().filter(|line| words.iter().any(|word| line.contains(word)));
        lines.map(|line| line.replace(" linkdown", "").trim_end().to_owned()).collect()
    };
    assert_eq!(comparable(by_hand), comparable(by_us));
}

/// The error of an attachment, which must not change anything.
fn refusal(scene: &Scene, change: impl FnOnce(&mut anabranch_attach::Uplinks) + Send) -> HostError {
    let before = scene.state();
    let refusal = scene.run(|| async {
        let mut uplinks = scene.uplinks(&[PORT]);
        change(&mut uplinks);
        match attached(uplinks).await {
            Ok(_) => panic!("it cannot be done"),
            Err(error) => error,
        }
    });
    scene.assert_as_before(&before);
    refusal
}

fn port_in_use() {
    let scene = Scene::new();
    let _listener = scene.in_ours(|| std::net::TcpListener::bind(("127.0.0.1", PORT)).expect("it is free"));
    assert!(matches!(refusal(&scene, |_| {}), HostError::PortInUse(PORT)));
}

fn no_interface() {
    let scene = Scene::new();
    let error = refusal(&scene, |uplinks| uplinks.interfaces.push("pu1".to_owned()));
    assert_eq!(error.to_string(), "there is no network interface 'pu1': there are lo, up0, up1");
    let error = refusal(&scene, |uplinks| uplinks.interfaces.push("lo".to_owned()));
    assert_eq!(error.to_string(), "'lo' cannot be an uplink: it is the loopback interface");
    scene.in_ours(|| {
        ip("link set up0 down");
        ip("link set up1 down");
    });
    let error = refusal(&scene, |_| {});
    assert_eq!(error.to_string(), "'up0' cannot be an uplink: it is down, or has no carrier");
    let error = refusal(&scene, |uplinks| uplinks.interfaces.clear());
    assert!(matches!(error, HostError::NoUplink));
}

/// Inside UDP.
fn other_family() {
    let scene = Scene::new();
    scene.in_ours(|| {
        ip("address flush dev up0 scope global");
        ip("address flush dev up1 scope global");
        ip("address add fd01::2/64 dev up0 nodad");
        ip("-6 route replace default via fd01::1 dev up0");
    });
    let attach = |server: &'static str| scene.run(|| async { tunnelled(server).await.map(|_| ()) });
    attach("[2001:db8::1]:4433").expect("it has this family");
    let error = attach("203.0.113.1:4433").expect_err("it has not the other");
    let said = error.to_string();
    assert!(
        said.starts_with("no uplink has an address and a route of the kind that the server 203.0.113.1 has"),
        "{said}"
    );
}

fn no_journal() {
    let scene = Scene::new();
    let error = refusal(&scene, |uplinks| uplinks.options.journal = Some("/proc/anabranch".into()));
    assert!(matches!(error, HostError::Journal { .. }), "{error}");
}

fn no_room() {
    let scene = Scene::new();
    let directory = scene.journal().display().to_string();
    let full = format!(
        "mount -t tmpfs -o size=4k none {directory} && echo > {directory}/full && \
         dd if=/dev/zero of={directory}/full 2>/dev/null; exec \"$0\""
    );
    let said = complaint(&scene, &["unshare", "--mount", "sh", "-c", &full], None);
    assert!(said.starts_with("cannot record in ") && said.contains("No space left"), "{said}");
    let read_only = format!("mount -t tmpfs -o ro none {directory} && exec \"$0\"");
    let said = complaint(&scene, &["unshare", "--mount", "sh", "-c", &read_only], None);
    assert!(said.starts_with("cannot record in ") && said.contains("Read-only"), "{said}");
}

fn no_right() {
    let words = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
    let said = complaint(&Scene::new(), &words, None);
    assert!(said.starts_with("this needs CAP_NET_ADMIN to set up the network"), "{said}");
}

fn no_nft() {
    let said = complaint(&Scene::new(), &[], Some("/nonexistent"));
    assert_eq!(said, "the program 'nft' is missing: install nftables\n");
}
