use super::*;
use anabranch_mptcp::{EcnMode, Policies};
use anabranch_policy::combination::Combination;
use std::fmt::Write;
use std::path::Path;

fn config() -> ConnectionConfig {
    defaults(Policies::of(&Combination::default()).unwrap())
}

fn said(settings: &[(&str, &str)]) -> ConnectionSettings {
    let mut made = ConnectionSettings::default();
    for (name, text) in settings {
        made.set(name, text).unwrap();
    }
    made
}

#[test]
fn the_defaults_as_they_are_written_change_nothing() {
    let mut compared = 0;
    for setting in SETTINGS {
        let mut settings = ConnectionSettings::default();
        // Some defaults are words: "required", "none", "as the scheduler asks".
        if settings.set(setting.name, &setting.default()).is_err() {
            continue;
        }
        let mut changed = config();
        settings.apply(&mut changed);
        assert_eq!(format!("{changed:?}"), format!("{:?}", config()), "{}", setting.name);
        compared += 1;
    }
    assert!(compared >= SETTINGS.len() - 5, "only {compared} of {}", SETTINGS.len());
}

#[test]
fn what_is_laid_over_wins_and_the_rest_shows_through() {
    let below = said(&[("min_rto", "1 s"), ("sack", "false")]);
    let above = said(&[("min_rto", "300ms"), ("max_timeouts", "5")]);
    let both = above.over(&below);
    let mut changed = config();
    both.apply(&mut changed);
    assert_eq!(changed.tcp.min_rto, Duration::from_millis(300));
    assert_eq!((changed.tcp.options.sack, changed.tcp.max_timeouts), (false, 5));
    let words: Vec<String> = both.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    assert_eq!(words, ["min_rto = 300 ms", "max_timeouts = 5", "sack = false"]);
}

#[test]
fn a_window_in_packets_is_of_the_segments_that_the_other_settings_make() {
    // 1500 - 40 - 28 without timestamps, 12 less with them.
    for (timestamps, segment) in [("false", 1432), ("true", 1420)] {
        let mut changed = config();
        said(&[("max_window", "100 packets"), ("timestamps", timestamps)]).apply(&mut changed);
        assert_eq!(changed.tcp.max_window, Some(100 * segment));
    }
}

#[test]
fn what_cannot_be_set_is_answered_with_what_can() {
    let fault = |name, text| ConnectionSettings::default().set(name, text).unwrap_err();
    assert!(fault("min_rtt", "1 s").contains("did you mean 'min_rto'?"));
    assert!(fault("min_rto", "1").contains("connection.min_rto: a time has no unit"));
    assert!(fault("max_timeouts", "0").contains("from 1 to 100"));
    assert!(fault("sack", "maybe").contains("true or false is expected"));
    assert!(fault("mtu", "100 B").contains("from 576 to 65535"));
    assert!(fault("data_reinjection", "nevr").contains("did you mean 'never'?"));
}

#[test]
fn words_reach_the_engine_and_come_back_as_they_were() {
    let mut changed = config();
    let settings =
        said(&[("data_reinjection", "never"), ("rto", "\"paper\""), ("tail_loss_probe", "false"), ("ecn", "request")]);
    settings.apply(&mut changed);
    assert_eq!((changed.data_reinjection, changed.tcp.rto), (Some(Reinjection::Never), RtoRule::Paper));
    assert_eq!((changed.tcp.tail_loss_probe, changed.tcp.ecn), (false, EcnMode::Request));
    let words: Vec<String> = settings.iter().map(|(_, value)| value).collect();
    assert_eq!(words, ["never", "paper", "false", "request"]);
}

/// The generated table of `docs/scenarios.md`.
fn page() -> String {
    let mut page = "| key | values | default | meaning |\n|---|---|---|---|\n".to_owned();
    for setting in SETTINGS {
        let (name, values, default, summary) = (setting.name, setting.values(), setting.default(), setting.summary);
        let _ = writeln!(page, "| `{name}` | {values} | {default} | {summary} |");
    }
    page
}

#[test]
fn the_page_of_scenarios_has_the_table_of_settings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let heading = text.find("## `[connection]`").unwrap();
    let begin = heading + text[heading..].find("| key |").unwrap();
    let end = begin + text[begin..].find("\n\n").unwrap() + 1;
    if std::env::var_os("ANABRANCH_BLESS").is_some() {
        std::fs::write(&path, format!("{}{}{}", &text[..begin], page(), &text[end..])).unwrap();
    } else {
        let fault = "docs/scenarios.md is not what the table says; ANABRANCH_BLESS=1 cargo test -p anabranch-cli --bin anabranch settings writes it";
        assert!(text[begin..end] == page(), "{fault}");
    }
}
