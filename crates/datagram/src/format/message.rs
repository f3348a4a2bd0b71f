//! The plaintext of a sealed datagram: its time stamp and message.

use super::lengths::{HEADER, TAG};
use super::reading::{Reading, write_address, write_socket_address};
use crate::datagram::{Kind, Reason, Unreachable};
use anabranch_policy::datagram::MAX_PATHS;
use core::net::SocketAddr;

const DATA: u8 = 0;
const PROBE: u8 = 1;
const PROBE_ANSWER: u8 = 2;
const REPORT: u8 = 3;
const CLOSE: u8 = 4;
const SIZE: u8 = 5;
const SIZE_ANSWER: u8 = 6;
const UNREACHABLE: u8 = 7;

/// Flags of data; the lowest two bits are the kind.
const KIND: u8 = 0b0000_0011;
const INSIDE_IPV6: u8 = 0b0000_0100;
const OUTSIDE_IPV6: u8 = 0b0000_1000;
const COPIES: u8 = 0b0001_0000;
const PIECE: u8 = 0b0010_0000;
const UNUSED: u8 = 0b1100_0000;

/// The position of a piece of a datagram. The sequence number minus the index is the same in all pieces of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The index, from 0.
    pub index: u8,
    /// The number of pieces, at least two.
    pub count: u8,
}

/// The header of a program's datagram. The payload follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// The kind.
    pub kind: Kind,
    /// The program's address.
    pub inside: SocketAddr,
    /// The peer's address.
    pub outside: SocketAddr,
    /// The sequence number over all datagrams of this end, modulo 2^32.
    pub sequence: u32,
    /// Whether duplicates are sent over other paths.
    pub copies: bool,
    /// For how many milliseconds the receiver may delay it while an earlier datagram is missing.
    pub hold: u8,
    /// Set if the payload is only a piece.
    pub piece: Option<Piece>,
}

/// What an end has received on a path since the session began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathCount {
    /// The number of the path.
    pub path: u8,
    /// The highest counter received.
    pub highest: u64,
    /// Datagrams received.
    pub datagrams: u64,
    /// Bytes received.
    pub bytes: u64,
    /// The one-way delay of the datagram with the highest counter: the receiver's clock on arrival minus the sender's
    /// time stamp, in microseconds modulo 2^32.
    pub delay: u32,
    /// The lowest such delay since the previous report.
    pub least_delay: u32,
    /// The smoothed variation of the delay, in microseconds.
    pub variation: u32,
}

/// An end's report on the paths.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// Bits of the paths over which the peer answers. The server's own value is ignored.
    pub usable: u32,
    /// The counts of each path.
    pub counts: Vec<PathCount>,
}

/// The message in a sealed datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// A program's datagram and its payload.
    Data(Data, &'a [u8]),
    /// To be answered on the same path at once.
    Probe(Told),
    /// Answers a probe, with the probe's time stamp.
    Answer(u32, Told),
    /// Counts of received datagrams.
    Report(Told),
    /// The sender ends the session.
    Close,
    /// A probe padded to this size when sealed; to be answered on the same path at once.
    Size(u16),
    /// A probe of this size was received.
    SizeAnswer(u16),
    /// A program's datagram did not reach its target.
    Unreachable(Unreachable),
}

/// Parses the time stamp (the sender's clock in microseconds, modulo 2^32) and the message.
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
        SIZE => {
            let size = reading.word2()?;
            (usize::from(size) == HEADER + plain.len() + TAG).then_some(Message::Size(size))?
        }
        SIZE_ANSWER => Message::SizeAnswer(reading.word2()?),
        UNREACHABLE => Message::Unreachable(read_unreachable(&mut reading)?),
        _ => return None,
    };
    Some((stamp, message))
}

fn read_data(reading: &mut Reading<'_>) -> Option<Data> {
    let flags = reading.byte().filter(|flags| flags & UNUSED == 0)?;
    let kind = read_kind(flags);
    let hold = reading.byte()?;
    let sequence = reading.word4()?;
    let piece = if flags & PIECE == 0 { None } else { Some(read_piece(reading)?) };
    let inside = reading.socket_address(flags & INSIDE_IPV6 != 0)?;
    let outside = reading.socket_address(flags & OUTSIDE_IPV6 != 0)?;
    Some(Data { kind, inside, outside, sequence, copies: flags & COPIES != 0, hold, piece })
}

fn read_kind(flags: u8) -> Kind {
    match flags & KIND {
        0 => Kind::Udp,
        1 => Kind::Echo,
        2 => Kind::Dns,
        _ => Kind::DnsOverTcp,
    }
}

fn number_of(kind: Kind) -> u8 {
    match kind {
        Kind::Udp => 0,
        Kind::Echo => 1,
        Kind::Dns => 2,
        Kind::DnsOverTcp => 3,
    }
}

fn flag(set: bool, flag: u8) -> u8 {
    if set { flag } else { 0 }
}

fn read_unreachable(reading: &mut Reading<'_>) -> Option<Unreachable> {
    let flags = reading.byte().filter(|flags| flags & !(KIND | INSIDE_IPV6 | OUTSIDE_IPV6) == 0)?;
    let (code, value) = (reading.byte()?, reading.word2()?);
    let reason = match code {
        0 => Reason::Network,
        1 => Reason::Host,
        2 => Reason::Port,
        3 => Reason::Prohibited,
        4 => Reason::TooBig(value),
        5 => Reason::HopLimit,
        _ => return None,
    };
    // A value without meaning is rejected, so that each message has one encoding.
    if value != 0 && !matches!(reason, Reason::TooBig(_)) {
        return None;
    }
    let head = reading.word4()?.to_be_bytes();
    let inside = reading.socket_address(flags & INSIDE_IPV6 != 0)?;
    let outside = reading.socket_address(flags & OUTSIDE_IPV6 != 0)?;
    let by = reading.address(flags & OUTSIDE_IPV6 != 0)?;
    Some(Unreachable { kind: read_kind(flags), inside, outside, by, reason, head })
}

fn write_unreachable(unreachable: &Unreachable, out: &mut Vec<u8>) {
    let &Unreachable { kind, inside, outside, by, reason, head } = unreachable;
    let (code, value) = match reason {
        Reason::Network => (0, 0),
        Reason::Host => (1, 0),
        Reason::Port => (2, 0),
        Reason::Prohibited => (3, 0),
        Reason::TooBig(mtu) => (4, mtu),
        Reason::HopLimit => (5, 0),
    };
    let flags = number_of(kind) | flag(inside.is_ipv6(), INSIDE_IPV6) | flag(outside.is_ipv6(), OUTSIDE_IPV6);
    // The sender of the report has the target's address family.
    let by = if by.is_ipv6() == outside.is_ipv6() { by } else { outside.ip() };
    out.extend([UNREACHABLE, flags, code]);
    out.extend(value.to_be_bytes());
    out.extend(head);
    write_socket_address(inside, out);
    write_socket_address(outside, out);
    write_address(by, out);
}

fn read_piece(reading: &mut Reading<'_>) -> Option<Piece> {
    let (index, count) = (reading.byte()?, reading.byte()?);
    (count > 1 && index < count).then_some(Piece { index, count })
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

/// Bytes of the plaintext before the payload of a program's datagram or piece.
pub fn before_payload(inside: SocketAddr, outside: SocketAddr, is_piece: bool) -> usize {
    let address = |address: SocketAddr| if address.is_ipv4() { 4 + 2 } else { 16 + 2 };
    // Time stamp, kind, flags, hold time, sequence number.
    4 + 1 + 1 + 1 + 4 + if is_piece { 2 } else { 0 } + address(inside) + address(outside)
}

/// Encodes a program's datagram, or the piece that `data` describes.
pub fn write_data(stamp: u32, data: &Data, payload: &[u8], out: &mut Vec<u8>) {
    let &Data { kind, inside, outside, sequence, copies, hold, piece } = data;
    let flags = number_of(kind)
        | flag(inside.is_ipv6(), INSIDE_IPV6)
        | flag(outside.is_ipv6(), OUTSIDE_IPV6)
        | flag(copies, COPIES)
        | flag(piece.is_some(), PIECE);
    out.extend(stamp.to_be_bytes());
    out.extend([DATA, flags, hold]);
    out.extend(sequence.to_be_bytes());
    out.extend(piece.into_iter().flat_map(|piece| [piece.index, piece.count]));
    write_socket_address(inside, out);
    write_socket_address(outside, out);
    out.extend_from_slice(payload);
}

/// Encodes any other message; [`write_data`] encodes programs' datagrams.
pub fn write_message(stamp: u32, message: &Message<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(stamp.to_be_bytes());
    match message {
        Message::Probe(told) => write_told(PROBE, None, told, out),
        Message::Answer(echo, told) => write_told(PROBE_ANSWER, Some(*echo), told, out),
        Message::Report(told) => write_told(REPORT, None, told, out),
        Message::Close | Message::Data(..) => out.push(CLOSE),
        Message::Size(size) => {
            out.push(SIZE);
            out.extend(size.to_be_bytes());
            out.resize(usize::from(*size).saturating_sub(HEADER + TAG).max(out.len() - start) + start, 0);
        }
        Message::SizeAnswer(size) => {
            out.push(SIZE_ANSWER);
            out.extend(size.to_be_bytes());
        }
        Message::Unreachable(unreachable) => write_unreachable(unreachable, out),
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
    use crate::datagram::INSIDE_MTU;

    fn data(inside: &str, outside: &str) -> Data {
        let address = |text: &str| text.parse().expect("an address");
        let (inside, outside) = (address(inside), address(outside));
        Data { kind: Kind::Udp, inside, outside, sequence: 0, copies: false, hold: 0, piece: None }
    }

    #[test]
    fn data_reads_as_it_was_written() {
        for (kind, inside, outside) in [
            (Kind::Udp, "10.0.0.1:7", "192.0.2.1:53"),
            (Kind::Echo, "[fd00::1]:0", "[2001:db8::1]:0"),
            (Kind::Dns, "[fd00::1]:9", "192.0.2.1:53"),
            (Kind::DnsOverTcp, "10.0.0.1:7", "[2001:db8::1]:53"),
        ] {
            let last = Some(Piece { index: 6, count: 7 });
            for (copies, hold, piece) in [(false, 0, None), (true, 20, None), (false, 3, last)] {
                let mut bytes = Vec::new();
                let data = Data { kind, sequence: 0x0102_0304, copies, hold, piece, ..data(inside, outside) };
                write_data(77, &data, &[5, 5, 5], &mut bytes);
                assert_eq!(read_message(&bytes), Some((77, Message::Data(data, &[5, 5, 5]))));
                assert_eq!(bytes.len(), before_payload(data.inside, data.outside, piece.is_some()) + 3);
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
            Message::SizeAnswer(1_433),
        ];
        for message in messages {
            let mut bytes = Vec::new();
            write_message(1, &message, &mut bytes);
            assert_eq!(read_message(&bytes), Some((1, message.clone())));
            // Any truncation is rejected, except for messages without fields.
            for length in 0..bytes.len() {
                assert_eq!(read_message(&bytes[..length]), None, "{message:?} cut to {length}");
            }
        }
    }

    #[test]
    fn a_probe_of_a_size_has_that_size_when_it_is_sealed() {
        for size in [41, 512, 1_433] {
            let mut bytes = vec![9];
            write_message(1, &Message::Size(size), &mut bytes);
            assert_eq!(bytes.len(), 1 + usize::from(size) - HEADER - TAG);
            assert_eq!(read_message(&bytes[1..]), Some((1, Message::Size(size))));
            bytes.push(0);
            assert_eq!(read_message(&bytes[1..]), None, "it was padded otherwise");
        }
    }

    #[test]
    fn what_did_not_reach_its_target_reads_as_it_was_written() {
        let address = |text: &str| text.parse().expect("an address");
        for (reason, outside, by) in [
            (Reason::Network, "192.0.2.1:53", "192.0.2.9"),
            (Reason::Host, "[2001:db8::1]:53", "2001:db8::9"),
            (Reason::Port, "192.0.2.1:53", "192.0.2.1"),
            (Reason::Prohibited, "192.0.2.1:0", "192.0.2.1"),
            (Reason::TooBig(1_280), "[2001:db8::1]:53", "2001:db8::9"),
            (Reason::HopLimit, "192.0.2.1:53", "192.0.2.9"),
        ] {
            let by = by.parse().expect("an address");
            let head = [1, 2, 3, 4];
            let unreachable = Unreachable {
                kind: Kind::Echo,
                inside: address("[fd00::1]:9"),
                outside: address(outside),
                by,
                reason,
                head,
            };
            let mut bytes = Vec::new();
            write_message(1, &Message::Unreachable(unreachable), &mut bytes);
            assert_eq!(read_message(&bytes), Some((1, Message::Unreachable(unreachable))));
            for length in 0..bytes.len() {
                assert_eq!(read_message(&bytes[..length]), None, "{reason:?} cut to {length}");
            }
            bytes[6] = 6;
            assert_eq!(read_message(&bytes), None, "no reason has this number");
        }
    }

    #[test]
    fn what_has_a_meaning_in_no_version_is_not_read() {
        let mut bytes = Vec::new();
        write_data(0, &data("10.0.0.1:7", "192.0.2.1:53"), &[], &mut bytes);
        for flags in [0x40, 0x80] {
            let mut wrong = bytes.clone();
            wrong[5] = flags;
            assert_eq!(read_message(&wrong), None, "flags {flags:#x}");
        }
        for (index, count) in [(0, 0), (0, 1), (2, 2)] {
            let mut wrong = Vec::new();
            let piece = Some(Piece { index, count });
            write_data(0, &Data { piece, ..data("10.0.0.1:7", "192.0.2.1:53") }, &[], &mut wrong);
            assert_eq!(read_message(&wrong), None, "{index} of {count}");
        }
        bytes[4] = 8;
        assert_eq!(read_message(&bytes), None);
    }

    #[test]
    fn a_full_packet_fits_sealed_into_1480_bytes() {
        // UDP over IPv6 inside, and IPv6 outside.
        let mut bytes = Vec::new();
        let payload = [5; INSIDE_MTU as usize - 40 - 8];
        write_data(0, &data("[fd00::1]:9", "[2001:db8::1]:53"), &payload, &mut bytes);
        assert_eq!(bytes.len() + HEADER + TAG + 40 + 8, 1_481);
        let mut bytes = Vec::new();
        write_data(0, &data("10.0.0.1:9", "192.0.2.1:53"), &[5; INSIDE_MTU as usize - 20 - 8], &mut bytes);
        assert_eq!(bytes.len() + HEADER + TAG + 40 + 8, 1_477);
    }
}
