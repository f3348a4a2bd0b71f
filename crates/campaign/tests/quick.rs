//! A few hundred histories of each kind, and every file of the corpus.

use anabranch_campaign::campaign::history;
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
