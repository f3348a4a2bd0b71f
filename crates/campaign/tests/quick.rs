//! A few hundred histories of each kind, and every file of the corpus.

use anabranch_campaign::campaign::history;
use anabranch_campaign::history::behaviour::Counts;
use anabranch_campaign::history::lie::Lie;
use anabranch_campaign::history::verdict::{Outcome, play};
use anabranch_campaign::history::{History, Kind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn histories_pass(kind: Kind) {
    let mut outcomes: BTreeMap<Outcome, u32> = BTreeMap::new();
    for number in 0..300 {
        let history = history(&[kind], 20_260, number);
        match play(&history, false).outcome {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(why) => panic!("{why}\n{history}"),
        }
    }
    eprintln!("{kind:?}: {outcomes:?}");
    assert!(outcomes[&Outcome::Finished] > 240, "few connections finished: {outcomes:?}");
    assert!(outcomes.contains_key(&Outcome::Failed), "none failed, though some were aborted: {outcomes:?}");
}

#[test]
fn histories_of_the_engine_with_itself_pass() {
    histories_pass(Kind::Engines);
}

#[test]
fn histories_of_the_engine_as_client_of_the_literal_peer_pass() {
    histories_pass(Kind::EngineClient);
}

#[test]
fn histories_of_the_engine_as_server_of_the_literal_peer_pass() {
    histories_pass(Kind::EngineServer);
}

#[test]
fn the_engine_comes_through_histories_with_a_peer_that_lies() {
    for seed in 0..300 {
        let history = History::draw_hostile(seed);
        if let Err(why) = play(&history, false).outcome {
            panic!("{why}\n{history}");
        }
    }
}

#[test]
fn every_lie_is_told_in_the_histories_with_a_peer_that_lies() {
    let histories: Vec<History> = (0..300).map(History::draw_hostile).collect();
    for (name, lie) in Lie::NAMES {
        assert!(histories.iter().any(|history| history.tells(lie)), "{name}");
    }
}

#[test]
fn every_behaviour_and_lie_happens_and_reaches_an_engine_whose_connection_has_not_ended() {
    let mut counts = Counts::default();
    let kinds = [Kind::EngineClient, Kind::EngineServer];
    for number in 0..1_500 {
        counts.count(play(&history(&kinds, 4, number), false).seen);
        counts.count(play(&History::draw_hostile(number), false).seen);
    }
    counts.count(play(&history(&[Kind::Twins], 4, 0), false).seen);
    for (name, sent, arrived) in counts.rows() {
        assert!(arrived > 0 && sent >= arrived, "{name}: sent in {sent}, arrived in {arrived}");
    }
}

#[test]
fn of_a_plain_history_only_what_every_peer_does_is_counted() {
    let text = "kind engine-client\nseed 1\ndelays 10000\nat 0 write 0 1000\nat 0 write 1 1000";
    let history: History = text.parse().expect("it is a history");
    let mut counts = Counts::default();
    counts.count(play(&history, false).seen);
    let names: Vec<String> = counts.rows().filter(|(_, sent, _)| *sent > 0).map(|(name, ..)| name).collect();
    assert_eq!(names, ["DATA_FIN on data", "FIN after DATA_FIN"]);
}

#[test]
fn two_clients_with_one_key_have_connections_of_their_own() {
    for number in 0..300 {
        let history = history(&[Kind::Twins], 20_260, number);
        if let Err(why) = play(&history, false).outcome {
            panic!("{why}\n{history}");
        }
    }
}

/// Files in `corpus` are failures that have been fixed.
#[test]
fn the_corpus_passes() {
    for path in files("corpus") {
        let outcome = play(&read(&path), false).outcome;
        let expected = [("cut-short.txt", Outcome::CutShort), ("told-too-late.txt", Outcome::ReadTwice)];
        for (suffix, special) in expected {
            let named = path.to_str().is_some_and(|path| path.ends_with(suffix));
            assert_eq!(outcome == Ok(special), named, "{}: {outcome:?}", path.display());
        }
        assert!(outcome.is_ok(), "{}: {outcome:?}", path.display());
    }
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).expect("there is a corpus");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "txt")).collect()
}

fn read(path: &Path) -> History {
    let text = std::fs::read_to_string(path).expect("the file can be read");
    text.parse().unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}
