//! Bits of fields.

/// The bit if it is set, else 0.
pub(super) const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}
