//! Airtimes of frames and the gaps between them (IEEE 802.11-2016, clauses 15 and 16).

use super::config::{AnswerRate, Interrupted, MediumConfig, Preamble};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;

/// Overhead of a packet in bytes: LLC and SNAP 8, MAC header 24, frame check sequence 4.
pub(crate) const DATA_OVERHEAD: u32 = 36;
/// Bytes of an RTS frame.
pub(crate) const RTS_BYTES: u32 = 20;
/// Bytes of a CTS or an ACK frame.
pub(crate) const ANSWER_BYTES: u32 = 14;

/// The airtime of a frame of `bytes` bytes, MAC header and frame check sequence included. The part after the preamble
/// is rounded up to whole microseconds (16.3.4), as in the header's length field.
pub(crate) fn airtime(bytes: u32, rate: Rate, preamble: Preamble) -> Duration {
    let slow = rate.bits_per_second() <= 1_000_000;
    let preamble = if preamble == Preamble::Long || slow { 192 } else { 96 };
    let bits_and_micros = u64::from(bytes) * 8 * 1_000_000;
    Duration::from_micros(preamble + bits_and_micros.div_ceil(rate.bits_per_second().max(1)))
}

/// Durations derived from a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    pub slot: Duration,
    /// SIFS, between the frames of an exchange.
    pub short_space: Duration,
    /// DIFS, before the back-off: SIFS and two slots.
    pub distributed_space: Duration,
    /// EIFS, before the back-off after an erroneous frame: SIFS, an ACK at the lowest rate, DIFS.
    pub extended_space: Duration,
    /// Airtime of an RTS.
    pub request: Duration,
    /// Airtime of a CTS.
    pub clear: Duration,
    /// Airtime of an ACK.
    pub acknowledgment: Duration,
    /// How long to wait for the start of a CTS or an ACK: SIFS, a slot and the preamble (10.3.2.9).
    pub answer_timeout: Duration,
    /// When the reservation of an overheard RTS lapses if no frame has begun (10.3.2.4).
    pub reservation_lapse: Duration,
    /// Behaviour of a station interrupted in DIFS.
    pub interrupted: Interrupted,
    pub data_rate: Rate,
    pub basic_rate: Rate,
    pub answer_rate: Rate,
    preamble: Preamble,
}

impl Times {
    pub fn new(config: &MediumConfig) -> Self {
        let (slot, short_space, preamble) = (config.slot, config.short_interframe_space, config.preamble);
        let basic_rate = config.basic_rate;
        let answer_rate = match config.acknowledgment_rate {
            AnswerRate::Basic => basic_rate.min(config.data_rate),
            AnswerRate::Data => config.data_rate,
        };
        let lowest = Rate::from_bits_per_second(1_000_000);
        let distributed_space = short_space + slot * 2;
        let eifs = short_space + airtime(ANSWER_BYTES, lowest, Preamble::Long) + distributed_space;
        let clear = airtime(ANSWER_BYTES, basic_rate, preamble);
        let header = airtime(0, answer_rate.min(basic_rate), preamble);
        Self {
            slot,
            short_space,
            distributed_space,
            extended_space: if config.extended_interframe_space { eifs } else { distributed_space },
            request: airtime(RTS_BYTES, basic_rate, preamble),
            clear,
            acknowledgment: airtime(ANSWER_BYTES, answer_rate, preamble),
            answer_timeout: short_space + slot + header,
            reservation_lapse: short_space * 2 + clear + header + slot * 2,
            interrupted: config.interrupted,
            data_rate: config.data_rate,
            basic_rate,
            answer_rate,
            preamble,
        }
    }
    /// The airtime of preamble and header at this rate.
    pub fn header(&self, rate: Rate) -> Duration {
        airtime(0, rate, self.preamble)
    }
    /// The airtime of a data frame with a packet of `packet_bytes` bytes.
    pub fn data(&self, packet_bytes: u32, broadcast: bool) -> Duration {
        airtime(packet_bytes + DATA_OVERHEAD, if broadcast { self.basic_rate } else { self.data_rate }, self.preamble)
    }
}
