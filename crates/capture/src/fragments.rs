//! Fragments: reassembly of programs' datagrams (RFC 791, section 3.2; RFC 8200, section 4.5), and fragmentation of
//! packets to programs that exceed the device's MTU.

use crate::device::MTU;
use anabranch_wire::checksum::Checksum;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Reassembly timeout; it is short because the fragments come from this host, or from one link away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most datagrams in reassembly,
const MOST: usize = 256;
/// and most bytes.
const MOST_BYTES: usize = 4 << 20;
/// Memory overhead of a fragment in bytes.
const KEEPING: usize = 64;
/// The largest packet.
const LONGEST: usize = u16::MAX as usize;

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
/// Bytes of the IPv6 fragment header, and its protocol number.
const FRAGMENT_HEADER: usize = 8;
const FRAGMENT: u8 = 44;

/// Common to all fragments of a datagram: addresses, protocol and identification.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key([u8; 40]);

/// A fragment of a datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fragment {
    key: Key,
    /// The header of the whole packet; length and checksum are set later.
    header: Bytes,
    offset: usize,
    /// More fragments follow.
    more: bool,
    payload: Bytes,
}

/// Parses the fragment in a packet; `None` if it is no fragment, or is malformed.
pub(crate) fn read(packet: &Bytes) -> Option<Fragment> {
    match packet.first()? >> 4 {
        4 => read_v4(packet),
        6 => read_v6(packet),
        _ => None,
    }
}

fn read_v4(packet: &Bytes) -> Option<Fragment> {
    let fixed = packet.first_chunk::<V4_HEADER>()?;
    let &[first, _, t0, t1, i0, i1, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = fixed;
    let (length, total) = (usize::from(first & 0xf) * 4, usize::from(u16::from_be_bytes([t0, t1])));
    let flags = u16::from_be_bytes([f0, f1]);
    let is_one = flags & 0x3fff != 0 && length >= V4_HEADER && total > length && total <= packet.len();
    let header = packet.get(..length).filter(|_| is_one)?;
    let mut checksum = Checksum::new();
    checksum.add_bytes(header);
    if !checksum.is_valid() {
        return None;
    }
    let mut header = header.to_vec();
    header.get_mut(6..8)?.fill(0);
    let mut key = [0; 40];
    key.first_chunk_mut()?.clone_from(&[protocol, 0, i0, i1, s0, s1, s2, s3, d0, d1, d2, d3]);
    let (offset, more) = (usize::from(flags & 0x1fff) * 8, flags & 0x2000 != 0);
    let payload = Bytes::copy_from_slice(packet.get(length..total)?);
    Some(Fragment { key: Key(key), header: header.into(), offset, more, payload })
}

fn read_v6(packet: &Bytes) -> Option<Fragment> {
    let fixed = packet.first_chunk::<V6_HEADER>()?;
    let &[_, _, _, _, l0, l1, next, ..] = fixed;
    let end = V6_HEADER + usize::from(u16::from_be_bytes([l0, l1]));
    // Programs do not send fragments behind other extension headers.
    let fragment = packet.get(V6_HEADER..).filter(|_| next == FRAGMENT && end <= packet.len())?;
    let &[next, _, f0, f1, ref identification @ ..] = fragment.first_chunk::<FRAGMENT_HEADER>()?;
    let place = u16::from_be_bytes([f0, f1]);
    let mut header = fixed.to_vec();
    *header.get_mut(6)? = next;
    let mut key = [0; 40];
    key.first_chunk_mut()?.clone_from(identification);
    key.last_chunk_mut::<32>()?.clone_from(fixed.last_chunk()?);
    let payload = packet.get(V6_HEADER + FRAGMENT_HEADER..end).filter(|payload| !payload.is_empty())?;
    let is_one = place & 0xfff9 != 0;
    is_one.then(|| Fragment {
        key: Key(key),
        header: header.into(),
        offset: usize::from(place & 0xfff8),
        more: place & 1 != 0,
        payload: Bytes::copy_from_slice(payload),
    })
}

/// A datagram in reassembly.
struct Partial {
    began: Instant,
    header: Option<Bytes>,
    parts: BTreeMap<usize, Bytes>,
    bytes: usize,
    /// Its total length, once the last fragment has arrived.
    total: Option<usize>,
}

impl Partial {
    /// Its share of [`MOST_BYTES`].
    fn cost(&self) -> usize {
        self.bytes + self.parts.len() * KEEPING
    }
}

/// The reassembly buffer.
#[derive(Default)]
pub(crate) struct Fragments {
    partial: HashMap<Key, Partial>,
    bytes: usize,
    /// Datagrams dropped incomplete.
    pub(crate) unfinished: u64,
}

impl Fragments {
    /// Adds a fragment. Returns the packet if this completes it.
    pub(crate) fn take(&mut self, now: Instant, fragment: Fragment) -> Option<Bytes> {
        let Fragment { key, header, offset, more, payload } = fragment;
        self.forget_old(now);
        let fresh = || Partial { began: now, header: None, parts: BTreeMap::new(), bytes: 0, total: None };
        let partial = self.partial.entry(key.clone()).or_insert_with(fresh);
        let (length, end) = (payload.len(), offset + payload.len());
        let before = partial.parts.range(..offset).next_back().map_or(0, |(at, part)| at + part.len());
        let behind = partial.parts.range(offset..).next().map_or(usize::MAX, |(at, _)| *at);
        let fits = (!more || length.is_multiple_of(8)) && end + V4_HEADER <= LONGEST;
        let known = partial.total.is_none_or(|total| end <= total && (more || end == total));
        // Overlapping fragments are an attack (RFC 5722).
        if !fits || !known || before > offset || behind < end {
            self.forget(&key);
            return None;
        }
        if !more {
            partial.total = Some(end);
        }
        if offset == 0 {
            partial.header = Some(header);
        }
        partial.parts.insert(offset, payload);
        partial.bytes += length;
        self.bytes += length + KEEPING;
        if partial.total == Some(partial.bytes) {
            let whole = self.partial.remove(&key)?;
            self.bytes -= whole.cost();
            return join(&whole);
        }
        while self.bytes > MOST_BYTES || self.partial.len() > MOST {
            let oldest = self.partial.iter().min_by_key(|(_, partial)| partial.began).map(|(key, _)| key.clone());
            self.forget(&oldest?);
        }
        None
    }

    fn forget_old(&mut self, now: Instant) {
        let before = self.partial.len();
        self.partial.retain(|_, partial| {
            let stays = now.saturating_duration_since(partial.began) < PATIENCE;
            self.bytes -= if stays { 0 } else { partial.cost() };
            stays
        });
        self.unfinished += (before - self.partial.len()) as u64;
    }

    fn forget(&mut self, key: &Key) {
        if let Some(partial) = self.partial.remove(key) {
            self.bytes -= partial.cost();
            self.unfinished += 1;
        }
    }
}

/// The packet of a complete datagram.
fn join(whole: &Partial) -> Option<Bytes> {
    let mut packet = whole.header.as_ref()?.to_vec();
    let length = packet.len();
    packet.extend(whole.parts.values().flatten());
    if packet.first()? >> 4 == 6 {
        let payload = u16::try_from(packet.len() - V6_HEADER).ok()?;
        packet.get_mut(4..6)?.copy_from_slice(&payload.to_be_bytes());
    } else {
        let total = u16::try_from(packet.len()).ok()?;
        packet.get_mut(2..4)?.copy_from_slice(&total.to_be_bytes());
        sum_v4(packet.get_mut(..length)?)?;
    }
    Some(packet.into())
}

/// Sets the checksum of an IPv4 header.
fn sum_v4(header: &mut [u8]) -> Option<()> {
    header.get_mut(10..12)?.fill(0);
    let mut checksum = Checksum::new();
    checksum.add_bytes(header);
    header.get_mut(10..12)?.copy_from_slice(&checksum.finish().to_be_bytes());
    Some(())
}

/// Calls `each` with a packet of ours (without options or extension headers), or with its fragments if it exceeds
/// [`MTU`]. All fragments have `identification`, which must be unique among packets in flight between the same
/// addresses.
pub(crate) fn cut(packet: &[u8], identification: u32, mut each: impl FnMut(&[u8])) {
    if packet.len() <= usize::from(MTU) {
        return each(packet);
    }
    let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let (header, around) = if is_v6 { (V6_HEADER, V6_HEADER + FRAGMENT_HEADER) } else { (V4_HEADER, V4_HEADER) };
    let Some((header, payload)) = packet.split_at_checked(header) else { return };
    let room = (usize::from(MTU) - around) & !7;
    let count = payload.len().div_ceil(room);
    let mut fragment = Vec::with_capacity(MTU.into());
    for (index, part) in payload.chunks(room).enumerate() {
        let (place, more) = ((index * room) as u16, index + 1 < count);
        fragment.clear();
        fragment.extend_from_slice(header);
        let length = (around + part.len()) as u16;
        if is_v6 {
            let next = core::mem::replace(&mut fragment[6], FRAGMENT);
            fragment[4..6].copy_from_slice(&(length - V6_HEADER as u16).to_be_bytes());
            fragment.extend([next, 0]);
            fragment.extend((place | u16::from(more)).to_be_bytes());
            fragment.extend(identification.to_be_bytes());
        } else {
            fragment[2..4].copy_from_slice(&length.to_be_bytes());
            fragment[4..6].copy_from_slice(&(identification as u16).to_be_bytes());
            fragment[6..8].copy_from_slice(&((place / 8) | (u16::from(more) << 13)).to_be_bytes());
            // The header is present.
            let _ = sum_v4(&mut fragment);
        }
        fragment.extend_from_slice(part);
        each(&fragment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{Ecn, IpHeader, UdpPacket};

    fn packet(ends: (&str, &str), payload: usize) -> Vec<u8> {
        let (source, destination) = (ends.0.parse().expect("an address"), ends.1.parse().expect("an address"));
        let ip = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
        let payload = (0..=250).cycle().take(payload).collect::<Vec<u8>>().into();
        let mut packet = Vec::new();
        let udp = UdpPacket { ip, source_port: 4_000, destination_port: 443, payload };
        udp.emit(&mut packet).expect("it is short enough");
        packet
    }

    const V4: (&str, &str) = ("198.18.0.1", "203.0.113.7");
    const V6: (&str, &str) = ("fd61::1", "2001:db8::7");

    fn fragments(packet: &[u8], identification: u32) -> Vec<Bytes> {
        let mut fragments = Vec::new();
        cut(packet, identification, |fragment| fragments.push(Bytes::copy_from_slice(fragment)));
        fragments
    }

    fn take(into: &mut Fragments, now: Instant, fragment: &Bytes) -> Option<Bytes> {
        into.take(now, read(fragment).expect("a fragment"))
    }

    #[test]
    fn what_is_cut_is_no_longer_than_the_mtu_and_whole_again_in_any_order() {
        for (ends, longest) in [(V4, 65_507), (V6, 65_487)] {
            for payload in [1_400, 8_000, longest] {
                let packet = packet(ends, payload);
                let mut parts = fragments(&packet, 7);
                assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= usize::from(MTU)));
                let mut both = Fragments::default();
                let now = Instant::now();
                for _ in 0..2 {
                    let whole = parts.iter().map(|part| take(&mut both, now, part)).collect::<Vec<_>>();
                    let (last, others) = whole.split_last().expect("there are some");
                    assert!(others.iter().all(Option::is_none));
                    let again = UdpPacket::parse(last.as_ref().expect("it is whole")).expect("its checksum is right");
                    assert_eq!(again.payload.len(), payload);
                    assert_eq!(again, UdpPacket::parse(&packet.clone().into()).expect("it was whole"));
                    parts.reverse();
                }
                assert_eq!((both.bytes, both.partial.len(), both.unfinished), (0, 0, 0));
            }
        }
    }

    #[test]
    fn what_is_no_fragment_is_not_read_as_one_nor_cut() {
        for ends in [V4, V6] {
            let packet = packet(ends, 1_300);
            assert_eq!(fragments(&packet, 1), [Bytes::copy_from_slice(&packet)]);
            assert_eq!(read(&packet.into()), None);
        }
        let fragment = &fragments(&packet(V6, 3_000), 1)[0];
        for length in 0..fragment.len() {
            assert_eq!(read(&fragment.slice(..length)), None, "cut to {length}");
        }
    }

    #[test]
    fn datagrams_between_others_or_with_another_number_are_not_mixed() {
        let other = ("198.18.0.1", "203.0.113.8");
        let now = Instant::now();
        for (one, two) in [((V4, 1), (V4, 2)), ((V4, 1), (other, 1)), ((V6, 1), (V6, 1 << 16 | 1))] {
            let (one, two) = (fragments(&packet(one.0, 2_000), one.1), fragments(&packet(two.0, 2_000), two.1));
            let mut both = Fragments::default();
            assert_eq!((take(&mut both, now, &one[0]), take(&mut both, now, &two[1])), (None, None));
            assert!(take(&mut both, now, &one[1]).is_some());
        }
    }

    #[test]
    fn fragments_that_overlap_or_go_on_behind_the_end_are_forgotten() {
        let now = Instant::now();
        let parts = fragments(&packet(V4, 4_000), 1);
        let moved = |fragment: &Bytes, by: usize| {
            let fragment = read(fragment).expect("a fragment");
            Fragment { offset: fragment.offset + by, ..fragment }
        };
        for second in [moved(&parts[0], 0), moved(&parts[0], 8), moved(&parts[1], 8_000), moved(&parts[1], 65_000)] {
            let mut both = Fragments::default();
            both.take(now, moved(&parts[0], 0));
            both.take(now, moved(&parts[2], 0));
            assert_eq!(both.take(now, second), None);
            assert_eq!((both.partial.len(), both.bytes, both.unfinished), (0, 0, 1));
        }
    }

    #[test]
    fn what_waits_is_bounded_in_number_bytes_and_time() {
        let now = Instant::now();
        let mut all = Fragments::default();
        for number in 0..300 {
            take(&mut all, now, &fragments(&packet(V4, 2_000), number)[0]);
        }
        assert_eq!((all.partial.len(), all.unfinished), (MOST, 44));
        take(&mut all, now + PATIENCE, &fragments(&packet(V4, 2_000), 300)[0]);
        assert_eq!((all.partial.len(), all.bytes), (1, 1_376 + KEEPING));
        let mut all = Fragments::default();
        for number in 0..100 {
            let parts = fragments(&packet(V6, 60_000), number);
            parts.iter().skip(1).for_each(|part| _ = take(&mut all, now, part));
        }
        assert!(all.bytes <= MOST_BYTES && (60..80).contains(&all.partial.len()), "{}", all.partial.len());
    }
}
