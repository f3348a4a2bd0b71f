//! Soak test: `proxy` and `serve` between three uplinks with random faults of all kinds, while programs connect and
//! download. Needs root, TUN, network namespaces and nft; otherwise it counts as ignored, with the reason.
//!
//! It takes `ANABRANCH_SOAK` seconds (default 15); `ANABRANCH_SEED` (default 1) seeds its faults.

mod day;
pub mod faults;
pub mod town;
pub mod traffic;

use anabranch_system::{Need, missing};
use libtest_mimic::Trial;
use std::time::Duration;

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    let number = |text: String| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number"));
    std::env::var(name).map_or(default, number)
}

pub fn trials() -> Vec<Trial> {
    let missing = missing(&[Need::Tun, Need::Programs(&["ip", "nft"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped soak: {reason}");
    }
    let (seed, length) = (setting("ANABRANCH_SEED", 1), Duration::from_secs(setting("ANABRANCH_SOAK", 15)));
    let trials = [("in_udp", true), ("by_tun", false)].map(|(name, udp)| {
        let run = move || {
            day::live(udp, seed, length);
            Ok(())
        };
        Trial::test(format!("soak::uplinks_and_server_fail_and_connections_do_not_{name}"), run)
            .with_ignored_flag(missing.is_some())
    });
    trials.into()
}
