//! Tests of the baselines with the scenarios and runs that use them.

use crate::experiment::{Experiment, Plan};
use crate::progress::Unseen;
use crate::record::SweepPoint;
use crate::runner::Runner;
use crate::scenario::Document;
use crate::simulation;
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::time::Duration;
use anabranch_settings::baseline;
use anabranch_settings::baseline::{BASELINES, Baseline, all, embedded, find};
use anabranch_settings::contender::Choices;
use anabranch_settings::contender::{Scheme, contenders};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::tree::Source;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const TEXT: &str = "name = \"s\"\nduration = \"1 s\"\n[connection]\nreceive_buffer = \"64 kB\"\n[[paths]]\nname = \"A\"\n\
                    links = [{ rate = \"1 Mbit/s\" }]\n";

fn read(text: &str) -> Result<Baseline, Diagnostic> {
    baseline::read(&Source::embedded("mine.toml", text, &[]))
}

fn configs(text: &str) -> Vec<(String, ConnectionConfig)> {
    let scenario = Document::embedded("s", text, &[]).scenario().unwrap();
    let config = |contender| simulation::connection(&scenario, contender);
    scenario.policies.iter().map(|contender| (contender.name.clone(), config(contender))).collect()
}

#[test]
fn those_that_come_with_the_program_can_be_read_and_go_by_their_names() {
    for (name, text) in BASELINES {
        let made = read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(made.name, *name);
        assert!(!made.reasons.is_empty() && !made.summary.is_empty(), "{name}");
        let contender = Scheme::mptcp().under(Some(&made), &Choices::default());
        anabranch_settings::contender::check(&contender.policies).unwrap();
    }
}

#[test]
fn plain_is_what_the_engine_does_of_itself() {
    let contender = Scheme::mptcp().under(embedded("plain").as_ref(), &Choices::default());
    assert_eq!(contender.policies, anabranch_settings::contender::Contender::plain().policies);
    assert!(contender.defaults.is_empty());
}

#[test]
fn a_scenario_wins_over_a_baseline_and_a_policy_over_both() {
    let head = "baselines = [\"linux\", \"plain\"]\n";
    let set = "[connection]\nmin_rto = \"300 ms\"\ninitial_window = \"2 packets\"\n";
    let policies =
        "[[policies]]\nname = \"mptcp\"\n[[policies]]\nname = \"quick\"\nconnection = { min_rto = \"50 ms\" }\n";
    let made = configs(&format!("{head}{}{policies}", TEXT.replace("[connection]\n", set)));
    let seen: Vec<_> = made
        .iter()
        .map(|(name, config)| (name.as_str(), config.tcp.min_rto.as_millis(), config.receiver.charge_out_of_order))
        .collect();
    let expected = [
        ("mptcp@linux", 300, true),
        ("quick@linux", 50, true),
        ("mptcp@plain", 300, false),
        ("quick@plain", 50, false),
    ];
    assert_eq!(seen, expected);
    assert!(made.iter().all(|(_, config)| config.tcp.initial_window == 2));
    let alone = configs(TEXT);
    assert_eq!((alone[0].0.as_str(), alone[0].1.tcp.min_rto), ("plain", Duration::from_millis(200)));
}

#[test]
fn the_scenarios_defaults_lie_between_a_baselines_choices_and_a_policys() {
    let rest = "[defaults]\ncongestion = \"olia\"\n[[policies]]\nname = \"mptcp\"\n[[policies]]\nname = \"own\"\n\
                congestion = \"balia\"\n[[policies]]\nname = \"alone\"\nbaselines = []\n";
    let scenario = Document::embedded("s", &format!("baselines = [\"linux\"]\n{TEXT}{rest}"), &[]).scenario();
    let seen: Vec<_> = (scenario.unwrap().policies.iter())
        .map(|made| [&made.name, &made.policies.congestion.name, &made.policies.scheduler.name].map(String::clone))
        .collect();
    let expected = [["mptcp@linux", "olia", "linux"], ["own@linux", "balia", "linux"], ["alone", "olia", "lowest_rtt"]];
    assert_eq!(seen, expected.map(|row| row.map(str::to_owned)));
}

#[test]
fn what_is_swept_may_be_a_default_of_all_policies() {
    let rest = "[[policies]]\nname = \"mptcp\"\n[sweep]\nkey = \"defaults.congestion\"\nlabel = \"control\"\n\
                values = [\"lia\", \"olia\"]\nquick = [\"lia\"]\nseeds = 1\npolicies = [\"mptcp\"]\n";
    let document = Document::embedded("s", &format!("baselines = [\"linux\", \"plain\"]\n{TEXT}{rest}"), &[]);
    let plan = Plan { seeds: Some(1), sweep: true, ..Plan::default() };
    let (stop, progress) = (AtomicBool::new(false), &Unseen);
    let runner = Runner { jobs: 2, stop: &stop, progress };
    let outcome = Experiment::prepare(&document, &plan).unwrap().run(&runner, None).unwrap();
    let chosen = |point: &SweepPoint| {
        let names = point.policies.iter().map(|runs| &runs.contender);
        names.map(|made| format!("{} {}", made.name, made.policies.congestion.name)).collect::<Vec<_>>()
    };
    let seen: Vec<Vec<String>> = outcome.sweep.iter().map(chosen).collect();
    assert_eq!(seen, [["mptcp@linux lia", "mptcp@plain lia"], ["mptcp@linux olia", "mptcp@plain olia"]]);
}

#[test]
fn a_policy_may_be_meant_for_one_baseline() {
    let mut tied = Scheme::mptcp().called("tied");
    tied.baselines = Some(vec!["plain".to_owned()]);
    let names: Vec<String> = contenders(&[Scheme::mptcp(), tied], &all(), &Choices::default())
        .into_iter()
        .map(|contender| contender.name)
        .filter(|name| name.starts_with("tied"))
        .collect();
    assert_eq!(names, ["tied@plain"]);
}

#[test]
fn what_is_wrong_with_a_baseline_is_one_clear_sentence() {
    let reason = |of: &str| format!("[[reasons]]\nof = [\"{of}\"]\ntext = \"t\"\nsource = \"s\"\n");
    let cases = [
        ("name = \"b\"\nschedular = \"linux\"\n".to_owned(), "did you mean 'scheduler'?"),
        ("name = \"b\"\nscheduler = \"linx\"\n".to_owned(), "did you mean 'linux'?"),
        ("name = \"b\"\nscheduler = \"linux\"\n".to_owned(), "'scheduler' has no reason"),
        (format!("name = \"b\"\nscheduler = \"linux\"\n{}", reason("scheduler")), ""),
        (format!("name = \"b\"\n{}", reason("scheduler")), "a reason for 'scheduler', which the baseline does not say"),
        ("name = \"b\"\n[connection]\nmin_rto = \"1 s\"\n".to_owned(), "'connection.min_rto' has no reason"),
        ("name = \"a b\"\n".to_owned(), "letters, digits"),
    ];
    for (text, expected) in cases {
        match read(&text) {
            Ok(_) => assert_eq!(expected, "", "{text}"),
            Err(error) => assert!(!expected.is_empty() && error.to_string().contains(expected), "{text}: {error}"),
        }
    }
    let missing = find("linus", Path::new("")).unwrap_err().to_string();
    assert!(missing.contains("did you mean 'linux'?"), "{missing}");
    let file = find("nowhere.toml", Path::new("")).unwrap_err().to_string();
    assert!(file.contains("cannot read the scenario nowhere.toml"), "{file}");
}

#[test]
fn a_policy_cannot_ask_for_a_baseline_that_the_scenario_does_not_have() {
    let text = format!("baselines = [\"linux\"]\n{TEXT}[[policies]]\nname = \"a\"\nbaselines = [\"plain\"]\n");
    let error = Document::embedded("s", &text, &[]).scenario().unwrap_err().to_string();
    assert!(error.contains("'plain' is not among the scenario's baselines (linux)"), "{error}");
}

/// The generated part of `docs/baselines.md`.
fn page() -> String {
    let mut page = String::new();
    for baseline in all() {
        let _ = write!(page, "\n## `{}`\n\nIn short: {}.\n\n", baseline.name, baseline.summary);
        page.push_str("| value | why | source |\n|---|---|---|\n");
        let values = baseline.values();
        for reason in &baseline.reasons {
            let value = |name: &String| values.iter().find(|(known, _)| known == name);
            let said = reason.of.iter().filter_map(value).map(|(name, value)| format!("`{name}` = {value}"));
            let _ =
                writeln!(page, "| {} | {} | {} |", said.collect::<Vec<_>>().join("<br>"), reason.text, reason.source);
        }
        if !baseline.not_modelled.is_empty() {
            page.push_str("\nNot modelled:\n\n");
            baseline.not_modelled.iter().for_each(|sentence| page.push_str(&format!("- {sentence}\n")));
        }
    }
    page
}

#[test]
fn the_page_of_baselines_has_every_value_with_its_source() {
    const MARK: &str = "<!-- What follows is written from scenarios/baselines by a test. -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/baselines.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let end = text.find(MARK).unwrap() + MARK.len();
    if std::env::var_os("ANABRANCH_BLESS").is_some() {
        std::fs::write(&path, format!("{}{}", &text[..end], page())).unwrap();
    } else {
        let fault = "docs/baselines.md is not what the files say; ANABRANCH_BLESS=1 cargo test -p anabranch-lab baselines writes it";
        assert!(text[end..] == page(), "{fault}");
    }
}
