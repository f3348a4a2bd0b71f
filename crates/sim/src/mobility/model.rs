//! The mobility models and their parameters.

use super::area::{Area, Span};
use super::error::{MAX_NODES, MobilityError};
use super::movement::{Movement, Track};
use super::{gauss_markov, group, random_direction, random_waypoint};
use crate::radio::Position;
use crate::random::RandomStream;
use anabranch_policy::time::Duration;

/// How nodes move. All models but [`Self::BegunWaypoint`] start in their steady state: no initial phase has to be
/// discarded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Model {
    /// Straight to a uniformly distributed position at constant speed, then a pause; repeated (Broch et al., MobiCom
    /// 1998). The first leg is drawn from the stationary distribution (Navidi and Camp, IEEE Trans. Mobile Computing
    /// 3(1), 2004).
    RandomWaypoint {
        /// In metres per second. The least must be above 0, or the mean speed decays towards 0 (Yoon, Liu and Noble,
        /// INFOCOM 2003).
        speed: Span,
        /// In seconds.
        pause: Span,
    },
    /// Random waypoint outside of its steady state: all nodes began to move at uniformly distributed positions some
    /// time ago. For comparison with published simulations of this kind. The least speed may be 0, and results depend
    /// on the time.
    BegunWaypoint {
        /// In metres per second; at least a millionth.
        speed: Span,
        /// In seconds.
        pause: Span,
        /// Time since they began.
        ago: Duration,
    },
    /// One direction at one speed for some time, then another; reflected at the edges. Positions stay uniformly
    /// distributed (Nain, Towsley, Liu and Liu, INFOCOM 2005).
    RandomDirection {
        /// In metres per second.
        speed: Span,
        /// Mean duration of a leg in seconds, exponentially distributed.
        leg: f64,
    },
    /// Speed and direction change slightly each second (Liang and Haas, INFOCOM 1999, as in Camp, Boleng and Davies,
    /// WCMC 2(5), 2002); reflected at the edges.
    GaussMarkov {
        /// Mean speed in metres per second.
        speed: f64,
        /// Standard deviation of the speed in metres per second. Speeds below 0 become 0.
        speed_deviation: f64,
        /// Standard deviation of the direction in radians.
        direction_deviation: f64,
        /// Weight of the last second's speed and direction, 0 to 1; usually 0.75.
        memory: f64,
    },
    /// Groups whose centres move by random waypoint; members move around the centre by random waypoint in a disc
    /// (reference point group mobility: Hong, Gerla, Pei and Chiang, MSWiM 1999).
    ReferencePointGroup {
        /// Members per group; the last group has the remainder.
        members: usize,
        /// Speed of the centres in metres per second; the least must be above 0.
        speed: Span,
        /// Pause of the centres in seconds.
        pause: Span,
        /// Greatest distance of members from their centre, in metres.
        radius: f64,
        /// Speed of the members relative to their centre in metres per second; the least must be above 0.
        member_speed: Span,
    },
}

impl Model {
    /// Draws the tracks of `nodes` nodes for `duration`.
    pub fn draw(self, area: Area, nodes: usize, duration: Duration, seed: u64) -> Result<Movement, MobilityError> {
        self.check(area)?;
        if nodes > MAX_NODES {
            return Err(MobilityError::TooManyNodes);
        }
        let seconds = duration.as_secs_f64();
        let stream = |name: &str, number: usize| RandomStream::new(seed, &format!("mobility/{name}/{number}"));
        let each = |draw: &dyn Fn(&mut RandomStream) -> Track| {
            (0..nodes).map(|node| draw(&mut stream("node", node))).collect::<Vec<_>>()
        };
        let tracks = match self {
            Self::RandomWaypoint { speed, pause } => {
                each(&|random| random_waypoint::draw(area, speed, pause, seconds, random))
            }
            Self::BegunWaypoint { speed, pause, ago } => {
                let whole = (ago + duration).as_secs_f64();
                let tracks = each(&|random| random_waypoint::draw_begun(area, speed, pause, whole, random));
                return Ok(Movement { tracks }.skipped(ago));
            }
            Self::RandomDirection { speed, leg } => {
                each(&|random| random_direction::draw(area, speed, leg, seconds, random))
            }
            Self::GaussMarkov { speed, speed_deviation, direction_deviation, memory } => {
                let habit = gauss_markov::Habit { speed, speed_deviation, direction_deviation, memory };
                each(&|random| gauss_markov::draw(area, habit, seconds, random))
            }
            Self::ReferencePointGroup { members, speed, pause, radius, member_speed } => {
                let inner = Area { x: area.x - 2.0 * radius, y: area.y - 2.0 * radius };
                let groups = nodes.div_ceil(members);
                let centre = |group| random_waypoint::draw(inner, speed, pause, seconds, &mut stream("group", group));
                let centres: Vec<Track> = (0..groups).map(centre).collect();
                let member = |node: usize| {
                    let around = group::draw_around(radius, member_speed, seconds, &mut stream("node", node));
                    group::sum(&centres[node / members], &around, Position { x: radius, y: radius })
                };
                (0..nodes).map(member).collect()
            }
        };
        Ok(Movement { tracks })
    }

    fn check(self, area: Area) -> Result<(), MobilityError> {
        const ABOVE_ZERO: &str = "above 0, finite, and in order";
        const NOT_BELOW_ZERO: &str = "0 or more, finite, and in order";
        let number = |name, value: f64, good: bool, expected| {
            if good { Ok(()) } else { Err(MobilityError::BadValue { name, value, expected }) }
        };
        let positive = |name, value: f64| number(name, value, value > 0.0 && value.is_finite(), "a number above 0");
        positive("the area's extent x", area.x)?;
        positive("the area's extent y", area.y)?;
        match self {
            Self::RandomWaypoint { speed, pause } => {
                speed.check("speed", f64::MIN_POSITIVE, ABOVE_ZERO)?;
                pause.check("pause", 0.0, NOT_BELOW_ZERO)
            }
            Self::BegunWaypoint { speed, pause, .. } => {
                speed.check("speed", 0.0, NOT_BELOW_ZERO)?;
                pause.check("pause", 0.0, NOT_BELOW_ZERO)
            }
            Self::RandomDirection { speed, leg } => {
                speed.check("speed", 0.0, NOT_BELOW_ZERO)?;
                positive("leg", leg)
            }
            Self::GaussMarkov { speed, speed_deviation, direction_deviation, memory } => {
                Span::only(speed).check("speed", 0.0, NOT_BELOW_ZERO)?;
                Span::only(speed_deviation).check("speed_deviation", 0.0, NOT_BELOW_ZERO)?;
                Span::only(direction_deviation).check("direction_deviation", 0.0, NOT_BELOW_ZERO)?;
                number("memory", memory, (0.0..=1.0).contains(&memory), "a number from 0 to 1")
            }
            Self::ReferencePointGroup { members, speed, pause, radius, member_speed } => {
                number("members", members as f64, members > 0, "1 or more")?;
                speed.check("speed", f64::MIN_POSITIVE, ABOVE_ZERO)?;
                pause.check("pause", 0.0, NOT_BELOW_ZERO)?;
                member_speed.check("member_speed", f64::MIN_POSITIVE, ABOVE_ZERO)?;
                let room = area.x.min(area.y) / 2.0;
                number("radius", radius, radius > 0.0 && radius < room, "above 0 and below half of the area's extent")
            }
        }
    }
}
