//! Packets other than TCP: UDP, ICMP echo and DNS are forwarded as datagrams, and their answers return as packets.

use crate::counters::Shared;
use crate::device::MTU;
use crate::dns::Questions;
use crate::fragments::{self, Fragments};
use crate::refusal::{passed_on, unreachable};
use anabranch_datagram::{Datagram, Kind, Reason, Way};
use anabranch_stack::Gateway;
use anabranch_stack::device::Foreign;
use anabranch_wire::ip::{self, IPV4_HEADER, IPV6_HEADER, PROTOCOL_UDP};
use anabranch_wire::{EchoPacket, Ecn, EmitError, IpHeader, UdpPacket};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// The DNS port.
pub(crate) const DNS: u16 = 53;

/// Protocol numbers of ICMP and ICMPv6.
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// The "don't fragment" bit in byte 6 of the IPv4 header.
const DO_NOT_FRAGMENT: u8 = 0x40;

/// The smallest MTU reported over IPv4: Linux ignores less (net.ipv4.route.min_pmtu); and the minimum MTU of IPv6.
const LEAST_MTU: usize = 552;
const LEAST_MTU_V6: usize = 1_280;

/// Bytes of the UDP header, and of the ICMP header before an echo's identifier and data.
const UDP_HEADER: usize = 8;

/// Hop limit of packets created here.
const HOP_LIMIT: u8 = 64;

/// Forwards datagrams in both directions.
pub(crate) struct Datagrams {
    pub(crate) gateway: Arc<Gateway>,
    /// `None`: datagrams are refused.
    pub(crate) way: Option<Way>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) shared: Arc<Shared>,
}

/// A packet by what to do with it.
enum Content {
    /// To be forwarded.
    Datagrams(Kind, SocketAddr, SocketAddr, Bytes),
    /// To be dropped: multicast, or a message that asks for nothing.
    Nothing,
    /// To be refused.
    Unknown,
}

impl Datagrams {
    /// Forwards packets in both directions until the device is gone.
    pub(crate) async fn run(self) {
        tokio::select! {
            () = self.outwards() => {}
            () = self.inwards() => {}
        }
    }

    async fn outwards(&self) {
        let mut fragments = Fragments::default();
        while let Some(packet) = self.gateway.foreign().await {
            let Some(fragment) = fragments::read(&packet.bytes) else {
                self.take(&packet, false);
                continue;
            };
            let before = fragments.unfinished;
            let whole = fragments.take(Instant::now(), fragment);
            self.shared.count(|counters| {
                counters.reassembled += u64::from(whole.is_some());
                counters.unfinished += fragments.unfinished - before;
            });
            if let Some(bytes) = whole {
                self.take(&Foreign { bytes, vouched: false, cut: None }, true);
            }
        }
    }

    async fn inwards(&self) {
        let Some(way) = &self.way else { return std::future::pending().await };
        let mut packet = Vec::new();
        let mut identification = 0_u32;
        loop {
            let datagram = tokio::select! {
                datagram = way.receive() => datagram,
                said = way.unreachable() => {
                    self.shared.count(|counters| counters.unreachable_datagrams += 1);
                    passed_on(&said).into_iter().for_each(|message| _ = self.gateway.send(&message));
                    continue;
                }
            };
            self.shared.came(&datagram);
            let Some(datagram) = self.questions.answered(datagram) else { continue };
            packet.clear();
            if answer(datagram, &mut packet).is_ok() {
                identification = identification.wrapping_add(1);
                fragments::cut(&packet, identification, |packet| _ = self.gateway.send(packet));
            }
        }
    }

    /// Forwards a program's packet, or reports to the program that it is refused. A packet that arrived in fragments
    /// may be fragmented again.
    fn take(&self, packet: &Foreign, may_be_cut: bool) {
        match (content(packet), &self.way) {
            (Some(Content::Datagrams(kind, _, outside, _)), Some(way))
                if kind != Kind::Dns && !way.reaches(outside) =>
            {
                self.refuse(packet, Reason::Network);
            }
            (Some(Content::Datagrams(kind, inside, outside, payload)), Some(way)) => {
                let largest = way.largest_whole(inside, outside);
                let mtu = too_big(&packet.bytes, packet.cut.map_or(payload.len(), usize::from), largest);
                match mtu.filter(|_| !may_be_cut) {
                    Some(mtu) => self.refuse(packet, Reason::TooBig(mtu)),
                    None => self.send(way, packet.cut, (kind, inside, outside), &payload),
                }
            }
            // UDP sockets ignore the ICMP error for a missing route.
            (Some(Content::Datagrams(..)), None) | (Some(Content::Unknown), _) => {
                self.refuse(packet, Reason::Prohibited)
            }
            (Some(Content::Nothing), _) => self.shared.count(|counters| counters.ignored += 1),
            (None, _) => self.shared.count(|counters| counters.malformed += 1),
        }
    }

    /// Sends a datagram, or splits it at `cut` if it is a GSO packet.
    fn send(&self, way: &Way, cut: Option<u16>, ends: (Kind, SocketAddr, SocketAddr), payload: &Bytes) {
        let (kind, inside, outside) = ends;
        let length = cut.map_or(payload.len(), usize::from).max(1);
        let mut rest = payload.clone();
        loop {
            let payload = rest.split_to(length.min(rest.len()));
            let bytes = payload.len();
            let sent = way.send(Datagram { kind, inside, outside, payload });
            self.shared.went(ends, bytes, sent);
            if rest.is_empty() {
                return;
            }
        }
    }

    fn refuse(&self, packet: &Foreign, reason: Reason) {
        self.shared.count(|counters| counters.refused_packets += 1);
        if let Some(message) = unreachable(&packet.bytes, reason) {
            self.gateway.send(&message);
        }
    }
}

/// The MTU to report to a program whose packet may not be fragmented (RFC 1191, RFC 8201), if no path carries it in one
/// datagram. Other packets, and those below the minimum MTU, are sent in pieces.
fn too_big(packet: &[u8], payload: usize, largest: usize) -> Option<u16> {
    if payload <= largest {
        return None;
    }
    let &[first, _, _, _, _, _, flags, ..] = packet.first_chunk::<IPV4_HEADER>()?;
    let (header, least, kept_whole) = match first >> 4 {
        4 => (IPV4_HEADER, LEAST_MTU, flags & DO_NOT_FRAGMENT != 0),
        _ => (IPV6_HEADER, LEAST_MTU_V6, true),
    };
    let mtu = (largest + header + UDP_HEADER).min(MTU.into());
    (kept_whole && mtu >= least).then_some(mtu as u16)
}

/// The content of a packet; `None` if it is malformed.
fn content(packet: &Foreign) -> Option<Content> {
    let ip::Datagram { header, protocol, .. } = ip::parse(&packet.bytes).ok()?;
    if !is_one_host(header.destination) || !is_one_host(header.source) {
        return Some(Content::Nothing);
    }
    match (protocol, header.source) {
        (PROTOCOL_UDP, _) => {
            let bytes = &packet.bytes;
            let parsed = if packet.vouched { UdpPacket::parse_unverified(bytes) } else { UdpPacket::parse(bytes) };
            let udp = parsed.ok()?;
            let kind = if udp.destination_port == DNS { Kind::Dns } else { Kind::Udp };
            let inside = SocketAddr::new(header.source, udp.source_port);
            let outside = SocketAddr::new(header.destination, udp.destination_port);
            Some(Content::Datagrams(kind, inside, outside, udp.payload))
        }
        (ICMP, IpAddr::V4(_)) | (ICMPV6, IpAddr::V6(_)) => match EchoPacket::parse(&packet.bytes, packet.vouched) {
            Ok(echo) if !echo.reply => {
                let (inside, outside) = (SocketAddr::new(header.source, 0), SocketAddr::new(header.destination, 0));
                Some(Content::Datagrams(Kind::Echo, inside, outside, echo.body))
            }
            // ICMP errors by programs are not forwarded, and errors are never answered.
            _ => Some(Content::Nothing),
        },
        _ => Some(Content::Unknown),
    }
}

/// Whether an address is a unicast address beyond this link.
fn is_one_host(address: IpAddr) -> bool {
    let here = match address {
        IpAddr::V4(address) => address.is_broadcast() || address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(here || address.is_multicast() || address.is_unspecified() || address.is_loopback())
}

/// Builds the packet that carries a datagram to a program.
fn answer(datagram: Datagram, packet: &mut Vec<u8>) -> Result<(), EmitError> {
    let Datagram { kind, inside, outside, payload } = datagram;
    let (source, destination) = (outside.ip(), inside.ip());
    let ip = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: HOP_LIMIT };
    match kind {
        Kind::Udp | Kind::Dns => {
            let (source_port, destination_port) = (outside.port(), inside.port());
            UdpPacket { ip, source_port, destination_port, payload }.emit(packet)
        }
        Kind::Echo => EchoPacket { ip, reply: true, body: payload }.emit(packet),
        // These belong to a TCP connection.
        Kind::DnsOverTcp => Err(EmitError::BadValue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_cut_is_told_an_mtu_and_the_rest_is_carried() {
        let udp = udp("203.0.113.7", 443).bytes;
        assert_eq!(udp[6], DO_NOT_FRAGMENT);
        let mut may_be_cut = udp.to_vec();
        may_be_cut[6] = 0;
        assert_eq!(too_big(&udp, 1_300, 1_300), None);
        assert_eq!(too_big(&udp, 1_301, 1_300), Some(1_328));
        assert_eq!(too_big(&may_be_cut, 1_301, 1_300), None);
        assert_eq!(too_big(&udp, 1_301, 523), None, "Linux does not believe so small an MTU");
        let mut v6 = vec![0; 1_400];
        v6[0] = 0x60;
        assert_eq!((too_big(&v6, 1_301, 1_300), too_big(&v6, 1_301, 1_231)), (Some(1_348), None));
    }

    fn header(source: &str, destination: &str) -> IpHeader {
        let (source, destination) = (source.parse().expect("an address"), destination.parse().expect("an address"));
        IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 }
    }

    fn foreign(emit: impl FnOnce(&mut Vec<u8>)) -> Foreign {
        let mut bytes = Vec::new();
        emit(&mut bytes);
        Foreign { bytes: bytes.into(), vouched: false, cut: None }
    }

    fn udp(destination: &str, port: u16) -> Foreign {
        let payload = Bytes::from_static(b"data");
        let packet =
            UdpPacket { ip: header("198.18.0.1", destination), source_port: 4_000, destination_port: port, payload };
        foreign(|out| packet.emit(out).expect("it is short"))
    }

    #[test]
    fn a_datagram_goes_where_its_port_says_and_its_answer_comes_from_there() {
        for (port, kind) in [(443, Kind::Udp), (DNS, Kind::Dns)] {
            let Some(Content::Datagrams(found, inside, outside, payload)) = content(&udp("203.0.113.7", port)) else {
                panic!("a datagram")
            };
            assert_eq!(found, kind);
            assert_eq!(
                (inside.to_string().as_str(), outside.port(), &payload[..]),
                ("198.18.0.1:4000", port, &b"data"[..])
            );
            let mut packet = Vec::new();
            answer(Datagram { kind, inside, outside, payload }, &mut packet).expect("it is short");
            let back = UdpPacket::parse(&Bytes::from(packet)).expect("its checksum is right");
            assert_eq!((back.source_port, back.destination_port), (port, 4_000));
            assert_eq!(back.ip, header("203.0.113.7", "198.18.0.1"));
        }
    }

    #[test]
    fn a_request_for_an_echo_is_carried_and_comes_back_as_a_reply() {
        for (source, destination) in [("198.18.0.1", "203.0.113.7"), ("fd61::1", "2001:db8::7")] {
            let body = Bytes::from_static(&[1, 2, 0, 1, 9]);
            let request = EchoPacket { ip: header(source, destination), reply: false, body: body.clone() };
            let request = foreign(|out| request.emit(out).expect("it is short"));
            let Some(Content::Datagrams(Kind::Echo, inside, outside, payload)) = content(&request) else {
                panic!("an echo")
            };
            let mut packet = Vec::new();
            answer(Datagram { kind: Kind::Echo, inside, outside, payload }, &mut packet).expect("it is short");
            let back = EchoPacket::parse(&Bytes::from(packet), false).expect("its checksum is right");
            assert_eq!((back.reply, back.body, back.ip), (true, body, header(destination, source)));
        }
    }

    #[test]
    fn what_is_for_many_or_for_this_link_is_ignored_and_what_is_unknown_refused() {
        for many in ["224.0.0.251", "255.255.255.255", "169.254.169.254"] {
            assert!(matches!(content(&udp(many, 5_353)), Some(Content::Nothing)), "{many}");
        }
        let sctp = foreign(|out| header("198.18.0.1", "203.0.113.7").emit(132, 0, out).expect("it is short"));
        assert!(matches!(content(&sctp), Some(Content::Unknown)));
        let mut damaged = udp("203.0.113.7", 443).bytes.to_vec();
        damaged[28] ^= 1;
        let damaged = Foreign { bytes: damaged.into(), vouched: false, cut: None };
        assert!(content(&damaged).is_none());
        assert!(content(&Foreign { vouched: true, ..damaged }).is_some(), "somebody is to finish the checksum");
    }
}
