//! Checks that hold on any machine under any load: counts, and CPU time per unit of work. Wall-clock time is not
//! judged.

use crate::bulk::{self, Way};
use crate::rate;
use crate::scene::{Mode, SHIPPED, Scene, Setting};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Other load can only worsen the result: the best of this many attempts counts.
const TRIES: usize = 3;
/// Minimum ratio of the mean packet size under the default policy to that under `plain`. It is 0.9 on an idle
/// processor, and 0.7 with ten other busy threads, since pacing releases the bytes of one millisecond at once. Segments
/// sent in pairs give 0.05.
const LEAST_SIZE: f64 = 0.5;
/// Maximum ratio of a connection's cost at the end to that at the beginning.
const MOST_GROWTH: f64 = 1.3;
/// Concurrent connections.
const AT_ONCE: usize = 8;

fn setting(program: &Path, policy: &str) -> Setting {
    Setting {
        mode: Mode::Udp,
        paths: 1,
        policy: policy.to_owned(),
        delay: 0,
        mbit: 0,
        buffer_memory: None,
        workers: 1,
        program: program.into(),
        wireguard: PathBuf::new(),
    }
}

/// Repeats until it holds.
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

/// Whether all checks pass.
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
            // The first interval is a warm-up.
            let ratio = match each.as_slice() {
                [_, first, .., last] => last / first,
                _ => f64::INFINITY,
            };
            (ratio, ratio <= MOST_GROWTH)
        });
    sizes && growth
}
