//! The control bits of a segment (RFC 9293, section 3.1; RFC 3168).

use core::ops::{BitOr, BitOrAssign};

/// The control bits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No bit.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
