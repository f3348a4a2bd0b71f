//! Radio channels shared by many hosts. Maps a frame's hardware addresses to stations of the lab's radio.

use anabranch_policy::time::Instant;
use anabranch_sim::radio::{Medium, MediumConfig, Position, StationId};
use anabranch_sim::random::{Chance, RandomStream};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

pub type Hardware = [u8; 6];

/// A channel, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub usize);

/// A station of a host on a channel, numbered from 0 over all channels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AntennaId(pub usize);

/// The model of a channel.
#[derive(Clone, PartialEq, Debug)]
pub enum ChannelModel {
    /// The lab's radio.
    Radio(Box<MediumConfig>),
    /// A frame reaches all stations linked to its sender at once, or is lost with the link's probability. No rate, no
    /// contention, no retransmissions.
    Ideal,
}

/// A frame received from the air.
#[derive(Clone, PartialEq, Debug)]
pub struct Landing {
    /// The receiving antenna.
    pub antenna: AntennaId,
    /// The Ethernet frame.
    pub frame: Bytes,
}

/// Counters of the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AirCounters {
    /// Frames sent by hosts.
    pub frames: u64,
    /// Of these, frames dropped because a station's queue was full.
    pub refused: u64,
    /// Of these, frames that are no Ethernet, or to a hardware address that no station on the channel has.
    pub unaddressed: u64,
    /// Unicast frames dropped after the last attempt.
    pub undelivered: u64,
    /// Frames received by hosts; a broadcast counts once per receiver.
    pub landed: u64,
}

enum Kind {
    Radio(Box<Medium<Bytes>>),
    Ideal(Box<Ideal>),
}

/// A channel of the ideal model.
struct Ideal {
    /// The loss probability from one station to another.
    links: BTreeMap<(u32, u32), f64>,
    luck: RandomStream,
    /// Received frames with their stations.
    landings: VecDeque<(u32, Bytes)>,
}

struct Channel {
    kind: Kind,
    stations: BTreeMap<Hardware, u32>,
    /// The antenna of each station.
    antennas: Vec<AntennaId>,
}

/// All channels.
#[derive(Default)]
pub struct Air {
    channels: Vec<Channel>,
    /// Channel and station of each antenna.
    places: Vec<(usize, u32)>,
    counters: AirCounters,
}

/// Whether a frame has an IP packet of network control (DSCP CS6 or CS7, RFC 4594, 3.1), which wireless stations queue apart from data:
/// in the access category for voice (IEEE 802.11-2020, 10.2.3.2).
fn is_network_control(frame: &[u8]) -> bool {
    // The upper three bits of the DSCP are in the second byte of an IPv4 header, and in the first of an IPv6 header.
    let precedence = match frame.get(ETHERNET - 2..ETHERNET + 2) {
        Some([0x08, 0x00, _, service]) => service >> 5,
        Some([0x86, 0xdd, first, _]) => first >> 1 & 7,
        _ => 0,
    };
    precedence >= 6
}

impl Air {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a channel. Its random numbers derive from the run's seed and its own number.
    pub fn add_channel(&mut self, model: &ChannelModel, seed: u64) -> ChannelId {
        let name = format!("channel {}", self.channels.len());
        let kind = match model {
            ChannelModel::Radio(config) => Kind::Radio(Box::new(Medium::new((**config).clone(), seed, &name))),
            ChannelModel::Ideal => Kind::Ideal(Box::new(Ideal {
                links: BTreeMap::new(),
                luck: RandomStream::new(seed, &name),
                landings: VecDeque::new(),
            })),
        };
        self.channels.push(Channel { kind, stations: BTreeMap::new(), antennas: Vec::new() });
        ChannelId(self.channels.len() - 1)
    }

    /// Adds a station; `None` if there is no such channel.
    pub fn add_station(&mut self, channel: ChannelId, position: Position, hardware: Hardware) -> Option<AntennaId> {
        let antenna = AntennaId(self.places.len());
        let place = self.channels.get_mut(channel.0)?;
        let station = match &mut place.kind {
            Kind::Radio(medium) => medium.add_station(position).0,
            Kind::Ideal(_) => place.antennas.len() as u32,
        };
        place.stations.insert(hardware, station);
        place.antennas.push(antenna);
        self.places.push((channel.0, station));
        Some(antenna)
    }

    /// The number of antennas.
    pub fn antennas(&self) -> usize {
        self.places.len()
    }

    pub fn counters(&self) -> AirCounters {
        self.counters
    }

    /// Sets the loss probability (0 to 1) of frames from `from` to `to`, or disconnects them. Antennas on different
    /// channels are never connected.
    pub fn set_link(&mut self, from: AntennaId, to: AntennaId, loss: Option<f64>) {
        let (Some(&(channel, from)), Some(&(other, to))) = (self.places.get(from.0), self.places.get(to.0)) else {
            return;
        };
        let Some(place) = self.channels.get_mut(channel).filter(|_| channel == other) else { return };
        match &mut place.kind {
            Kind::Radio(medium) => {
                use anabranch_sim::radio::{Hears, Link};
                let link = match loss {
                    Some(error_rate) => Link { error_rate, ..Link::GOOD },
                    None => Link { hears: Hears::Nothing, ..Link::default() },
                };
                medium.set_link(StationId(from), StationId(to), Some(link));
            }
            Kind::Ideal(ideal) => match loss {
                Some(loss) => drop(ideal.links.insert((from, to), loss)),
                None => drop(ideal.links.remove(&(from, to))),
            },
        }
    }

    /// Moves an antenna; without effect on ideal channels.
    pub fn set_position(&mut self, antenna: AntennaId, position: Position) {
        let Some(&(channel, station)) = self.places.get(antenna.0) else { return };
        if let Some(Channel { kind: Kind::Radio(medium), .. }) = self.channels.get_mut(channel) {
            medium.set_position(StationId(station), position);
        }
    }

    /// Handles a frame sent by a host.
    pub(crate) fn handle_frame(&mut self, now: Instant, antenna: AntennaId, frame: Bytes) {
        self.counters.frames += 1;
        let Some(&(channel, station)) = self.places.get(antenna.0) else { return };
        let Some(place) = self.channels.get_mut(channel) else { return };
        let Some(hardware) = frame.first_chunk::<6>().filter(|_| frame.len() >= ETHERNET) else {
            self.counters.unaddressed += 1;
            return;
        };
        // The lowest bit of the first byte marks multicast and broadcast addresses.
        let all = hardware.first().is_some_and(|first| first & 1 == 1);
        let to = place.stations.get(hardware).copied();
        if !all && to.is_none() {
            self.counters.unaddressed += 1;
            return;
        }
        match &mut place.kind {
            Kind::Radio(medium) => {
                let bytes = (frame.len() - ETHERNET) as u32;
                let (from, to) = (StationId(station), to.map(StationId));
                let taken = if is_network_control(&frame) {
                    medium.enqueue_urgent(now, from, to, frame, bytes)
                } else {
                    medium.enqueue(now, from, to, frame, bytes)
                };
                self.counters.refused += u64::from(taken.is_err());
            }
            Kind::Ideal(ideal) => {
                let Ideal { links, luck, landings } = &mut **ideal;
                for ((_, other), loss) in links.range((station, 0)..=(station, u32::MAX)) {
                    if to.is_some_and(|to| to != *other) {
                        continue;
                    }
                    if luck.happens(Chance::new(*loss)) {
                        self.counters.undelivered += u64::from(!all);
                    } else {
                        landings.push_back((*other, frame.clone()));
                    }
                }
            }
        }
    }

    /// Handles events due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        for channel in &mut self.channels {
            if let Kind::Radio(medium) = &mut channel.kind {
                medium.handle_timeout(now);
            }
        }
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Instant {
        let due = self.channels.iter().map(|channel| match &channel.kind {
            Kind::Radio(medium) => medium.poll_timeout(),
            Kind::Ideal(_) => Instant::NEVER,
        });
        due.min().unwrap_or(Instant::NEVER)
    }

    /// The next frame received by a host.
    pub(crate) fn poll_landing(&mut self) -> Option<Landing> {
        for channel in &mut self.channels {
            let landed = match &mut channel.kind {
                Kind::Radio(medium) => {
                    while let Some(status) = medium.poll_status() {
                        self.counters.undelivered += u64::from(status.destination.is_some() && !status.delivered);
                    }
                    medium.poll_delivery().map(|delivery| (delivery.to.0, delivery.cargo))
                }
                Kind::Ideal(ideal) => ideal.landings.pop_front(),
            };
            if let Some((station, frame)) = landed
                && let Some(antenna) = channel.antennas.get(station as usize)
            {
                self.counters.landed += 1;
                return Some(Landing { antenna: *antenna, frame });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Hardware = [2, 0, 0, 0, 0, 1];
    const THERE: Hardware = [2, 0, 0, 0, 0, 2];

    /// A frame with the beginning of an IP packet, and this byte last.
    fn frame(ethertype: [u8; 2], ip: [u8; 2], last: u8) -> Bytes {
        [&THERE[..], &HERE, &ethertype, &ip, &[0; 100], &[last]].concat().into()
    }

    #[test]
    fn network_control_leaves_before_data_on_a_radio() {
        let mut air = Air::new();
        let channel = air.add_channel(&ChannelModel::Radio(Box::default()), 1);
        let place = |x| Position { x, y: 0.0 };
        let here = air.add_station(channel, place(0.0), HERE).expect("the channel is there");
        air.add_station(channel, place(10.0), THERE).expect("the channel is there");
        let (ipv4, ipv6) = ([0x08, 0x00], [0x86, 0xdd]);
        // The first is about to be sent already. Expedited forwarding is no network control, and neither is what is not IP.
        let data = [(ipv4, [0x45, 0]), (ipv4, [0x45, 46 << 2]), (ipv6, [0x6b, 0x80]), ([0x08, 0x06], [0x45, 48 << 2])];
        let control = [(ipv4, [0x45, 48 << 2]), (ipv6, [0x6c, 0]), (ipv6, [0x6f, 0xff]), (ipv4, [0x45, 56 << 2])];
        for (number, (ethertype, ip)) in (0..).zip(data.into_iter().chain(control)) {
            air.handle_frame(Instant::ZERO, here, frame(ethertype, ip, number));
        }
        let mut landed = Vec::new();
        while air.poll_timeout() != Instant::NEVER {
            let now = air.poll_timeout();
            air.handle_timeout(now);
            landed.extend(core::iter::from_fn(|| air.poll_landing()).filter_map(|one| one.frame.last().copied()));
        }
        assert_eq!(landed, [0, 4, 5, 6, 7, 1, 2, 3]);
    }
}
