//! The rule at the end that receives, where only arrivals tell.

use super::*;
use crate::path_manager::tests::{Host, suspend};
use crate::scheduler::tests::connection;
use crate::view::ConnectionView;

const LATE: Duration = Duration::from_millis(30);

/// A download at so many bytes per second with both paths, with the first alone, with the second alone.
struct Download {
    host: Host<GoodputTrial>,
    goodput: [u64; 3],
    /// Bytes that wait for a hole while both paths are used.
    late: u64,
    /// What came on closed subflows, or twice, or before anybody looked.
    hidden: u64,
}

impl Download {
    fn new(goodput: [u64; 3], late: u64) -> Self {
        let mut host = Host::new(GoodputTrial::new(TrialSettings { late: LATE, ..TrialSettings::default() }), 2);
        host.view(1).smoothed_rtt = Duration::from_millis(100);
        host.view(1).min_rtt = Duration::from_millis(100);
        Self { host, goodput, late: 0, hidden: 0 }.begun(late)
    }

    /// The first second, in order.
    fn begun(mut self, late: u64) -> Self {
        assert_eq!(self.go(1.0), []);
        self.late = late;
        self
    }

    fn go(&mut self, seconds: f64) -> Vec<PathAction> {
        let mut all = Vec::new();
        for _ in 0..(seconds * 10.0) as u32 {
            self.host.now_ms += 100;
            let active = self.host.active();
            let rate = match active[..] {
                [0] => self.goodput[1],
                [1] => self.goodput[2],
                _ => self.goodput[0],
            };
            for id in &active {
                self.host.view(*id).counters.bytes_received += rate / 10 / active.len() as u64;
            }
            let received: u64 = self.host.views.iter().map(|view| view.counters.bytes_received).sum();
            let late = if active.len() == 2 { self.late } else { 0 };
            let view = ConnectionView {
                data_received: received.wrapping_sub(late).wrapping_sub(self.hidden),
                unsent: 0,
                backlogged: false,
                ..connection(self.host.now_ms)
            };
            let views = self.host.views.clone();
            all.extend(self.host.tell(&PathEvent::Measured { connection: &view, subflows: &views }));
        }
        all
    }
}

#[test]
fn a_path_that_keeps_back_what_others_brought_is_suspended() {
    let mut download = Download::new([1_000_000, 2_000_000, 200_000], 100_000);
    assert_eq!(download.go(8.0), [suspend(1)]);
}

#[test]
fn what_arrives_in_order_is_no_reason_for_a_trial() {
    let mut download = Download::new([1_000_000, 2_000_000, 200_000], 0);
    assert_eq!(download.go(30.0), []);
    // Nor are 20 ms of the goodput.
    let mut download = Download::new([1_000_000, 2_000_000, 200_000], 20_000);
    assert_eq!(download.go(30.0), []);
}

#[test]
fn where_numbers_begin_does_not_matter() {
    for hidden in [1, 1 << 63, u64::MAX] {
        let mut download = Download::new([1_000_000, 2_000_000, 200_000], 0);
        download.hidden = hidden;
        // Another base is found when a subflow ends.
        download.host.views[1].counters.bytes_received = 0;
        download.host.manager.connections.values_mut().for_each(|memory| memory.receiving.restart());
        assert_eq!(download.go(5.0), []);
        download.late = 100_000;
        assert_eq!(download.go(8.0), [suspend(1)], "{hidden}");
    }
}

#[test]
fn a_download_that_ends_is_left_alone() {
    let mut download = Download::new([1_000_000, 2_000_000, 200_000], 100_000);
    download.go(0.2);
    download.goodput = [0; 3];
    assert_eq!(download.go(30.0), []);
    // So is one whose receiver is not to make trials.
    let mut download = Download::new([1_000_000, 2_000_000, 200_000], 100_000);
    download.host.manager.settings.late = Duration::ZERO;
    assert_eq!(download.go(30.0), []);
}

#[test]
fn a_trial_in_vain_is_seldom_repeated() {
    let mut download = Download::new([1_900_000, 1_000_000, 200_000], 100_000);
    let actions = download.go(60.0);
    assert!((4..=16).contains(&actions.len()) && actions.len().is_multiple_of(2), "{actions:?}");
    assert_eq!(download.host.active(), [0, 1]);
}
