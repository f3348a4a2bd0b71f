//! Notices between two Anabranch ends about withdrawn data: MP_EXPERIMENTAL (RFC 8684, section 7.2) with our
//! identifier. Other implementations ignore it (section 3).
//!
//! ```text
//! flags 0  hello       1 byte: bit 0, yours was heard; bit 1, tell me what is missing
//! flags 1  abandoned   data sequence (32), length (32), total of bytes abandoned (32), reason (8), the path of the largest
//!                      forward delay: the sender's address and the peer's (8 each), its delay less the least (16, ms)
//! flags 2  withdrawn   data sequence (32), length (32)
//! flags 3  missing     the subflow: the sender's address and the peer's (8 each); sequence number on it, counted from the
//!                      initial one (32), length (32)
//! ```
//!
//! Data sequence numbers are the lower 32 bits of those on the wire; totals wrap. Without a path both addresses are
//! 255.

use super::MptcpOption;
use crate::reader::Reader;

/// Identifier of this experiment.
pub const EXPERIMENT: u16 = 0xab4e;

const HELLO: u8 = 0;
const ABANDONED: u8 = 1;
const WITHDRAWN: u8 = 2;
const MISSING: u8 = 3;
/// Bits of a hello.
const HEARD: u8 = 1;
const REPAIRS: u8 = 2;
/// Address identifier for no address.
const NO_ADDRESS: u8 = 255;

/// The path with the longest forward delay, by the address identifiers of both ends, relative to the shortest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorstPath {
    /// Identifier of the address of the notice's sender.
    pub local_address: u8,
    /// Identifier of the receiver's address.
    pub remote_address: u8,
    /// Milliseconds above the least delay.
    pub behind: u16,
}

/// A notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The sender supports notices.
    Hello {
        /// It has received the other end's hello.
        heard: bool,
        /// The sender wants reports of missing segments on a subflow ([`Self::Missing`]), to reinject them on another.
        repairs: bool,
    },
    /// The receiver abandoned data, and has acknowledged it.
    Abandoned {
        /// The first byte.
        data_seq: u32,
        /// Bytes.
        length: u32,
        /// All bytes abandoned so far, modulo 2^32.
        total: u32,
        /// Index of the reason.
        reason: u8,
        /// The path of the greatest forward delay, if delays are measured.
        worst: Option<WorstPath>,
    },
    /// The sender will not send data, or not again.
    Withdrawn {
        /// The first byte.
        data_seq: u32,
        /// Bytes.
        length: u32,
    },
    /// The receiver misses a segment on a subflow: later segments have arrived there.
    Missing {
        /// Identifier of the address of the notice's sender.
        local_address: u8,
        /// Identifier of the receiver's address.
        remote_address: u8,
        /// Sequence number of the first byte on the subflow, relative to the initial one as in a mapping (RFC 8684,
        /// section 3.3.1), which is not affected by middleboxes that change sequence numbers.
        subflow_seq: u32,
        /// Bytes.
        length: u32,
    },
}

impl Notice {
    /// As an option.
    pub fn option(&self) -> MptcpOption {
        let mut data = Vec::with_capacity(17);
        let flags = match *self {
            Self::Hello { heard, repairs } => {
                data.push((u8::from(heard) * HEARD) | (u8::from(repairs) * REPAIRS));
                HELLO
            }
            Self::Abandoned { data_seq, length, total, reason, worst } => {
                for number in [data_seq, length, total] {
                    data.extend_from_slice(&number.to_be_bytes());
                }
                let none = WorstPath { local_address: NO_ADDRESS, remote_address: NO_ADDRESS, behind: 0 };
                let worst = worst.unwrap_or(none);
                data.extend_from_slice(&[reason, worst.local_address, worst.remote_address]);
                data.extend_from_slice(&worst.behind.to_be_bytes());
                ABANDONED
            }
            Self::Withdrawn { data_seq, length } => {
                for number in [data_seq, length] {
                    data.extend_from_slice(&number.to_be_bytes());
                }
                WITHDRAWN
            }
            Self::Missing { local_address, remote_address, subflow_seq, length } => {
                data.extend_from_slice(&[local_address, remote_address]);
                for number in [subflow_seq, length] {
                    data.extend_from_slice(&number.to_be_bytes());
                }
                MISSING
            }
        };
        MptcpOption::Experimental { flags, experiment: EXPERIMENT, data }
    }

    /// Parses an option as a notice; `None` for other experiments, and for malformed ones. Bytes after a notice are
    /// ignored.
    pub fn of(option: &MptcpOption) -> Option<Self> {
        let MptcpOption::Experimental { flags, experiment: EXPERIMENT, data } = option else { return None };
        let mut reader = Reader(data);
        match *flags {
            HELLO => {
                let bits = reader.u8()?;
                Some(Self::Hello { heard: bits & HEARD != 0, repairs: bits & REPAIRS != 0 })
            }
            ABANDONED => Self::abandoned(&mut reader),
            WITHDRAWN => Some(Self::Withdrawn { data_seq: reader.u32()?, length: reader.u32()? }),
            MISSING => {
                let (local_address, remote_address) = (reader.u8()?, reader.u8()?);
                let (subflow_seq, length) = (reader.u32()?, reader.u32()?);
                Some(Self::Missing { local_address, remote_address, subflow_seq, length })
            }
            _ => None,
        }
    }

    fn abandoned(reader: &mut Reader<'_>) -> Option<Self> {
        let (data_seq, length, total) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let (reason, local_address, remote_address) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let path = WorstPath { local_address, remote_address, behind: reader.u16()? };
        let worst = (local_address != NO_ADDRESS || remote_address != NO_ADDRESS).then_some(path);
        Some(Self::Abandoned { data_seq, length, total, reason, worst })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_notice_fits_beside_timestamps() {
        let worst = Some(WorstPath { local_address: 1, remote_address: 2, behind: 300 });
        let notice = Notice::Abandoned { data_seq: 1, length: 2, total: 3, reason: 0, worst };
        assert_eq!(notice.option().encoded_len(), 24);
        // It fits next to a long DATA_ACK (12).
        assert_eq!(Notice::Withdrawn { data_seq: 1, length: 2 }.option().encoded_len() + 12 + 12, 40);
        let missing = Notice::Missing { local_address: 1, remote_address: 2, subflow_seq: 3, length: 4 };
        assert_eq!(missing.option().encoded_len() + 12 + 12, 40);
    }

    #[test]
    fn other_experiments_and_what_is_cut_off_are_no_notices() {
        let notice = Notice::Withdrawn { data_seq: 1, length: 2 };
        let MptcpOption::Experimental { flags, experiment, data } = notice.option() else { panic!() };
        let other = MptcpOption::Experimental { flags, experiment: experiment + 1, data: data.clone() };
        assert_eq!(Notice::of(&other), None);
        for length in 0..data.len() {
            let cut = MptcpOption::Experimental { flags, experiment, data: data[..length].to_vec() };
            assert_eq!(Notice::of(&cut), None);
        }
        assert_eq!(Notice::of(&MptcpOption::Experimental { flags: 4, experiment, data }), None);
    }

    fn notice() -> impl Strategy<Value = Notice> {
        let path = (0_u8..255, any::<u8>(), any::<u16>())
            .prop_map(|(local_address, remote_address, behind)| WorstPath { local_address, remote_address, behind });
        prop_oneof![
            any::<[bool; 2]>().prop_map(|[heard, repairs]| Notice::Hello { heard, repairs }),
            (any::<[u32; 3]>(), any::<u8>(), prop::option::of(path)).prop_map(
                |([data_seq, length, total], reason, worst)| Notice::Abandoned {
                    data_seq,
                    length,
                    total,
                    reason,
                    worst
                }
            ),
            any::<[u32; 2]>().prop_map(|[data_seq, length]| Notice::Withdrawn { data_seq, length }),
            (any::<[u8; 2]>(), any::<[u32; 2]>()).prop_map(
                |([local_address, remote_address], [subflow_seq, length])| Notice::Missing {
                    local_address,
                    remote_address,
                    subflow_seq,
                    length
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn a_notice_comes_back_as_it_went(notice in notice()) {
            prop_assert_eq!(Notice::of(&notice.option()), Some(notice));
        }

        #[test]
        fn any_data_is_a_notice_or_none(flags in 0_u8..16, data in prop::collection::vec(any::<u8>(), 0..30)) {
            let option = MptcpOption::Experimental { flags, experiment: EXPERIMENT, data };
            if let Some(notice) = Notice::of(&option) {
                prop_assert_eq!(Notice::of(&notice.option()), Some(notice));
            }
        }
    }
}
