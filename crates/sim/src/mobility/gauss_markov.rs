//! Gauss-Markov: speed and direction of each second follow from the last ones, their means, and a random part.
//!
//! ```text
//! s_n = m s_n-1 + (1 - m) s + sqrt(1 - m^2) d_s N(0, 1)           likewise the direction
//! ```

use super::area::Area;
use super::movement::Track;
use super::random_direction::Reflected;
use crate::random::RandomStream;
use core::f64::consts::PI;

/// Parameters of a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Habit {
    pub(super) speed: f64,
    pub(super) speed_deviation: f64,
    pub(super) direction_deviation: f64,
    pub(super) memory: f64,
}

/// A normally distributed number (Box and Muller 1958).
fn normal(random: &mut RandomStream) -> f64 {
    libm::sqrt(-2.0 * libm::log(1.0 - random.uniform())) * libm::cos(2.0 * PI * random.uniform())
}

pub(super) fn draw(area: Area, habit: Habit, duration: f64, random: &mut RandomStream) -> Track {
    let Habit { speed: mean_speed, speed_deviation, direction_deviation, memory } = habit;
    let mut way = Reflected::new(area, area.draw(random));
    let mut mean_direction = random.between(0.0, 2.0 * PI);
    let mut speed = mean_speed + speed_deviation * normal(random);
    let mut direction = mean_direction + direction_deviation * normal(random);
    let chance = libm::sqrt(1.0 - memory * memory);
    while way.time < duration {
        let forward = speed.max(0.0);
        let turned = way.go(forward * libm::cos(direction), forward * libm::sin(direction), 1.0);
        if turned.x {
            (mean_direction, direction) = (PI - mean_direction, PI - direction);
        }
        if turned.y {
            (mean_direction, direction) = (-mean_direction, -direction);
        }
        speed = memory * speed + (1.0 - memory) * mean_speed + chance * speed_deviation * normal(random);
        direction =
            memory * direction + (1.0 - memory) * mean_direction + chance * direction_deviation * normal(random);
    }
    way.track
}
