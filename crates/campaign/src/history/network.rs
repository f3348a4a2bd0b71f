//! The paths between the two sides, in virtual time.

use super::lie::Lie;
use crate::literal::{MILLI, Nanos};
use crate::luck::Luck;
use anabranch_wire::{Flags, Packet, SeqNumber};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What a path does to packets, in parts of 256.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Weather {
    /// Lost.
    pub loss: u8,
    /// Duplicated.
    pub twice: u8,
    /// Delivered later, by up to `late_by`.
    pub late: u8,
    /// Milliseconds.
    pub late_by: u16,
    /// Nothing passes.
    pub down: bool,
}

/// What happens to one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is lost.
    Drop,
    /// It arrives twice, the second time so many milliseconds later.
    Twice(u32),
    /// It arrives so many milliseconds later.
    Late(u32),
}

/// The paths.
pub struct Network {
    luck: Luck,
    delays: Vec<Nanos>,
    /// What each does now.
    pub weather: Vec<Weather>,
    /// Which side lies, how, and in how many packets more.
    pub lie: Option<(usize, Lie, u32)>,
    /// Whether what each side sends loses its MPTCP options.
    pub strip: [bool; 2],
    /// In how many more packets of each side's an octet of the payload is changed.
    pub changes: [u32; 2],
    /// The addresses that are gone: side and path.
    away: BTreeSet<(usize, usize)>,
    fates: Vec<(usize, u32, Fate)>,
    sent: [u32; 2],
    /// How many packets attackers have sent.
    pub forged: u32,
    /// What comes after the furthest octet that a side has sent, by its side, both ports and path.
    ends: BTreeMap<(usize, u16, u16, usize), SeqNumber>,
    in_flight: BTreeMap<(Nanos, u64), (usize, Packet)>,
    count: u64,
}

/// What becomes of an octet that is changed on its way.
pub fn changed(octet: u8) -> u8 {
    octet.wrapping_add(1)
}

/// The path that an address is on.
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
    /// Calm paths with these delays in microseconds.
    pub fn new(seed: u64, delays: &[u32], strip: [bool; 2], fates: Vec<(usize, u32, Fate)>) -> Self {
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
        }
    }

    /// Takes a packet from a side; returns what became of it, in a word.
    pub fn send(&mut self, now: Nanos, from: usize, mut packet: Packet) -> &'static str {
        let path = path_of(packet.ip.destination).min(self.delays.len() - 1);
        let number = self.sent[from];
        self.sent[from] += 1;
        let end = self.end_of(from, &packet);
        if let Some((_, lie, left)) = self.lie.as_mut().filter(|(side, _, left)| *side == from && *left > 0) {
            *left -= 1;
            let forged = lie.forge(&mut self.luck, &packet, end);
            if !lie.tell(&mut self.luck, &mut packet) {
                return "withheld";
            }
            for forged in forged {
                self.forged += 1;
                self.put(now + self.delays[path], from, forged);
            }
        }
        if self.strip[from] {
            packet.segment.options.dss = None;
            packet.segment.options.mptcp.clear();
        }
        let source = path_of(packet.ip.source);
        if self.away.contains(&(from, source)) {
            return "from nowhere";
        }
        let changed = self.change(from, &mut packet);
        let due = now + self.delays[path];
        let fate = self.fates.iter().find(|(side, which, _)| (*side, *which) == (from, number));
        let weather = self.weather[path];
        match fate.map(|(_, _, fate)| *fate) {
            Some(Fate::Drop) => return "lost",
            Some(Fate::Twice(later)) => {
                self.put(due + u64::from(later) * MILLI, from, packet.clone());
                self.put(due, from, packet);
                return "twice";
            }
            Some(Fate::Late(later)) => {
                self.put(due + u64::from(later) * MILLI, from, packet);
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
            self.put(due + later, from, packet.clone());
            word = "twice";
        }
        let late = self.luck.parts(weather.late);
        let later = if late { self.luck.below(u64::from(weather.late_by) * MILLI) } else { 0 };
        self.put(due + later, from, packet);
        if late { "late" } else { word }
    }

    /// What comes after the furthest octet that the subflow of a packet has sent, that packet included.
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

    /// Changes an octet of the payload, as a middlebox does that knows nothing of MPTCP: TCP's own checksum is right again.
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

    /// An address is gone: nothing leaves from it, and nothing arrives there.
    pub fn take_away(&mut self, side: usize, path: usize) -> bool {
        self.away.insert((side, path))
    }

    /// It is back.
    pub fn bring_back(&mut self, side: usize, path: usize) -> bool {
        self.away.remove(&(side, path))
    }

    /// All that are gone.
    pub fn away(&self) -> Vec<(usize, usize)> {
        self.away.iter().copied().collect()
    }

    fn put(&mut self, due: Nanos, from: usize, packet: Packet) {
        self.count += 1;
        self.in_flight.insert((due, self.count), (1 - from, packet));
    }

    /// When the next packet arrives.
    pub fn next(&self) -> Nanos {
        self.in_flight.first_key_value().map_or(Nanos::MAX, |((due, _), _)| *due)
    }

    /// The next packet, and to whom. There is none if nobody has its address any more.
    pub fn take(&mut self) -> Option<(usize, Packet)> {
        let (_, (to, packet)) = self.in_flight.pop_first()?;
        (!self.away.contains(&(to, path_of(packet.ip.destination)))).then_some((to, packet))
    }

    /// Nothing is lost from now on; options stay stripped.
    pub fn calm(&mut self) {
        self.weather.fill(Weather::default());
        self.lie = None;
        self.changes = [0; 2];
    }
}
