//! Channels that many hosts share, and who is on them: what a frame's addresses mean to the lab's radio.

use anabranch_policy::time::Instant;
use anabranch_sim::radio::{Medium, MediumConfig, Position, StationId};
use anabranch_sim::random::{Chance, RandomStream};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// A hardware address.
pub type Hardware = [u8; 6];

/// A channel of the air; counts up from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub usize);

/// A place where a host listens and speaks; counts up from 0 over all channels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AntennaId(pub usize);

/// What frames do on a channel.
#[derive(Clone, PartialEq, Debug)]
pub enum ChannelModel {
    /// The lab's radio.
    Radio(Box<MediumConfig>),
    /// A frame reaches everyone who is linked to its sender at once, or is lost by the link's chance: no rate, no
    /// contention, no second attempts.
    Ideal,
}

/// A frame that leaves the air.
#[derive(Clone, PartialEq, Debug)]
pub struct Landing {
    /// Where.
    pub antenna: AntennaId,
    /// The Ethernet frame.
    pub frame: Bytes,
}

/// What the air counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AirCounters {
    /// Frames that came from hosts.
    pub frames: u64,
    /// Of these what a station's queue had no room for.
    pub refused: u64,
    /// Of these what is no Ethernet, or is for a hardware address that nobody on the channel has.
    pub unaddressed: u64,
    /// Unicast frames that were dropped after the last attempt.
    pub undelivered: u64,
    /// Frames, copies of those for all included, that reached hosts.
    pub landed: u64,
}

enum Kind {
    Radio(Box<Medium<Bytes>>),
    Ideal(Box<Ideal>),
}

/// A channel on which frames arrive at once or not at all.
struct Ideal {
    /// The chance to be lost from one station to another.
    links: BTreeMap<(u32, u32), f64>,
    luck: RandomStream,
    /// Stations and what has reached them.
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
    /// No channels.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a channel, with luck of its own from the run's seed and its number.
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

    /// Adds a station; none if there is no such channel.
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

    /// How many antennas there are.
    pub fn antennas(&self) -> usize {
        self.places.len()
    }

    /// What was counted.
    pub fn counters(&self) -> AirCounters {
        self.counters
    }

    /// Sets what `to` hears of `from` on their channel: nothing, or frames with a chance to be lost, 0 to 1. Antennas on
    /// different channels hear nothing of each other.
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

    /// Moves an antenna; on a channel without distances nothing changes.
    pub fn set_position(&mut self, antenna: AntennaId, position: Position) {
        let Some(&(channel, station)) = self.places.get(antenna.0) else { return };
        if let Some(Channel { kind: Kind::Radio(medium), .. }) = self.channels.get_mut(channel) {
            medium.set_position(StationId(station), position);
        }
    }

    /// A host sends a frame.
    pub(crate) fn handle_frame(&mut self, now: Instant, antenna: AntennaId, frame: Bytes) {
        self.counters.frames += 1;
        let Some(&(channel, station)) = self.places.get(antenna.0) else { return };
        let Some(place) = self.channels.get_mut(channel) else { return };
        let Some(hardware) = frame.first_chunk::<6>().filter(|_| frame.len() >= ETHERNET) else {
            self.counters.unaddressed += 1;
            return;
        };
        // The lowest bit of the first byte marks groups and the broadcast address.
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

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        for channel in &mut self.channels {
            if let Kind::Radio(medium) = &mut channel.kind {
                medium.handle_timeout(now);
            }
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Instant {
        let due = self.channels.iter().map(|channel| match &channel.kind {
            Kind::Radio(medium) => medium.poll_timeout(),
            Kind::Ideal(_) => Instant::NEVER,
        });
        due.min().unwrap_or(Instant::NEVER)
    }

    /// The next frame that has reached a host.
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
