//! A contender described in words: what it does in a scenario.

use super::model::{Scenario, Transfer};
use anabranch_policy::combination::Family;
use anabranch_routing::lanes::{LaneInterfaces, LanePolicy, PathMode};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_settings::contender::Contender;

impl Scenario {
    /// Policies and settings of `contender`, for reports; in an ad-hoc network, with routing.
    pub fn describe(&self, contender: &Contender) -> String {
        if self.moving.is_some() {
            return describe_routers(contender);
        }
        let datagrams = format!("datagrams: {}", contender.datagram);
        match (self.datagrams.is_empty(), self.transfer) {
            (true, _) if self.mesh.is_some() => contender.describe_over(&self.connection) + &describe_lanes(contender),
            (true, _) => contender.describe_over(&self.connection),
            (false, Transfer::None) => datagrams + &contender.describe_route(),
            (false, _) => format!("{}; {datagrams}", contender.describe_over(&self.connection)),
        }
    }
}

/// Lanes of an ad-hoc network.
fn describe_lanes(contender: &Contender) -> String {
    let lanes = &contender.mesh.lanes;
    let mut text = match (lanes.paths, lanes.policy) {
        (PathMode::Full, _) => "; all next hops".to_owned(),
        (PathMode::Part, LanePolicy::Spread) => "; a next hop per lane, spread".to_owned(),
        (PathMode::Part, LanePolicy::Paper) => "; a next hop per lane, in turn".to_owned(),
        (PathMode::Part, LanePolicy::Disjoint) => "; a next hop per lane, planned".to_owned(),
    };
    if lanes.interfaces == LaneInterfaces::Virtual {
        text.push_str(", one radio");
    }
    if contender.mesh.predicted {
        text.push_str(&format!(", links by {}", contender.policies.choice(Family::Forecaster)));
    }
    text
}

/// Routers of mobile nodes.
fn describe_routers(contender: &Contender) -> String {
    let fullness = match contender.mesh.fullness.unwrap_or(LsaFullness::MinCost) {
        LsaFullness::Minimal => "LSAFullness 0",
        LsaFullness::MinCost => "LSAFullness 1",
        LsaFullness::MinCostRedundant => "LSAFullness 2",
        LsaFullness::MdrFull => "LSAFullness 3",
        LsaFullness::Full => "LSAFullness 4",
        LsaFullness::Multipath(_) => "LSAs for three disjoint ways",
    };
    let hellos = match contender.mesh.two_hop_refresh.unwrap_or(3) {
        1 => "all Hellos full".to_owned(),
        refresh => format!("one of {refresh} Hellos full"),
    };
    let forecasts = match (contender.mesh.predicted, contender.mesh.flood_suspects) {
        (false, _) => "no forecasts".to_owned(),
        (true, flooded) => {
            let told = if flooded { "all are told" } else { "neighbours are told" };
            format!("links by {}, {told}", contender.policies.choice(Family::Forecaster))
        }
    };
    let cost = if contender.mesh.etx { ", cost by ETX" } else { "" };
    format!("OSPF-MDR: {fullness}, {hellos}, {forecasts}{cost}")
}
