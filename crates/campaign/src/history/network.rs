//! The paths between the two sides, in virtual time.

use super::lie::Lie;
use crate::literal::{MILLI, Nanos};
use crate::luck::Luck;
use anabranch_wire::Packet;
use std::collections::BTreeMap;
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
    fates: Vec<(usize, u32, Fate)>,
    sent: [u32; 2],
    in_flight: BTreeMap<(Nanos, u64), (usize, Packet)>,
    count: u64,
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
            fates,
            sent: [0, 0],
            in_flight: BTreeMap::new(),
            count: 0,
        }
    }

    /// Takes a packet from a side; returns what became of it, in a word.
    pub fn send(&mut self, now: Nanos, from: usize, mut packet: Packet) -> &'static str {
        let path = path_of(packet.ip.destination).min(self.delays.len() - 1);
        let number = self.sent[from];
        self.sent[from] += 1;
        if let Some((_, lie, left)) = self.lie.as_mut().filter(|(side, _, left)| *side == from && *left > 0) {
            *left -= 1;
            let forged = lie.forge(&mut self.luck, &packet);
            if !lie.tell(&mut self.luck, &mut packet) {
                return "withheld";
            }
            for forged in forged {
                self.put(now + self.delays[path], from, forged);
            }
        }
        if self.strip[from] {
            packet.segment.options.dss = None;
            packet.segment.options.mptcp.clear();
        }
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
        if weather.down || self.weather[path_of(packet.ip.source).min(self.delays.len() - 1)].down {
            return "lost";
        }
        if self.luck.parts(weather.loss) {
            return "lost";
        }
        let mut word = if self.strip[from] { "stripped" } else { "" };
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

    fn put(&mut self, due: Nanos, from: usize, packet: Packet) {
        self.count += 1;
        self.in_flight.insert((due, self.count), (1 - from, packet));
    }

    /// When the next packet arrives.
    pub fn next(&self) -> Nanos {
        self.in_flight.first_key_value().map_or(Nanos::MAX, |((due, _), _)| *due)
    }

    /// The next packet, and to whom.
    pub fn take(&mut self) -> Option<(usize, Packet)> {
        self.in_flight.pop_first().map(|(_, arrival)| arrival)
    }

    /// Nothing is lost from now on; options stay stripped.
    pub fn calm(&mut self) {
        self.weather.fill(Weather::default());
        self.lie = None;
    }
}
