//! A few hundred histories of each kind, and every file of the corpus.

use anabranch_campaign::campaign::history;
use anabranch_campaign::history::lie::Lie;
use anabranch_campaign::history::verdict::{Outcome, play};
use anabranch_campaign::history::{History, Kind, twins};
use std::collections::BTreeMap;
use std::path::Path;

fn histories_pass(kind: Kind) {
    let mut outcomes: BTreeMap<Outcome, u32> = BTreeMap::new();
    for number in 0..300 {
        let history = history(&[kind], 20_260, number);
        match play(&history, false, false).outcome {
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
        if let Err(why) = play(&history, false, false).outcome {
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
    // In the last, a client acknowledges selectively from where it acknowledges cumulatively.
    for seed in (0..200).chain([1_608_747_342_204_213]) {
        if let Err(why) = twins::play(seed) {
            panic!("seed {seed}: {why}");
        }
    }
}

/// Files in `corpus` were failures and are none any more; those in `corpus/known` are not mended, and must fail until they are.
#[test]
fn the_corpus_passes_and_what_is_known_still_fails() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (folder, passes) in [(corpus.clone(), true), (corpus.join("known"), false)] {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("the folder can be read").path();
            if path.extension().is_none_or(|extension| extension != "txt") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("the file can be read");
            let history: History = text.parse().unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            let outcome = play(&history, false, true).outcome;
            assert_eq!(outcome.is_ok(), passes, "{}: {outcome:?}", path.display());
        }
    }
}
