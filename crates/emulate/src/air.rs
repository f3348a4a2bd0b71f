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
                let refused = medium.enqueue(now, StationId(station), to.map(StationId), frame, bytes).is_err();
                self.counters.refused += u64::from(refused);
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
