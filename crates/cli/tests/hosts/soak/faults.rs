//! Faults of an uplink, and their repair.

use crate::soak::town::{Town, at, nft};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Packets are dropped behind a working access point.
    BlackHole,
    /// The access point rejects all connections, like a captive portal.
    Portal,
    /// No carrier.
    NoCarrier,
    /// The interface is down.
    SwitchedOff,
    /// No address and no route, as before a DHCP lease.
    NoAddress,
}

pub const FAULTS: [Fault; 5] =
    [Fault::BlackHole, Fault::Portal, Fault::NoCarrier, Fault::SwitchedOff, Fault::NoAddress];

impl Fault {
    /// Applies the fault to uplink `n`.
    pub fn happens(self, town: &Town, n: usize) {
        let nat = &town.nats[n];
        match self {
            Self::BlackHole => {
                nft(nat, "table ip fault { chain passing { type filter hook forward priority 0; drop; }; }")
            }
            Self::Portal => nft(
                nat,
                "table ip fault { chain passing { type filter hook forward priority 0; \
                 iifname lan ip protocol tcp reject with tcp reset; iifname lan reject; drop; }; }",
            ),
            Self::NoCarrier => at(nat, &["link set lan down"]),
            Self::SwitchedOff => at(&town.client, &[&format!("link set up{n} down")]),
            Self::NoAddress => at(&town.client, &[&format!("address flush dev up{n}")]),
        }
    }

    /// Repairs it; the uplink may have another address afterwards.
    pub fn ends(self, town: &Town, n: usize, address: u8) {
        let (nat, client, net) = (&town.nats[n], &town.client, n + 1);
        match self {
            Self::BlackHole | Self::Portal => nft(nat, "delete table ip fault"),
            Self::NoCarrier => at(nat, &["link set lan up"]),
            Self::SwitchedOff => at(client, &[&format!("link set up{n} up")]),
            Self::NoAddress => at(client, &[&format!("address add 10.{net}.0.{address}/24 dev up{n}")]),
        }
        town.route(n);
    }
}
