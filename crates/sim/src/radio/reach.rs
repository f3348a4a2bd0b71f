//! Which stations reach which others: by three radii, by path loss, or per link; found through a grid, so that the cost
//! of a transmission depends on the number of its receivers, not of all stations.

use super::hearing::{Hears, Position};
use super::propagation::{PathLoss, Shadowing};
use crate::random::{Chance, RandomStream};
use std::collections::BTreeMap;

/// How reach follows from positions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reach {
    /// By distance alone, in metres, inclusive.
    Radii {
        /// Frames can be received within this distance.
        decode: f64,
        /// Frames interfere with others within this distance; at least `decode`.
        interfere: f64,
        /// The channel is busy within this distance; at least `decode`.
        sense: f64,
    },
    /// By signal strength.
    PathLoss(PathLoss),
    /// Only by explicit links.
    Links,
}

impl Reach {
    /// One radius for all three.
    pub const fn disk(radius: f64) -> Self {
        Self::Radii { decode: radius, interfere: radius, sense: radius }
    }
    /// Carrier sense and interference at 2.2 times the reception range: 550 m for 250 m, as in the WaveLAN model of
    /// ns-2.
    pub const fn realistic(decode: f64) -> Self {
        Self::Radii { decode, interfere: 2.2 * decode, sense: 2.2 * decode }
    }
    /// Greatest distance at which a station is reached.
    fn limit(&self) -> f64 {
        match self {
            Self::Radii { decode, interfere, sense } => decode.max(*interfere).max(*sense),
            Self::PathLoss(path_loss) => path_loss.limit(),
            Self::Links => 0.0,
        }
    }
}

/// An explicit link: how one station perceives another.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Link {
    pub hears: Hears,
    /// The probability that a data frame has an error.
    pub error_rate: f64,
    /// In dBm.
    pub signal: Option<f32>,
}

impl Link {
    pub const GOOD: Self = Self { hears: Hears::Frames, error_rate: 0.0, signal: None };
}

/// A station that is reached by another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Neighbor {
    pub station: u32,
    hears: Hears,
    /// An explicit link, without fading.
    steady: bool,
    /// The probability that a data frame has an error.
    pub error: Chance,
    /// In dBm, NaN if the model has none.
    pub signal: f32,
}

impl Neighbor {
    pub fn decodes(&self) -> bool {
        self.hears == Hears::Frames
    }
    pub fn senses(&self) -> bool {
        matches!(self.hears, Hears::Busy | Hears::BusyAndNoise | Hears::Frames)
    }
    pub fn interferes(&self) -> bool {
        self.hears >= Hears::Noise
    }
}

/// The stations of one square of the grid.
#[derive(Clone, Debug, Default)]
struct Cell {
    members: Vec<u32>,
    /// Number of the last change that affected it.
    changed: u64,
}

/// The stations reached by a station, as of a change.
#[derive(Clone, Debug)]
struct Reached {
    as_of: u64,
    neighbors: Vec<Neighbor>,
}

/// Positions and links, and the reach that follows from them.
#[derive(Clone, Debug)]
pub struct Neighborhood {
    reach: Reach,
    shadowing: Option<Shadowing>,
    fading: RandomStream,
    side: f64,
    positions: Vec<Position>,
    cells: BTreeMap<(i32, i32), Cell>,
    /// By (from, to).
    links: BTreeMap<(u32, u32), Link>,
    error_rates: BTreeMap<(u32, u32), f64>,
    reached: Vec<Reached>,
    /// Counts changes of positions.
    changes: u64,
    /// The last change of links.
    relinked: u64,
}

impl Neighborhood {
    pub fn new(reach: Reach, seed: u64, name: &str) -> Self {
        let shadowing = match &reach {
            Reach::PathLoss(path_loss) => Shadowing::new(path_loss, seed, name),
            _ => None,
        };
        Self {
            reach,
            shadowing,
            fading: RandomStream::new(seed, &format!("{name}/fading")),
            side: reach.limit().max(1.0),
            positions: Vec::new(),
            cells: BTreeMap::new(),
            links: BTreeMap::new(),
            error_rates: BTreeMap::new(),
            reached: Vec::new(),
            changes: 1,
            relinked: 0,
        }
    }
    fn cell_of(&self, position: Position) -> (i32, i32) {
        let index = |metres: f64| libm::floor(metres / self.side) as i32;
        (index(position.x), index(position.y))
    }
    pub fn add(&mut self, position: Position) {
        let station = self.positions.len() as u32;
        self.changes += 1;
        self.positions.push(position);
        if let Some(shadowing) = &mut self.shadowing {
            shadowing.place(station, position);
        }
        self.reached.push(Reached { as_of: 0, neighbors: Vec::new() });
        let changed = self.changes;
        let cell = self.cells.entry(self.cell_of(position)).or_default();
        cell.members.push(station);
        cell.changed = changed;
    }
    pub fn position(&self, station: u32) -> Position {
        self.positions[station as usize]
    }
    pub fn move_to(&mut self, station: u32, position: Position) {
        let before = self.positions[station as usize];
        if before == position {
            return;
        }
        self.changes += 1;
        let changed = self.changes;
        let (old, new) = (self.cell_of(before), self.cell_of(position));
        self.positions[station as usize] = position;
        if let Some(shadowing) = &mut self.shadowing {
            shadowing.place(station, position);
        }
        if let Some(cell) = self.cells.get_mut(&old) {
            cell.changed = changed;
            if old != new {
                cell.members.retain(|member| *member != station);
            }
        }
        if old != new {
            let cell = self.cells.entry(new).or_default();
            cell.members.push(station);
            cell.changed = changed;
        }
    }
    pub fn set_link(&mut self, from: u32, to: u32, link: Option<Link>) {
        match link {
            Some(link) => self.links.insert((from, to), link),
            None => self.links.remove(&(from, to)),
        };
        self.relink();
    }
    pub fn set_error_rate(&mut self, from: u32, to: u32, rate: f64) {
        if rate > 0.0 {
            self.error_rates.insert((from, to), rate);
        } else {
            self.error_rates.remove(&(from, to));
        }
        self.relink();
    }
    fn relink(&mut self) {
        self.changes += 1;
        self.relinked = self.changes;
    }

    /// The stations that a station reaches, in the order of their numbers.
    pub fn reached_by(&mut self, station: u32) -> &[Neighbor] {
        let index = station as usize;
        if self.reached[index].as_of != self.changes {
            if !self.is_current(station) {
                let mut neighbors = std::mem::take(&mut self.reached[index].neighbors);
                self.find(station, &mut neighbors);
                self.reached[index].neighbors = neighbors;
            }
            self.reached[index].as_of = self.changes;
        }
        &self.reached[index].neighbors
    }
    /// Applies individual fading to each receiver of a frame, if the model has any.
    pub fn fade(&mut self, reached: &mut [Neighbor]) {
        let Reach::PathLoss(path_loss) = &self.reach else { return };
        if path_loss.fading == 0 {
            return;
        }
        for neighbor in reached.iter_mut().filter(|neighbor| !neighbor.steady) {
            neighbor.signal += path_loss.fade(&mut self.fading);
            neighbor.hears = path_loss.hears(neighbor.signal);
        }
    }
    /// Whether nothing has changed around a station since its neighbours were computed.
    fn is_current(&self, station: u32) -> bool {
        let as_of = self.reached[station as usize].as_of;
        self.relinked <= as_of && as_of > 0 && self.around(station).all(|cell| cell.changed <= as_of)
    }
    fn around(&self, station: u32) -> impl Iterator<Item = &Cell> {
        let (x, y) = self.cell_of(self.positions[station as usize]);
        (-1..=1)
            .flat_map(move |dx| (-1..=1).map(move |dy| (x.saturating_add(dx), y.saturating_add(dy))))
            .filter_map(|key| self.cells.get(&key))
    }
    fn find(&self, station: u32, neighbors: &mut Vec<Neighbor>) {
        neighbors.clear();
        if self.reach != Reach::Links {
            for cell in self.around(station) {
                neighbors.extend(cell.members.iter().filter_map(|other| self.judge(station, *other)));
            }
        }
        for ((_, to), link) in self.links.range((station, 0)..=(station, u32::MAX)) {
            neighbors.retain(|neighbor| neighbor.station != *to);
            if link.hears != Hears::Nothing && (*to as usize) < self.positions.len() && *to != station {
                let signal = link.signal.unwrap_or(f32::NAN);
                neighbors.push(Neighbor {
                    station: *to,
                    hears: link.hears,
                    steady: true,
                    error: Chance::new(link.error_rate),
                    signal,
                });
            }
        }
        for ((_, to), rate) in self.error_rates.range((station, 0)..=(station, u32::MAX)) {
            if let Some(neighbor) = neighbors.iter_mut().find(|neighbor| neighbor.station == *to) {
                neighbor.error = Chance::new(*rate);
            }
        }
        neighbors.sort_unstable_by_key(|neighbor| neighbor.station);
    }
    /// How `to` perceives `from` by their positions.
    fn judge(&self, from: u32, to: u32) -> Option<Neighbor> {
        if from == to {
            return None;
        }
        let (here, there) = (self.positions[from as usize], self.positions[to as usize]);
        let (hears, signal) = match &self.reach {
            Reach::Links => return None,
            Reach::Radii { decode, interfere, sense } => {
                let distance = here.distance(there);
                (Hears::of([decode, interfere, sense].map(|radius| distance <= *radius)), f32::NAN)
            }
            Reach::PathLoss(path_loss) => {
                let (low, high) = (from.min(to), from.max(to));
                let shadow = self.shadowing.as_ref().map_or(0.0, |shadowing| shadowing.between(low, high));
                let signal = (path_loss.mean_signal(here.distance(there)) + shadow) as f32;
                if !path_loss.is_ever_heard(signal) {
                    return None;
                }
                (path_loss.hears(signal), signal)
            }
        };
        if hears == Hears::Nothing && !matches!(self.reach, Reach::PathLoss(_)) {
            return None;
        }
        Some(Neighbor { station: to, hears, steady: false, error: Chance::NEVER, signal })
    }
}
