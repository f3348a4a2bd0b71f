//! Prints the tables of `docs/measurements/forecasters.md`: `cargo run --release -p anabranch-sim --example forecasters [first seed] [seeds]`.
//! Without seeds, the held-out ones.

use anabranch_sim::forecast_score::{HELD_OUT_SEEDS, Measure, compare, contenders, settings};

#[allow(clippy::print_stdout)]
fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let first = numbers.next().unwrap_or(HELD_OUT_SEEDS.start);
    let count = numbers.next().unwrap_or(HELD_OUT_SEEDS.end - HELD_OUT_SEEDS.start);
    for (name, setting) in settings() {
        let rows = compare(&setting, &contenders(), first..first + count).expect("the settings are good");
        let sum =
            |pick: fn(&anabranch_sim::forecast_score::Score) -> usize| rows[0].scores.iter().map(pick).sum::<usize>();
        let (forecasts, ups, losses) = (sum(|s| s.forecasts), sum(|s| s.ups), sum(|s| s.losses));
        println!(
            "\n{name}: {forecasts} forecasts, {:.1} % up, {losses} losses\n",
            100.0 * ups as f64 / forecasts as f64
        );
        println!("| forecaster | {} |\n|---|---|---|---|---|", Measure::ALL.map(Measure::name).join(" | "));
        for row in &rows {
            print!("| {} |", row.name);
            for measure in Measure::ALL {
                let interval = row.means[measure as usize];
                let mark = if row.beats_persistence(measure) { " +" } else { "" };
                print!(" {:.3} ± {:.3}{mark} |", interval.mean, interval.half_width);
            }
            println!();
        }
    }
}
