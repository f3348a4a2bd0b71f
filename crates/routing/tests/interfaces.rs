//! Interfaces that go down, and reported properties of links and their use.

mod harness;

use std::sync::Arc;

use anabranch_policy::combination::Choice;
use anabranch_policy::forecast::Observation;
use anabranch_policy::{Duration, Instant, LinkForecaster};
use anabranch_routing::config::{Acceptance, Forecast, RoutableQuality};
use anabranch_routing::{InterfaceChange, InterfaceState, NeighborState};
use harness::{FIGURE_8, Net, Setup, id, interface};

/// Three routers in a row, on two channels.
fn row() -> Net {
    let mut net = Net::with_links(Setup { channels: 2, ..Setup::new(3, 11) }, &[(0, 1), (1, 2)]);
    net.run_for(Duration::from_secs(30));
    net
}

#[test]
fn an_interface_that_goes_down_takes_its_neighbours_and_its_lsas_along_and_traffic_has_the_other() {
    let mut net = row();
    let neighbors = |net: &Net, channel| {
        net.router(1).neighbors(net.now).filter(|one| one.interface == interface(channel) && one.routable).count()
    };
    let on_link =
        |net: &Net, channel| net.router(1).lsas(net.now).filter(|(link, _)| *link == Some(interface(channel))).count();
    assert_eq!([neighbors(&net, 0), neighbors(&net, 1), on_link(&net, 0), on_link(&net, 1)], [2, 2, 3, 3]);
    let used = |net: &Net| -> Vec<u32> {
        let route = &net.router(1).routes().prefixes[&anabranch_wire::ospf::Prefix::host(harness::address(0, 1))];
        route.next_hops.iter().map(|hop| hop.interface.0).collect()
    };
    net.change(1, 0, InterfaceChange::Down);
    assert_eq!([neighbors(&net, 0), neighbors(&net, 1), on_link(&net, 0), on_link(&net, 1)], [0, 2, 0, 3]);
    assert_eq!(net.router(1).interfaces().next().map(|one| one.state), Some(InterfaceState::Down));
    net.run_for(Duration::from_secs(10));
    assert_eq!((used(&net), net.next_hops(0, 2)), (vec![2], vec![1]));
    assert!(
        net.router(0).neighbors(net.now).all(|one| one.interface == interface(1) || one.state < NeighborState::Init)
    );
    net.change(1, 0, InterfaceChange::Up);
    net.run_for(Duration::from_secs(30));
    assert_eq!([neighbors(&net, 0), neighbors(&net, 1), on_link(&net, 0), on_link(&net, 1)], [2, 2, 3, 3]);
}

#[test]
fn a_frame_that_is_given_up_is_news_for_the_forecaster_that_the_configuration_chose() {
    let mut net = Net::new(Setup::new(2, 3));
    net.set_link(0, 1, true);
    let forecast = Forecast::chosen(&Choice::new("persistence")).unwrap();
    for node in 0..2 {
        net.start_with(node, |config| config.forecast = Some(forecast.clone()));
    }
    net.run_for(Duration::from_secs(10));
    let up =
        |net: &Net, neighbor| net.router(0).probability_up(net.now, interface(0), id(neighbor), Duration::from_secs(1));
    assert_eq!((up(&net, 1), up(&net, 7)), (Some(1.0), None));
    let now = net.now;
    let router = net.routers[0].as_mut().unwrap();
    router.handle_transmit_status(now, interface(0), id(1), false);
    assert_eq!(router.probability_up(now, interface(0), id(1), Duration::from_secs(1)), Some(0.0));
    router.handle_transmit_status(now, interface(0), id(7), true);
    router.handle_transmit_status(now, interface(5), id(1), true);
    assert_eq!(router.probability_up(now, interface(0), id(1), Duration::from_secs(1)), Some(0.0));
    router.handle_transmit_status(now, interface(0), id(1), true);
    assert_eq!(router.probability_up(now, interface(0), id(1), Duration::from_secs(1)), Some(1.0));
    assert!(Forecast::chosen(&Choice::new("no such forecaster")).is_err());
}

/// A constant forecast.
struct Says(f64);

impl LinkForecaster for Says {
    fn observe(&mut self, _: Instant, _: Observation) {}

    fn probability_up(&self, _: Instant, _: Duration) -> f64 {
        self.0
    }
}

#[test]
fn a_neighbour_is_accepted_and_routable_if_the_forecast_of_its_link_is_no_worse_than_asked_for() {
    for (forecast, least, good) in [(0.5, 0.5, true), (0.49, 0.5, false)] {
        for (acceptance, routable) in [(Some(least), None), (None, Some(least))] {
            let mut setup = Setup::new(2, 3);
            setup.manet.acceptance = Acceptance { forecast: acceptance, ..setup.manet.acceptance };
            setup.manet.routable = RoutableQuality { forecast: routable, ..setup.manet.routable };
            let mut net = Net::new(setup);
            net.set_link(0, 1, true);
            for node in 0..2 {
                let forecasts =
                    Forecast::new(Arc::new(move |_, _| Box::new(Says(forecast)) as Box<dyn LinkForecaster>));
                net.start_with(node, |config| config.forecast = Some(forecasts.clone()));
            }
            net.run_for(Duration::from_secs(30));
            let neighbor = net.router(0).neighbors(net.now).next();
            let is_full = neighbor.as_ref().is_some_and(|one| one.state == NeighborState::Full);
            assert_eq!(is_full, good || acceptance.is_none(), "{forecast} {acceptance:?}");
            assert_eq!(neighbor.is_some_and(|one| one.routable), good, "{forecast} {routable:?}");
        }
    }
}

#[test]
fn three_lanes_are_planned_through_the_papers_mesh_without_a_router_in_common() {
    let mut net = Net::with_links(Setup::new(8, 5), &FIGURE_8);
    net.run_for(Duration::from_secs(30));
    for lane in 0..3 {
        let mut at = 0;
        let mut passed = Vec::new();
        while at != 7 {
            let planned = net.router(at).plan_lanes(id(7), 3);
            assert_eq!(planned.len(), 3);
            at = planned[lane].unwrap().0 as usize - 1;
            passed.push(at);
        }
        assert_eq!(passed.len(), 3, "{passed:?}");
    }
    let firsts = net.router(0).plan_lanes(id(7), 3).into_iter().flatten().map(|router| router.0);
    assert_eq!(firsts.collect::<std::collections::BTreeSet<u32>>(), [2, 3, 4].into());
    assert_eq!(net.router(0).plan_lanes(id(100), 1), [None]);
}
