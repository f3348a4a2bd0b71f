//! Faults of an uplink, and their repair.

use crate::soak::town::{LOGIN, MUTE, Town, at, nft};
use anabranch_system::Namespace;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Packets are dropped behind a working access point.
    BlackHole,
    /// The access point rejects all connections, like a captive portal.
    Portal,
    /// The access point answers each TCP connection itself, with a redirection to its login page, and drops the rest.
    Login,
    /// It accepts each TCP connection itself, and says nothing.
    Mute,
    /// It has no uplink of its own, and says so by ICMP.
    NoInternet,
    /// No carrier.
    NoCarrier,
    /// The interface is down.
    SwitchedOff,
    /// No address and no route, as before a DHCP lease.
    NoAddress,
}

pub const FAULTS: [Fault; 8] = [
    Fault::BlackHole,
    Fault::Portal,
    Fault::Login,
    Fault::Mute,
    Fault::NoInternet,
    Fault::NoCarrier,
    Fault::SwitchedOff,
    Fault::NoAddress,
];

/// Answers connections to any address and port in place of their targets.
fn answer_itself(nat: &Namespace, port: u16) {
    let rules = format!(
        "table ip fault {{ chain catch {{ type nat hook prerouting priority dstnat; \
         iifname lan ip protocol tcp redirect to :{port}; }}; \
         chain passing {{ type filter hook forward priority 0; drop; }}; }}"
    );
    nft(nat, &rules);
}

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
            Self::Login => answer_itself(nat, LOGIN),
            Self::Mute => answer_itself(nat, MUTE),
            Self::NoInternet => at(nat, &["route delete default"]),
            Self::NoCarrier => at(nat, &["link set lan down"]),
            Self::SwitchedOff => at(&town.client, &[&format!("link set up{n} down")]),
            Self::NoAddress => at(&town.client, &[&format!("address flush dev up{n}")]),
        }
    }

    /// Repairs it; the uplink may have another address afterwards.
    pub fn ends(self, town: &Town, n: usize, address: u8) {
        let (nat, client, net) = (&town.nats[n], &town.client, n + 1);
        match self {
            Self::BlackHole | Self::Portal | Self::Login | Self::Mute => nft(nat, "delete table ip fault"),
            Self::NoInternet => town.way_out(n),
            Self::NoCarrier => at(nat, &["link set lan up"]),
            Self::SwitchedOff => at(client, &[&format!("link set up{n} up")]),
            Self::NoAddress => at(client, &[&format!("address add 10.{net}.0.{address}/24 dev up{n}")]),
        }
        town.route(n);
    }
}
