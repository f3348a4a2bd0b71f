//! Configuration of a channel: timing, rates, reach, and the defaults of IEEE 802.11b.

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
    /// 96 us; frames at 1 Mbit/s still have the long one.
    Short,
}

/// The rate of CTS and ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AnswerRate {
    /// The basic rate, or the data rate if that is lower: what the standard requires of a cell whose basic rates are
    /// the old ones (IEEE 802.11-2016, 10.7.6.5).
    #[default]
    Basic,
    /// An ACK uses the rate of its data frame, as if all rates were basic ones.
    Data,
}

/// Behaviour of a station that found the channel idle, so that it needed no back-off, and sees it become busy within
/// DIFS; for example because a packet to forward is queued before the ACK for it has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Interrupted {
    /// It draws a back-off (IEEE 802.11-2016, 10.3.4.2: the channel must stay idle for DIFS, otherwise there is one).
    #[default]
    BacksOff,
    /// It sends without back-off one DIFS after the channel is idle again, as ns-3.37 does.
    Waits,
}

/// Settings of a channel. The default is 802.11b at 11 Mbit/s with a basic rate of 1 Mbit/s (IEEE 802.11-2016, tables
/// 15-6 and 16-4), disks of 150 m, no RTS and no capture.
#[derive(Clone, PartialEq, Debug)]
pub struct MediumConfig {
    pub slot: Duration,
    /// SIFS. DIFS is this and two slots.
    pub short_interframe_space: Duration,
    /// Whether an erroneous frame causes EIFS (IEEE 802.11-2016, 10.3.2.3.7) instead of DIFS.
    pub extended_interframe_space: bool,
    pub preamble: Preamble,
    /// Rate of unicast data.
    pub data_rate: Rate,
    /// Rate of broadcast data, RTS and CTS.
    pub basic_rate: Rate,
    /// Rate of ACK.
    pub acknowledgment_rate: AnswerRate,
    /// Whether a station interrupted in DIFS draws a back-off.
    pub interrupted: Interrupted,
    /// The first back-off of a frame is drawn from 0 to this.
    pub contention_window_min: u32,
    /// Greatest upper bound of back-offs.
    pub contention_window_max: u32,
    /// Attempts of an RTS, or of a frame without RTS.
    pub short_retry_limit: u32,
    /// Attempts of a frame with RTS.
    pub long_retry_limit: u32,
    /// Unicast frames of more bytes (MAC header and FCS included) use RTS and CTS.
    pub rts_threshold: u32,
    /// Queue limit of a station, the frame in transmission included; further packets are refused.
    pub queue_frames: usize,
    /// A packet that has been queued for longer is dropped instead of sent (dot11MaxTransmitMSDULifetime).
    pub lifetime: Option<Duration>,
    /// Which stations reach which others.
    pub reach: Reach,
    /// The fate of overlapping frames.
    pub overlap: Overlap,
    /// Power consumption.
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
    /// The default as in ns-3.37: ACK at the data rate, no back-off after an interruption in DIFS, slow frames that
    /// survive others, seven attempts also with RTS, queues of 500 packets and 500 ms.
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
