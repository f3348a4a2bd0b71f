//! One experiment: who downloads what, over which rates and routes.

use super::combination::{Combination, LANES};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;

/// Rates of the interfaces.
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

/// What is downloaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// As much as there is time for (iperf3: 180 s).
    For(Duration),
    /// So many bytes (nc: 1.8 MB and 3.6 MB).
    Bytes(u64),
}

/// Where routes come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routes {
    /// All shortest paths, from the start and for ever.
    Static,
    /// OSPF-MDR on lane 0: HelloInterval 1 s, RouterDeadInterval 3 s, 2HopRefresh 3.
    Routers {
        /// What routers advertise; the paper has [`LsaFullness::MdrFull`].
        fullness: LsaFullness,
    },
}

/// One experiment.
#[derive(Clone, Debug)]
pub struct Case {
    /// The combination of protocols.
    pub combination: Combination,
    /// The rates.
    pub rates: Rates,
    /// Where routes come from.
    pub routes: Routes,
    /// RTS and CTS before each data frame. The paper does not say; its figure for plain TCP is met with them.
    pub reservations: bool,
    /// What is downloaded.
    pub transfer: Transfer,
    /// Receive buffer of the host that downloads, bytes of payload; none: the engine's, which grows.
    pub receive_buffer: Option<u64>,
    /// Spacing of the series over time.
    pub sample: Duration,
    /// All luck comes from it.
    pub seed: u64,
    /// Write every packet as bytes and read it again.
    pub wire: bool,
    /// Keep the delay of each segment, not only how delays are distributed.
    pub single_delays: bool,
}

impl Case {
    /// A combination as the paper runs it for 180 s over static routes, with RTS.
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
