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
//! - An address behind a NAT is compared as it is on this host.

use super::full_mesh::{FullMesh, MeshSettings};
use super::subnets::Subnets;
use super::{PathAction, PathEvent, PathManager};
use crate::table::{Reader, SettingError};
use crate::time::Instant;

/// The path manager `same_subnet`.
#[derive(Debug)]
pub struct SameSubnet {
    mesh: FullMesh,
}

impl SameSubnet {
    pub fn new(subnets: Subnets, mesh: MeshSettings) -> Self {
        Self { mesh: FullMesh::within(subnets, mesh) }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn PathManager>, SettingError> {
        let mesh = MeshSettings::read(reader)?;
        Ok(Box::new(Self::new(Subnets::read(reader)?, mesh)))
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
    use crate::path_manager::subnets::Reading;
    use crate::time::Duration;
    use core::net::{IpAddr, SocketAddr};

    const ONE: ConnectionId = ConnectionId(1);

    /// What node M8 opens to node M1, both with four interfaces, as (X of M8, X of M1); the initial subflow joins X =
    /// 0.
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
            handshake_rtt: Duration::ZERO,
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
    fn a_mapped_address_counts_as_the_ipv4_one() {
        let mapped = |x: u8, y: u8| match v4(x, y) {
            IpAddr::V4(address) => IpAddr::V6(address.to_ipv6_mapped()),
            v6 => v6,
        };
        assert_eq!(opened(Reading::Text, mapped), [(1, 1), (2, 2), (3, 3)]);
    }
}
