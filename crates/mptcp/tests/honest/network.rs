//! The paths between the hosts of a case: what they lose, change and repeat, and what strangers put on them.

use super::case::Weather;
use crate::pair::Fate;
use anabranch_policy::time::Duration;
use anabranch_wire::{Ecn, Flags, Packet};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Packets of the past that may come again.
const HISTORY: usize = 64;

/// The paths.
pub struct Network {
    state: u64,
    /// What each path does.
    pub weather: Vec<Weather>,
    /// Which addresses are gone: by host, by path.
    pub down: [Vec<bool>; 2],
    /// Changed payload is caught by MPTCP; otherwise TCP's own checksum catches it.
    pub mangles: bool,
    /// Payload bytes changed on the way to each host.
    pub mangled: [u64; 2],
    /// What was sent lately, and to which host.
    pub history: VecDeque<(usize, Packet)>,
    /// The last packet that each host sent.
    pub last: [Option<Packet>; 2],
    /// The first packet that could not be put on the wire, or came out of it different.
    pub unfit: Option<String>,
    buffer: Vec<u8>,
}

impl Network {
    /// Calm paths.
    pub fn new(seed: u64, paths: usize) -> Self {
        Self {
            state: seed,
            weather: vec![Weather::default(); paths],
            down: [vec![false; paths], vec![false; paths]],
            mangles: false,
            mangled: [0, 0],
            history: VecDeque::new(),
            last: [None, None],
            unfit: None,
            buffer: Vec::new(),
        }
    }

    /// A random number (splitmix64).
    pub fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn chance(&mut self, of_256: u8) -> bool {
        of_256 > 0 && (self.random() & 0xff) < u64::from(of_256)
    }

    /// Whether nothing is lost anywhere.
    pub fn is_calm(&self) -> bool {
        self.weather.iter().all(Weather::is_calm)
    }

    /// What happens to a packet.
    pub fn judge(&mut self, from: usize, packet: &Packet) -> Fate {
        self.check_wire(packet);
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

    /// Changes one byte, as a middlebox that rewrites addresses in the payload does.
    fn mangle(&mut self, to: usize, packet: &Packet) -> Packet {
        let mut mangled = packet.clone();
        let mut payload = packet.segment.payload.to_vec();
        let at = self.random() as usize % payload.len();
        payload[at] ^= 1 + (self.random() % 255) as u8;
        mangled.segment.payload = Bytes::from(payload);
        self.mangled[to] += 1;
        mangled
    }

    /// Every packet must fit on the wire and mean the same to whoever parses it.
    fn check_wire(&mut self, packet: &Packet) {
        self.buffer.clear();
        let fits = packet.emit(&mut self.buffer).map_err(|error| error.to_string());
        let parsed =
            fits.and_then(|()| Packet::parse(&Bytes::copy_from_slice(&self.buffer)).map_err(|error| error.to_string()));
        let complaint = match parsed {
            Ok(parsed) if parsed == *packet => return,
            Ok(parsed) => format!("parsed as {parsed:?}"),
            Err(error) => error,
        };
        self.unfit.get_or_insert(format!("{packet:?}: {complaint}"));
    }
}

/// The path that an address is on.
pub fn path_of(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(address) => usize::from(address.octets()[2]),
        IpAddr::V6(address) => usize::from(address.segments()[1]),
    }
}
