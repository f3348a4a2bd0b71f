//! Changes of a path while it is used.

use crate::lanes::{Heading, Lane};
use anabranch_lab::scenario::model::Direction;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_sim::link::QueueLimit;
use anabranch_sim::{Change, LinkId};

/// What of a path can be changed. It changes on the path's slowest link, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// In bits per second.
    Rate,
    /// Propagation delay in seconds.
    Delay,
    /// Share of packets, in the direction in which the scenario loses.
    Loss,
    /// Limit in packets.
    Queue,
    /// 1: up; 0: down. The hosts are not told.
    Up,
}

/// Greatest rate, delay and queue.
const MOST_RATE: f64 = 100e9;
const MOST_DELAY: f64 = 60.0;
const MOST_QUEUE: f64 = 1e6;

impl Quantity {
    /// # Errors
    /// There is none with this name.
    pub fn named(name: &str) -> Result<Self, String> {
        Ok(match name {
            "rate" => Self::Rate,
            "delay" => Self::Delay,
            "loss" => Self::Loss,
            "queue" => Self::Queue,
            "up" => Self::Up,
            _ => return Err(format!("a path has no '{name}': rate, delay, loss, queue or up")),
        })
    }

    /// # Errors
    /// What is wrong with the value.
    pub fn check(self, value: f64) -> Result<(), String> {
        let (possible, range) = match self {
            Self::Rate => (1.0..=MOST_RATE, "from 1 bit/s to 100 Gbit/s; to stop a path, cut it"),
            Self::Delay => (0.0..=MOST_DELAY, "from 0 to 60 s"),
            Self::Loss => (0.0..=1.0, "from 0 to 1"),
            Self::Queue => (1.0..=MOST_QUEUE, "from 1 to 1,000,000 packets"),
            Self::Up => (0.0..=1.0, "0 or 1"),
        };
        if possible.contains(&value) { Ok(()) } else { Err(format!("{self:?} {value}: a value is {range}")) }
    }

    /// Whether it concerns a lane of the changed path, of which the link with this index changes.
    pub fn concerns(self, lane: &Lane, link: usize, losing: Direction) -> bool {
        let other = match losing {
            Direction::Forward => Some(Heading::Backward),
            Direction::Backward => Some(Heading::Forward),
            Direction::Both => None,
        };
        lane.link == link && (self != Self::Loss || Some(lane.direction) != other)
    }

    /// Records the value, and returns the change of the link. The value was checked.
    pub fn change(self, lane: &mut Lane, link: LinkId, value: f64) -> Change {
        match self {
            Self::Rate => {
                lane.rate = Some(value);
                Change::LinkRate(link, Rate::from_bits_per_second(value as u64))
            }
            Self::Delay => {
                lane.delay = value;
                Change::LinkDelay(link, Duration::from_secs_f64(value))
            }
            Self::Loss => {
                lane.loss = value;
                Change::LinkLoss(link, value)
            }
            Self::Queue => {
                lane.queue = Some(value as usize);
                Change::LinkQueue(link, QueueLimit::Packets(value as usize))
            }
            Self::Up => {
                lane.up = value > 0.5;
                Change::LinkState(link, lane.up)
            }
        }
    }
}
