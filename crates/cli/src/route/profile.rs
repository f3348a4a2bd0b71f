//! Sets of the protocol's parameters with a name.

use crate::diagnostic::Diagnostic;
use anabranch_policy::time::Duration;
use anabranch_router::RouteConfig;
use anabranch_routing::InterfaceKind;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::mesh::paper::combination::Combination;
use clap::ValueEnum;

/// Where the parameters begin that are not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Profile {
    /// The defaults of RFC 5614
    Rfc,
    /// The paper's: Hello 1 s, dead 3 s, 2HopRefresh 3, LSAFullness 3
    Paper,
    /// Hello 1 s, dead 3 s, LSAFullness 4, without which the paper's disjoint paths do not come about, and 2HopRefresh 6
    Multipath,
    /// The paper's, for TCP over all next hops; no lanes
    #[value(name = "TM")]
    Tm,
    /// The paper's, lanes of all next hops on one radio: they leave by the first interface
    #[value(name = "MFm")]
    Mfm,
    /// The paper's, lanes of all next hops on radios of their own
    #[value(name = "MFxM")]
    Mfxm,
    /// The paper's, lanes of one next hop each
    #[value(name = "MPxM")]
    Mpxm,
    /// MFxM with next hops by the hidden Markov model (viterbi, asked every 2 s)
    #[value(name = "MMFxM")]
    Mmfxm,
    /// MPxM with next hops by the hidden Markov model
    #[value(name = "MMPxM")]
    Mmpxm,
    /// MMFxM with two lanes, for subflows on the two fastest interfaces
    #[value(name = "PMMFxM")]
    Pmmfxm,
    /// MMPxM with two lanes
    #[value(name = "PMMPxM")]
    Pmmpxm,
}

impl Profile {
    /// Sets what it says.
    pub fn apply(self, config: &mut RouteConfig) -> Result<(), Diagnostic> {
        let (fullness, two_hop_refresh) = match self {
            Self::Rfc => return Ok(()),
            // One full Hello in six says less than one in three, and links that are cut are left as fast.
            Self::Multipath => (LsaFullness::Full, 6),
            _ => (LsaFullness::MdrFull, 3),
        };
        config.manet.hello_interval = Duration::from_secs(1);
        // The paper does not say it.
        config.manet.router_dead_interval = Duration::from_secs(3);
        if let InterfaceKind::Manet(manet) = &mut config.manet.kind {
            manet.two_hop_refresh = two_hop_refresh;
            manet.lsa_fullness = fullness;
        }
        let value = self.to_possible_value();
        let combination = value.as_ref().and_then(|value| Combination::named(value.get_name()));
        combination.map_or(Ok(()), |combination| combine(config, &combination))
    }
}

/// Sets what a combination of the paper has routers do. What its hosts do is for the programs on them.
fn combine(config: &mut RouteConfig, combination: &Combination) -> Result<(), Diagnostic> {
    let name = &combination.name;
    let (given, most) = (config.lanes.len() + 1, combination.lanes);
    if most == 1 && given > 1 {
        return Err(Diagnostic::option(&format!("--profile {name}"), "it has no lanes, so --lane cannot be given"));
    }
    if given > most {
        let text = format!("it has {most} lanes, the first interface being one, and {given} are given");
        return Err(Diagnostic::option(&format!("--profile {name}"), text));
    }
    config.lane_settings = combination.routes;
    let forecast = combination.forecast();
    config.router.forecast = forecast.map_err(|error| Diagnostic::option(&format!("--profile {name}"), error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_routing::lanes::{LaneInterfaces, PathMode};

    fn applied(profile: &str, lanes: usize) -> Result<RouteConfig, Diagnostic> {
        let profile = Profile::from_str(profile, false).expect("a profile");
        let lanes = (0..lanes).map(|lane| format!("e{lane}")).collect();
        let mut config = RouteConfig { lanes, ..RouteConfig::default() };
        profile.apply(&mut config).map(|()| config)
    }

    #[test]
    fn every_combination_of_the_experiments_is_a_profile_but_for_those_that_differ_at_the_hosts_only() {
        for combination in anabranch_sim::mesh::paper::combination::all() {
            let of_hosts = combination.name.ends_with(|last: char| last.is_ascii_digit());
            assert_eq!(Profile::from_str(&combination.name, false).is_ok(), !of_hosts, "{}", combination.name);
        }
    }

    #[test]
    fn a_combination_says_how_lanes_are_made_and_whether_links_are_forecast() {
        for (name, lanes, paths, predicted) in [
            ("TM", 0, PathMode::Full, false),
            ("MFxM", 3, PathMode::Full, false),
            ("MPxM", 3, PathMode::Part, false),
            ("MMFxM", 3, PathMode::Full, true),
            ("PMMPxM", 1, PathMode::Part, true),
        ] {
            let config = applied(name, lanes).expect("a profile");
            assert_eq!(config.lane_settings.paths, paths, "{name}");
            assert_eq!(config.router.forecast.is_some(), predicted, "{name}");
            assert_eq!(config.manet.hello_interval, Duration::from_secs(1), "{name}");
        }
        let config = applied("MFm", 3).expect("a profile");
        assert_eq!(config.lane_settings.interfaces, LaneInterfaces::Virtual);
    }

    #[test]
    fn more_lanes_than_a_combination_has_are_refused() {
        assert!(applied("TM", 1).is_err());
        assert!(applied("PMMFxM", 2).is_err());
        assert!(applied("MFxM", 4).is_err());
    }
}
