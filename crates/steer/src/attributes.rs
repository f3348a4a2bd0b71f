//! Attributes of netlink messages: type, length, value, aligned to four bytes (linux/netlink.h).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of an attribute's header.
const HEADER: usize = 4;

/// Bits of the type that are flags: nested, and network byte order.
const FLAGS: u16 = 0xc000;

/// Flag of an attribute that contains attributes.
const NESTED: u16 = 0x8000;

/// The attributes in `bytes`: their types, without flags, and values. It ends at the first that is malformed.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & !FLAGS;
        let value = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the first attribute of a type.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

pub fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// In the host's byte order.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_ne_bytes)
}

/// In network byte order.
pub fn be16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_be_bytes)
}

/// In the host's byte order.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_ne_bytes)
}

/// In the host's byte order.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes_at(bytes, at).map(u64::from_ne_bytes)
}

/// An address at an offset. One of IPv4 in an IPv6 socket (RFC 4291, section 2.5.5.2) is one of IPv4.
pub fn address_at(bytes: &[u8], at: usize, ipv6: bool) -> Option<IpAddr> {
    Some(if ipv6 {
        IpAddr::from(Ipv6Addr::from(bytes_at::<16>(bytes, at)?)).to_canonical()
    } else {
        Ipv4Addr::from(bytes_at::<4>(bytes, at)?).into()
    })
}

/// Attributes to send.
#[derive(Default)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    pub fn put(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = (HEADER + value.len()) as u16;
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub fn put_u8(&mut self, kind: u16, value: u8) -> &mut Self {
        self.put(kind, &[value])
    }

    pub fn put_u16(&mut self, kind: u16, value: u16) -> &mut Self {
        self.put(kind, &value.to_ne_bytes())
    }

    pub fn put_u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.put(kind, &value.to_ne_bytes())
    }

    /// Attributes in an attribute.
    pub fn nest(&mut self, kind: u16, inner: &Self) -> &mut Self {
        self.put(kind | NESTED, &inner.0)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_are_written() {
        let mut inner = Attributes::default();
        inner.put_u16(1, 2).put_u8(2, 3);
        let mut all = Attributes::default();
        all.put_u32(4, 0x0102_0304).nest(1, &inner);
        let read: Vec<_> = attributes(all.bytes()).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].0, u32_at(read[0].1, 0)), (4, Some(0x0102_0304)));
        let nested: Vec<_> = attributes(read[1].1).collect();
        assert_eq!(nested, [(1, &2u16.to_ne_bytes()[..]), (2, &[3][..])]);
    }

    #[test]
    fn reading_ends_at_a_malformed_attribute() {
        let mut all = Attributes::default();
        all.put_u32(4, 1).put_u32(5, 2);
        // Cut short, and with a length that is less than a header's.
        assert_eq!(attributes(&all.bytes()[..15]).count(), 1);
        let mut bytes = all.bytes().to_vec();
        bytes[8] = 3;
        assert_eq!(attributes(&bytes).count(), 1);
        assert_eq!(attributes(&[]).count(), 0);
    }

    #[test]
    fn an_ipv4_address_in_an_ipv6_socket_is_one_of_ipv4() {
        let mapped = Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().octets();
        assert_eq!(address_at(&mapped, 0, true), Some(Ipv4Addr::new(10, 0, 0, 1).into()));
        assert_eq!(address_at(&mapped, 1, true), None);
    }
}
