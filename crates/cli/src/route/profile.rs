//! Named sets of protocol parameters.

use anabranch_policy::combination::Choice;
use anabranch_policy::time::Duration;
use anabranch_router::RouteConfig;
use anabranch_routing::InterfaceKind;
use anabranch_routing::config::Forecast;
use anabranch_routing::lanes::{LaneAddresses, LaneInterfaces, LanePolicy, LaneSettings, PathMode};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::next_hops::{ForecastUse, SoftUse};
use anabranch_settings::diagnostic::Diagnostic;
use clap::ValueEnum;

/// Defaults of the parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Profile {
    /// The defaults of RFC 5614
    Rfc,
    /// The paper's: Hello 1 s, dead 3 s, 2HopRefresh 3, LSAFullness 3
    Paper,
    /// Hello 1 s, dead 3 s, LSAFullness 4, which the paper's disjoint paths need, and 2HopRefresh 6
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
    /// Applies the parameters.
    pub fn apply(self, config: &mut RouteConfig) -> Result<(), Diagnostic> {
        let (fullness, two_hop_refresh) = match self {
            Self::Rfc => return Ok(()),
            // One full Hello in six sends less data than one in three, and failed links are detected as fast.
            Self::Multipath => (LsaFullness::Full, 6),
            _ => (LsaFullness::MdrFull, 3),
        };
        config.manet.hello_interval = Duration::from_secs(1);
        // Not stated in the paper.
        config.manet.router_dead_interval = Duration::from_secs(3);
        if let InterfaceKind::Manet(manet) = &mut config.manet.kind {
            manet.two_hop_refresh = two_hop_refresh;
            manet.lsa_fullness = fullness;
        }
        combine(config, self)
    }

    /// The router's part of a combination of the paper; `anabranch_sim::mesh::paper::combination` has all of it.
    fn combination(self) -> Option<Combination> {
        let full = Combination { lanes: 4, paths: PathMode::Full, interfaces: LaneInterfaces::Real, predicted: false };
        let part = Combination { paths: PathMode::Part, ..full };
        Some(match self {
            Self::Rfc | Self::Paper | Self::Multipath => return None,
            Self::Tm => Combination { lanes: 1, ..full },
            Self::Mfm => Combination { interfaces: LaneInterfaces::Virtual, ..full },
            Self::Mfxm => full,
            Self::Mpxm => part,
            Self::Mmfxm => Combination { predicted: true, ..full },
            Self::Mmpxm => Combination { predicted: true, ..part },
            Self::Pmmfxm => Combination { predicted: true, lanes: 2, ..full },
            Self::Pmmpxm => Combination { predicted: true, lanes: 2, ..part },
        })
    }
}

/// Router settings of a combination of the paper. Its host settings apply to the programs on hosts.
#[derive(Clone, Copy)]
struct Combination {
    /// Number of lanes, from the first interface.
    lanes: usize,
    paths: PathMode,
    interfaces: LaneInterfaces,
    /// Whether the hidden Markov model selects next hops.
    predicted: bool,
}

impl Combination {
    fn lane_settings(&self) -> LaneSettings {
        let (policy, addresses) = (LanePolicy::Spread, LaneAddresses::HostPrefixes);
        LaneSettings { paths: self.paths, policy, interfaces: self.interfaces, addresses }
    }

    /// Evaluated every 2 s: whether the link is connected. Predictions apply, but a route keeps its last next hop.
    fn forecast(&self) -> Result<Option<Forecast>, String> {
        if !self.predicted {
            return Ok(None);
        }
        let chosen = Forecast::chosen(&Choice::new("viterbi")).map_err(|error| error.to_string())?;
        let usage = SoftUse { trust: 0.5, suspect: 0.5, exclude: 0.5, readmit: 0.5, hold: 0, trusted_weight: 1 };
        Ok(Some(Forecast { usage: ForecastUse::Soft(usage), period: Duration::from_secs(2), ..chosen }))
    }
}

fn combine(config: &mut RouteConfig, profile: Profile) -> Result<(), Diagnostic> {
    let Some(combination) = profile.combination() else { return Ok(()) };
    let value = profile.to_possible_value();
    let name = value.as_ref().map_or("", |value| value.get_name());
    let (given, most) = (config.lanes.len() + 1, combination.lanes);
    if most == 1 && given > 1 {
        return Err(Diagnostic::option(&format!("--profile {name}"), "it has no lanes, so it takes no --lane"));
    }
    if given > most {
        let text = format!("it has {most} lanes, the first interface being one, and the arguments have {given}");
        return Err(Diagnostic::option(&format!("--profile {name}"), text));
    }
    config.lane_settings = combination.lane_settings();
    let forecast = combination.forecast();
    config.router.forecast = forecast.map_err(|error| Diagnostic::option(&format!("--profile {name}"), error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(profile: &str, lanes: usize) -> Result<RouteConfig, Diagnostic> {
        let profile = Profile::from_str(profile, false).expect("a profile");
        let lanes = (0..lanes).map(|lane| format!("e{lane}")).collect();
        let mut config = RouteConfig { lanes, ..RouteConfig::default() };
        profile.apply(&mut config).map(|()| config)
    }

    #[cfg(feature = "lab")]
    #[test]
    fn every_combination_of_the_experiments_is_a_profile_but_for_those_that_differ_at_the_hosts_only() {
        for combination in anabranch_sim::mesh::paper::combination::all() {
            let of_hosts = combination.name.ends_with(|last: char| last.is_ascii_digit());
            let profile = Profile::from_str(&combination.name, false);
            assert_eq!(profile.is_ok(), !of_hosts, "{}", combination.name);
            if let Some(ours) = profile.ok().and_then(Profile::combination) {
                assert_eq!((ours.lanes, ours.lane_settings()), (combination.lanes, combination.routes));
                let forecasts = (ours.forecast(), combination.forecast());
                assert_eq!(format!("{:?}", forecasts.0), format!("{:?}", forecasts.1), "{}", combination.name);
            }
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
