//! Programs of others through `up` and `run -- PROGRAM`, over two uplinks behind NATs: what they fetch is what the target has, and where there is
//! nothing they say what they always say. Needs root, TUN, `ip`, `nft` and `python3`; a program that is missing has its tests counted as ignored, and
//! is named.

mod datagrams;
mod streams;
mod town;

use crate::up::scene;
use anabranch_system::{Need, missing};
use libtest_mimic::Trial;
use std::sync::{Arc, Mutex, PoisonError};
use town::{Town, Way};

/// A test: its name, the programs that it needs, and what it does with the town.
type Test = (&'static str, &'static [&'static str], fn(&Town, Way));

/// The town, which is built when the first test needs it.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Option<Arc<Town>>>>);

impl Shared {
    fn town(&self) -> Arc<Town> {
        let mut town = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(town.get_or_insert_with(|| Arc::new(Town::new())))
    }

    /// Takes it down, if it was ever built.
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
