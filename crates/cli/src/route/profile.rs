//! Sets of the protocol's parameters with a name.

use anabranch_net::route::RouteConfig;
use anabranch_policy::time::Duration;
use anabranch_routing::InterfaceKind;
use anabranch_routing::lsa_fullness::LsaFullness;
use clap::ValueEnum;

/// Where the parameters begin that are not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Profile {
    /// The defaults of RFC 5614
    Rfc,
    /// The paper's: Hello 1 s, dead 3 s, 2HopRefresh 3, LSAFullness 3
    Paper,
    /// The paper's with LSAFullness 4, without which its disjoint paths do not come about
    Multipath,
}

impl Profile {
    /// Sets what it says.
    pub fn apply(self, config: &mut RouteConfig) {
        let fullness = match self {
            Self::Rfc => return,
            Self::Paper => LsaFullness::MdrFull,
            Self::Multipath => LsaFullness::Full,
        };
        config.manet.hello_interval = Duration::from_secs(1);
        // The paper does not say it.
        config.manet.router_dead_interval = Duration::from_secs(3);
        if let InterfaceKind::Manet(manet) = &mut config.manet.kind {
            manet.two_hop_refresh = 3;
            manet.lsa_fullness = fullness;
        }
    }
}
