//! What can be chosen about a channel: its timing, its rates, who reaches whom, and the defaults of IEEE 802.11b.

use super::energy::Power;
use super::overlap::Overlap;
use super::reach::Reach;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;

/// The preamble and header in front of each frame (IEEE 802.11-2016, 16.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preamble {
    /// 192 us, all at 1 Mbit/s.
    #[default]
    Long,
    /// 96 us; frames at 1 Mbit/s have the long one all the same.
    Short,
}

/// At which rate a receiver answers with CTS or ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AnswerRate {
    /// At the basic rate, or the data rate if that is lower: what the standard asks of a cell whose basic rates are the
    /// old ones (IEEE 802.11-2016, 10.7.6.5).
    #[default]
    Basic,
    /// An ACK has the rate of the data it answers, as if all rates were basic ones.
    Data,
}

/// What a station does that found the channel idle, so that it needed no back-off, and saw it become busy before DIFS had
/// passed; for example because a packet that it forwards reaches its queue before it has sent the ACK for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Interrupted {
    /// It draws a back-off (IEEE 802.11-2016, 10.3.4.2: the channel must stay idle for DIFS, otherwise there is one).
    #[default]
    BacksOff,
    /// It sends without back-off one DIFS after the channel is idle again, as ns-3.37 does.
    Waits,
}

/// What is the same for all stations of a channel. The default is 802.11b at 11 Mbit/s with a basic rate of 1 Mbit/s
/// (IEEE 802.11-2016, tables 15-6 and 16-4), disks of 150 m, no RTS and no capture.
#[derive(Clone, PartialEq, Debug)]
pub struct MediumConfig {
    /// A slot of the back-off.
    pub slot: Duration,
    /// The space between the frames of one exchange. DIFS is this and two slots.
    pub short_interframe_space: Duration,
    /// Whether an erroneous frame defers by EIFS (IEEE 802.11-2016, 10.3.2.3.7) or by DIFS as any other.
    pub extended_interframe_space: bool,
    /// The preamble of all frames.
    pub preamble: Preamble,
    /// Rate of unicast data.
    pub data_rate: Rate,
    /// Rate of broadcast data, RTS and CTS.
    pub basic_rate: Rate,
    /// Rate of ACK.
    pub acknowledgment_rate: AnswerRate,
    /// Whether who was interrupted in DIFS draws a back-off.
    pub interrupted: Interrupted,
    /// The back-off of a first attempt is drawn from 0 to this.
    pub contention_window_min: u32,
    /// The back-off is never drawn from more than this.
    pub contention_window_max: u32,
    /// How often a frame without RTS, or an RTS, is tried.
    pub short_retry_limit: u32,
    /// How often a frame that was preceded by RTS is tried.
    pub long_retry_limit: u32,
    /// Unicast frames of more bytes than this (MAC header and FCS included) are preceded by RTS and CTS.
    pub rts_threshold: u32,
    /// Most frames that wait at a station, the one being sent included; what comes on top is refused.
    pub queue_frames: usize,
    /// A packet that has waited for longer when its turn comes is dropped (dot11MaxTransmitMSDULifetime).
    pub lifetime: Option<Duration>,
    /// Who reaches whom.
    pub reach: Reach,
    /// What becomes of a frame that others overlap.
    pub overlap: Overlap,
    /// What the interface draws.
    pub power: Power,
}

impl Default for MediumConfig {
    fn default() -> Self {
        Self {
            slot: Duration::from_micros(20),
            short_interframe_space: Duration::from_micros(10),
            extended_interframe_space: true,
            preamble: Preamble::Long,
            data_rate: Rate::from_bits_per_second(11_000_000),
            basic_rate: Rate::from_bits_per_second(1_000_000),
            acknowledgment_rate: AnswerRate::Basic,
            interrupted: Interrupted::default(),
            contention_window_min: 31,
            contention_window_max: 1023,
            short_retry_limit: 7,
            long_retry_limit: 4,
            rts_threshold: u32::MAX,
            queue_frames: 100,
            lifetime: None,
            reach: Reach::disk(150.0),
            overlap: Overlap::default(),
            power: Power::default(),
        }
    }
}

impl MediumConfig {
    /// The default as ns-3.37 would have it: ACK at the data rate, no back-off for who was interrupted, slow frames that
    /// survive others, seven attempts also behind RTS, queues of 500 packets and 500 ms.
    pub fn as_in_ns3() -> Self {
        Self {
            acknowledgment_rate: AnswerRate::Data,
            interrupted: Interrupted::Waits,
            overlap: Overlap::Despreads,
            long_retry_limit: 7,
            queue_frames: 500,
            lifetime: Some(Duration::from_millis(500)),
            ..Self::default()
        }
    }
}
