//! Forecasts of links only affect the choice among next hops, and are not announced.

mod harness;

use std::sync::Arc;

use anabranch_policy::forecast::Persistence;
use anabranch_policy::{Duration, LinkForecaster};
use anabranch_routing::config::Forecast;
use anabranch_routing::next_hops::{ForecastUse, SoftUse};
use anabranch_wire::ospf::Prefix;
use harness::{Net, Setup, address, figure_8_lateral};

fn forecast() -> Forecast {
    Forecast {
        build: Arc::new(|_, _| Box::<Persistence>::default() as Box<dyn LinkForecaster>),
        horizon: Duration::from_secs(1),
        usage: ForecastUse::Soft(SoftUse { hold: 0, ..SoftUse::default() }),
        period: Duration::from_millis(250),
        suspect_cost: 0,
        alternates: false,
    }
}

#[test]
fn a_forecast_of_a_lost_link_takes_its_next_hop_away_and_no_byte_is_sent_for_it() {
    let mut net = Net::new(Setup::new(8, 5));
    for (a, b) in figure_8_lateral() {
        net.set_link(a, b, true);
    }
    for node in 0..8 {
        net.start_with(node, |config| config.forecast = Some(forecast()));
    }
    net.run_for(Duration::from_secs(30));
    let to = Prefix::host(address(7, 0));
    let chosen = |net: &Net| -> Vec<u32> {
        let route = &net.router(0).routes().prefixes[&to];
        net.router(0).choose(&route.next_hops).iter().map(|one| one.hop.router.0).collect()
    };
    assert_eq!(chosen(&net), [2, 3, 4]);
    let others =
        |net: &Net| -> u64 { (0..8).map(|node| net.router(node).counters().sent[1..].iter().sum::<u64>()).sum() };
    let before = others(&net);
    // M1 stops receiving M2. Persistence assumes that the link is down at the first missing Hello.
    net.set_direction(0, 1, 0, false);
    net.run_for(Duration::from_millis(1700));
    assert_eq!(net.router(0).routes().prefixes[&to].next_hops.len(), 3, "within the dead interval");
    assert_eq!(chosen(&net), [3, 4]);
    assert_eq!(others(&net), before);
    net.set_direction(0, 1, 0, true);
    net.run_for(Duration::from_millis(1500));
    assert_eq!(chosen(&net), [2, 3, 4]);
}
