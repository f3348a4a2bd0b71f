//! One experiment: a download with given rates and routes.

use super::combination::{Combination, LANES};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;

/// By lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates(pub [Rate; LANES]);

impl Rates {
    /// Of table 4: 11 Mbit/s each.
    pub const HOMOGENEOUS: Self = Self([Rate::from_bits_per_second(11_000_000); LANES]);
    /// Of table 4: 11, 5.5, 2 and 1 Mbit/s.
    pub const HETEROGENEOUS: Self = Self([
        Rate::from_bits_per_second(11_000_000),
        Rate::from_bits_per_second(5_500_000),
        Rate::from_bits_per_second(2_000_000),
        Rate::from_bits_per_second(1_000_000),
    ]);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// For a duration (iperf3: 180 s).
    For(Duration),
    /// A number of bytes (nc: 1.8 MB and 3.6 MB).
    Bytes(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routes {
    /// All shortest paths, from the start and without changes.
    Static,
    /// OSPF-MDR on lane 0: HelloInterval 1 s, RouterDeadInterval 3 s, 2HopRefresh 3.
    Routers {
        /// The LSA contents of routers; the paper has [`LsaFullness::MdrFull`].
        fullness: LsaFullness,
    },
}

#[derive(Clone, Debug)]
pub struct Case {
    pub combination: Combination,
    pub rates: Rates,
    pub routes: Routes,
    /// RTS and CTS before each data frame. The paper does not say; its figure for plain TCP is reproduced with them.
    pub reservations: bool,
    pub transfer: Transfer,
    /// Receive buffer of the downloading host in bytes of payload; `None`: the engine's, which grows.
    pub receive_buffer: Option<u64>,
    /// Interval of the time series.
    pub sample: Duration,
    /// All random streams are derived from it.
    pub seed: u64,
    /// Emit every packet as bytes and parse it again.
    pub wire: bool,
    /// Keep the delay of each segment in addition to the distribution.
    pub single_delays: bool,
}

impl Case {
    /// The paper's run of a combination: 180 s over static routes, with RTS.
    pub fn new(combination: Combination, rates: Rates, seed: u64) -> Self {
        Self {
            combination,
            rates,
            routes: Routes::Static,
            reservations: true,
            transfer: Transfer::For(Duration::from_secs(180)),
            receive_buffer: None,
            sample: Duration::from_secs(1),
            seed,
            wire: false,
            single_delays: false,
        }
    }
}
