//! Forecasts change the routes of complete routers, but not their messages.

mod harness;

use std::sync::Arc;

use anabranch_policy::forecast::Observation;
use anabranch_policy::{Duration, Instant, LinkForecaster};
use anabranch_routing::config::Forecast;
use anabranch_routing::next_hops::{ForecastUse, SoftUse};
use anabranch_routing::{Config, Router};
use anabranch_wire::ospf::RouterId;
use harness::{Net, Setup, id};

/// A forecast that changes at a given time.
struct Said {
    until: Instant,
    before: f64,
    after: f64,
}

impl LinkForecaster for Said {
    fn observe(&mut self, _: Instant, _: Observation) {}

    fn probability_up(&self, now: Instant, _: Duration) -> f64 {
        if now < self.until { self.before } else { self.after }
    }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Forecasts of a router's links to its neighbours 2, 3 and 4 (Router IDs) from second 20 on.
fn forecast(usage: ForecastUse, after: [f64; 3]) -> impl Fn(&mut Config) {
    move |config| {
        let build = move |_, router: RouterId| -> Box<dyn LinkForecaster> {
            let after = after.get(router.0 as usize - 2).copied().unwrap_or(1.0);
            Box::new(Said { until: at(20), before: 1.0, after })
        };
        config.forecast = Some(Forecast {
            build: Arc::new(build),
            horizon: Duration::from_secs(2),
            usage,
            period: Duration::from_secs(1),
            suspect_cost: 0,
            alternates: false,
        });
    }
}

/// Routers 1 and 5 with 2, 3 and 4 between them; router 1 uses forecasts.
fn network(usage: ForecastUse, after: [f64; 3]) -> Net {
    let links = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)];
    let mut network = Net::with_links(Setup::new(5, 9), &links);
    network.start_with(0, forecast(usage, after));
    (1..5).for_each(|node| network.start(node));
    network
}

/// The next hops from router 1 to a node, with their weights, by Router ID; `None` without a route.
fn next_hops(router: &Router, to: usize) -> Option<Vec<(u32, u8)>> {
    let route = router.routes().routers.get(&id(to))?;
    Some(router.choose(&route.next_hops).iter().map(|one| (one.hop.router.0, one.weight)).collect())
}

/// The same at seconds 18 and 25.
fn before_and_after(usage: ForecastUse, after: [f64; 3]) -> [Option<Vec<(u32, u8)>>; 2] {
    let mut network = network(usage, after);
    [18, 25].map(|seconds| {
        network.run_until(at(seconds));
        next_hops(network.router(0), 4)
    })
}

#[test]
fn a_suspect_next_hop_gets_less_and_a_lost_one_nothing() {
    let soft = ForecastUse::Soft(SoftUse::default());
    let [before, after] = before_and_after(soft, [0.9, 0.4, 0.1]);
    assert_eq!(before, Some(vec![(2, 4), (3, 4), (4, 4)]));
    assert_eq!(after, Some(vec![(2, 4), (3, 1)]));
    // The neighbours themselves stay reachable, each by its last next hop.
    let mut network = network(soft, [0.1, 0.1, 0.1]);
    network.run_until(at(25));
    for node in 1..5 {
        assert!(next_hops(network.router(0), node).is_some_and(|hops| !hops.is_empty()));
    }
}

#[test]
fn the_papers_rule_leaves_a_hole_where_all_next_hops_are_forecast_to_be_lost() {
    let [before, after] = before_and_after(ForecastUse::PaperLiteral, [0.4, 0.4, 0.4]);
    assert_eq!(before, Some(vec![(2, 1), (3, 1), (4, 1)]));
    assert_eq!(after, Some(vec![]));
    let [_, soft] = before_and_after(ForecastUse::default(), [0.4, 0.4, 0.4]);
    assert_eq!(soft, Some(vec![(2, 1), (3, 1), (4, 1)]));
}

#[test]
fn forecasts_change_no_lsa() {
    let bytes = |after| {
        let mut network = network(ForecastUse::default(), after);
        network.run_until(at(40));
        (0..5).map(|node| network.bytes(node)).collect::<Vec<_>>()
    };
    assert_eq!(bytes([1.0, 1.0, 1.0]), bytes([0.3, 0.1, 0.0]));
}

#[test]
fn without_alternates_a_route_keeps_next_hops_over_links_that_are_not_trusted() {
    let mut network = network(ForecastUse::default(), [0.1, 1.0, 1.0]);
    network.run_until(at(25));
    // Routes are recalculated, since router 4 has lost router 5.
    network.set_link(3, 4, false);
    network.run_until(at(60));
    let route = &network.router(0).routes().routers[&id(4)];
    let hops: Vec<u32> = route.next_hops.iter().map(|hop| hop.router.0).collect();
    assert_eq!(hops, [2, 3]);
}

#[test]
fn a_suspect_link_that_costs_more_is_avoided_from_both_its_ends_and_from_afar() {
    // Router 4 reaches router 1 through router 2 or 3, which are neighbours.
    let links = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)];
    let mut network = Net::with_links(Setup::new(4, 9), &links);
    let suspect = |config: &mut Config| {
        forecast(ForecastUse::default(), [0.4, 1.0, 1.0])(config);
        if let Some(forecast) = &mut config.forecast {
            forecast.suspect_cost = 2;
        }
    };
    network.start_with(0, suspect);
    (1..4).for_each(|node| network.start(node));
    network.run_until(at(18));
    assert_eq!(next_hops(network.router(0), 1), Some(vec![(2, 4)]));
    assert_eq!(next_hops(network.router(0), 3), Some(vec![(2, 4), (3, 4)]));
    network.run_until(at(40));
    assert_eq!(next_hops(network.router(0), 1), Some(vec![(3, 4)]), "the long way, since the link costs 3");
    assert_eq!(next_hops(network.router(0), 3), Some(vec![(3, 4)]));
    // The other end has no forecaster and uses the direct link.
    assert_eq!(next_hops(network.router(1), 0), Some(vec![(1, 1)]));
}

/// Routers 2, 3 and 4 between 1 and 5; 2 and 3 are neighbours, and suspect their links to router 1 after these times.
fn around(suspects: [f64; 2]) -> Net {
    let links = [(0, 1), (0, 2), (1, 2), (1, 4), (2, 4)];
    let mut network = Net::with_links(Setup::new(5, 9), &links);
    for (node, after) in [1, 2].into_iter().zip(suspects) {
        network.start_with(node, move |config| {
            let build = move |_, router: RouterId| -> Box<dyn LinkForecaster> {
                let after = if router == id(0) { after } else { 1.0 };
                Box::new(Said { until: at(20), before: 1.0, after })
            };
            config.forecast = Some(Forecast { alternates: true, ..Forecast::new(Arc::new(build)) });
        });
    }
    network.run_until(at(18));
    network
}

#[test]
fn a_suspect_link_is_avoided_by_a_neighbour_that_is_as_near_and_no_lsa_announces_it() {
    let bytes = |network: &Net, kind: usize| (0..5).map(|node| network.router(node).counters().sent[kind]).sum::<u64>();
    let mut network = around([0.1, 1.0]);
    assert_eq!(next_hops(network.router(1), 0), Some(vec![(1, 4)]));
    let before = bytes(&network, 3);
    network.run_until(at(40));
    assert_eq!(next_hops(network.router(1), 0), Some(vec![(3, 4)]));
    assert_eq!(bytes(&network, 3), before, "updates");
    // The others do not know it: 5 still uses both.
    assert_eq!(next_hops(network.router(4), 0), Some(vec![(2, 1), (3, 1)]));
    assert_eq!(next_hops(network.router(2), 0), Some(vec![(1, 4)]));
}

#[test]
fn two_neighbours_with_suspect_links_do_not_send_packets_to_each_other() {
    let mut network = around([0.1, 0.1]);
    for second in 19..40 {
        network.run_until(at(second));
        let [one, other] = [1, 2].map(|node| next_hops(network.router(node), 0).expect("a route"));
        assert!(one[0].0 == 1 || other[0].0 == 1, "at {second}: {one:?} {other:?}");
    }
    assert_eq!(next_hops(network.router(1), 0), Some(vec![(1, 1)]));
    assert_eq!(next_hops(network.router(2), 0), Some(vec![(1, 1)]));
}
