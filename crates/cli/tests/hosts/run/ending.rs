//! Start and end of programs: privileges, exit codes, and signals.

use crate::program::as_nobody;
use crate::run::scene::{Running, Scene, command, text, trial};
use libtest_mimic::Trial;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    let trial = |name, work| trial("ending", name, work);
    vec![
        trial("the_exit_code_is_the_programs", codes),
        trial("a_signal_reaches_the_program_and_a_program_that_ends_by_one_is_seen_to", signals),
        trial("the_program_has_no_rights_and_the_host_is_as_it_was", rights),
        trial("a_user_without_privileges_may_run_programs", unprivileged),
        trial("nothing_is_left_of_one_that_was_killed", killed),
        trial("what_was_written_arrives_although_its_program_has_ended", written),
        trial("nobody_waits_for_a_connection_that_its_program_did_not_wait_for", not_waited_for),
    ]
}

fn codes(scene: &Scene) {
    assert_eq!(scene.run(&[], &["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(scene.run(&[], &["true"]).status.code(), Some(0));
    let output = scene.run(&[], &["/nonexistent"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).starts_with("error: cannot run /nonexistent: "), "{}", text(&output.stderr));
    assert_eq!(scene.run(&[], &["/etc/passwd"]).status.code(), Some(126));
    assert_eq!(scene.run(&[], &["sh", "-c", "kill -KILL $$"]).status.signal(), Some(9));
    assert_eq!(scene.run(&[], &["sh", "-c", "kill -TERM $$"]).status.signal(), Some(15));
}

fn signals(scene: &Scene) {
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let script = format!("trap 'echo heard; exit 5' {signal}; echo ready; while :; do sleep 0.05; done");
        // A shell cannot trap signals that its parent ignores.
        let mut started = scene.command(&[], &["env", "--default-signal=INT,HUP", "sh", "-c", &script]);
        let mut running = scene.on_host(|| Running::new(&mut started));
        assert_eq!(running.line(), "ready");
        running.signal(signal);
        let (status, rest) = running.end();
        assert_eq!((status.code(), rest.trim()), (Some(5), "heard"), "signal {number}");
    }
}

fn rights(scene: &Scene) {
    let before = scene.on_host(|| command("ip", "-oneline -4 address") + &command("ip", "route"));
    let resolver = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let show =
        "grep Cap /proc/self/status | grep -v Bnd; ip address add 10.77.0.1/32 dev lo 2>&1; cat /etc/resolv.conf";
    let output = scene.run(&[], &["sh", "-c", show]);
    let said = text(&output.stdout);
    assert_eq!(said.matches("0000000000000000").count(), 4, "{said}");
    assert!(said.contains("Operation not permitted"), "{said}");
    assert!(said.ends_with("nameserver 198.18.0.2\n"), "{said}");
    assert_eq!(std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default(), resolver);
    assert_eq!(scene.on_host(|| command("ip", "-oneline -4 address") + &command("ip", "route")), before);
}

fn unprivileged(scene: &Scene) {
    // A world-executable copy, and a key that this user may read.
    let place = std::env::temp_dir().join(format!("anabranch-run-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("it can be made");
    let (program, key) = (place.join("anabranch"), place.join("key"));
    std::fs::copy(env!("CARGO_BIN_EXE_anabranch"), &program).expect("it can be copied");
    std::fs::copy(&scene.key, &key).expect("it can be copied");
    let owner = Some(65_534);
    std::os::unix::fs::chown(&key, owner, owner).expect("we are root");
    let mut started = as_nobody();
    started.arg(&program).args(["run", "--server", crate::run::scene::SERVER, "--key"]).arg(&key);
    started.args(["--", "sh", "-c", "id --user; curl --silent --show-error http://203.0.113.1:8000/2 | od -An -tx1"]);
    let output = scene.on_host(|| started.output().expect("it runs"));
    // Leftovers are harmless.
    let _ = std::fs::remove_dir_all(&place);
    assert_eq!(text(&output.stdout), "65534\n 00 01\n", "{}", text(&output.stderr));
}

fn killed(scene: &Scene) {
    let mut started = scene.command(&[], &["sh", "-c", "echo $$; exec sleep 1000"]);
    let mut running = scene.on_host(|| Running::new(&mut started));
    let program = running.line();
    assert!(Path::new(&format!("/proc/{program}")).exists());
    running.signal("KILL");
    assert_eq!(running.end().0.signal(), Some(9));
    let is_gone = || {
        let state = std::fs::read_to_string(format!("/proc/{program}/stat")).unwrap_or_default();
        // A zombie counts as ended.
        state.is_empty() || state.contains(") Z ")
    };
    let begun = Instant::now();
    while !is_gone() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the program goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let shown = scene.on_host(|| command("ip", "-oneline link"));
    assert!(!shown.contains("bond0"), "{shown}");
}

fn written(scene: &Scene) {
    scene.on_host(|| command("tc", "qdisc add dev up0 root tbf rate 10mbit burst 32k limit 100k"));
    scene.on_host(|| command("tc", "qdisc add dev up1 root tbf rate 10mbit burst 32k limit 100k"));
    // It writes more than the pipe holds, and exits without waiting for an answer.
    let script = "
import os, socket
s = socket.create_connection(('203.0.113.1', 8001), timeout=20)
s.sendall(bytes(1_000_000))
s.shutdown(socket.SHUT_WR)
if os.fork() == 0:
    # Only who still has it hears the answer.
    answer = s.recv(1000)
    open(os.environ['ANSWER'], 'wb').write(answer)";
    let answer = format!("{}.answer", scene.key);
    let mut started = scene.command(&[], &["python3", "-c", script]);
    started.env("ANSWER", &answer);
    let output = scene.on_host(|| started.output().expect("it runs"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let heard = std::fs::read_to_string(&answer).expect("somebody heard");
    assert!(heard.starts_with("1000000 "), "{heard}");
}

fn not_waited_for(scene: &Scene) {
    // The next hop does not exist: nothing is answered.
    scene.in_world(|| {
        command("ip", "neighbour replace 10.1.0.77 lladdr 02:00:00:00:00:99 dev down0 nud permanent");
        command("ip", "route add 192.0.2.0/24 via 10.1.0.77");
    });
    let script = "
import socket
try:
    socket.create_connection(('192.0.2.7', 80), timeout=1)
except TimeoutError:
    print('silent')";
    let output = scene.run(&["--verbose"], &["python3", "-c", script]);
    assert_eq!(text(&output.stdout), "silent\n", "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains(" -> 192.0.2.7:80: the client left; "), "{said}");
}
