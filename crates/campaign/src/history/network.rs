//! The paths between the two sides, in virtual time.

use super::behaviour::{Behaviour, Seen};
use super::landmark::Landmark;
use super::lie::Lie;
use super::observer::{Observer, Tag};
use crate::literal::{MILLI, Nanos};
use crate::luck::Luck;
use anabranch_wire::{Flags, Packet, Segment, SeqNumber};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Effects of a path on packets, as probabilities in 256ths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Weather {
    pub loss: u8,
    pub twice: u8,
    /// Delayed by up to `late_by`.
    pub late: u8,
    /// In milliseconds.
    pub late_by: u16,
    /// Nothing passes.
    pub down: bool,
}

/// A packet of a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// By its number, from 0 on.
    Number(u32),
    /// The first that is this.
    First(Landmark),
}

/// The fate of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Drop,
    /// It is duplicated, the second copy delayed by milliseconds.
    Twice(u32),
    /// It is delayed by milliseconds.
    Late(u32),
}

pub struct Network {
    luck: Luck,
    delays: Vec<Nanos>,
    /// The present properties of each path.
    pub weather: Vec<Weather>,
    /// The lying side, its lie, and the number of packets left to change.
    pub lie: Option<(usize, Lie, u32)>,
    /// Whether MPTCP options of each side's segments are removed.
    pub strip: [bool; 2],
    /// Number of packets left of each side in which an octet of the payload is changed.
    pub changes: [u32; 2],
    /// Addresses that are down: side and path.
    away: BTreeSet<(usize, usize)>,
    fates: Vec<(usize, Which, Fate)>,
    sent: [u32; 2],
    /// Number of forged packets.
    pub forged: u32,
    /// The sequence number after the last octet sent, by side, both ports and path.
    ends: BTreeMap<(usize, u16, u16, usize), SeqNumber>,
    in_flight: BTreeMap<(Nanos, u64), (usize, Packet, Tag)>,
    count: u64,
    /// The side of the literal peer, if any, and its observer.
    observed: Option<(usize, Observer)>,
    /// Behaviours of the literal peer and of the paths from it.
    pub seen: Seen,
}

/// The changed value of an octet.
pub fn changed(octet: u8) -> u8 {
    octet.wrapping_add(1)
}

/// The path of an address.
pub fn path_of(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(address) => usize::from(address.octets()[2]),
        IpAddr::V6(address) => usize::from(address.segments()[1]),
    }
}

/// The address of a side on a path.
pub fn address(v6: bool, side: usize, path: usize) -> IpAddr {
    if v6 {
        IpAddr::from([0xfd00, path as u16, 0, 0, 0, 0, 0, 1 + side as u16])
    } else {
        IpAddr::from([10, 0, path as u8, 1 + side as u8])
    }
}

impl Network {
    /// Paths without impairments and with these delays in microseconds.
    pub fn new(seed: u64, delays: &[u32], strip: [bool; 2], fates: Vec<(usize, Which, Fate)>) -> Self {
        Self {
            luck: Luck::new(seed),
            delays: delays.iter().map(|micros| u64::from(*micros) * 1_000).collect(),
            weather: vec![Weather::default(); delays.len()],
            lie: None,
            strip,
            changes: [0; 2],
            away: BTreeSet::new(),
            fates,
            sent: [0, 0],
            forged: 0,
            ends: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            count: 0,
            observed: None,
            seen: Seen::default(),
        }
    }

    /// From now on the behaviours of this side are recorded.
    pub fn observe(&mut self, side: usize) {
        self.observed = Some((side, Observer::default()));
    }

    /// Takes a packet from a side; returns its fate in a word.
    pub fn send(&mut self, now: Nanos, from: usize, mut packet: Packet) -> &'static str {
        let path = path_of(packet.ip.destination).min(self.delays.len() - 1);
        let number = self.sent[from];
        self.sent[from] += 1;
        let end = self.end_of(from, &packet);
        let honest = packet.clone();
        let due = now + self.delays[path];
        let (told, sent) = self.lie(due, from, &mut packet, end);
        if !sent {
            return "withheld";
        }
        let mut tag = self.look(from, &honest);
        told.into_iter().for_each(|lie| tag.set.add_lie(lie));
        if self.strip[from] {
            if let Some((_, observer)) = self.observed.as_ref().filter(|(side, _)| *side == from) {
                observer.strip(&packet, &mut tag);
            }
            packet.segment.options.dss = None;
            packet.segment.options.mptcp.clear();
        }
        self.record(tag, false);
        let source = path_of(packet.ip.source);
        if self.away.contains(&(from, source)) {
            return "from nowhere";
        }
        let changed = self.change(from, &mut packet);
        tag.set.add_if(changed && self.observes(from), Behaviour::Changed);
        let fate = self.take_fate(from, number, &honest.segment);
        let weather = self.weather[path];
        match fate {
            Some(Fate::Drop) => return "lost",
            Some(Fate::Twice(later)) => {
                self.put(due + u64::from(later) * MILLI, from, packet.clone(), tag);
                self.put(due, from, packet, tag);
                return "twice";
            }
            Some(Fate::Late(later)) => {
                self.put(due + u64::from(later) * MILLI, from, packet, tag);
                return "late";
            }
            None => {}
        }
        if weather.down || self.weather[source.min(self.delays.len() - 1)].down {
            return "lost";
        }
        if self.luck.parts(weather.loss) {
            return "lost";
        }
        let mut word = match (changed, self.strip[from]) {
            (true, _) => "changed",
            (false, true) => "stripped",
            (false, false) => "",
        };
        if self.luck.parts(weather.twice) {
            let later = self.luck.below(u64::from(weather.late_by) * MILLI);
            self.put(due + later, from, packet.clone(), tag);
            word = "twice";
        }
        let late = self.luck.parts(weather.late);
        let later = if late { self.luck.below(u64::from(weather.late_by) * MILLI) } else { 0 };
        self.put(due + later, from, packet, tag);
        if late { "late" } else { word }
    }

    /// Changes a packet, if its side lies now, and sends what attackers forge beside it. Returns the lie that is in it,
    /// and whether it is still sent.
    fn lie(&mut self, due: Nanos, from: usize, packet: &mut Packet, end: SeqNumber) -> (Option<Lie>, bool) {
        let Some((_, lie, left)) = self.lie.as_mut().filter(|(side, _, left)| *side == from && *left > 0) else {
            return (None, true);
        };
        *left -= 1;
        let lie = *lie;
        let honest = packet.clone();
        let forged = lie.forge(&mut self.luck, packet, end);
        if !lie.tell(&mut self.luck, packet) {
            self.record(Tag::of_lie(lie), true);
            return (Some(lie), false);
        }
        for forged in forged {
            self.forged += 1;
            self.put(due, from, forged, Tag::of_lie(lie));
        }
        (Some(lie).filter(|_| *packet != honest), true)
    }

    /// The fate of a packet of its own, if it has one.
    fn take_fate(&mut self, from: usize, number: u32, segment: &Segment) -> Option<Fate> {
        let is = |which: &Which| match which {
            Which::Number(wanted) => *wanted == number,
            Which::First(landmark) => landmark.is(segment),
        };
        let place = self.fates.iter().position(|(side, which, _)| *side == from && is(which))?;
        Some(self.fates.remove(place).2)
    }

    /// The sequence number after the last octet sent on the subflow of a packet, that packet included.
    fn end_of(&mut self, from: usize, packet: &Packet) -> SeqNumber {
        let segment = &packet.segment;
        let control = [Flags::SYN, Flags::FIN].iter().filter(|flag| segment.flags.contains(**flag)).count();
        let end = segment.seq.0.wrapping_add((segment.payload.len() + control) as u32);
        let subflow = (from, segment.source_port, segment.destination_port, path_of(packet.ip.source));
        let furthest = self.ends.entry(subflow).or_insert(SeqNumber(end));
        if segment.flags.contains(Flags::SYN) || end.wrapping_sub(furthest.0) < 1 << 31 {
            *furthest = SeqNumber(end);
        }
        *furthest
    }

    /// Changes an octet of the payload, as a middlebox without knowledge of MPTCP: TCP's checksum is updated.
    fn change(&mut self, from: usize, packet: &mut Packet) -> bool {
        let payload = &mut packet.segment.payload;
        if payload.is_empty() || self.changes[from] == 0 {
            return false;
        }
        self.changes[from] -= 1;
        let mut octets = payload.to_vec();
        let place = self.luck.below(octets.len() as u64) as usize;
        octets[place] = changed(octets[place]);
        *payload = Bytes::from(octets);
        true
    }

    /// An address goes down: nothing leaves from it, and nothing arrives there.
    pub fn take_away(&mut self, side: usize, path: usize) -> bool {
        for set in [&mut self.seen.sent, &mut self.seen.arrived] {
            set.add(Behaviour::AddressLost);
        }
        self.away.insert((side, path))
    }

    /// An address comes up.
    pub fn bring_back(&mut self, side: usize, path: usize) -> bool {
        self.away.remove(&(side, path))
    }

    /// All addresses that are down.
    pub fn away(&self) -> Vec<(usize, usize)> {
        self.away.iter().copied().collect()
    }

    fn put(&mut self, due: Nanos, from: usize, packet: Packet, tag: Tag) {
        self.count += 1;
        self.record(tag, false);
        self.in_flight.insert((due, self.count), (1 - from, packet, tag));
    }

    fn observes(&self, side: usize) -> bool {
        self.observed.as_ref().is_some_and(|(observed, _)| *observed == side)
    }

    fn look(&mut self, from: usize, packet: &Packet) -> Tag {
        match &mut self.observed {
            Some((side, observer)) if *side == from => observer.look(packet),
            Some((_, observer)) => {
                observer.hear(packet);
                Tag::default()
            }
            None => Tag::default(),
        }
    }

    fn record(&mut self, tag: Tag, arrives: bool) {
        self.seen.sent.add_all(tag.set);
        if arrives {
            self.seen.arrived.add_all(tag.set);
        }
    }

    /// A packet reaches a side whose connection has not ended.
    fn arrive(&mut self, to: usize, packet: &Packet, tag: Tag) {
        if let Some((_, observer)) = self.observed.as_mut().filter(|(side, _)| *side != to) {
            let set = observer.arrive(packet, tag);
            self.seen.sent.add_all(set);
            self.seen.arrived.add_all(set);
        }
    }

    /// Arrival of the next packet.
    pub fn next(&self) -> Nanos {
        self.in_flight.first_key_value().map_or(Nanos::MAX, |((due, _), _)| *due)
    }

    /// The next packet and its receiver; `None` if its address is down. `has_ended` tells of which sides the connection
    /// is over: what reaches these does not matter.
    pub fn take(&mut self, has_ended: [bool; 2]) -> Option<(usize, Packet)> {
        let (_, (to, packet, tag)) = self.in_flight.pop_first()?;
        if self.away.contains(&(to, path_of(packet.ip.destination))) {
            return None;
        }
        if !has_ended[to] {
            self.arrive(to, &packet, tag);
        }
        Some((to, packet))
    }

    /// No more losses from now on; options are still removed.
    pub fn calm(&mut self) {
        self.weather.fill(Weather::default());
        self.lie = None;
        self.changes = [0; 2];
    }
}
