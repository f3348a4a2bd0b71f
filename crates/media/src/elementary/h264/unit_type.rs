//! nal_unit_type (table 7-1).

pub(super) const SLICE: u8 = 1;
pub(super) const PARTITION_A: u8 = 2;
pub(super) const IDR: u8 = 5;
pub(super) const SEI: u8 = 6;
pub(super) const SEQUENCE: u8 = 7;
pub(super) const PICTURE: u8 = 8;
pub(super) const DELIMITER: u8 = 9;
pub(super) const FIRST_RESERVED: u8 = 14;
pub(super) const LAST_RESERVED: u8 = 18;
