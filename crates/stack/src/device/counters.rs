//! Counters of a device.

/// Totals since the device was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceCounters {
    /// Packets sent to the network.
    pub packets_sent: u64,
    /// Bytes of IP sent to the network.
    pub bytes_sent: u64,
    /// Writes that took them: fewer than packets with segmentation offload.
    pub writes: u64,
    /// Packets received and understood; a long one that the device did not cut counts once.
    pub packets_received: u64,
    /// Bytes of IP received.
    pub bytes_received: u64,
    /// Packets received that are neither IP with TCP nor a router's "packet too big", or are malformed.
    pub malformed: u64,
    /// Packets that the operating system did not take (its queue is full, the device is down, no memory): they are lost.
    pub not_taken: u64,
}
