use super::*;
use crate::library::SCENARIOS;
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity::{Packets, Share, Size};
use model::{Draw, Drawn, LinkRate, Queue, QueueLimit, ReceiveBuffer};

fn motivation(options: &[&str]) -> Result<Scenario, Diagnostic> {
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    SCENARIOS[0].document(&options).scenario()
}

#[test]
fn every_scenario_that_comes_with_the_program_can_be_read_and_has_its_own_name() {
    for known in SCENARIOS {
        let scenario = known.document(&[]).scenario().unwrap_or_else(|error| panic!("{}: {error}", known.name));
        assert_eq!(scenario.name, known.name);
    }
}

#[test]
fn the_motivating_experiment_is_that_of_the_paper() {
    let scenario = motivation(&[]).unwrap();
    assert_eq!(scenario.duration, Duration::from_secs(120));
    assert!(scenario.connection.iter().any(|said| said == ("max_window", "100 packets".to_owned())));
    let [a, b] = scenario.paths.as_slice() else { panic!("two paths") };
    let (access, bottleneck) = (&a.links[0], &a.links[1]);
    assert_eq!(access.rate, LinkRate::Fixed(anabranch_policy::Rate::from_bits_per_second(100_000_000)));
    assert_eq!(access.delay, Draw::Fixed(Duration::from_micros(1)));
    assert_eq!(bottleneck.queue, Queue::DropTail(QueueLimit::Packets(Packets(500))));
    assert_eq!(bottleneck.loss, Some(Draw::Fixed(Share(0.01))));
    assert_eq!(b.links[1].down, [(Duration::from_secs(30), None)]);
}

#[test]
fn a_range_says_how_it_is_drawn() {
    let option = r#"paths.A.links.bottleneck.delay={ uniform = "10..20 ms", drawn = "slowly_varying", every = "2 s" }"#;
    let scenario = motivation(&[option]).unwrap();
    let (low, high) = (Duration::from_millis(10), Duration::from_millis(20));
    let drawn = Drawn::SlowlyVarying(Duration::from_secs(2));
    assert_eq!(scenario.paths[0].links[1].delay, Draw::Uniform { low, high, drawn });
    for every in ["0 s", "1 ns", "999 ns"] {
        let wrong = motivation(&[&option.replace("2 s", every)]).unwrap_err().to_string();
        assert!(wrong.contains("'every' must be 1 us or more"), "{every}: {wrong}");
    }
    assert!(motivation(&[&option.replace("2 s", "1 us")]).is_ok());
}

#[test]
fn set_reaches_elements_by_name_and_by_number_and_takes_quantities_without_quotes() {
    let options = ["paths.B.links.1.loss=3 %", "connection.receive_buffer=1 MB", "seeds=7"];
    let scenario = motivation(&options).unwrap();
    assert_eq!(scenario.paths[1].links[1].loss, Some(Draw::Fixed(Share(0.03))));
    assert_eq!(scenario.connection.receive_buffer(), Some(ReceiveBuffer::Fixed(Size(1_000_000))));
    assert_eq!(scenario.seeds.all, 7);
}

#[test]
fn a_later_set_wins_over_an_earlier_one() {
    assert_eq!(motivation(&["seeds=7", "seeds=8"]).unwrap().seeds.all, 8);
}

#[test]
fn a_transfer_is_endless_if_its_kind_is_not_said() {
    let two = SCENARIOS.iter().find(|known| known.name == "two_paths").unwrap();
    let with = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let read = Document { directory: "".into(), source: without_transfer(two.text, &options) }.scenario();
        read.map_err(|error| error.message().to_owned())
    };
    let download = with(&["transfer.direction=download"]).unwrap();
    assert_eq!((download.transfer, download.heading), (model::Transfer::Endless, model::Heading::Download));
    let three = with(&["transfer.connections=3"]).unwrap();
    assert_eq!((three.transfer, three.connections), (model::Transfer::Endless, 3));
    let wrong = with(&["transfer.size=1 MB"]).unwrap_err();
    assert!(wrong.contains("'size' has no meaning for a transfer of kind \"endless\""), "{wrong}");
}

/// A scenario without its table of the transfer.
fn without_transfer(text: &str, options: &[String]) -> anabranch_settings::tree::Source {
    let kept = |line: &&str| !line.starts_with("transfer") && !line.starts_with("kind = ") && *line != "[transfer]";
    let text: Vec<&str> = text.lines().filter(kept).collect();
    anabranch_settings::tree::Source::embedded("two_paths", &text.join("\n"), options)
}

#[test]
fn a_name_that_stands_for_something_else_in_tables_and_keys_is_refused() {
    let wrong = |option: &str| motivation(&[option]).unwrap_err().message().to_owned();
    for name in ["\"A,B\"", "\"*\""] {
        assert!(wrong(&format!("paths.0.name={name}")).contains("no ',', which separates names"), "{name}");
    }
    for name in ["seed", "policy", "set", "key", "experiment"] {
        let metric = format!("metrics=[{{ name = \"{name}\", series = \"rtt\", window = \"1..20 s\", path = \"A\" }}]");
        assert!(wrong(&metric).contains(&format!("a column '{name}' already")), "{name}: {}", wrong(&metric));
        let derived = format!("derived=[{{ name = \"{name}\", of = \"throughput\", deviation = true }}]");
        assert!(wrong(&derived).contains(&format!("a column '{name}' already")), "{name}: {}", wrong(&derived));
    }
}

#[test]
fn coverage_is_a_list_of_points_in_order_of_time() {
    let set = |value: &str| motivation(&[&format!("paths.A.links.bottleneck.coverage={value}")]);
    let scenario = set(r#"[{ at = "10 s" }, { at = "25 s", rate = "10 %", loss = "20 %" }]"#).unwrap();
    let [first, second] = scenario.paths[0].links[1].coverage.as_slice() else { panic!("two points") };
    assert_eq!((first.at, first.rate, first.loss), (Duration::from_secs(10), Share(1.0), Share(0.0)));
    assert_eq!((second.at, second.rate, second.loss), (Duration::from_secs(25), Share(0.1), Share(0.2)));
    let backwards = set(r#"[{ at = "10 s" }, { at = "9 s" }]"#).unwrap_err().to_string();
    assert!(backwards.contains("in order of time"), "{backwards}");
    let nothing = set(r#"[{ at = "10 s", rate = "0 %" }]"#).unwrap_err().to_string();
    assert!(nothing.contains("say so with 'down'"), "{nothing}");
}

#[test]
fn the_priority_of_the_connection_lies_from_1_to_6() {
    let said = |scenario: Scenario| scenario.connection.iter().find(|(name, _)| *name == "priority");
    let priority = |option: &str| motivation(&[option]).map(said);
    assert_eq!(priority("seeds=7").unwrap(), None);
    assert_eq!(priority("connection.priority=6").unwrap(), Some(("priority", "6".to_owned())));
    for wrong in ["connection.priority=0", "connection.priority=7"] {
        assert!(priority(wrong).unwrap_err().to_string().contains("from 1 to 6"), "{wrong}");
    }
}

#[test]
fn names_that_lead_nowhere_are_refused() {
    let cases = [
        ("policies.case_1.paths=[\"Z\"]", "there is no path 'Z': known are A, B"),
        ("policies.tcp.paths=all", "plain TCP uses one path"),
        ("claims.0.policy=case_9", "there is no policy 'case_9'"),
        ("claims.0.metric=throughputt", "did you mean 'throughput'?"),
        ("claims.0.figure=figure 9", "there is no figure 'figure 9'"),
        ("figures.0.series=cwmd", "did you mean 'cwnd'?"),
        ("metrics.0.series=cwnd", "needs a 'path'"),
        (
            "sweep.values=[\"32 kB\", \"1 B\"]",
            "connection.receive_buffer = 1 B: a receive buffer of 1 bytes is not possible",
        ),
        ("sweep.policies=[\"lm4\"]", "there is no policy 'lm4'"),
        ("transfer.size=1 MB", "'size' has no meaning for a transfer of kind \"endless\""),
        ("paths.A.name=B", "two paths with the name 'B'"),
    ];
    for (option, expected) in cases {
        let error = motivation(&[option]).expect_err(option).to_string();
        assert!(error.contains(expected), "{option}: {error}");
    }
}

/// A scenario with this many paths, whose first line is `first`.
fn of_paths(count: usize, first: &str) -> Result<Scenario, Diagnostic> {
    let path = "[[paths]]\nlinks = [{ rate = \"1 Mbit/s\" }]\n".repeat(count);
    let text = format!("name = \"s\"\nduration = \"1 s\"\nconnection.receive_buffer = \"1 MB\"\n{first}\n{path}");
    Document::embedded("s.toml", &text, &[]).scenario()
}

#[test]
fn paths_without_names_get_one_each() {
    let scenario = of_paths(64, "").expect("64 paths are possible");
    let names: Vec<&str> = [0, 25, 26, 63].iter().map(|at| scenario.paths[*at].name.as_str()).collect();
    assert_eq!(names, ["A", "Z", "AA", "LLL"]);
}

#[test]
fn a_path_is_not_called_as_the_shared_links_are() {
    let named = "[[shared]]\nrate = \"1 Mbit/s\"\n[[paths]]\nname = \"shared\"\nlinks = [{ rate = \"1 Mbit/s\" }]";
    let error = of_paths(1, named).expect_err("two links have one name").to_string();
    assert!(error.contains("cannot be named 'shared'"), "{error}");
    assert!(of_paths(1, &named.replace("[[shared]]\nrate = \"1 Mbit/s\"\n", "")).is_ok());
}

#[test]
fn probes_without_time_between_them_are_refused() {
    let moving = SCENARIOS.iter().find(|known| known.name == "manet_moving").expect("it comes with the program");
    for interval in ["0 s", "9 us"] {
        let document = moving.document(&[format!("moving.probe_interval={interval}")]);
        let error = document.scenario().expect_err(interval).to_string();
        assert!(error.contains("10 us apart"), "{error}");
    }
}

/// A small scenario that ends with these lines.
fn small(lines: &str) -> Result<Scenario, Diagnostic> {
    let top = "name = \"s\"\nduration = \"20 s\"\nsample = \"500 ms\"\nconnection.receive_buffer = \"1 MB\"";
    let path = "[[paths]]\nlinks = [{ rate = \"10 Mbit/s\", delay = \"20 ms\" }]";
    Document::embedded("s.toml", &format!("{top}\n{path}\n{lines}"), &[]).scenario()
}

#[test]
fn a_window_without_a_value_of_its_series_is_refused() {
    // Samples of 500 ms have their middles at 10.25 s and 10.75 s.
    let metric =
        |window: &str| small(&format!("[[metrics]]\nname = \"m\"\nseries = \"throughput\"\nwindow = \"{window}\""));
    for window in ["10.3..10.7 s", "10.26..10.75 s", "0..0.25 s"] {
        let wrong = metric(window).expect_err(window).to_string();
        assert!(wrong.contains("no value of a series is in this window"), "{wrong}");
    }
    for window in ["10.2..10.3 s", "10.25..10.26 s", "0..0.26 s", "10.3 s.."] {
        assert!(metric(window).is_ok(), "{window}: {}", metric(window).unwrap_err());
    }
}
