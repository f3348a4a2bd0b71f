//! Counters of a device.

use core::ops::AddAssign;

/// Totals.
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

impl AddAssign for DeviceCounters {
    fn add_assign(&mut self, other: Self) {
        let Self { packets_sent, bytes_sent, writes, packets_received, bytes_received, malformed, not_taken } = other;
        self.packets_sent += packets_sent;
        self.bytes_sent += bytes_sent;
        self.writes += writes;
        self.packets_received += packets_received;
        self.bytes_received += bytes_received;
        self.malformed += malformed;
        self.not_taken += not_taken;
    }
}
