//! Counters of a device.

/// Totals since the device was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceCounters {
    /// Packets sent to the network.
    pub packets_sent: u64,
    /// Bytes of IP sent.
    pub bytes_sent: u64,
    /// Write calls: fewer than packets with segmentation offload.
    pub writes: u64,
    /// Packets received and parsed; a merged one counts once.
    pub packets_received: u64,
    /// Bytes of IP received.
    pub bytes_received: u64,
    /// Packets received that are malformed, or neither TCP nor an ICMP error "packet too big".
    pub malformed: u64,
    /// Packets that the operating system refused (queue full, device down, no memory): they are lost.
    pub not_taken: u64,
}
