//! What is inside a sealed datagram: when it was sent, and what it is.

use super::reading::{Reading, write_socket_address};
use crate::datagram::{Datagram, Kind};
use anabranch_policy::datagram::MAX_PATHS;
use core::net::SocketAddr;

const DATA: u8 = 0;
const PROBE: u8 = 1;
const PROBE_ANSWER: u8 = 2;
const REPORT: u8 = 3;
const CLOSE: u8 = 4;

/// Flags of data: kind in the lowest two bits.
const KIND: u8 = 0b0000_0011;
const INSIDE_IPV6: u8 = 0b0000_0100;
const OUTSIDE_IPV6: u8 = 0b0000_1000;
const COPIES: u8 = 0b0001_0000;
const UNUSED: u8 = 0b1110_0000;

/// A datagram of a program. Its payload is what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// What it is.
    pub kind: Kind,
    /// The program's address.
    pub inside: SocketAddr,
    /// The peer's.
    pub outside: SocketAddr,
    /// Its number among all of this end, modulo 2^32.
    pub sequence: u32,
    /// Whether there are copies of it on other paths.
    pub copies: bool,
    /// How many milliseconds it may be held back while one sent before it is missing.
    pub hold: u8,
}

/// What an end has received on a path since the session began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathCount {
    /// The path.
    pub path: u8,
    /// The highest counter.
    pub highest: u64,
    /// How many datagrams.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The receiver's clock when that with the highest counter came, less the sender's when it went, in microseconds modulo 2^32.
    pub delay: u32,
    /// The least such difference since the report before.
    pub least_delay: u32,
    /// The smoothed variation of it, in microseconds.
    pub variation: u32,
}

/// What an end tells of the paths.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// The paths over which the peer answers, as bits. The server's own is not used.
    pub usable: u32,
    /// What came on each path.
    pub counts: Vec<PathCount>,
}

/// What is inside a sealed datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// A program's datagram and its payload.
    Data(Data, &'a [u8]),
    /// To be answered on the same path at once.
    Probe(Told),
    /// With the time of the probe.
    Answer(u32, Told),
    /// What came.
    Report(Told),
    /// The other end is gone.
    Close,
}

/// Reads when it was sent (microseconds of the sender's clock, modulo 2^32) and what it is.
pub fn read_message(plain: &[u8]) -> Option<(u32, Message<'_>)> {
    let mut reading = Reading(plain);
    let stamp = reading.word4()?;
    let message = match reading.byte()? {
        DATA => {
            let data = read_data(&mut reading)?;
            Message::Data(data, reading.0)
        }
        PROBE => Message::Probe(read_told(&mut reading)?),
        PROBE_ANSWER => Message::Answer(reading.word4()?, read_told(&mut reading)?),
        REPORT => Message::Report(read_told(&mut reading)?),
        CLOSE => Message::Close,
        _ => return None,
    };
    Some((stamp, message))
}

fn read_data(reading: &mut Reading<'_>) -> Option<Data> {
    let flags = reading.byte().filter(|flags| flags & UNUSED == 0)?;
    let kind = match flags & KIND {
        0 => Kind::Udp,
        1 => Kind::Echo,
        2 => Kind::Dns,
        _ => return None,
    };
    let hold = reading.byte()?;
    let sequence = reading.word4()?;
    let inside = reading.socket_address(flags & INSIDE_IPV6 != 0)?;
    let outside = reading.socket_address(flags & OUTSIDE_IPV6 != 0)?;
    Some(Data { kind, inside, outside, sequence, copies: flags & COPIES != 0, hold })
}

fn read_told(reading: &mut Reading<'_>) -> Option<Told> {
    let usable = reading.word4()?;
    let count = usize::from(reading.byte()?);
    if count > MAX_PATHS {
        return None;
    }
    let mut counts = Vec::with_capacity(count);
    for _ in 0..count {
        counts.push(PathCount {
            path: reading.byte().filter(|path| usize::from(*path) < MAX_PATHS)?,
            highest: reading.word8()?,
            datagrams: reading.word8()?,
            bytes: reading.word8()?,
            delay: reading.word4()?,
            least_delay: reading.word4()?,
            variation: reading.word4()?,
        });
    }
    Some(Told { usable, counts })
}

/// Writes a program's datagram.
pub fn write_data(stamp: u32, datagram: &Datagram, sequence: u32, copies: bool, hold: u8, out: &mut Vec<u8>) {
    let kind = match datagram.kind {
        Kind::Udp => 0,
        Kind::Echo => 1,
        Kind::Dns => 2,
    };
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = kind
        | flag(datagram.inside.is_ipv6(), INSIDE_IPV6)
        | flag(datagram.outside.is_ipv6(), OUTSIDE_IPV6)
        | flag(copies, COPIES);
    out.extend(stamp.to_be_bytes());
    out.extend([DATA, flags, hold]);
    out.extend(sequence.to_be_bytes());
    write_socket_address(datagram.inside, out);
    write_socket_address(datagram.outside, out);
    out.extend_from_slice(&datagram.payload);
}

/// Writes anything but a program's datagram, which [`write_data`] does.
pub fn write_message(stamp: u32, message: &Message<'_>, out: &mut Vec<u8>) {
    out.extend(stamp.to_be_bytes());
    match message {
        Message::Probe(told) => write_told(PROBE, None, told, out),
        Message::Answer(echo, told) => write_told(PROBE_ANSWER, Some(*echo), told, out),
        Message::Report(told) => write_told(REPORT, None, told, out),
        Message::Close | Message::Data(..) => out.push(CLOSE),
    }
}

fn write_told(kind: u8, echo: Option<u32>, told: &Told, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(echo.into_iter().flat_map(u32::to_be_bytes));
    out.extend(told.usable.to_be_bytes());
    let counts = told.counts.get(..told.counts.len().min(MAX_PATHS)).unwrap_or_default();
    out.push(counts.len() as u8);
    for count in counts {
        out.push(count.path);
        out.extend(count.highest.to_be_bytes());
        out.extend(count.datagrams.to_be_bytes());
        out.extend(count.bytes.to_be_bytes());
        out.extend(count.delay.to_be_bytes());
        out.extend(count.least_delay.to_be_bytes());
        out.extend(count.variation.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{INSIDE_MTU, LARGEST_PAYLOAD};
    use crate::format::{HEADER, TAG};
    use bytes::Bytes;

    fn datagram(inside: &str, outside: &str, payload: usize) -> Datagram {
        let address = |text: &str| text.parse().expect("an address");
        let payload = Bytes::from(vec![5; payload]);
        Datagram { kind: Kind::Udp, inside: address(inside), outside: address(outside), payload }
    }

    #[test]
    fn data_reads_as_it_was_written() {
        for (kind, inside, outside) in [
            (Kind::Udp, "10.0.0.1:7", "192.0.2.1:53"),
            (Kind::Echo, "[fd00::1]:0", "[2001:db8::1]:0"),
            (Kind::Dns, "[fd00::1]:9", "192.0.2.1:53"),
        ] {
            let datagram = Datagram { kind, ..datagram(inside, outside, 3) };
            for (copies, hold) in [(false, 0), (true, 20)] {
                let mut bytes = Vec::new();
                write_data(77, &datagram, 0x0102_0304, copies, hold, &mut bytes);
                let Datagram { kind, inside, outside, .. } = datagram;
                let data = Data { kind, inside, outside, sequence: 0x0102_0304, copies, hold };
                assert_eq!(read_message(&bytes), Some((77, Message::Data(data, &[5, 5, 5]))));
            }
        }
    }

    #[test]
    fn what_is_told_of_paths_reads_as_it_was_written() {
        let count = PathCount {
            path: 31,
            highest: u64::MAX,
            datagrams: 2,
            bytes: 3,
            delay: 4,
            least_delay: u32::MAX,
            variation: 6,
        };
        let told = Told { usable: 5, counts: vec![count; 2] };
        let messages = [
            Message::Probe(told.clone()),
            Message::Answer(99, told.clone()),
            Message::Report(Told { usable: 0, counts: Vec::new() }),
            Message::Close,
        ];
        for message in messages {
            let mut bytes = Vec::new();
            write_message(1, &message, &mut bytes);
            assert_eq!(read_message(&bytes), Some((1, message.clone())));
            // Cut anywhere it is nothing, but for a message that has nothing to be cut.
            for length in 0..bytes.len() {
                assert_eq!(read_message(&bytes[..length]), None, "{message:?} cut to {length}");
            }
        }
    }

    #[test]
    fn what_has_a_meaning_in_no_version_is_not_read() {
        let mut bytes = Vec::new();
        write_data(0, &datagram("10.0.0.1:7", "192.0.2.1:53", 0), 0, false, 0, &mut bytes);
        for flags in [3, 0x20, 0x40, 0x80] {
            let mut wrong = bytes.clone();
            wrong[5] = flags;
            assert_eq!(read_message(&wrong), None, "flags {flags:#x}");
        }
        bytes[4] = 5;
        assert_eq!(read_message(&bytes), None);
    }

    #[test]
    fn a_full_packet_fits_sealed_into_1480_bytes() {
        // UDP over IPv6 inside, and IPv6 outside.
        let mut bytes = Vec::new();
        let payload = usize::from(INSIDE_MTU) - 40 - 8;
        write_data(0, &datagram("[fd00::1]:9", "[2001:db8::1]:53", payload), 0, false, 0, &mut bytes);
        assert_eq!(bytes.len() + HEADER + TAG + 40 + 8, 1_481);
        let mut bytes = Vec::new();
        write_data(0, &datagram("10.0.0.1:9", "192.0.2.1:53", LARGEST_PAYLOAD), 0, false, 0, &mut bytes);
        assert_eq!(bytes.len() + HEADER + TAG + 40 + 8, 1_477);
    }
}
