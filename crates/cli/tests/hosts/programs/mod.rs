//! Third-party programs through `up` and `run -- PROGRAM`, over two uplinks behind NATs: data is unchanged, and errors
//! are the usual ones. Needs root, TUN, `ip`, `nft` and `python3`; tests of programs that are not installed count as
//! ignored.

mod datagrams;
mod streams;
mod town;

use crate::up::scene;
use anabranch_system::{Need, missing};
use libtest_mimic::Trial;
use std::sync::{Arc, Mutex, PoisonError};
use town::{Town, Way};

/// A test: its name, the programs that it needs, and its function.
type Test = (&'static str, &'static [&'static str], fn(&Town, Way));

/// The town, built for the first test.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Option<Arc<Town>>>>);

impl Shared {
    fn town(&self) -> Arc<Town> {
        let mut town = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(town.get_or_insert_with(|| Arc::new(Town::new())))
    }

    /// Takes it down, if it was built.
    pub fn end(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

pub fn trials(shared: &Shared) -> Vec<Trial> {
    let lacking =
        missing(&[Need::Tun, Need::Programs(&["ip", "nft", "python3", "unshare", "timeout"]), Need::Namespaces]);
    if let Some(reason) = &lacking {
        eprintln!("skipped programs_of_others: {reason}");
    }
    let mut trials = Vec::new();
    for (name, programs, test) in [streams::TESTS, datagrams::TESTS].concat() {
        let lacks = programs.iter().find_map(|program| missing(&[Need::Programs(&[program])]));
        if let (Some(reason), None) = (&lacks, &lacking) {
            eprintln!("skipped programs_of_others::{name}: {reason}");
        }
        for way in [Way::Up, Way::Run] {
            let shared = shared.clone();
            let trial = Trial::test(format!("programs_of_others::{way:?}::{name}"), move || {
                test(&shared.town(), way);
                Ok(())
            });
            trials.push(trial.with_ignored_flag(lacking.is_some() || lacks.is_some()));
        }
    }
    trials
}
