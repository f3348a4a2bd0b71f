//! The built program's error messages with positions, exit codes, lists and summaries.

use anabranch_media::clip;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SCENARIO: &str = r#"name = "small"
duration = "2 s"
seeds = 2
sample = "100 ms"

[transfer]
kind = "endless"

[connection]
receive_buffer = "256 kB"

[[paths]]
name = "A"

[[paths.links]]
name = "link"
rate = "10 Mbit/s"
delay = { uniform = "10..20 ms", drawn = "per_run" }
queue = "100 packets"
loss = "1 %"

[[policies]]
name = "plain"
"#;

/// A temporary directory of the test, with `scenario.toml`.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, scenario: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).expect("the test's directory can be made");
        std::fs::write(directory.join("scenario.toml"), scenario).expect("the scenario can be written");
        Self(directory)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(arguments).current_dir(&self.0).output().expect("the program runs")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Replaces `old` by `new` in the scenario and returns the resulting error message.
fn complaint(name: &str, old: &str, new: &str) -> String {
    assert!(SCENARIO.contains(old), "{old} is in the scenario");
    refused(&Place::new(name, &SCENARIO.replace(old, new)), &["run", "scenario.toml"])
}

/// Runs a command that must fail: exit code 2, one message, no standard output, no backtrace.
fn refused(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(message.matches("error: ").count(), 1, "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_what_was_meant() {
    let message = complaint("unknown_key", "loss =", "lsos =");
    assert!(message.contains("scenario.toml:20:1: unknown key 'lsos' in a link; did you mean 'loss'?"), "{message}");
    assert!(message.contains("20 | lsos = \"1 %\""), "{message}");
}

#[test]
fn an_unknown_unit_is_named_with_the_units_there_are() {
    let message = complaint("unit", "\"10 Mbit/s\"", "\"10 Mbps\"");
    assert!(message.contains("scenario.toml:17:8: a rate has the unit 'Mbps', which is not known"), "{message}");
    assert!(message.contains("kbit/s, Mbit/s, Gbit/s"), "{message}");
}

#[test]
fn a_number_without_its_unit_is_refused() {
    let message = complaint("no_unit", "\"2 s\"", "2");
    assert!(message.contains("scenario.toml:2:12: a time has no unit: write it like \"50 ms\""), "{message}");
}

#[test]
fn impossible_values_are_refused_with_the_reason() {
    let cases = [
        ("negative_rate", "\"10 Mbit/s\"", "\"-10 Mbit/s\"", "17:8: '-10 Mbit/s' is not possible for a rate"),
        ("loss_above_one", "\"1 %\"", "\"101 %\"", "20:8: '101 %' is not possible for a share"),
        ("reversed", "10..20 ms", "20..10 ms", "18:21: the range '20..10 ms' is reversed"),
        ("no_seeds", "seeds = 2", "seeds = 0", "3:9: 0 is not possible here"),
        ("no_time", "\"2 s\"", "\"0 s\"", "2:12: a run must last longer than nothing"),
        ("many_samples", "\"2 s\"", "\"1e8 s\"", "4:10: these are 1000000000 samples"),
        ("tiny_buffer", "\"256 kB\"", "\"1 kB\"", "10:18: a receive buffer of 1000 bytes is not possible"),
        (
            "short_bursts",
            "loss = \"1 %\"",
            "burst_loss = { average = \"90 %\", burst = \"1 packets\" }",
            "20:14: bursts of 1 packets on average lose 50.00 % at most",
        ),
        ("bare_range", "\"1 %\"", "\"1..2 %\"", "20:8: a share is expected here, not a range"),
        ("drawn_how", "per_run", "daily", "18:42: 'daily' is not one of per_run, per_packet, slowly_varying"),
        (
            "kind",
            "\"endless\"",
            "\"endles\"",
            "7:8: 'endles' is not one of endless, finite, messages, request_response",
        ),
    ];
    for (name, old, new, expected) in cases {
        let message = complaint(name, old, new);
        assert!(message.contains(&format!("scenario.toml:{expected}")), "{name}: {message}");
    }
}

#[test]
fn a_scenario_without_paths_is_refused() {
    let scenario = "name = \"none\"\nduration = \"1 s\"\npaths = []\n[connection]\nreceive_buffer = \"64 kB\"\n";
    let message = refused(&Place::new("no_paths", scenario), &["run", "scenario.toml"]);
    assert!(message.contains("scenario.toml:3:9: 0 paths are not possible"), "{message}");
}

#[test]
fn what_is_not_toml_is_refused_with_its_place() {
    let message = complaint("not_toml", "duration = \"2 s\"", "duration = = \"2 s\"");
    assert!(message.contains("scenario.toml:2:12: this is not TOML"), "{message}");
}

#[test]
fn a_missing_file_is_named() {
    let place = Place::new("missing", SCENARIO);
    let message = refused(&place, &["run", "nowhere.toml"]);
    assert!(message.contains("cannot read the scenario nowhere.toml: there is no such file"), "{message}");
    let message = refused(&place, &["run", "scenario.toml", "--send", "nothing.bin"]);
    assert!(message.contains("cannot read the file to send nothing.bin: there is no such file"), "{message}");
}

#[test]
fn a_folder_in_place_of_a_scenario_is_named_so() {
    let message = refused(&Place::new("folder", SCENARIO), &["run", "."]);
    assert!(message.contains("cannot read the scenario .: it is a directory"), "{message}");
}

#[test]
fn what_is_below_zero_is_told_to_be_and_is_no_unknown_option() {
    let place = Place::new("negative", SCENARIO);
    for (value, words) in [
        (&["run", "scenario.toml", "--seeds", "-1"][..], "write their number, 1 to 100000"),
        (&["sweep", "--point", "-5"], "invalid value '-5' for '--point <N>'"),
        (&["emulate", "scenario.toml", "--duration", "-3 s", "--", "true"], "it must not be negative"),
        (&["stream", "compare", "--rate", "-2 Mbit/s"], "invalid value '-2 Mbit/s' for '--rate <RATE>'"),
        (&["perf", "127.0.0.1", "--kernel", "tcp", "-t", "-3"], "the test must last between 0.1 and 86400 seconds"),
    ] {
        let message = refused(&place, value);
        assert!(message.contains(words), "{message}");
    }
}

/// A live video over the same path.
fn video(name: &str, video: &str) -> Place {
    let transfer = "[transfer]\nkind = \"endless\"";
    assert!(SCENARIO.contains(transfer));
    Place::new(name, &SCENARIO.replace(transfer, &format!("[video]\n{video}")))
}

#[test]
fn a_video_that_cannot_be_is_refused_in_a_sentence() {
    let frames = "anabranch video trace 1\nframes 2\nlength 66666 us\n0 0 I 900 0 0\n";
    let cases = [
        ("deadline = \"-300 ms\"", "'-300 ms' is not possible for a time: it must not be negative"),
        ("deadline = \"300\"", "a time has no unit: write it like \"50 ms\""),
        ("deadline = \"0 ms\"", "nothing arrives at once: a deadline is longer than nothing"),
        ("trace = \"bbb_qcif\"", "a video has no 'deadline', which it needs"),
        ("trace = \"none.trace\"\ndeadline = \"1 s\"", "cannot read the trace none.trace: "),
        ("trace = \"short.trace\"\ndeadline = \"1 s\"", "is cut off: it announces 2 frames and has 1"),
        ("trace = \"typeless.trace\"\ndeadline = \"1 s\"", "'900' is no type of frame: I, P or B"),
        ("trace = \"noise\"\ndeadline = \"1 s\"", "the stream is neither MPEG-4 part 2 nor H.264"),
        ("trace = \"short.m4v\"\ndeadline = \"1 s\"", "it is cut off or has no frame types"),
    ];
    for (text, expected) in cases {
        let place = video("video_refused", text);
        let write = |name: &str, bytes: &[u8]| std::fs::write(place.0.join(name), bytes).expect("it can be written");
        write("short.trace", frames.as_bytes());
        write("typeless.trace", format!("{frames}1 1 900 33333 33333\n").replace(" I ", " ").as_bytes());
        write("noise", &[0x9c; 5_000]);
        write("short.m4v", &clip::MPEG4[..31]);
        let message = refused(&place, &["run", "scenario.toml"]);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn a_video_can_be_a_stream_of_its_own_and_policies_are_named_as_the_paper_names_them() {
    let place = video("video_stream", "trace = \"clip.m4v\"\ndeadline = \"300 ms\"");
    std::fs::write(place.0.join("clip.m4v"), &clip::MPEG4[..20_000]).expect("it can be written");
    let words = ["compare", "scenario.toml", "--seeds", "1", "--json", "--policy", "recpr", "--policy", "sme"];
    let output = place.run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let rows = summary["experiments"][0]["rows"].as_array().expect("rows");
    for policy in ["recpr", "sme"] {
        let on_time = rows.iter().find(|row| row["policy"] == policy && row["metric"] == "on_time");
        assert!(
            on_time.is_some_and(|row| row["mean"].as_f64().is_some_and(|share| share > 50.0)),
            "{policy}: {summary}"
        );
    }
}

#[test]
fn without_ffmpeg_a_video_is_measured_but_for_its_pictures_and_a_sentence_says_why() {
    let place = video("video_unseen", "deadline = \"300 ms\"");
    for words in [["run", "scenario.toml", "--seeds", "1"], ["compare", "scenario.toml", "--json", "--seeds=1"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        let output = command.args(words).current_dir(&place.0).env("PATH", "").env_remove("ANABRANCH_FFMPEG").output();
        let output = output.expect("the program runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(
            said.starts_with("small: PSNR, SSIM, VQM, MOS and stills were not computed: ffmpeg is not there"),
            "{said}"
        );
        assert!(said.contains("install version 5 or newer") && said.lines().count() == 1, "{said}");
        assert!(text(&output.stdout).contains("on_time") || text(&output.stdout).contains("frames on time"));
    }
}

#[test]
fn an_unknown_policy_is_answered_with_what_was_meant() {
    let place = Place::new("policy", SCENARIO);
    let message = refused(&place, &["run", "scenario.toml", "--policy", "lm2"]);
    assert!(message.contains("--policy lm2: unknown policy 'lm2'; did you mean 'lm3'?"), "{message}");
    let message = refused(&place, &["run", "scenario.toml", "--policy", "congestion=cubci"]);
    assert!(message.contains("'cubci' is not a congestion policy"), "{message}");
    assert!(message.contains("did you mean 'cubic'?"), "{message}");
    let message = refused(&place, &["run", "scenario.toml", "--policy", "sheduler=linux"]);
    assert!(message.contains("did you mean 'scheduler'?"), "{message}");
    let message = complaint("policy_in_file", "name = \"plain\"", "name = \"plain\"\ncongestion = \"renoo\"");
    assert!(message.contains("scenario.toml:24:14: 'renoo' is not a congestion policy"), "{message}");
}

#[test]
fn a_wrong_set_option_is_named_as_it_was_given() {
    let place = Place::new("set", SCENARIO);
    let message = refused(&place, &["run", "scenario.toml", "--set", "paths.A.links.link.rate=fast"]);
    assert!(message.contains("error: --set paths.A.links.link.rate=fast: 'fast' is not a rate"), "{message}");
    let message = refused(&place, &["run", "scenario.toml", "--set", "paths.B.links.link.rate=1 Mbit/s"]);
    assert!(message.contains("'B' is neither a number below 1 nor one of A"), "{message}");
    let message = refused(&place, &["run", "scenario.toml", "--set", "conection.ecn=true"]);
    assert!(message.contains("unknown key 'conection' in the scenario; did you mean 'connection'?"), "{message}");
    let message = refused(&place, &["run", "scenario.toml", "--set", "duration"]);
    assert!(message.contains("expected key=value"), "{message}");
}

#[test]
fn an_unknown_experiment_is_answered_with_those_there_are() {
    let message = refused(&Place::new("experiment", SCENARIO), &["reproduce", "lm4"]);
    assert!(message.contains("there is no experiment 'lm4': known are lm3_motivation, lm3_evaluation"), "{message}");
}

#[test]
fn an_unknown_option_is_refused_by_the_same_exit_code() {
    let output = Place::new("option", SCENARIO).run(&["run", "scenario.toml", "--sede", "3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--seeds"), "{}", text(&output.stderr));
}

#[test]
fn the_list_has_every_family_and_its_members_with_their_sources() {
    let output = Place::new("list", SCENARIO).run(&["list", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let lists: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the list is JSON");
    let families = lists["families"].as_array().expect("families");
    let names: Vec<&str> = families.iter().filter_map(|family| family["family"].as_str()).collect();
    assert_eq!(names, ["congestion", "scheduler", "path_manager", "reliability", "forecaster", "datagram"]);
    let lm3 = families[2]["members"].as_array().expect("members").iter().find(|member| member["name"] == "lm3");
    let lm3 = lm3.expect("lm3 is a path manager");
    assert!(lm3["source"].as_str().is_some_and(|source| source.contains("Cao")), "{lm3}");
    assert!(lm3["parameters"].as_array().is_some_and(|list| list.iter().any(|p| p["name"] == "rounding")), "{lm3}");
    let plain = text(&Place::new("list_text", SCENARIO).run(&["list"]).stdout);
    assert!(plain.contains("recpr: MPTCP: one_way_delay, lowest_rtt, lia, spe"), "{plain}");
    assert_eq!(lists["combinations"][0]["name"], "anabranch");
    assert!(plain.contains("lm3_evaluation: Three lossy wireless paths"), "{plain}");
}

#[test]
fn a_run_writes_a_summary_in_the_agreed_form_and_the_same_again_with_wire() {
    let place = Place::new("summary", SCENARIO);
    let output = place.run(&["run", "scenario.toml", "--json", "--set", "paths.A.links.link.loss=0 %"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("only JSON on standard output");
    let keys: Vec<&String> = summary.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["commit", "experiments", "scenario", "schema", "trace_hash"]);
    assert_eq!((&summary["schema"], &summary["scenario"]), (&1.into(), &"small".into()));
    let row = &summary["experiments"][0]["rows"][0];
    let keys: Vec<&String> = row.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["ci95", "mean", "metric", "policy", "published", "seeds", "unit"]);
    assert_eq!((&row["policy"], &row["metric"]), (&"plain".into(), &"throughput".into()));
    assert_eq!((&row["unit"], &row["seeds"]), (&"Mbit/s".into(), &2.into()));
    let mean = row["mean"].as_f64().expect("a number");
    // 10 Mbit/s less headers and slow start; 1420 or 1448 of 1500 bytes are payload.
    assert!((7.0..9.7).contains(&mean), "{mean}");
    assert_eq!(row["published"], serde_json::Value::Null);
    for file in ["summary.json", "report.html", "small.parquet"] {
        assert!(place.0.join("results").join(file).exists(), "{file}");
    }
    check_time_series(&place.0.join("results/small.parquet"));

    let again = place.run(&["run", "scenario.toml", "--json", "--wire", "--set", "paths.A.links.link.loss=0 %"]);
    assert_eq!(text(&again.stdout), text(&output.stdout));
}

#[test]
fn a_report_loads_nothing_and_has_the_figures_of_the_scenario() {
    let place = Place::new("report", SCENARIO);
    let output = place.run(&["compare", "lm3_motivation", "--seeds", "2", "--set", "duration=40 s"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(place.0.join("results/report.html")).expect("the report");
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http://") && !addresses.contains("https://") && !addresses.contains("<script"));
    for figure in ["Figure 3: throughput over time", "Figure 4: congestion window", "Figure 5: out-of-order"] {
        assert!(page.contains(figure), "{figure}");
    }
    assert!(page.matches("<svg").count() >= 4);
    assert!(page.contains("<b>Agreement.</b>"));
    let table = text(&output.stdout);
    assert!(table.contains("mean throughput") && table.contains("against the first"), "{table}");
}

#[test]
fn a_file_arrives_as_it_was_sent_and_a_run_that_is_too_short_says_so() {
    let place = Place::new("send", SCENARIO);
    std::fs::write(place.0.join("file.bin"), (0..300_000u32).map(|n| (n * 7 % 251) as u8).collect::<Vec<_>>())
        .expect("the file can be written");
    let output = place.run(&["run", "scenario.toml", "--send", "file.bin"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("same at the receiver"), "{}", text(&output.stdout));
    let output = place.run(&["run", "scenario.toml", "--send", "file.bin", "--set", "duration=100 ms"]);
    assert_eq!(output.status.code(), Some(1), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn a_capture_is_written_for_the_first_seed() {
    let place = Place::new("capture", SCENARIO);
    let output = place.run(&["run", "scenario.toml", "--pcap", "--seeds", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let capture = std::fs::read(place.0.join("results/small-plain.pcapng")).expect("the capture");
    assert!(capture.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && capture.len() > 100_000);
}

/// Two runs, one row group each, whose delivered bytes never decrease.
fn check_time_series(path: &Path) {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    let file = std::fs::File::open(path).expect("the time series are there");
    let reader = SerializedFileReader::new(file).expect("they are Parquet");
    assert_eq!(reader.metadata().num_row_groups(), 2);
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns: Vec<String> = schema.columns().iter().map(|column| column.name().to_owned()).collect();
    let expected = ["experiment", "policy", "seed", "time", "connection", "path", "metric", "unit", "value"];
    assert_eq!(columns, expected);
    let (mut last, mut rows) = (0.0, 0);
    for row in reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")) {
        if row.get_long(2).is_ok_and(|seed| seed == 1)
            && row.get_string(6).is_ok_and(|metric| metric == "delivered_dsn")
        {
            let value = row.get_double(8).expect("a value");
            assert!(value >= last, "{value} after {last}");
            (last, rows) = (value, rows + 1);
        }
    }
    // 2 s in steps of 100 ms; at most 10 Mbit/s, which is 2.5 MB.
    assert!((19..=20).contains(&rows), "{rows}");
    assert!((1.0..2.5).contains(&last), "{last}");
}

/// Without root, only Anabranch runs at both ends of emulated links; with root Linux is measured too.
#[test]
fn calibrating_writes_results_of_lab_and_real_time_and_judges_the_lab() {
    let place = Place::new("calibrate", SCENARIO);
    let arguments = ["calibrate", "--quick", "--case", "one_01", "--case", "two_07", "--case", "two_12", "--json"];
    let output = place.run(&arguments);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    // Three short runs are too few for either verdict.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    // On a busy machine runs are skipped; the others must be close to the lab if loss is not random.
    for row in rows.iter().filter(|row| row["ours"].is_object()) {
        let mbits = |way: &str| row["ours"][way][0].as_f64().expect("a goodput");
        let near = (mbits("lab") / mbits("emulated") - 1.0).abs() < 0.15;
        assert!(mbits("emulated") > 1.0 && (near || row["case"]["name"] == "two_12"), "{row}");
        // With a buffer of 64 KiB, stalls must also be below one second.
        assert!(row["ours"]["pauses"][0].as_f64().expect("a time") < 1.0, "{row}");
    }
    for file in ["results/calibration.json", "results/calibration.html"] {
        assert!(std::fs::metadata(place.0.join(file)).expect("it was written").len() > 1_000);
    }
}

/// Needs root; otherwise the program reports that.
#[test]
fn the_rivals_meet_on_a_point_in_real_time_and_what_they_did_is_not_done_again() {
    let place = Place::new("rivals", SCENARIO);
    // A point of 3.11 and 0.474 Mbit/s without loss.
    let arguments = ["sweep", "--rivals", "--points", "1", "--from", "2", "--json"];
    let output = place.run(&arguments);
    if !output.status.success() {
        let message = text(&output.stderr);
        assert!(message.contains("there is no Linux to compete with"), "{message}");
        eprintln!("skipped: {message}");
        return;
    }
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    if json["given_up"] != 0 {
        eprintln!("skipped: the machine is too busy");
        return;
    }
    let row = &json["rows"][0];
    let mbits = |value: &serde_json::Value| value.as_f64().expect("a goodput");
    for (single, rate) in row["singles"].as_array().expect("of each path").iter().zip([3.11, 0.474]) {
        assert!((0.7 * rate..rate).contains(&mbits(single)), "{row}");
    }
    for who in ["ours", "kernel"] {
        assert!((0.3..3.7).contains(&mbits(&row[who]["goodput"])), "{row}");
    }
    for file in ["results/rivals.json", "results/rivals.html"] {
        assert!(std::fs::metadata(place.0.join(file)).expect("it was written").len() > 1_000);
    }
    let again = place.run(&arguments);
    let runs = text(&again.stderr);
    // Five, or four if the kernel lacks BBR.
    let none_new = |count: u8| runs.contains(&format!("{count} runs in real time, of which {count} are"));
    assert!(again.status.success() && (none_new(5) || none_new(4)), "{runs}");
}

#[test]
fn a_case_that_is_not_there_is_refused_with_the_names_of_those_that_are() {
    let message = refused(&Place::new("no_such_case", SCENARIO), &["calibrate", "--case", "seven"]);
    assert!(message.contains("--case: there is no such case") && message.contains("two_14"), "{message}");
}

#[test]
fn every_command_that_runs_a_stack_has_the_recommended_policies_unless_told_otherwise() {
    let (shared, own) = ("anabranch,congestion=bounded_cubic]", "anabranch]");
    let commands: [(&[&str], &str); 5] = [
        (&["proxy"], shared),
        (&["serve"], shared),
        (&["perf"], shared),
        (&["stream", "send"], own),
        (&["stream", "receive"], own),
    ];
    for (command, expected) in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_anabranch")).args(command).arg("--help").output();
        let help = text(&output.expect("the program runs").stdout);
        let policy = help.split_once("--policy <POLICY>").expect("it takes policies").1;
        // The line may be wrapped after the colon.
        let default = policy.split_once("[default:").expect("it has a default").1.trim_start();
        assert!(default.starts_with(expected), "{command:?}: {default}");
    }
}

#[test]
fn a_stack_that_cannot_be_set_up_says_what_is_missing_and_changes_nothing() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let output = command.args(["proxy", "--dry-run"]).env("PATH", "/nonexistent").output().expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), "error: the program 'nft' is missing: install nftables\n");
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn a_dry_run_needs_no_right_and_prints_commands() {
    let place = Place::new("dry_run", SCENARIO);
    let output = place.run(&["proxy", "--local", "2", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let plan = text(&output.stdout);
    assert!(plan.starts_with("ip tuntap add dev anabranch"), "{plan}");
    assert_eq!(plan.lines().filter(|line| line.starts_with("ip tuntap add")).count(), 2, "{plan}");
    // Settings of its own devices.
    let sets_its_own = |line: &str| line.starts_with("sysctl ") && line.contains(".conf.anabranch");
    assert!(plan.lines().all(|line| line.starts_with("ip ") || sets_its_own(line)), "{plan}");
}

#[test]
fn there_is_a_page_of_the_manual_for_each_command_with_each_of_its_options() {
    let place = Place::new("manual", SCENARIO);
    assert!(place.run(&["manual", "pages"]).status.success());
    let read = |path: &str| {
        let path = place.0.join("pages").join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    // A name follows two spaces; continuation lines are indented further.
    let help = text(&place.run(&["--help"]).stdout);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert!(commands.contains(&"serve") && commands.contains(&"status") && !commands.contains(&"manual"), "{help}");
    for command in commands.into_iter().filter(|command| !["help", "stream"].contains(command)) {
        // Man pages escape hyphens.
        let page = read(&format!("man/anabranch-{command}.1")).replace('\\', "");
        let help = text(&place.run(&[command, "--help"]).stdout);
        let options = help.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
        for option in options.filter_map(|rest| rest.split([' ', '[', ',']).next()) {
            assert!(page.contains(&format!("--{option}")), "{command}: --{option}");
        }
    }
    read("man/anabranch-stream-send.1");
    for file in ["anabranch.bash", "_anabranch", "anabranch.fish"] {
        let completions = read(&format!("completions/{file}"));
        for word in ["check-config", "allow-remote-status"] {
            assert!(completions.contains(word), "{file}: {word}");
        }
    }
}

#[test]
fn output_that_is_lost_is_told_and_a_reader_that_has_enough_is_not() {
    let list = |output: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(["list", "--json"]).stdout(output).stderr(Stdio::piped()).spawn().expect("the program runs")
    };
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let output = list(full.into()).wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert_eq!(message, "error: cannot write to standard output: No space left on device (os error 28)\n");
    // Closed before anything is read.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = list(writer.into()).wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

/// Its value may be negative, which its own parser tells, and may be left out.
#[test]
fn what_follows_an_option_whose_quantity_may_be_left_out_is_the_next_option() {
    let place = Place::new("left_out", SCENARIO);
    let output = place.run(&["route", "--bfd", "--help"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(refused(&place, &["route", "--hello-interval", "-1s"]).contains("must not be negative"));
}

/// A daemon with a journal of its own has its socket there.
#[test]
fn a_status_for_which_nobody_is_there_names_the_option_that_finds_others() {
    let place = Place::new("nobody", SCENARIO);
    let message = refused(&place, &["status", "--journal", "."]);
    assert!(message.contains("is here that this user may ask") && message.contains("--journal DIR"), "{message}");
}
