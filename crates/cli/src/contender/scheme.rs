//! A scheme of a scenario, before its baseline is known, and the contenders that baselines make of it.

use super::choices::Choices;
use super::datagram::datagram_default;
use super::model::{Contender, MeshRoutes, Route};
use crate::baseline::Baseline;
use crate::scenario::connection::ConnectionSettings;
use anabranch_policy::combination::{Choice, Combination};

/// A policy of a scenario: what it chooses, and what it leaves to the baseline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheme {
    /// Its name.
    pub name: String,
    /// What figures and tables call it.
    pub label: String,
    /// Multipath TCP; else plain TCP on one path.
    pub multipath: bool,
    /// Which paths.
    pub route: Route,
    /// How an ad-hoc network routes what it sends.
    pub mesh: MeshRoutes,
    /// Links lose nothing of what it sends.
    pub oracle: bool,
    /// What it chooses of the families.
    pub choices: Choices,
    /// What it chooses for datagrams of programs.
    pub datagram: Option<Choice>,
    /// What it says of the connection.
    pub connection: ConnectionSettings,
    /// Under which of the scenario's baselines it is run; all of them if none is named, and none if the list is empty.
    pub baselines: Option<Vec<String>>,
}

impl Scheme {
    /// Multipath TCP on all paths that leaves everything to the baseline.
    pub fn mptcp() -> Self {
        Self {
            name: "mptcp".to_owned(),
            label: "MPTCP".to_owned(),
            multipath: true,
            route: Route::All,
            mesh: MeshRoutes::default(),
            oracle: false,
            choices: Choices::default(),
            datagram: None,
            connection: ConnectionSettings::default(),
            baselines: None,
        }
    }

    /// The same on its own, called after `name`.
    pub fn called(self, name: &str) -> Self {
        Self { name: name.to_owned(), label: name.to_owned(), ..self }
    }

    /// Takes part in a baseline, or in none, where the scenario has these defaults.
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
            policies,
            datagram: self.datagram.clone().unwrap_or_else(datagram_default),
            defaults: baseline.map(|baseline| baseline.connection.clone()).unwrap_or_default(),
            connection: self.connection.clone(),
        }
    }

    /// Whether it is run under this baseline.
    fn wants(&self, baseline: &Baseline) -> bool {
        self.baselines.as_ref().is_none_or(|wanted| wanted.contains(&baseline.name))
    }

    /// Whether it is run under none in any case.
    fn stands_alone(&self) -> bool {
        self.baselines.as_ref().is_some_and(Vec::is_empty)
    }
}

/// Baseline by baseline, each scheme under it; last those that stand alone. Without baselines each scheme alone.
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
