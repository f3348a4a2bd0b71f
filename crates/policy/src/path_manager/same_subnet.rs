//! A full mesh of which only the pairs within one subnet are opened.
//!
//! Source: Zhang, Zhao, Cheng, "Multipath Routing and MPTCP-Based Data Delivery Over MANETs", IEEE Access 8, 2020,
//! section V-A-3, where interface X of node Y has the address 112.26.X.Y/24 and each subnet is a channel of its own.
//! A local address s and one of the peer's, d, are a pair when
//!
//! ```text
//! network(s) = network(d)                                          (6)
//! network(s) = network(d)  or  network(s) = network of the initial subflow's local address
//!                                                                  (line 7 of the pseudo-code)
//! ```
//!
//! with network(a) the first `prefix` bits of a. Everything else (who opens, who announces, limits, opening again) is
//! [`super::full_mesh`]'s, whose settings apply too; the initial subflow is whatever pair the application chose.
//!
//! Where the paper contradicts itself or is silent (the first value of each setting is the default):
//! - `reading` text | pseudo_code. Between two nodes of four interfaces, equation 6 and Table 3 have four subflows, one
//!   per subnet. The pseudo-code also takes every pair whose source is on 112.26.0.0, the network of the initial
//!   subflow: three more, seven in all.
//! - The network of the initial subflow is written into the pseudo-code as a constant; here it is that of the local
//!   address which the initial subflow goes from, as long as that address is up.
//! - `prefix` 24 bits, as in the paper. It knows no IPv6: `prefix_ipv6`, 64 bits (RFC 4291, section 2.5.4). An IPv6
//!   address that holds an IPv4 one counts as that one.
//! - The prefix is a setting and not read off the interface, since nobody tells the prefix of the peer's address.
//! - An address that the peer does not know by itself (behind a NAT) is compared as it is on this host.

use super::full_mesh::{self, FullMesh, MeshSettings};
use super::{PathAction, PathEvent, PathManager};
use crate::table::{Parameter, SettingError, Settings};
use crate::time::Instant;
use core::net::IpAddr;

/// The settings of [`SameSubnet`].
pub const PARAMETERS: &[Parameter] = &[
    full_mesh::SUBFLOWS,
    full_mesh::ADD_ADDR_ACCEPTED,
    full_mesh::ANNOUNCE,
    full_mesh::REOPEN,
    Parameter {
        name: "prefix",
        default: "24",
        values: "0 to 32 bits",
        summary: "How many bits two IPv4 addresses of one subnet have in common",
    },
    Parameter {
        name: "prefix_ipv6",
        default: "64",
        values: "0 to 128 bits",
        summary: "How many bits two IPv6 addresses of one subnet have in common",
    },
    Parameter {
        name: "reading",
        default: "text",
        values: "text | pseudo_code",
        summary: "Whether, as in the pseudo-code, addresses of the initial subflow's network are paired with all",
    },
];

/// Which of the paper's two rules is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Equation 6: the same subnet.
    Text,
    /// Line 7 of the pseudo-code: the same subnet, or a source on the network of the initial subflow.
    PseudoCode,
}

/// Which addresses are a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subnets {
    /// Bits that two IPv4 addresses of a subnet have in common, at most 32.
    pub prefix: u8,
    /// Bits that two IPv6 addresses of a subnet have in common, at most 128.
    pub prefix_ipv6: u8,
    /// Which rule is followed.
    pub reading: Reading,
}

impl Default for Subnets {
    fn default() -> Self {
        Self { prefix: 24, prefix_ipv6: 64, reading: Reading::Text }
    }
}

impl Subnets {
    /// Reads the settings that are ours.
    fn read(settings: &Settings) -> Result<Self, SettingError> {
        Ok(Self {
            prefix: settings.number("prefix", 24.0, 0.0..=32.0)? as u8,
            prefix_ipv6: settings.number("prefix_ipv6", 64.0, 0.0..=128.0)? as u8,
            reading: [Reading::Text, Reading::PseudoCode][settings.word("reading", &["text", "pseudo_code"], 0)?],
        })
    }

    /// Whether a subflow may go between the two; `initial` is the local address of the initial subflow, if it is up.
    /// Addresses are in canonical form.
    pub(super) fn pair(self, from: IpAddr, to: IpAddr, initial: Option<IpAddr>) -> bool {
        let from_initial = self.reading == Reading::PseudoCode && initial.is_some_and(|one| self.share(from, one));
        self.share(from, to) || from_initial
    }

    /// Whether two addresses are of one subnet.
    fn share(self, one: IpAddr, other: IpAddr) -> bool {
        match (one, other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                let different = u32::from(one) ^ u32::from(other);
                different.leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                let different = u128::from(one) ^ u128::from(other);
                different.leading_zeros() >= u32::from(self.prefix_ipv6)
            }
            _ => false,
        }
    }
}

/// The path manager `same_subnet`.
#[derive(Debug)]
pub struct SameSubnet {
    mesh: FullMesh,
}

impl SameSubnet {
    /// Makes one.
    pub fn new(subnets: Subnets, mesh: MeshSettings) -> Self {
        Self { mesh: FullMesh::within(subnets, mesh) }
    }

    /// Makes one from [`PARAMETERS`].
    pub fn build(settings: &Settings) -> Result<Box<dyn PathManager>, SettingError> {
        Ok(Box::new(Self::new(Subnets::read(settings)?, MeshSettings::read(settings)?)))
    }
}

impl PathManager for SameSubnet {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        self.mesh.handle(now, event, actions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AddressId, ConnectionId};
    use crate::path_manager::Role;
    use core::net::SocketAddr;

    const ONE: ConnectionId = ConnectionId(1);

    /// What node M8 opens to node M1, both with four interfaces, as (X of M8, X of M1); the initial subflow joins X = 0.
    fn opened(reading: Reading, address: impl Fn(u8, u8) -> IpAddr) -> Vec<(u8, u8)> {
        let subnets = Subnets { reading, ..Subnets::default() };
        let mesh = MeshSettings { subflows: 64, ..MeshSettings::default() };
        let mut manager = SameSubnet::new(subnets, mesh);
        let mut actions = Vec::new();
        for x in 0..4 {
            let event = PathEvent::AddressUp { id: AddressId(x + 1), address: address(x, 8) };
            manager.handle(Instant::ZERO, &event, &mut actions);
        }
        let remote = |x| SocketAddr::new(address(x, 1), 80);
        let established = PathEvent::ConnectionEstablished {
            connection: ONE,
            role: Role::Client,
            local: AddressId(1),
            remote: remote(0),
            remote_denies_joins: false,
        };
        manager.handle(Instant::ZERO, &established, &mut actions);
        for x in 1..4 {
            let event = PathEvent::AddressAnnounced { connection: ONE, id: AddressId(x), remote: remote(x) };
            manager.handle(Instant::ZERO, &event, &mut actions);
        }
        let pair = |action: &PathAction| match action {
            PathAction::CreateSubflow { local, remote, .. } => Some((local.0 - 1, remote.0)),
            _ => None,
        };
        actions.iter().filter_map(pair).collect()
    }

    fn v4(x: u8, y: u8) -> IpAddr {
        IpAddr::from([112, 26, x, y])
    }

    #[test]
    fn by_the_text_two_nodes_of_four_interfaces_have_four_subflows() {
        // Equation 6: X to X; the initial subflow, 0 to 0, is the fourth.
        assert_eq!(opened(Reading::Text, v4), [(1, 1), (2, 2), (3, 3)]);
    }

    #[test]
    fn by_the_pseudo_code_they_have_seven() {
        // 0 to 0 exists; 0 to 1, 2, 3 because their source is on the initial network; 1, 2, 3 to themselves.
        assert_eq!(opened(Reading::PseudoCode, v4), [(0, 1), (1, 1), (0, 2), (2, 2), (0, 3), (3, 3)]);
    }

    #[test]
    fn an_ipv6_subnet_has_64_bits() {
        // Two addresses of 2001:db8:0:x::/64.
        let v6 = |x: u8, y: u8| IpAddr::from([0x2001, 0xdb8, 0, u16::from(x), 7, 0, 0, u16::from(y)]);
        assert_eq!(opened(Reading::Text, v6), [(1, 1), (2, 2), (3, 3)]);
    }

    #[test]
    fn the_last_bit_of_the_prefix_counts_and_the_first_after_it_does_not() {
        let subnets = Subnets { prefix: 23, ..Subnets::default() };
        let [one, near, far] = ["10.0.2.1", "10.0.3.254", "10.0.4.1"].map(|text| text.parse().unwrap());
        assert!(subnets.share(one, near));
        assert!(!subnets.share(one, far));
        // With no bits in common, every address of the family is of one subnet, and none of the other.
        let all = Subnets { prefix: 0, prefix_ipv6: 0, ..Subnets::default() };
        assert!(all.share(one, far));
        assert!(!all.share(one, "2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn a_mapped_address_counts_as_the_ipv4_one() {
        let mapped = |x: u8, y: u8| match v4(x, y) {
            IpAddr::V4(address) => IpAddr::V6(address.to_ipv6_mapped()),
            v6 => v6,
        };
        assert_eq!(opened(Reading::Text, mapped), [(1, 1), (2, 2), (3, 3)]);
    }
}
