//! Random cases for two endpoints, a small model of the correct results, and the runner.

pub mod case;
pub mod network;
pub mod strangers;
pub mod verdict;
pub mod watch;
pub mod world;

use case::Kind;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;
use verdict::Outcome;

/// Kinds of cases; each runs an equal share.
const KINDS: u32 = 4;

/// Cases of all kinds, unless `ANABRANCH_CASES` is set.
const CASES: u32 = 2_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a number"))
}

/// Runs this kind's share of the cases, and fails with the smallest failing case. The cases derive from the seed in
/// `ANABRANCH_SEED`, by default 1.
pub fn run(kind: Kind, name: &str) {
    let cases = number("ANABRANCH_CASES").map_or(CASES, |cases| cases as u32).div_ceil(KINDS);
    let mut seed = [kind as u8; 32];
    seed[..8].copy_from_slice(&number("ANABRANCH_SEED").unwrap_or(1).to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 3_000,
        max_shrink_time: 30_000,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let outcomes: RefCell<BTreeMap<Outcome, (u32, u64)>> = RefCell::default();
    let result = runner.run(&case::case(kind), |case| {
        let (outcome, bytes) = verdict::run(&case).map_err(TestCaseError::fail)?;
        let mut outcomes = outcomes.borrow_mut();
        let entry = outcomes.entry(outcome).or_default();
        *entry = (entry.0 + 1, entry.1 + bytes);
        Ok(())
    });
    let outcomes = outcomes.into_inner();
    eprintln!("{name}: (cases, bytes) by outcome {outcomes:?}");
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nthe smallest case: {case:?}"),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
    // A run in which almost nothing arrived, or almost nothing failed, would be meaningless.
    let share = |outcome| outcomes.get(&outcome).map_or(0, |(count, _)| *count);
    assert!(share(Outcome::Finished) * 4 > cases, "few connections finished");
    assert!(cases < 100 || share(Outcome::Failed) > 0, "no connection failed at both ends");
}
