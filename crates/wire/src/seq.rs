//! TCP sequence numbers: 32 bits that wrap (RFC 9293, section 3.4).

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence number. Comparison is circular: `a` is before `b` if `b - a` is less than 2^31.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// How far `self` is ahead of `earlier`; negative if behind.
    pub const fn distance(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }
    /// Whether it comes before `other`.
    pub const fn before(self, other: Self) -> bool {
        self.distance(other) < 0
    }
    /// Whether it comes after `other`.
    pub const fn after(self, other: Self) -> bool {
        self.distance(other) > 0
    }
    /// Whether it equals `other` or comes after.
    pub const fn at_or_after(self, other: Self) -> bool {
        self.distance(other) >= 0
    }
    /// Whether it equals `other` or comes before.
    pub const fn at_or_before(self, other: Self) -> bool {
        self.distance(other) <= 0
    }
    /// The later of the two.
    pub const fn max(self, other: Self) -> Self {
        if self.after(other) { self } else { other }
    }
    /// The earlier of the two.
    pub const fn min(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }
    /// Circular order, for sorting numbers within 2^31 of each other.
    pub fn compare(self, other: Self) -> Ordering {
        self.distance(other).cmp(&0)
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;
    fn add(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }
}
impl AddAssign<u32> for SeqNumber {
    fn add_assign(&mut self, count: u32) {
        *self = *self + count;
    }
}
impl Sub<u32> for SeqNumber {
    type Output = Self;
    fn sub(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count))
    }
}
impl Sub for SeqNumber {
    type Output = u32;
    /// Bytes from `earlier` to `self`, modulo 2^32.
    fn sub(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}
impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_distance_go_on_across_the_wrap() {
        let (before, after) = (SeqNumber(u32::MAX - 1), SeqNumber(3));
        assert_eq!(before + 5, after);
        assert_eq!(after - 5, before);
        assert_eq!(after - before, 5);
        assert_eq!(before.distance(after), -5);
        assert!(before.before(after) && after.after(before));
        assert_eq!((before.max(after), before.min(after)), (after, before));
        assert_eq!(before.compare(after), Ordering::Less);
    }

    #[test]
    fn what_is_added_in_place_wraps_too() {
        let mut number = SeqNumber(u32::MAX);
        number += 2;
        assert_eq!((number, format!("{number:?}")), (SeqNumber(1), "1".to_owned()));
    }

    #[test]
    fn a_number_is_neither_before_nor_after_itself() {
        let number = SeqNumber(7);
        assert!(!number.before(number) && !number.after(number));
        assert!(number.at_or_before(number) && number.at_or_after(number));
    }
}
