//! Bits of fields.

/// A bit that says something, or not.
pub(super) const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}
