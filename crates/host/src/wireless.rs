//! What the drivers of wireless interfaces know of their stations: NL80211_CMD_GET_STATION over generic netlink
//! (include/uapi/linux/nl80211.h).
//!
//! The parser reads six attributes and skips all others. `wl-nl80211` has them all, but brings an asynchronous netlink
//! client, and refuses a whole message for one attribute that it does not like.

use crate::netlink::Channel;
use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLM_F_ACK, NlaBuffer, NlasIterator, ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use nix::libc;
use std::io;

const GET_STATION: u8 = 17;
const NEW_STATION: u8 = 19;

/// Attributes of a message.
const IFINDEX: u16 = 3;
const MAC: u16 = 6;
const STATION_INFO: u16 = 21;

/// Attributes of NL80211_ATTR_STA_INFO.
const SIGNAL: u16 = 7;
const TX_BITRATE: u16 = 8;
const TX_PACKETS: u16 = 10;
const TX_RETRIES: u16 = 11;
const TX_FAILED: u16 = 12;
const SIGNAL_AVERAGE: u16 = 13;
const EXPECTED_THROUGHPUT: u16 = 27;

/// Attributes of a rate, in 100 kbit/s: of two bytes, and of four where those are too few.
const BITRATE: u16 = 1;
const BITRATE_32: u16 = 5;

/// A station that an interface sends to, as its driver sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Station {
    pub mac: [u8; 6],
    /// In dBm: the average, or that of the last frame if the driver has no average.
    pub signal: Option<i8>,
    /// The present rate of unicast frames in kbit/s.
    pub rate: Option<u32>,
    /// Throughput in kbit/s that the rate control expects, with its losses.
    pub expected_throughput: Option<u32>,
    /// Frames sent, retries, and frames dropped after the last retry, since the station is known. They wrap.
    pub sent: u32,
    pub retries: u32,
    pub failed: u32,
}

/// A socket for questions about stations, in the namespace of the thread that opened it.
pub struct Wireless {
    channel: Channel,
    family: u16,
}

impl Wireless {
    /// None if the kernel has no nl80211, or no generic netlink.
    pub fn open() -> io::Result<Option<Self>> {
        let mut channel = match Channel::generic() {
            Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => return Ok(None),
            opened => opened?,
        };
        let name = GenlCtrlAttrs::FamilyName("nl80211".to_owned());
        let question = GenlMessage::from_payload(GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas: vec![name] });
        let answers = match channel.exchange(question, NLM_F_ACK) {
            Ok((answers, _)) => answers,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
            Err(error) => return Err(error),
        };
        let family = answers.iter().flat_map(|answer| &answer.payload.nlas).find_map(|attribute| match attribute {
            GenlCtrlAttrs::FamilyId(family) => Some(*family),
            _ => None,
        });
        Ok(family.map(|family| Self { channel, family }))
    }

    /// The stations of an interface; none if it is not wireless.
    pub fn stations(&mut self, interface: u32) -> io::Result<Vec<Station>> {
        let mut question = GenlMessage::from_payload(Message::Question { interface });
        question.set_resolved_family_id(self.family);
        match self.channel.list(&question) {
            Ok(answers) => Ok(answers.into_iter().filter_map(|answer| answer.payload.station()).collect()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// A message of nl80211.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Message {
    Question { interface: u32 },
    Station(Station),
    Other,
}

impl Message {
    fn station(self) -> Option<Station> {
        if let Self::Station(station) = self { Some(station) } else { None }
    }

    fn attribute(&self) -> Option<DefaultNla> {
        let Self::Question { interface } = self else { return None };
        Some(DefaultNla::new(IFINDEX, interface.to_ne_bytes().to_vec()))
    }
}

impl GenlFamily for Message {
    fn family_name() -> &'static str {
        "nl80211"
    }

    fn command(&self) -> u8 {
        if matches!(self, Self::Question { .. }) { GET_STATION } else { NEW_STATION }
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.attribute().map_or(0, |attribute| attribute.buffer_len())
    }

    fn emit(&self, buffer: &mut [u8]) {
        if let Some(attribute) = self.attribute() {
            attribute.emit(buffer);
        }
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Message {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        if header.cmd != NEW_STATION {
            return Ok(Self::Other);
        }
        let mut station = Station::default();
        for attribute in attributes(bytes) {
            match attribute.kind() {
                MAC => station.mac = attribute.value().try_into().unwrap_or_default(),
                STATION_INFO => station.read(attribute.value()),
                _ => {}
            }
        }
        Ok(Self::Station(station))
    }
}

impl Station {
    fn read(&mut self, info: &[u8]) {
        let mut last = None;
        for attribute in attributes(info) {
            let value = attribute.value();
            let number = || value.first_chunk().copied().map(u32::from_ne_bytes);
            let signal = || value.first().map(|byte| byte.cast_signed());
            match attribute.kind() {
                SIGNAL => last = signal(),
                SIGNAL_AVERAGE => self.signal = signal(),
                TX_BITRATE => self.rate = rate(value),
                TX_PACKETS => self.sent = number().unwrap_or_default(),
                TX_RETRIES => self.retries = number().unwrap_or_default(),
                TX_FAILED => self.failed = number().unwrap_or_default(),
                EXPECTED_THROUGHPUT => self.expected_throughput = number(),
                _ => {}
            }
        }
        self.signal = self.signal.or(last);
    }
}

/// A rate in kbit/s.
fn rate(info: &[u8]) -> Option<u32> {
    let number = |attribute: NlaBuffer<&[u8]>| match (attribute.kind(), attribute.value()) {
        (BITRATE, &[a, b]) => Some(u16::from_ne_bytes([a, b]).into()),
        (BITRATE_32, &[a, b, c, d]) => Some(u32::from_ne_bytes([a, b, c, d])),
        _ => None,
    };
    attributes(info).filter_map(number).max().filter(|rate| *rate > 0).map(|rate| rate.saturating_mul(100))
}

/// The attributes up to the first that is damaged.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = NlaBuffer<&[u8]>> {
    NlasIterator::new(bytes).map_while(Result::ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::messages;
    use netlink_packet_core::NetlinkPayload;
    use proptest::prelude::*;
    use std::borrow::Cow;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let attribute = DefaultNla::new(kind, value.to_vec());
        let mut bytes = vec![0; attribute.buffer_len()];
        attribute.emit(&mut bytes);
        bytes
    }

    /// A message of a dump: `struct nlmsghdr`, `struct genlmsghdr`, attributes.
    fn message(command: u8, attributes: &[u8]) -> Vec<u8> {
        let length = 20 + attributes.len() as u32;
        let header = [length.to_ne_bytes(), [28, 0, 2, 0], 7_u32.to_ne_bytes(), [0; 4], [command, 1, 0, 0]];
        [header.concat().as_slice(), attributes].concat()
    }

    fn stations(datagram: &[u8]) -> Vec<Station> {
        let payload = |message: netlink_packet_core::NetlinkMessage<GenlMessage<Message>>| match message.payload {
            NetlinkPayload::InnerMessage(message) => message.payload.station(),
            _ => None,
        };
        messages(datagram, |message| Cow::Borrowed(message)).filter_map(payload).collect()
    }

    /// As `iw station dump` shows it of a card with 802.11n: -57 [-60, -59] dBm, average -58, 65.0 MBit/s MCS 7.
    fn recorded() -> Vec<u8> {
        let rate = [
            attribute(BITRATE_32, &650_u32.to_ne_bytes()),
            attribute(BITRATE, &650_u16.to_ne_bytes()),
            attribute(2, &[7]),
        ]
        .concat();
        let info = [
            attribute(1, &10_u32.to_ne_bytes()),
            attribute(SIGNAL, &[-57_i8 as u8]),
            attribute(SIGNAL_AVERAGE, &[-58_i8 as u8]),
            attribute(0x8000 | 25, &[attribute(0, &[196]), attribute(1, &[197])].concat()),
            attribute(0x8000 | TX_BITRATE, &rate),
            attribute(TX_PACKETS, &1000_u32.to_ne_bytes()),
            attribute(TX_RETRIES, &120_u32.to_ne_bytes()),
            attribute(TX_FAILED, &3_u32.to_ne_bytes()),
            attribute(EXPECTED_THROUGHPUT, &32_000_u32.to_ne_bytes()),
            attribute(200, b"of a kernel to come"),
        ];
        let attributes = [
            attribute(IFINDEX, &5_u32.to_ne_bytes()),
            attribute(MAC, &[2, 0, 0, 0, 0, 9]),
            attribute(46, &1_u32.to_ne_bytes()),
            attribute(0x8000 | STATION_INFO, &info.concat()),
        ];
        message(NEW_STATION, &attributes.concat())
    }

    #[test]
    fn a_dump_tells_each_stations_signal_rate_and_losses() {
        let station = Station {
            mac: [2, 0, 0, 0, 0, 9],
            signal: Some(-58),
            rate: Some(65_000),
            expected_throughput: Some(32_000),
            sent: 1000,
            retries: 120,
            failed: 3,
        };
        let bare = message(NEW_STATION, &attribute(MAC, &[2, 0, 0, 0, 0, 10]));
        let unknown = Station { mac: [2, 0, 0, 0, 0, 10], ..Station::default() };
        let other = message(20, &attribute(MAC, &[2, 0, 0, 0, 0, 11]));
        assert_eq!(stations(&[recorded(), other, bare].concat()), [station, unknown]);
    }

    #[test]
    fn the_question_names_the_interface() {
        let question = Message::Question { interface: 5 };
        let mut bytes = vec![0; question.buffer_len()];
        question.emit(&mut bytes);
        assert_eq!((question.command(), bytes), (17, attribute(IFINDEX, &5_u32.to_ne_bytes())));
    }

    #[test]
    fn an_interface_that_is_not_wireless_has_no_stations() {
        // A kernel without nl80211 has no such family, and one with it no stations of the loopback.
        if let Some(mut wireless) = Wireless::open().unwrap() {
            assert_eq!(wireless.stations(1).unwrap(), []);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(at in 0..400_usize, byte: u8, cut in 0..400_usize) {
            let mut bytes = recorded();
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(cut.max(16).min(length));
            let _ = stations(&bytes);
        }
    }
}
