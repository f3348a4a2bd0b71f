//! Settings of a new TUN device.

/// Limit of packets that wait to be read from a TUN device. The default of 500 overflows when thousands of connections
/// answer at once.
pub(super) const TUN_QUEUE: u32 = 4_096;

/// Settings of a new TUN device.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// At most 15 bytes.
    pub name: String,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Let the kernel complete checksums and segment long packets, in both directions (IFF_VNET_HDR).
    pub offload: bool,
}

impl TunConfig {
    /// A device with offloads.
    pub fn new(name: impl Into<String>, mtu: u16) -> Self {
        Self { name: name.into(), mtu, offload: true }
    }
}
