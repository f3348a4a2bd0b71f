//! Mapping of nodes and radios to routers' identifiers.

use super::ids::{NodeId, RadioId};
use anabranch_wire::ospf::{self, RouterId};
use core::net::Ipv6Addr;

pub fn router_id(node: NodeId) -> RouterId {
    RouterId(node.0 + 1)
}

pub(crate) fn node_of(router: RouterId) -> Option<NodeId> {
    router.0.checked_sub(1).map(NodeId)
}

/// The interface number of a radio in its node's router.
pub(crate) fn interface_id(radio: RadioId) -> ospf::InterfaceId {
    ospf::InterfaceId(u32::from(radio.0) + 1)
}

/// The radio with this interface number.
pub(super) fn radio_of(interface: ospf::InterfaceId) -> Option<RadioId> {
    interface.0.checked_sub(1).and_then(|radio| u8::try_from(radio).ok()).map(RadioId)
}

/// The link-local address of a radio: fe80::NODE:RADIO, both counted from 1.
pub fn link_local(node: NodeId, radio: RadioId) -> Ipv6Addr {
    let number = u128::from(node.0 + 1) << 16 | u128::from(interface_id(radio).0);
    Ipv6Addr::from_bits(0xfe80 << 112 | number)
}
