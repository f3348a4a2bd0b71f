//! Schemes of a scenario, and the contenders that result from them and baselines.

use super::choices::Choices;
use super::datagram::datagram_default;
use super::model::{Contender, MeshRoutes, Route};
use super::steered::Steered;
use crate::baseline::Baseline;
use crate::connection::ConnectionSettings;
use anabranch_policy::combination::{Choice, Combination};

/// A policy of a scenario: its choices, without those of the baseline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheme {
    pub name: String,
    /// Label in figures and tables.
    pub label: String,
    /// Whether it uses MPTCP; else plain TCP on one path.
    pub multipath: bool,
    pub route: Route,
    /// How an ad-hoc network routes its packets.
    pub mesh: MeshRoutes,
    /// An oracle: links never lose its packets.
    pub oracle: bool,
    /// A daemon that steers its connections.
    pub steered: Option<Steered>,
    /// Policies of the families it specifies.
    pub choices: Choices,
    /// Policy for datagrams of programs.
    pub datagram: Option<Choice>,
    /// Its connection settings.
    pub connection: ConnectionSettings,
    /// Names of the scenario's baselines it runs under; none: all; empty list: no baseline.
    pub baselines: Option<Vec<String>>,
}

impl Scheme {
    /// MPTCP on all paths with the baseline's policies.
    pub fn mptcp() -> Self {
        Self {
            name: "mptcp".to_owned(),
            label: "MPTCP".to_owned(),
            multipath: true,
            route: Route::All,
            mesh: MeshRoutes::default(),
            oracle: false,
            steered: None,
            choices: Choices::default(),
            datagram: None,
            connection: ConnectionSettings::default(),
            baselines: None,
        }
    }

    /// The same without baseline, with this name.
    pub fn called(self, name: &str) -> Self {
        Self { name: name.to_owned(), label: name.to_owned(), ..self }
    }

    /// The contender under a baseline or under none, with the scenario's defaults.
    pub fn under(&self, baseline: Option<&Baseline>, defaults: &Choices) -> Contender {
        let mut policies = Combination::default();
        if let Some(baseline) = baseline {
            baseline.choices.apply(&mut policies);
        }
        defaults.apply(&mut policies);
        self.choices.apply(&mut policies);
        let (name, label) = match baseline {
            Some(baseline) => {
                (format!("{}@{}", self.name, baseline.name), format!("{} on {}", self.label, baseline.label))
            }
            None => (self.name.clone(), self.label.clone()),
        };
        Contender {
            name,
            label,
            scheme: self.name.clone(),
            baseline: baseline.map(|baseline| baseline.name.clone()),
            multipath: self.multipath,
            route: self.route.clone(),
            mesh: self.mesh,
            oracle: self.oracle,
            steered: self.steered.clone(),
            policies,
            datagram: self.datagram.clone().unwrap_or_else(datagram_default),
            defaults: baseline.map(|baseline| baseline.connection.clone()).unwrap_or_default(),
            connection: self.connection.clone(),
        }
    }

    fn wants(&self, baseline: &Baseline) -> bool {
        self.baselines.as_ref().is_none_or(|wanted| wanted.contains(&baseline.name))
    }

    /// Whether it always runs without a baseline.
    fn stands_alone(&self) -> bool {
        self.baselines.as_ref().is_some_and(Vec::is_empty)
    }
}

/// Each scheme under each baseline, ordered by baseline; then those without baseline.
pub fn contenders(schemes: &[Scheme], baselines: &[Baseline], defaults: &Choices) -> Vec<Contender> {
    if baselines.is_empty() {
        return schemes.iter().map(|scheme| scheme.under(None, defaults)).collect();
    }
    let mut made: Vec<Contender> = Vec::new();
    for baseline in baselines {
        let wanted = schemes.iter().filter(|scheme| scheme.wants(baseline));
        made.extend(wanted.map(|scheme| scheme.under(Some(baseline), defaults)));
    }
    made.extend(schemes.iter().filter(|scheme| scheme.stands_alone()).map(|scheme| scheme.under(None, defaults)));
    made
}
