//! The paths between the hosts of a case: loss, changes, replays, and forged packets.

use super::case::Weather;
use crate::pair::Fate;
use crate::pair::luck::Luck;
use anabranch_policy::time::Duration;
use anabranch_wire::{Ecn, Flags, Packet};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Earlier packets kept for replay.
const HISTORY: usize = 64;

/// The paths.
pub struct Network {
    luck: Luck,
    /// What each path does.
    pub weather: Vec<Weather>,
    /// Removed addresses, by host and path.
    pub down: [Vec<bool>; 2],
    /// Changed payload is detected by MPTCP; otherwise by TCP's own checksum.
    pub mangles: bool,
    /// Payload bytes changed towards each host.
    pub mangled: [u64; 2],
    /// Recent packets with their receiving host.
    pub history: VecDeque<(usize, Packet)>,
    /// The last packet sent by each host.
    pub last: [Option<Packet>; 2],
    /// Whether MPTCP options are stripped from each host's packets.
    pub strip: [bool; 2],
}

impl Network {
    /// Calm paths.
    pub fn new(seed: u64, paths: usize) -> Self {
        Self {
            luck: Luck(seed),
            weather: vec![Weather::default(); paths],
            down: [vec![false; paths], vec![false; paths]],
            mangles: false,
            mangled: [0, 0],
            history: VecDeque::new(),
            last: [None, None],
            strip: [false; 2],
        }
    }

    /// A random number.
    pub fn random(&mut self) -> u64 {
        self.luck.next()
    }

    fn chance(&mut self, of_256: u8) -> bool {
        of_256 > 0 && (self.random() & 0xff) < u64::from(of_256)
    }

    /// Whether no path loses packets.
    pub fn is_calm(&self) -> bool {
        self.weather.iter().all(Weather::is_calm)
    }

    /// Draws the fate of a packet.
    pub fn judge(&mut self, from: usize, packet: &Packet) -> Fate {
        let (source, destination) = (path_of(packet.ip.source), path_of(packet.ip.destination));
        if self.down[from][source] || self.down[1 - from][destination] {
            return Fate::Drop;
        }
        self.last[from] = Some(packet.clone());
        if !packet.segment.flags.contains(Flags::RST) {
            self.history.push_front((1 - from, packet.clone()));
            self.history.truncate(HISTORY);
        }
        let weather = self.weather[destination];
        let stopped = weather.black_hole || self.weather[source].black_hole;
        if stopped || self.chance(weather.loss) || self.chance(weather.corrupt) {
            return Fate::Drop;
        }
        if !packet.segment.payload.is_empty() && self.chance(weather.mangle) {
            return if self.mangles { Fate::Instead(Box::new(self.mangle(1 - from, packet))) } else { Fate::Drop };
        }
        let has_options = packet.segment.options.dss.is_some() || !packet.segment.options.mptcp.is_empty();
        if has_options && self.strip[from] {
            return Fate::Instead(Box::new(strip(packet)));
        }
        if packet.segment.payload.len() > 1 && self.chance(weather.split) {
            return Fate::Both(Box::new(self.split(packet)));
        }
        if packet.ip.ecn == Ecn::Capable0 && self.chance(weather.mark) {
            let mut marked = packet.clone();
            marked.ip.ecn = Ecn::Congestion;
            return Fate::Instead(Box::new(marked));
        }
        if self.chance(weather.twice) {
            return Fate::Twice;
        }
        if self.chance(weather.late) {
            return Fate::Late(Duration::from_micros(self.random() % (u64::from(weather.late_by) * 1_000)));
        }
        Fate::Deliver
    }

    /// Splits a segment: both parts have its options, only the second its FIN.
    fn split(&mut self, packet: &Packet) -> [Packet; 2] {
        let length = packet.segment.payload.len();
        let at = 1 + self.random() as usize % (length - 1);
        let (mut first, mut second) = (packet.clone(), packet.clone());
        first.segment.payload = packet.segment.payload.slice(..at);
        first.segment.flags = Flags(packet.segment.flags.0 & !(Flags::FIN | Flags::PSH).0);
        second.segment.payload = packet.segment.payload.slice(at..);
        second.segment.seq = packet.segment.seq + at as u32;
        [first, second]
    }

    /// Changes one byte, like a middlebox that rewrites addresses in the payload.
    fn mangle(&mut self, to: usize, packet: &Packet) -> Packet {
        let mut mangled = packet.clone();
        let mut payload = packet.segment.payload.to_vec();
        let at = self.random() as usize % payload.len();
        payload[at] ^= 1 + (self.random() % 255) as u8;
        mangled.segment.payload = Bytes::from(payload);
        self.mangled[to] += 1;
        mangled
    }
}

/// Removes the MPTCP options.
fn strip(packet: &Packet) -> Packet {
    let mut stripped = packet.clone();
    stripped.segment.options.dss = None;
    stripped.segment.options.mptcp.clear();
    stripped
}

/// The path of an address.
pub fn path_of(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(address) => usize::from(address.octets()[2]),
        IpAddr::V6(address) => usize::from(address.segments()[1]),
    }
}
