//! What must hold on any machine, however busy: counts, and processor time for a unit of work. By the clock nothing is judged.

use crate::bulk::{self, Way};
use crate::rate;
use crate::scene::{Mode, SHIPPED, Scene, Setting};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Others on the machine make this worse and never better: the best of so many tries counts.
const TRIES: usize = 3;
/// What leaves at once under the default policy is at least this part of what does under `plain`. It is nine tenths where the
/// processor is free, and seven where ten others want it, since what is released together is what the rate carries in a millisecond.
/// Segments that leave two by two are a twentieth.
const LEAST_SIZE: f64 = 0.5;
/// A connection costs at most so many times as much at the end as at the beginning.
const MOST_GROWTH: f64 = 1.3;
/// Connections at a time.
const AT_ONCE: usize = 8;

fn setting(program: &Path, policy: &str) -> Setting {
    Setting {
        mode: Mode::Udp,
        paths: 1,
        policy: policy.to_owned(),
        delay: 0,
        workers: 1,
        program: program.into(),
        wireguard: PathBuf::new(),
    }
}

/// Tries until it holds.
fn best_of(what: &str, judge: impl Fn() -> (f64, bool)) -> bool {
    let tries = (0..TRIES).any(|_| {
        let (value, good) = judge();
        println!("{what}: {value:.2}{}", if good { "" } else { ", not good" });
        good
    });
    if !tries {
        println!("{what}: failed {TRIES} times");
    }
    tries
}

/// Whether all holds.
pub fn holds(program: &Path) -> bool {
    let size = |policy: &str| {
        let scene = Scene::new(&setting(program, policy));
        bulk::measure(&scene, Way::Up, Duration::from_secs(1), 1).packet
    };
    let sizes = best_of(&format!("bytes that leave at once, default / plain, at least {LEAST_SIZE}"), || {
        let ratio = size(SHIPPED) / size("plain");
        (ratio, ratio >= LEAST_SIZE)
    });
    let growth =
        best_of(&format!("processor time of a connection, last / first stretch, at most {MOST_GROWTH}"), || {
            let scene = Scene::new(&setting(program, SHIPPED));
            let each = rate::measure(&scene, 4, Duration::from_millis(1_500), AT_ONCE);
            // In the first, the programs are still warming up.
            let ratio = match each.as_slice() {
                [_, first, .., last] => last / first,
                _ => f64::INFINITY,
            };
            (ratio, ratio <= MOST_GROWTH)
        });
    sizes && growth
}
