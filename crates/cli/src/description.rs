//! A contender described in words.

use crate::contender::{Contender, Route, Steered};
#[cfg(feature = "lab")]
use crate::scenario::Scenario;
use crate::scenario::connection::ConnectionSettings;
#[cfg(feature = "lab")]
use crate::scenario::model::Transfer;
use anabranch_policy::combination::Family;
#[cfg(feature = "lab")]
use anabranch_routing::lanes::{LaneInterfaces, LanePolicy, PathMode};
#[cfg(feature = "lab")]
use anabranch_routing::lsa_fullness::LsaFullness;

#[cfg(feature = "lab")]
impl Contender {
    /// Policies and settings in a scenario, for reports; in an ad-hoc network, with routing.
    pub fn describe_in(&self, scenario: &Scenario) -> String {
        if scenario.moving.is_some() {
            return self.describe_routers();
        }
        let datagrams = format!("datagrams: {}", self.datagram);
        match (scenario.datagrams.is_empty(), scenario.transfer) {
            (true, _) => self.describe_over(&scenario.connection) + &self.describe_lanes(scenario),
            (false, Transfer::None) => datagrams + &self.describe_route(),
            (false, _) => format!("{}; {datagrams}", self.describe_over(&scenario.connection)),
        }
    }

    /// Lanes of an ad-hoc network.
    fn describe_lanes(&self, scenario: &Scenario) -> String {
        if scenario.mesh.is_none() {
            return String::new();
        }
        let lanes = &self.mesh.lanes;
        let mut text = match (lanes.paths, lanes.policy) {
            (PathMode::Full, _) => "; all next hops".to_owned(),
            (PathMode::Part, LanePolicy::Spread) => "; a next hop per lane, spread".to_owned(),
            (PathMode::Part, LanePolicy::Paper) => "; a next hop per lane, in turn".to_owned(),
            (PathMode::Part, LanePolicy::Disjoint) => "; a next hop per lane, planned".to_owned(),
        };
        if lanes.interfaces == LaneInterfaces::Virtual {
            text.push_str(", one radio");
        }
        if self.mesh.predicted {
            text.push_str(&format!(", links by {}", self.policies.choice(Family::Forecaster)));
        }
        text
    }

    /// Routers of mobile nodes.
    fn describe_routers(&self) -> String {
        let fullness = match self.mesh.fullness.unwrap_or(LsaFullness::MinCost) {
            LsaFullness::Minimal => "LSAFullness 0",
            LsaFullness::MinCost => "LSAFullness 1",
            LsaFullness::MinCostRedundant => "LSAFullness 2",
            LsaFullness::MdrFull => "LSAFullness 3",
            LsaFullness::Full => "LSAFullness 4",
            LsaFullness::Multipath(_) => "LSAs for three disjoint ways",
        };
        let hellos = match self.mesh.two_hop_refresh.unwrap_or(3) {
            1 => "all Hellos full".to_owned(),
            refresh => format!("one of {refresh} Hellos full"),
        };
        let forecasts = match (self.mesh.predicted, self.mesh.flood_suspects) {
            (false, _) => "no forecasts".to_owned(),
            (true, flooded) => {
                let told = if flooded { "all are told" } else { "neighbours are told" };
                format!("links by {}, {told}", self.policies.choice(Family::Forecaster))
            }
        };
        format!("OSPF-MDR: {fullness}, {hellos}, {forecasts}")
    }
}

impl Contender {
    /// Policies and settings.
    pub fn describe(&self) -> String {
        self.describe_over(&ConnectionSettings::default())
    }

    /// The same, given the scenario's connection settings.
    fn describe_over(&self, of_scenario: &ConnectionSettings) -> String {
        let route = self.describe_route();
        let choice = |family| self.policies.choice(family).to_string();
        let reliability = match choice(Family::Reliability) {
            full if full == "full" => String::new(),
            partial => format!(", {partial}"),
        };
        let congestion = choice(Family::Congestion) + &reliability;
        let connection = self.describe_connection(of_scenario);
        if self.multipath {
            let (manager, scheduler) = (choice(Family::PathManager), choice(Family::Scheduler));
            format!("MPTCP: {manager}, {scheduler}, {congestion}{route}{connection}")
        } else {
            format!("TCP: {congestion}{route}{connection}")
        }
    }

    /// The paths used.
    fn describe_route(&self) -> String {
        let oracle = if self.oracle { ", on links that lose nothing" } else { "" };
        let steered = self.steered.as_ref().map(Steered::describe).unwrap_or_default();
        match &self.route {
            Route::All => format!("{oracle}{steered}"),
            Route::Only(names) => format!(", on {}{steered}", names.join(" + ")),
            Route::Best => format!(", on the best path{steered}"),
        }
    }

    /// Its connection settings, and those of its baseline that neither it nor the scenario overrides.
    fn describe_connection(&self, of_scenario: &ConnectionSettings) -> String {
        let said = |settings: &ConnectionSettings| {
            settings.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
        };
        let own = if self.connection.is_empty() { String::new() } else { format!("; {}", said(&self.connection)) };
        let left = self.defaults.without(&self.connection.over(of_scenario));
        match &self.baseline {
            Some(name) if left.is_empty() => format!("{own}; baseline {name}"),
            Some(name) => format!("{own}; baseline {name}: {}", said(&left)),
            None => own,
        }
    }
}
