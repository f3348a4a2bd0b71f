//! Settings of a new TUN device.

/// Packets of the kernel's that may wait to be read from a TUN device. The usual 500 run over when thousands of connections
/// answer at once.
pub(super) const TUN_QUEUE: u32 = 4_096;

/// What to ask of a new TUN device.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Largest packet, bytes of IP.
    pub mtu: u16,
    /// Let the kernel finish checksums and cut long packets, and take both from it so (IFF_VNET_HDR).
    pub offload: bool,
}

impl TunConfig {
    /// A device with offloads.
    pub fn new(name: impl Into<String>, mtu: u16) -> Self {
        Self { name: name.into(), mtu, offload: true }
    }
}
