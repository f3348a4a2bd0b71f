//! The plan for one path of the stack.

/// One path of the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathPlan {
    pub number: u8,
    /// The name shown to users: that of the uplink, or else of the device.
    pub name: String,
    /// The TUN device.
    pub device: String,
    /// MTU in bytes of IP.
    pub mtu: u16,
    /// The path has IPv6.
    pub ipv6: bool,
    /// For IPv4 and IPv6: the host did not forward packets from the uplink before. Only ours are forwarded then.
    pub closed: [bool; 2],
}
