//! The default of the network commands against receivers that acknowledge differently.

use super::dead_path::default_config;
use anabranch_mptcp::config::Policies;
use anabranch_policy::congestion;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::reference::{Bottleneck, direct, goodput};
use std::sync::Arc;

/// Goodput after five seconds as a share of what the paths carry, if the receiver delays acknowledgements by so many
/// milliseconds; zero: it acknowledges each segment, as Linux does most of the time.
fn share(paths: &[Bottleneck], delayed_ms: u64) -> f64 {
    let mut config = default_config();
    config.policies = Policies {
        congestion: Arc::new(|| {
            table::build(congestion::TABLE, "bounded_cubic", &Settings::new()).expect("in the table")
        }),
        ..config.policies
    };
    config.multipath = paths.len() > 1;
    config.tcp.delayed_ack = Duration::from_millis(delayed_ms);
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let (mut world, _) = direct(1, paths, &config);
    let carry: f64 = paths.iter().map(|path| path.mbit as f64 * (1.0 - path.loss)).sum();
    goodput(&mut world, 0, at(5), at(15)) / carry
}

/// While only acknowledgements of two segments were trusted, each loss of the narrow path counted as congestion, on both
/// paths: 5 % of the two remained beside such a receiver.
#[test]
fn a_receiver_that_acknowledges_each_segment_is_sent_as_much() {
    let wide = Bottleneck { loss: 0.006, ..Bottleneck::new(67, 23, 28) };
    let narrow = Bottleneck { loss: 0.015, ..Bottleneck::new(3, 23, 13) };
    for paths in [&[wide, narrow][..], &[wide], &[narrow]] {
        for delayed_ms in [40, 0] {
            let seen = share(paths, delayed_ms);
            assert!(seen > 0.8, "{paths:?}, {delayed_ms} ms: {seen}");
        }
    }
}
