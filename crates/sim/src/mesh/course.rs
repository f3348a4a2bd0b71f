//! What acts on a world at certain times of a run: measures it, or moves nodes by a plan. A run with it can be stopped at
//! any time and continued, and is the same.

use crate::world::World;
use anabranch_policy::time::Instant;

/// Something that acts at certain times.
pub trait Course {
    /// When it acts next; never: not any more. It is later after each act.
    fn due(&self) -> Instant;
    /// Acts; the world is at the time at which it was due.
    fn act(&mut self, world: &mut World);
}

/// Advances a world to `to`, and acts at all times up to it.
pub fn advance(world: &mut World, course: &mut (impl Course + ?Sized), to: Instant) {
    act_until(world, course, to, World::run_until);
    world.run_until(to);
}

/// The same, but at most until all finite flows have ended. Returns whether they have.
pub fn advance_until_finished(world: &mut World, course: &mut (impl Course + ?Sized), to: Instant) -> bool {
    let mut finished = false;
    let run = |world: &mut World, to| finished = world.run_until_finished(to);
    act_until(world, course, to, run);
    finished || world.run_until_finished(to)
}

/// Advances a world until a packet has been delivered, at most to `to`. Returns whether one has.
pub fn advance_until_delivery(world: &mut World, course: &mut (impl Course + ?Sized), to: Instant) -> bool {
    while course.due() <= to {
        let due = course.due();
        if world.run_until_delivery(due) {
            return true;
        }
        course.act(world);
    }
    world.run_until_delivery(to)
}

fn act_until(
    world: &mut World,
    course: &mut (impl Course + ?Sized),
    to: Instant,
    mut run: impl FnMut(&mut World, Instant),
) {
    while course.due() <= to {
        let due = course.due();
        run(world, due);
        if world.now() < due {
            return;
        }
        course.act(world);
    }
}
