//! Time per observation, and per forecast, of each forecaster: `cargo bench -p anabranch-policy`.

use anabranch_policy::LinkForecaster;
use anabranch_policy::forecast::{Observation, TABLE};
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

const OBSERVATIONS: u64 = 1_000;
const NAMES: [&str; 6] = ["forward", "online", "paper_literal", "persistence", "trend", "viterbi"];

fn make(name: &str) -> Box<dyn LinkForecaster> {
    build(TABLE, name, &Settings::new()).expect("a name in the table")
}

/// A Hello each second, each fifth missing, the strength up and down.
fn observe(forecaster: &mut dyn LinkForecaster) {
    for second in 0..OBSERVATIONS {
        let now = Instant::ZERO + Duration::from_secs(second);
        let signal = -75.0 - (second % 10) as f32;
        forecaster.observe(now, if second % 5 == 4 { Observation::MISSED } else { Observation::heard_at(signal) });
    }
}

#[divan::bench(args = NAMES)]
fn observation(bencher: Bencher<'_, '_>, name: &str) {
    let inputs = || make(name);
    bencher.counter(ItemsCount::new(OBSERVATIONS)).with_inputs(inputs).bench_values(|mut forecaster| {
        observe(&mut *forecaster);
        forecaster
    });
}

#[divan::bench(args = NAMES)]
fn forecast(bencher: Bencher<'_, '_>, name: &str) {
    let mut forecaster = make(name);
    observe(&mut *forecaster);
    let now = Instant::ZERO + Duration::from_secs(OBSERVATIONS);
    bencher.bench_local(|| black_box(&forecaster).probability_up(black_box(now), Duration::from_secs(2)));
}
