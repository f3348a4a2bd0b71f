//! How often a congestion control that groups subflows by their bottleneck is right: two subflows over one bottleneck, and over two, with
//! no, one and four TCP connections (CUBIC) on each. Its decision is read each 100 ms from the tenth second on.
//!
//! `bottlenecks [CONTROL] [SECONDS]`
#![allow(clippy::print_stdout)]

use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::congestion::{self, Ack, CongestionControl, CongestionEvent, Lost, Sent, Start};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::rate::Rate;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::World;
use anabranch_sim::reference::{apart, link_with, shared_link, unlimited};
use std::sync::{Arc, Mutex};

/// Decisions: that the bottleneck is shared, and all of them.
type Decisions = Arc<Mutex<(u32, u32)>>;

/// A congestion control whose decisions are written down.
struct Watched {
    control: Box<dyn CongestionControl>,
    /// Its subflows: some never come to be, so their numbers have gaps.
    ids: Vec<SubflowId>,
    decisions: Decisions,
    next: Instant,
}

impl CongestionControl for Watched {
    fn on_subflow_added(&mut self, id: SubflowId, start: Start) {
        self.control.on_subflow_added(id, start);
        self.ids.push(id);
    }
    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.control.on_subflow_removed(id);
        self.ids.retain(|other| *other != id);
    }
    fn on_sent(&mut self, id: SubflowId, sent: &Sent) {
        self.control.on_sent(id, sent);
    }
    fn governs_recovery(&self) -> bool {
        self.control.governs_recovery()
    }
    fn on_lost(&mut self, id: SubflowId, lost: &Lost) {
        self.control.on_lost(id, lost);
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.control.on_ack(id, ack);
        if ack.now < self.next {
            return;
        }
        let [one, other, ..] = self.ids[..] else { return };
        if let Some(shared) = self.control.shares_bottleneck(one, other) {
            self.next = ack.now + Duration::from_millis(100);
            let mut decisions = self.decisions.lock().expect("nothing panics while it is held");
            decisions.0 += u32::from(shared);
            decisions.1 += 1;
        }
    }
    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent) {
        self.control.on_congestion(id, event);
    }
    fn on_recovery_end(&mut self, id: SubflowId, now: Instant) {
        self.control.on_recovery_end(id, now);
    }
    fn on_spurious(&mut self, id: SubflowId, now: Instant) {
        self.control.on_spurious(id, now);
    }
    fn on_idle_restart(&mut self, id: SubflowId, window: u64) {
        self.control.on_idle_restart(id, window);
    }
    fn on_mss(&mut self, id: SubflowId, mss: u32) {
        self.control.on_mss(id, mss);
    }
    fn window(&self, id: SubflowId) -> u64 {
        self.control.window(id)
    }
    fn ssthresh(&self, id: SubflowId) -> u64 {
        self.control.ssthresh(id)
    }
    fn bandwidth(&self, id: SubflowId) -> Option<Rate> {
        self.control.bandwidth(id)
    }
    fn pacing_rate(&self, id: SubflowId) -> Option<Rate> {
        self.control.pacing_rate(id)
    }
}

/// Two subflows under `control`, whose decisions are written down.
fn watched(control: &str) -> (ConnectionConfig, Decisions) {
    let decisions = Decisions::default();
    let (name, there) = (control.to_owned(), decisions.clone());
    let mut config = unlimited("cubic", true, 64 << 20);
    config.policies.congestion = Arc::new(move || {
        let control = table::build(congestion::TABLE, &name, &Settings::new()).expect("a name in the table");
        Box::new(Watched {
            control,
            ids: Vec::new(),
            decisions: there.clone(),
            next: Instant::ZERO + Duration::from_secs(10),
        })
    });
    (config, decisions)
}

/// Queues in bandwidth-delay products; none is CoDel ([`link_with`]).
const QUEUES: [Option<f64>; 6] = [Some(0.05), Some(0.25), Some(0.5), Some(1.0), Some(4.0), None];
/// Mbit/s and milliseconds of the two bottlenecks. One that is shared is as the first.
const PATHS: [[(u64, u64); 2]; 6] = [
    [(20, 20), (20, 20)],
    [(20, 40), (20, 40)],
    [(20, 160), (20, 160)],
    [(100, 20), (20, 80)],
    [(100, 40), (100, 40)],
    [(100, 160), (20, 40)],
];

/// A row of the table.
fn row(control: &str, shared: bool, tcp: usize, seconds: f64) {
    let single = unlimited("cubic", false, 64 << 20);
    print!("{}, {tcp} TCP on each", if shared { "one" } else { "two" });
    let (mut right, mut all, mut good, mut cells) = (0, 0, 0, 0);
    for queue in QUEUES {
        let (mut right_here, mut all_here) = (0, 0);
        for paths in PATHS {
            let (config, decisions) = watched(control);
            let there = paths.map(|(mbit, rtt)| link_with(mbit, rtt, queue));
            let back = paths.map(|(mbit, rtt)| link_with(mbit, rtt, Some(100.0)));
            let mut world: World = if shared {
                shared_link(1, (2, tcp), (&there[0], &back[0]), &config, &single)
            } else {
                apart(1, tcp, [(&there[0], &back[0]), (&there[1], &back[1])], &config, &single)
            };
            world.run_until(Instant::ZERO + Duration::from_secs_f64(seconds));
            let (said_shared, said) = *decisions.lock().expect("nothing panics while it is held");
            let said_right = if shared { said_shared } else { said - said_shared };
            (right_here, all_here) = (right_here + said_right, all_here + said);
            cells += 1;
            good += usize::from(said > 0 && f64::from(said_right) >= 0.95 * f64::from(said));
        }
        print!(" {:5.1}", 100.0 * f64::from(right_here) / f64::from(all_here.max(1)));
        (right, all) = (right + right_here, all + all_here);
    }
    println!("   all {:5.1}, 95 % in {good} of {cells}", 100.0 * f64::from(right) / f64::from(all.max(1)));
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let control = words.first().map_or("bounded_cubic", String::as_str);
    let seconds = words.get(1).map_or(60.0, |word| word.parse().expect("seconds"));
    println!("{control}: decisions that are right, % (queue: 0.05, 0.25, 0.5, 1, 4 products, CoDel)");
    for shared in [true, false] {
        for tcp in [0, 1, 4] {
            row(control, shared, tcp, seconds);
        }
    }
}
