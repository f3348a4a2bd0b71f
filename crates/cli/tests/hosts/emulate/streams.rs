//! Live streams over lossy paths: delivered data is complete and in order, and abandoned data is counted.

use crate::emulate::agent::{self, packet, picture};
use crate::emulate::stage::{Stage, path};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;

/// Pictures of a stream, 20 ms each.
const PICTURES: u32 = 250;
/// Packets of a transport stream.
const PACKETS: u32 = 3_500;
/// Less than a retransmission takes on these paths, so that lost data is abandoned.
const LATENCY: &str = "30ms";

pub fn trials() -> Vec<Trial> {
    vec![Trial::test("emulate::streams::between_our_ends_whole_pictures_are_left_out", between_our_ends)]
}

/// The tests that need the kernel's MPTCP, and `nft` for the stack's masquerading.
pub fn linux_trials() -> Vec<Trial> {
    vec![
        Trial::test("emulate::streams::pictures_of_an_unmodified_linux_sender_are_left_out", messages_from_linux),
        Trial::test("emulate::streams::packets_of_a_bare_stream_from_linux_are_left_out_whole", packets_from_linux),
    ]
}

fn lossy(name: &str) -> Stage {
    let link = "rate = \"8 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"100 packets\"\nloss = \"5 %\"";
    Stage::new(name, &(path("A", link) + &path("B", link)))
}

/// Runs `stream send` with these options on an agent's output, and `stream receive` with its options at the server.
/// Returns the received data and the receiver's report.
fn carried(stage: &Stage, task: &str, send: &str, receive: &str) -> (Vec<u8>, Value) {
    let program = env!("CARGO_BIN_EXE_anabranch");
    let this = std::env::current_exe().expect("it runs");
    let (out, report, journal) = (stage.file("out"), stage.file("report.json"), stage.file("journal"));
    let server = format!(
        "exec '{program}' stream receive --listen 5004 --latency {LATENCY} --json KEY {receive} >'{}' 2>'{}'",
        out.display(),
        report.display()
    );
    let key = stage.file("stream.key");
    let made = std::process::Command::new(program).arg("key").arg(&key).status().expect("the program runs");
    assert!(made.success());
    let key = if send.contains("--raw") { String::new() } else { format!("--key '{}'", key.display()) };
    let server = server.replace("KEY", &key).replace("JOURNAL", &journal.display().to_string());
    // Time for the receiver to write its report.
    let client = format!(
        "'{}' {} {task} | '{program}' stream send 10.0.0.2:5004 --latency 5s {key} {send} && sleep 0.5",
        this.display(),
        agent::NAME
    );
    let ran = stage.run(&["--server", &server], &["sh", "-c", &client]);
    let said = std::fs::read_to_string(&report).unwrap_or_default();
    assert_eq!(ran.code, 0, "{}\n{said}", ran.complained);
    let report = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}\n{}", ran.complained));
    (std::fs::read(&out).expect("something came out"), report)
}

fn number(report: &Value, pointer: &str) -> u64 {
    report.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {pointer} in {report}"))
}

/// Asserts that received pictures are unmodified and in order, and missing ones are reported.
fn check_pictures(out: &[u8], report: &Value) {
    let mut rest = out;
    let mut came = 0;
    for made in (0..PICTURES).map(picture) {
        if let Some(after) = rest.strip_prefix(made.as_slice()) {
            (rest, came) = (after, came + 1);
        }
    }
    assert!(rest.is_empty(), "{} bytes are no picture: {:?}", rest.len(), rest.get(..20));
    assert_eq!(report["protocol"], "mptcp", "{report}");
    assert_eq!(number(report, "/messages"), came, "{report}");
    assert!(came + number(report, "/missing") <= u64::from(PICTURES), "{report}");
    let given_up = number(report, "/given_up/expired/gaps") + number(report, "/given_up/overtaken/gaps");
    assert!(given_up > 0 && came < u64::from(PICTURES), "nothing was abandoned: {report}");
    assert!(came > u64::from(PICTURES) / 3, "most was abandoned: {report}");
    let paths = report["paths"].as_array().expect("there are paths");
    assert!(paths.len() > 1, "{report}");
}

fn between_our_ends() -> Result<(), Failed> {
    let stage = lossy("stream_ours");
    let (out, report) = carried(&stage, &format!("pictures {PICTURES}"), "--udp", "--udp");
    check_pictures(&out, &report);
    Ok(())
}

fn messages_from_linux() -> Result<(), Failed> {
    let stage = lossy("stream_linux");
    let receive = "--journal 'JOURNAL'";
    let (out, report) = carried(&stage, &format!("pictures {PICTURES}"), "--kernel mptcp", receive);
    check_pictures(&out, &report);
    Ok(())
}

fn packets_from_linux() -> Result<(), Failed> {
    let stage = lossy("stream_packets");
    let receive = "--raw --journal 'JOURNAL'";
    let (out, report) = carried(&stage, &format!("packets {PACKETS}"), "--raw --kernel mptcp", receive);
    let mut rest = out.as_slice();
    let mut came = 0;
    for made in (0..PACKETS).map(packet) {
        if let Some(after) = rest.strip_prefix(made.as_slice()) {
            (rest, came) = (after, came + 1);
        }
    }
    assert!(rest.is_empty(), "{} bytes are no packet: {:?}", rest.len(), rest.get(..20));
    let given_up = number(&report, "/given_up/expired/gaps");
    assert!(given_up > 0 && came < PACKETS && came > PACKETS / 3, "{came} came: {report}");
    Ok(())
}
