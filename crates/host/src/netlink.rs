//! Requests to the kernel over netlink, one at a time. They block: the kernel answers at once, and setup can also be
//! undone where nothing can be awaited.

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_core::{NetlinkDeserializable, NetlinkSerializable};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};
use netlink_sys::{Socket, SocketAddr};
use std::borrow::Cow;
use std::io;

/// Flag of a list that changed while it was read (NLM_F_DUMP_INTR).
const DUMP_INTERRUPTED: u16 = 0x10;

/// Attempts at reading a consistent list.
const ATTEMPTS: usize = 10;

/// A socket for requests over rtnetlink, in the namespace of the thread that opened it.
pub struct Netlink {
    channel: Channel,
}

impl Netlink {
    /// A socket in the caller's namespace.
    pub fn open() -> io::Result<Self> {
        Ok(Self { channel: Channel::open(NETLINK_ROUTE, without_metrics)? })
    }

    /// Requests a change; `flags` say what may already exist (NLM_F_CREATE, NLM_F_EXCL, ...).
    pub fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.channel.exchange(message, NLM_F_ACK | flags).map(|_| ())
    }

    /// Requests a list.
    pub fn list(&mut self, message: &RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.channel.list(message)
    }
}

/// Changes the bytes of a message that its parser would refuse.
type Mend = fn(&[u8]) -> Cow<'_, [u8]>;

/// A socket of one of netlink's protocols.
pub(crate) struct Channel {
    socket: Socket,
    sequence: u32,
    mend: Mend,
}

impl Channel {
    /// A socket of generic netlink.
    pub(crate) fn generic() -> io::Result<Self> {
        Self::open(NETLINK_GENERIC, |message| Cow::Borrowed(message))
    }

    fn open(protocol: isize, mend: Mend) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0, mend })
    }

    /// Requests a list.
    pub(crate) fn list<M>(&mut self, message: &M) -> io::Result<Vec<M>>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Clone,
        NetlinkPayload<M>: From<M>,
    {
        for _ in 0..ATTEMPTS {
            let (answers, whole) = self.exchange(message.clone(), NLM_F_DUMP)?;
            if whole {
                return Ok(answers);
            }
        }
        Err(io::Error::new(io::ErrorKind::Interrupted, "the kernel's list changes faster than it can be read"))
    }

    /// Sends a request. Returns the answers, and whether they are a consistent list.
    pub(crate) fn exchange<M>(&mut self, message: M, flags: u16) -> io::Result<(Vec<M>, bool)>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
        NetlinkPayload<M>: From<M>,
    {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        let mut whole = true;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            for answer in messages(&datagram, self.mend) {
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                whole &= answer.header.flags & DUMP_INTERRUPTED == 0;
                match answer.payload {
                    NetlinkPayload::InnerMessage(message) => answers.push(message),
                    NetlinkPayload::Done(_) => return Ok((answers, whole)),
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok((answers, whole)),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }
}

/// The kernel's constant for a family.
pub(crate) fn family(ipv6: bool) -> AddressFamily {
    if ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

/// The messages in a datagram. Unknown ones are skipped.
pub(crate) fn messages<M: NetlinkDeserializable>(
    mut datagram: &[u8],
    mend: Mend,
) -> impl Iterator<Item = NetlinkMessage<M>> {
    std::iter::from_fn(move || {
        loop {
            let length = datagram.get(..4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes)? as usize;
            if length < 16 {
                return None;
            }
            let message = datagram.get(..length)?;
            // Messages are aligned to four bytes.
            datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
            if let Ok(message) = NetlinkMessage::deserialize(&mend(message)) {
                return Some(message);
            }
        }
    })
}

/// The length of a message's header, and of that of a route (`struct nlmsghdr`, `struct rtmsg`).
const HEADER: usize = 16;
const ROUTE: usize = 12;
/// The type of a message that tells of a route, and of the attribute with its metrics.
const NEW_ROUTE: u16 = 24;
const METRICS: u16 = 8;
/// A type that no attribute has (RTA_UNSPEC).
const NOTHING: u16 = 0;

/// The message with an unknown attribute in place of a route's metrics, which nothing here needs: the parser takes the
/// name of a congestion control among them for a number, and would refuse the whole route.
fn without_metrics(message: &[u8]) -> Cow<'_, [u8]> {
    let number = |at: usize| message.get(at..at + 2).and_then(|two| two.try_into().ok()).map(u16::from_ne_bytes);
    let mut bytes = Cow::Borrowed(message);
    if number(4) != Some(NEW_ROUTE) {
        return bytes;
    }
    let mut at = HEADER + ROUTE;
    while let (Some(length @ 4..), Some(kind)) = (number(at), number(at + 2)) {
        if kind == METRICS {
            bytes.to_mut()[at + 2..at + 4].copy_from_slice(&NOTHING.to_ne_bytes());
        }
        at += usize::from(length).next_multiple_of(4);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::{DefaultNla, Emitable as _};
    use netlink_packet_route::route::{RouteAttribute, RouteMessage};

    #[test]
    fn a_route_with_a_congestion_control_of_its_own_is_read() {
        // RTAX_CC_ALGO, 16, is text.
        let algorithm = DefaultNla::new(16, b"cubic\0".to_vec());
        let mut metrics = vec![0; algorithm.buffer_len()];
        algorithm.emit(&mut metrics);
        let mut route = RouteMessage::default();
        route.attributes = vec![RouteAttribute::Other(DefaultNla::new(METRICS, metrics)), RouteAttribute::Oif(7)];
        let mut message = NetlinkMessage::from(RouteNetlinkMessage::NewRoute(route));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        assert!(NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes).is_err(), "the parser has learnt it");
        let read: Vec<_> = messages::<RouteNetlinkMessage>(&bytes, without_metrics).collect();
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) = &read[0].payload else {
            panic!("{read:?}");
        };
        assert!(route.attributes.contains(&RouteAttribute::Oif(7)), "{route:?}");
    }
}
