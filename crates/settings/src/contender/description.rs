//! A contender described in words.

use super::model::{Contender, Route};
use super::steered::Steered;
use crate::connection::ConnectionSettings;
use anabranch_policy::combination::Family;

impl Contender {
    /// Policies and settings.
    pub fn describe(&self) -> String {
        self.describe_over(&ConnectionSettings::default())
    }

    /// The same, given the scenario's connection settings.
    pub fn describe_over(&self, of_scenario: &ConnectionSettings) -> String {
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
    pub fn describe_route(&self) -> String {
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
