//! The header before each packet of a TUN device with offloads (Virtio 1.2, section 5.1.6): whether its checksum is
//! incomplete, and the segment size of a long packet.

/// Length of the header, bytes.
pub(super) const LENGTH: usize = 10;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM: the checksum's place holds the sum of the pseudo-header.
const NEEDS_CHECKSUM: u8 = 1;
/// VIRTIO_NET_HDR_F_DATA_VALID: the checksum was verified.
const CHECKSUM_VALID: u8 = 2;
/// VIRTIO_NET_HDR_GSO_TCPV4.
const TCP_OVER_IPV4: u8 = 1;
/// VIRTIO_NET_HDR_GSO_TCPV6.
const TCP_OVER_IPV6: u8 = 4;
/// VIRTIO_NET_HDR_GSO_UDP_L4.
const UDP: u8 = 5;
/// Where TCP's checksum lies in its header (RFC 9293, section 3.1).
const TCP_CHECKSUM: u16 = 16;

/// Whether the checksum of the packet after this header need not be verified. False if the header is too short.
pub(super) fn vouches_for_checksum(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|flags| flags & (NEEDS_CHECKSUM | CHECKSUM_VALID) != 0)
}

/// The datagram size into which the UDP packet after this header must be split, if it must.
pub(super) fn cut(bytes: &[u8]) -> Option<u16> {
    let [_, kind, _, _, s0, s1, ..] = *bytes.first_chunk::<LENGTH>()?;
    (kind == UDP).then(|| u16::from_ne_bytes([s0, s1])).filter(|length| *length > 0)
}

/// A TCP packet whose checksum the device completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offload {
    /// Length of the IP header.
    pub ip_header: usize,
    /// Length of the headers of IP and TCP.
    pub headers: usize,
    /// Payload of each segment but the last in bytes, if the packet is to be segmented.
    pub segment: Option<u16>,
}

impl Offload {
    /// The header in native byte order, as for TUN devices of Linux.
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let kind = match (self.segment, self.ip_header) {
            (None, _) => 0,
            (Some(_), anabranch_wire::ip::IPV4_HEADER) => TCP_OVER_IPV4,
            (Some(_), _) => TCP_OVER_IPV6,
        };
        let [h0, h1] = (self.headers as u16).to_ne_bytes();
        let [s0, s1] = self.segment.unwrap_or(0).to_ne_bytes();
        let [c0, c1] = (self.ip_header as u16).to_ne_bytes();
        let [o0, o1] = TCP_CHECKSUM.to_ne_bytes();
        [NEEDS_CHECKSUM, kind, h0, h1, s0, s1, c0, c1, o0, o1]
    }
}
