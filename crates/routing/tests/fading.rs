//! The benefit of a forecaster when links fade: lost probes and control bytes on the paper's mesh.
//!
//! The loss of a link rises linearly from 0 to 1 in both directions; after six seconds the link recovers. Six flows of
//! probes run from M1 to M8 and back, one probe per flow every 10 ms. Each hop is chosen by a hash of flow and node
//! over the weights of the next hops; probes have the same loss as the routers' packets. All random numbers derive from
//! a seed. By default a few cuts are made; `ANABRANCH_CUTS=300 ANABRANCH_SEED=1000` makes 300 for each forecaster, from
//! that seed on, and prints the results in docs/measurements/routing.md.

#![allow(clippy::print_stdout)]

mod harness;

use std::sync::Arc;

use anabranch_policy::table::{self, Settings};
use anabranch_policy::{Duration, forecast};
use anabranch_routing::config::Forecast;
use anabranch_routing::next_hops::{ForecastUse, SoftUse};
use anabranch_wire::ospf::Prefix;
use harness::{Net, Node, Setup, address, figure_8_lateral};

/// Number of flows of probes.
const FLOWS: u64 = 6;
/// Time between two probes of a flow.
const INTERVAL: Duration = Duration::from_millis(10);
/// Cuts per network.
const CUTS: usize = 6;
/// M1 and M8.
const ENDS: (Node, Node) = (0, 7);

/// The links that fade.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The first link of a flow's path, in 10 s.
    First,
    /// Any link of a flow's path, in 5 to 20 s.
    Any,
}

/// The results of a network's probes.
#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    lost: u64,
    /// Number of these that were in a loop, counted per path.
    looped: u64,
    bytes: u64,
    seconds: f64,
}

/// The use of forecasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Using {
    /// Additional cost of a suspect link in LSAs.
    suspect_cost: u16,
    /// Whether alternates avoid it, without LSAs.
    alternates: bool,
    /// How long links stay suspect, in forecasts of 250 ms.
    hold: u32,
}

fn forecasting(name: &'static str, using: Using) -> Forecast {
    let build = move || table::build(forecast::TABLE, name, &Settings::new()).expect("it is in the table");
    Forecast {
        horizon: Duration::from_secs(2),
        usage: ForecastUse::Soft(SoftUse { hold: using.hold, ..SoftUse::default() }),
        period: Duration::from_millis(250),
        suspect_cost: using.suspect_cost,
        alternates: using.alternates,
        ..Forecast::new(Arc::new(move |_, _| build()))
    }
}

/// The hash, below 2^32, of a flow at a node.
fn hash(seed: u64, node: Node, flow: u64) -> u64 {
    let mut mixed = seed ^ ((node as u64) << 40) ^ (flow << 20);
    for _ in 0..3 {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    mixed >> 32
}

/// The next hop of a flow; `None` without a route.
fn next_hop(net: &Net, salt: u64, node: Node, to: Node, flow: u64) -> Option<Node> {
    let router = net.router(node);
    let route = router.routes().prefixes.get(&Prefix::host(address(to, 0)))?;
    let hops = router.choose(&route.next_hops);
    let total: u64 = hops.iter().map(|one| u64::from(one.weight)).sum();
    let mut place = (hash(salt, node, flow) * total) >> 32;
    let chosen = hops.iter().find(|one| {
        let here = place < u64::from(one.weight);
        place = place.saturating_sub(one.weight.into());
        here
    });
    chosen.map(|one| one.hop.router.0 as usize - 1)
}

/// The current nodes of a flow's path; 64 of them in a loop.
fn way(net: &Net, salt: u64, (from, to): (Node, Node), flow: u64) -> Vec<Node> {
    let mut way = vec![from];
    while let Some(here) = way.last().copied().filter(|here| *here != to && way.len() < 64) {
        match next_hop(net, salt, here, to, flow) {
            Some(next) => way.push(next),
            None => break,
        }
    }
    way
}

/// Sends a probe of each flow in both directions.
fn probe(net: &mut Net, salt: u64, seen: &mut Seen) {
    for flow in 0..FLOWS {
        let there = [(ENDS, flow), ((ENDS.1, ENDS.0), flow + FLOWS)];
        let arrives = there.into_iter().all(|(ends, flow)| {
            let way = way(net, salt, ends, flow);
            seen.looped += u64::from(way.len() == 64);
            way.last() == Some(&ends.1) && way.windows(2).all(|hop| !net.loses(hop[0], hop[1]))
        });
        seen.lost += u64::from(!arrives);
    }
}

/// Advances time while probes are sent.
fn pass(net: &mut Net, salt: u64, span: Duration, seen: &mut Seen, mut before: impl FnMut(&mut Net, f64)) {
    let begun = net.now;
    while net.now < begun + span {
        before(net, net.now.since(begun).as_secs_f64() / span.as_secs_f64());
        probe(net, salt, seen);
        net.run_for(INTERVAL);
    }
}

/// Makes the cuts of one network.
fn network(seed: u64, kind: Kind, forecast: Option<&Forecast>) -> Seen {
    let mut net = Net::new(Setup::new(8, seed));
    figure_8_lateral().iter().for_each(|(a, b)| net.set_link(*a, *b, true));
    (0..8).for_each(|node| net.start_with(node, |config| config.forecast = forecast.cloned()));
    net.run_for(Duration::from_secs(20));
    let mut seen = Seen::default();
    let said = |net: &Net| (0..8).map(|node| net.bytes(node)).sum::<u64>();
    let (bytes, begun) = (said(&net), net.now);
    for cut in 0..CUTS as u64 {
        // Independent of the network's random numbers, and so equal for all forecasters.
        let draw = |what: u64| hash(seed.wrapping_mul(31), CUTS, cut << 8 | what) as f64 / (1_u64 << 32) as f64;
        let quiet = Duration::from_secs_f64(5.0 + 2.0 * draw(0));
        pass(&mut net, seed, quiet, &mut seen, |_, _| {});
        let way = way(&net, seed, ENDS, (draw(1) * FLOWS as f64) as u64);
        let (at, fade) = match kind {
            Kind::First => (0, 10.0),
            Kind::Any => ((draw(2) * (way.len() - 1) as f64) as usize, 5.0 + 15.0 * draw(3)),
        };
        let (one, other) = (way[at], way[at + 1]);
        let rise = |net: &mut Net, part: f64| net.set_link_loss(one, other, part);
        pass(&mut net, seed, Duration::from_secs_f64(fade), &mut seen, rise);
        pass(&mut net, seed, Duration::from_secs(6), &mut seen, |net, _| net.set_link_loss(one, other, 1.0));
        net.set_link_loss(one, other, 0.0);
        pass(&mut net, seed, Duration::from_secs(4), &mut seen, |_, _| {});
    }
    Seen { bytes: said(&net) - bytes, seconds: net.now.since(begun).as_secs_f64(), ..seen }
}

/// A value per network.
type Values = Vec<f64>;

/// Mean and half width of its 95 % confidence interval.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    (mean, 1.96 * (variance / count).sqrt())
}

/// Networks from a seed on: lost probes per cut, control bytes per second and node, and loops.
fn networks(first: u64, count: usize, kind: Kind, forecast: Option<&Forecast>) -> (Values, Values, u64) {
    let seen: Vec<Seen> = (0..count as u64).map(|number| network(first + number, kind, forecast)).collect();
    let lost = seen.iter().map(|seen| seen.lost as f64 / CUTS as f64).collect();
    let bytes = seen.iter().map(|seen| seen.bytes as f64 / seen.seconds / 8.0).collect();
    (lost, bytes, seen.iter().map(|seen| seen.looped).sum())
}

/// The increase over the base in percent of the base's mean, with a paired confidence interval.
fn change(all: &[f64], base: &[f64]) -> String {
    let differences: Values = all.iter().zip(base).map(|(one, base)| one - base).collect();
    let ((mean, half), base) = (self::mean(&differences), self::mean(base).0);
    let percent = |value: f64| 100.0 * value / base;
    format!("{:+.1} % [{:+.1}, {:+.1}]", percent(mean), percent(mean - half), percent(mean + half))
}

#[test]
fn a_forecaster_halves_what_fading_links_lose_and_nothing_more_is_flooded_for_it() {
    let around = Using { suspect_cost: 0, alternates: true, hold: 40 };
    for kind in [Kind::First, Kind::Any] {
        let (lost, bytes, _) = networks(1, 3, kind, None);
        let (less, same, looped) = networks(1, 3, kind, Some(&forecasting("trend", around)));
        assert!(mean(&less).0 < 0.55 * mean(&lost).0, "{kind:?}: {less:?} {lost:?}");
        assert!((mean(&same).0 / mean(&bytes).0 - 1.0).abs() < 0.02, "{kind:?}: {same:?} {bytes:?}");
        assert_eq!(looped, 0);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_whole_table_if_it_is_asked_for() {
    let Some(cuts) = number("ANABRANCH_CUTS") else { return };
    let first = number("ANABRANCH_SEED").unwrap_or(1_000);
    let hold = number("ANABRANCH_HOLD").unwrap_or(40) as u32;
    let names = std::env::var("ANABRANCH_FORECASTERS")
        .unwrap_or_else(|_| "persistence,paper_literal,viterbi,forward,online,trend".to_owned());
    let around = Using { suspect_cost: 0, alternates: true, hold };
    for kind in [Kind::First, Kind::Any] {
        let (lost, bytes, _) = networks(first, cuts as usize / CUTS, kind, None);
        let show = |(mean, half): (f64, f64)| format!("{mean:.1} ± {half:.1}");
        println!("{kind:?}, none: lost per cut {}, bytes {}", show(mean(&lost)), show(mean(&bytes)));
        for using in [around, Using { suspect_cost: 2, alternates: false, hold }, Using { alternates: false, ..around }]
        {
            println!("{using:?}");
            for name in names.split(',') {
                let forecast = forecasting(name.to_owned().leak(), using);
                let (less, more, looped) = networks(first, cuts as usize / CUTS, kind, Some(&forecast));
                let (lost, bytes) = (change(&less, &lost), change(&more, &bytes));
                println!("  {name}: lost {} ({lost}), bytes {bytes}, in circles {looped}", show(mean(&less)));
            }
        }
    }
}
