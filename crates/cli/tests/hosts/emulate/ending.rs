//! How runs end, and that they leave nothing behind.

use crate::emulate::stage::Stage;
use libtest_mimic::{Failed, Trial};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Test = fn() -> Result<(), Failed>;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, Test); 6] = [
        ("emulate::ending::the_exit_code_is_the_commands", the_exit_code_is_the_commands),
        ("emulate::ending::what_is_wrong_is_said_in_a_sentence", what_is_wrong_is_said_in_a_sentence),
        ("emulate::ending::no_privilege_is_said_in_a_sentence", no_privilege_is_said_in_a_sentence),
        ("emulate::ending::what_the_programs_leave_behind_is_ended", what_the_programs_leave_behind_is_ended),
        (
            "emulate::ending::a_signal_ends_the_command_and_all_is_taken_down",
            a_signal_ends_the_command_and_all_is_taken_down,
        ),
        ("emulate::ending::killed_outright_it_takes_the_command_with_it", killed_outright_it_takes_the_command_with_it),
    ];
    tests.into_iter().map(|(name, test)| Trial::test(name, test)).collect()
}

fn stage(name: &str) -> Stage {
    Stage::one_path(name, "rate = \"10 Mbit/s\"")
}

fn the_exit_code_is_the_commands() -> Result<(), Failed> {
    let stage = stage("codes");
    let ran = stage.run(&[], &["sh", "-c", "echo out; exit 7"]);
    assert_eq!((ran.code, ran.said.as_str()), (7, "out\n"));
    assert_eq!(ran.json["exit_code"], 7);
    assert_eq!(stage.run(&[], &["sh", "-c", "kill -TERM $$"]).code, 128 + 15);
    let late = stage.run(&["--duration", "300 ms"], &["sleep", "100"]);
    assert_eq!((late.code, &late.json["time_up"]), (124, &true.into()));
    Ok(())
}

fn what_is_wrong_is_said_in_a_sentence() -> Result<(), Failed> {
    let stage = stage("wrong");
    let wrong: [(&[&str], &[&str], i32, &str); 8] = [
        (&[], &["no-such-program"], 127, "error: cannot run 'no-such-program': there is no such program\n"),
        (&[], &["/etc/passwd"], 126, "error: cannot run '/etc/passwd': permission denied, it is not a program\n"),
        (&["--set", "paths.A.links.0.rate=fast"], &["true"], 2, "error: "),
        (&["--kernel-congestion", "quick"], &["true"], 2, "error: the kernel has no congestion control 'quick'"),
        (&["--sysctl", "kernel.hostname=x"], &["true"], 2, "error: the kernel rejects kernel.hostname = x"),
        (&["--sysctl", "nonsense"], &["true"], 2, "error: --sysctl nonsense: write it like"),
        (&["--server", "exit 3", "--port", "80"], &["true"], 2, "error: the server's command ended before it listened"),
        (&["--pcap", "no/such/directory"], &["true"], 2, "error: cannot write the capture no/such/directory"),
    ];
    for (options, command, code, message) in wrong {
        let ran = stage.run(options, command);
        assert_eq!(ran.code, code, "{options:?} {command:?}: {}", ran.complained);
        assert!(ran.complained.starts_with(message), "{options:?} {command:?}: {}", ran.complained);
        assert!(ran.said.is_empty() && ran.complained.trim_end().lines().count() <= 4, "{}", ran.complained);
    }
    Ok(())
}

fn no_privilege_is_said_in_a_sentence() -> Result<(), Failed> {
    let stage = stage("unprivileged");
    let mut emulate = Command::new("setpriv");
    emulate.args(["--bounding-set=-sys_admin,-net_admin", env!("CARGO_BIN_EXE_anabranch"), "emulate"]);
    emulate.arg(stage.file("scenario.toml")).args(["--", "true"]);
    let output = emulate.output().expect("setpriv is part of every Debian");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.starts_with("error: network namespaces need root"), "{complaint}");
    Ok(())
}

/// Whether a process exists, or not, within a time limit.
fn becomes(process: &str, there: bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    let running = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // A zombie counts as ended.
        !status.is_empty() && !status.contains(") Z ")
    };
    while running() != there && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    running() == there
}

/// Process identifiers written by a script, once complete.
fn written(file: &Path, count: usize) -> Vec<String> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.lines().count() == count || Instant::now() > end {
            return text.lines().map(str::to_owned).collect();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts programs in their own sessions at both ends, and ones that ignore SIGTERM.
const LEAVES_BEHIND: &str = "setsid sh -c 'echo $$ >> left; exec sleep 1000' & \
    setsid sh -c 'trap \"\" TERM; echo $$ >> left; while :; do sleep 1; done' & \
    $ANABRANCH_AT_SERVER setsid sh -c 'echo $$ >> left; exec sleep 1000' & \
    while [ $(cat left | wc -l) != 4 ]; do sleep 0.05; done";

fn what_the_programs_leave_behind_is_ended() -> Result<(), Failed> {
    let stage = stage("left");
    let server = "setsid sh -c 'echo $$ >> left; exec sleep 1000' & wait";
    let ran = stage.run(&["--server", server], &["sh", "-c", LEAVES_BEHIND]);
    assert_eq!(ran.code, 0, "{}", ran.complained);
    let left = written(&stage.file("left"), 4);
    assert_eq!(left.len(), 4);
    assert!(left.iter().all(|process| becomes(process, false)), "{left:?}");
    Ok(())
}

/// Starts a run whose command writes its process identifier and stays; returns both.
fn start(stage: &Stage, command: &str) -> (std::process::Child, String) {
    let mut emulate = stage.command(&[], &["sh", "-c", command]);
    let child = emulate.stderr(Stdio::null()).stdout(Stdio::null()).process_group(0).spawn().expect("it runs");
    let process = written(&stage.file("number"), 1);
    (child, process.first().cloned().expect("the command runs"))
}

fn signal(process: &str, name: &str) {
    let done = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status().expect("sh runs");
    assert!(done.success());
}

fn a_signal_ends_the_command_and_all_is_taken_down() -> Result<(), Failed> {
    for (name, code) in [("TERM", 128 + 15), ("HUP", 128 + 15), ("INT", 128 + 2)] {
        let stage = stage("signal");
        let (child, process) = start(&stage, "echo $$ > number; exec sleep 1000");
        signal(&child.id().to_string(), name);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(code), "{name}");
        assert!(becomes(&process, false));
        assert!(stage.file("run.json").metadata().is_ok_and(|data| data.len() > 0), "the summary is written");
    }
    Ok(())
}

fn killed_outright_it_takes_the_command_with_it() -> Result<(), Failed> {
    let stage = stage("killed");
    let (mut child, process) = start(&stage, "echo $$ > number; exec sleep 1000");
    signal(&child.id().to_string(), "KILL");
    child.wait().expect("it ends");
    assert!(becomes(&process, false));
    Ok(())
}
