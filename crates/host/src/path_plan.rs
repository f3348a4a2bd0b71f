//! The plan of one path of the stack.

/// One path of the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathPlan {
    /// Its number.
    pub number: u8,
    /// What users call it: the uplink's name, or the device's own.
    pub name: String,
    /// The TUN device.
    pub device: String,
    /// Its largest packet, bytes of IP.
    pub mtu: u16,
    /// The stack speaks IPv6 on it.
    pub ipv6: bool,
    /// The host did not forward what came in by the uplink before us (IPv4, IPv6): nothing but what is ours is forwarded.
    pub closed: [bool; 2],
}
