//! How long frames and the gaps between them take (IEEE 802.11-2016, clauses 15 and 16).

use super::config::{AnswerRate, Interrupted, MediumConfig, Preamble};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;

/// What is sent beside a packet: LLC and SNAP 8 bytes, MAC header 24, frame check sequence 4.
pub(crate) const DATA_OVERHEAD: u32 = 36;
/// Bytes of an RTS frame.
pub(crate) const RTS_BYTES: u32 = 20;
/// Bytes of a CTS or an ACK frame.
pub(crate) const ANSWER_BYTES: u32 = 14;

/// The time that a frame of so many bytes, MAC header and frame check sequence included, is on the air. The part behind
/// the preamble is rounded up to whole microseconds (16.3.4), since the header has it so.
pub(crate) fn airtime(bytes: u32, rate: Rate, preamble: Preamble) -> Duration {
    let slow = rate.bits_per_second() <= 1_000_000;
    let preamble = if preamble == Preamble::Long || slow { 192 } else { 96 };
    let bits_and_micros = u64::from(bytes) * 8 * 1_000_000;
    Duration::from_micros(preamble + bits_and_micros.div_ceil(rate.bits_per_second().max(1)))
}

/// The times that follow from a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// A slot.
    pub slot: Duration,
    /// Between the frames of an exchange.
    pub short_space: Duration,
    /// Before the back-off: SIFS and two slots.
    pub distributed_space: Duration,
    /// Before the back-off, behind an erroneous frame: SIFS, an ACK at the lowest rate, DIFS.
    pub extended_space: Duration,
    /// An RTS.
    pub request: Duration,
    /// A CTS.
    pub clear: Duration,
    /// An ACK.
    pub acknowledgment: Duration,
    /// How long the first sign of a CTS or an ACK is waited for: SIFS, a slot and the preamble (10.3.2.9).
    pub answer_timeout: Duration,
    /// After an RTS for others, when the reservation lapses if nothing has begun (10.3.2.4).
    pub reservation_lapse: Duration,
    /// What who is interrupted in DIFS does.
    pub interrupted: Interrupted,
    /// The rate of unicast data.
    pub data_rate: Rate,
    /// The rate of broadcast data, RTS and CTS.
    pub basic_rate: Rate,
    /// The rate of ACK.
    pub answer_rate: Rate,
    preamble: Preamble,
}

impl Times {
    /// The times of a configuration.
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
    /// The preamble and header of a frame at this rate.
    pub fn header(&self, rate: Rate) -> Duration {
        airtime(0, rate, self.preamble)
    }
    /// A data frame with a packet of so many bytes in it.
    pub fn data(&self, packet_bytes: u32, broadcast: bool) -> Duration {
        airtime(packet_bytes + DATA_OVERHEAD, if broadcast { self.basic_rate } else { self.data_rate }, self.preamble)
    }
}
