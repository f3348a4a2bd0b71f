//! Runs as data: rows of `run` and `compare`, grids, shards, and what becomes of them when the program is killed.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory of a test, removed at its end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("anabranch-runs-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory can be made");
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A test that failed must not fail again here.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn command(line: &[&str], out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(line).arg("--out").arg(out);
    command
}

fn anabranch(line: &[&str], out: &Path) -> Output {
    command(line, out).output().expect("the program starts")
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).expect("the table is there")).expect("it is Parquet");
    reader.get_row_iter(None).expect("it has rows").map(|row| row.expect("a row")).collect()
}

fn text(row: &Row, name: &str) -> String {
    let field = row.get_column_iter().find(|(known, _)| *known == name).map(|(_, field)| field.clone());
    match field {
        Some(Field::Str(text)) => text,
        other => format!("{other:?}"),
    }
}

/// Policy, seed, value of the grid and trace hash of each row.
fn identities(path: &Path) -> BTreeSet<String> {
    let names = ["policy", "seed", "duration", "trace_hash", "throughput"];
    rows(path).iter().map(|row| names.map(|name| text(row, name)).join(" ")).collect()
}

const SHORT: [&str; 6] = ["compare", "two_paths", "--policy", "plain", "--policy", "anabranch"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SHORT.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn a_comparison_leaves_a_row_for_each_run_with_all_that_it_depends_on() {
    let place = Place::new("rows");
    let line = with(&["--seeds", "3..4", "--set", "duration=\"3 s\""]);
    let output = anabranch(&line, &place.0);
    assert!(output.status.success(), "{}", words(&output));
    let rows = rows(&place.0.join("runs.parquet"));
    assert_eq!(rows.len(), 4);
    let seeds: BTreeSet<String> = rows.iter().map(|row| text(row, "seed")).collect();
    assert_eq!(seeds.len(), 2, "{seeds:?}");
    for row in &rows {
        assert_eq!(text(row, "scenario"), "two_paths");
        assert_eq!(text(row, "set"), "duration=\"3 s\"");
        assert!(text(row, "scenario_text").contains("[[paths]]"));
        assert!(text(row, "policies").contains("scheduler="));
        assert_eq!(text(row, "trace_hash").len(), 16);
        assert!(text(row, "throughput").contains("Double"));
    }
}

#[test]
fn shards_together_are_the_grid_on_one_machine_and_a_missing_one_is_told() {
    let place = Place::new("shards");
    let at = |name: &str| place.0.join(name);
    let grid = with(&["--seeds", "2", "--grid", "duration=\"3 s\",\"4 s\""]);
    let output = anabranch(&grid, &at("whole"));
    assert!(output.status.success() && words(&output).contains("8 runs, 8 of them executed now"), "{}", words(&output));
    for number in ["1/3", "3/3"] {
        let output = anabranch(&[&grid[..], &["--shard", number]].concat(), &at("parts"));
        assert!(output.status.success(), "{}", words(&output));
    }
    let merge = |places: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.arg("merge").args(places.iter().map(|place| at(place))).arg("--out").arg(at("merged"));
        command.output().expect("the program starts")
    };
    let output = merge(&["parts"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(words(&output).contains("shard 2 of 3 missing"), "{}", words(&output));
    let output = anabranch(&[&grid[..], &["--shard", "2/3"]].concat(), &at("late"));
    assert!(output.status.success(), "{}", words(&output));
    let output = merge(&["late"]);
    assert!(output.status.success(), "{}", words(&output));
    let whole = identities(&at("whole").join("runs.parquet"));
    assert_eq!(whole.len(), 8);
    assert_eq!(identities(&at("merged").join("runs.parquet")), whole);

    std::fs::create_dir_all(at("empty")).expect("it is ours");
    let output = merge(&["late", "empty"]);
    assert_eq!(output.status.code(), Some(2), "{}", words(&output));
    assert!(words(&output).contains("empty has no file runs.jsonl or runs-I-of-N.jsonl"), "{}", words(&output));
    std::fs::write(at("empty").join("runs.jsonl"), "").expect("it is ours");
    let output = merge(&["late", "empty"]);
    assert_eq!(output.status.code(), Some(2), "{}", words(&output));
    assert!(words(&output).contains("empty has no rows yet"), "{}", words(&output));

    let late = at("late").join("runs-2-of-3.jsonl");
    let mut damaged = std::fs::read(&late).expect("it was written");
    damaged.extend(b"{\"kind\": \n");
    std::fs::write(&late, damaged).expect("it is ours");
    let output = merge(&["late"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(words(&output).contains("runs-2-of-3.jsonl: 1 line cannot be read"), "{}", words(&output));
}

#[test]
fn what_is_killed_goes_on_where_it_was_and_executes_no_run_twice() {
    let place = Place::new("killed");
    let lines = place.0.join("runs.jsonl");
    let grid = with(&["--seeds", "10", "--grid", "duration=\"3 s\",\"4 s\""]);
    let mut program = command(&grid, &place.0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let count = || {
        let content = std::fs::read_to_string(&lines).unwrap_or_default();
        content.lines().filter(|line| line.ends_with('}') && line.contains("trace_hash")).count()
    };
    let patience = Instant::now() + Duration::from_secs(120);
    while count() < 4 && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    program.kill().expect("it can be killed");
    program.wait().expect("it ends");
    let before = count();
    assert!((4..40).contains(&before), "{before} runs were there");
    let output = anabranch(&grid, &place.0);
    assert!(words(&output).contains(&format!("40 runs, {} of them executed now", 40 - before)), "{}", words(&output));
    let rows = rows(&place.0.join("runs.parquet"));
    let keys: BTreeSet<String> = rows.iter().map(|row| text(row, "key")).collect();
    assert_eq!((rows.len(), keys.len()), (40, 40));
}

#[test]
fn mistakes_are_told_before_the_first_run() {
    let place = Place::new("mistakes");
    let told = |more: &[&str]| {
        let output = anabranch(&with(more), &place.0);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", words(&output));
        words(&output)
    };
    assert!(told(&["--grid", "duration=\"3 s\",\"none\""]).contains("--grid duration=\"none\""));
    assert!(told(&["--grid", "duration"]).contains("key=value"));
    assert!(told(&["--shard", "4/3"]).contains("I/N"));
    assert!(told(&["--seeds", "9..3"]).contains("11..20"));
    assert!(!place.0.join("runs.jsonl").exists());
}

/// One path of 10 Mbit/s that loses 5 % on the way to the server and nothing on the way back.
const ONE_WAY_LOSS: &str = r#"name = "one"
duration = "60 s"
connection.receive_buffer = "10 MB"
transfer = { kind = "finite", size = "1 MB", direction = "DIRECTION" }
[[paths]]
name = "A"
links = [{ rate = "10 Mbit/s", delay = "20 ms", loss = "5 %", loss_direction = "forward" }]
"#;

/// The `completion` of sending a megabyte in this direction, in seconds.
fn completion_of_file(place: &Place, direction: &str) -> f64 {
    let (scenario, file) = (place.0.join("one.toml"), place.0.join("file"));
    std::fs::write(&scenario, ONE_WAY_LOSS.replace("DIRECTION", direction)).expect("it can be written");
    std::fs::write(&file, vec![7; 1_000_000]).expect("it can be written");
    let [scenario, file] = [&scenario, &file].map(|path| path.to_str().expect("UTF-8"));
    let run = anabranch(&["run", scenario, "--send", file, "--policy", "congestion=new_reno"], &place.0);
    assert!(run.status.success() && words(&run).contains("same at the receiver"), "{}", words(&run));
    let row = rows(&place.0.join("runs.parquet")).pop().expect("a row");
    let found = row.get_column_iter().find(|(name, _)| *name == "completion").map(|(_, field)| field.clone());
    let Some(Field::Double(seconds)) = found else { panic!("no time in {row}") };
    seconds
}

#[test]
fn a_file_goes_in_the_direction_of_the_transfer() {
    let place = Place::new("direction");
    // 0.97 s at the link's rate with slow start; with losses in its way far longer.
    let (down, up) = (completion_of_file(&place, "download"), completion_of_file(&place, "upload"));
    assert!(down < 1.2 && up > 2.0 * down, "{down} s and {up} s");
}

#[test]
fn a_file_is_refused_where_nothing_would_carry_it() {
    let place = Place::new("no-file");
    let file = place.0.join("file");
    std::fs::write(&file, b"content").expect("it can be written");
    for (scenario, word) in [("call_wifi_lte", "has no connection"), ("recpr_video", "[video]")] {
        let run = anabranch(&["run", scenario, "--send", file.to_str().expect("UTF-8")], &place.0);
        assert_eq!(run.status.code(), Some(2), "{}", words(&run));
        assert!(words(&run).contains(word), "{}", words(&run));
    }
}

#[test]
fn the_first_seed_is_said_once() {
    let place = Place::new("seeds");
    let run = anabranch(&["run", "two_paths", "--seeds", "3..4", "--first-seed", "7"], &place.0);
    assert_eq!(run.status.code(), Some(2), "{}", words(&run));
    assert!(words(&run).contains("--first-seed 7") && words(&run).contains("--seeds"), "{}", words(&run));
}

#[test]
fn rows_only_are_no_summary_in_json() {
    let place = Place::new("no-json");
    for option in [["--grid", "duration=3 s"], ["--shard", "1/2"]] {
        let line = [&["compare", "two_paths", "--seeds", "1", "--json"][..], &option].concat();
        let run = anabranch(&line, &place.0);
        assert_eq!((run.status.code(), run.stdout.len()), (Some(2), 0), "{}", words(&run));
    }
}

/// As on a full disk: the largest file that the program may write has 64 blocks of 512 octets.
#[test]
fn a_file_that_cannot_be_written_whole_leaves_the_earlier_one() {
    let place = Place::new("full");
    let out = &place.0;
    std::fs::create_dir_all(out).expect("a directory of the test's own");
    std::fs::write(out.join("report.html"), "the earlier one").expect("a file of the test's own");
    let line = ["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_anabranch")];
    let run = ["compare", "two_paths", "--seeds", "1", "--policy", "plain", "--out"];
    let output = Command::new("sh").args(line).args(run).arg(out).output().expect("a shell");
    let said = words(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write ") && said.contains("report.html: "), "{said}");
    assert_eq!(std::fs::read_to_string(out.join("report.html")).expect("it is there"), "the earlier one");
    let parts = std::fs::read_dir(out).expect("it is there").flatten();
    assert!(parts.into_iter().all(|entry| !entry.path().to_string_lossy().ends_with(".part")), "{said}");
}

#[test]
fn captures_of_one_name_are_refused_before_the_first_run() {
    let place = Place::new("captures");
    let path = "links = [{ rate = \"1 Mbit/s\", delay = \"5 ms\", queue = \"9 packets\" }]";
    let scenario = |other: &str| {
        let top = "name = \"small\"\nduration = \"2 s\"\nseeds = 1\ntransfer = { kind = \"endless\" }";
        let paths = format!("[[paths]]\nname = \"a/b\"\n{path}\n[[paths]]\nname = \"{other}\"\n{path}\n");
        format!("{top}\nconnection = {{ receive_buffer = \"1 MB\" }}\n{paths}")
    };
    let (file, out) = (place.0.join("s.toml"), place.0.join("out"));
    let name = file.to_str().expect("a name in UTF-8");
    let line = ["compare", name, "--policy", "plain_tcp", "--policy", "plain", "--pcap"];
    std::fs::write(&file, scenario("a_b")).expect("a file of the test's own");
    let refused = anabranch(&line, &out);
    let said = words(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(!out.join("small-plain_tcp-a_b.pcapng").exists(), "{said}");
    assert!(said.contains("two captures would have the name small-plain_tcp-a_b.pcapng"), "{said}");
    std::fs::write(&file, scenario("c")).expect("a file of the test's own");
    let output = anabranch(&line, &out);
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    for capture in ["small-plain_tcp-a_b.pcapng", "small-plain_tcp-c.pcapng", "small-plain.pcapng"] {
        assert!(out.join(capture).exists(), "{capture}");
    }
}
