//! How a history may end.

use super::lie::Lie;
use super::opposite::Ending;
use super::world::World;
use super::{History, Op};
use crate::literal::{Action, MILLI, Nanos};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How one ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// Every octet arrived and both sides know.
    Finished,
    /// One side finished, the other did not hear of it; excused.
    FinishedAtOneEnd,
    /// Both sides know that it failed; excused.
    Failed,
    /// The client failed before the server had a connection; excused.
    NeverAccepted,
    /// A side waits for one that failed, or that it cannot hear, until its application aborts; excused.
    Abandoned,
    /// The peer lied, and the engine came through: it ended, at the latest when told to.
    LiedTo,
    /// It failed in a way that is known and not mended yet, see `corpus/known`.
    KnownFault,
}

/// A connection that nothing stands in the way of ends within this once its paths are calm.
const HEALTHY: Nanos = 400_000 * MILLI;
/// What is left of one whose peer is gone.
const BEREAVED: Nanos = 2_500_000 * MILLI;
/// TIME-WAIT and FIN-WAIT-2 one after the other, and some.
const AFTERMATH: Nanos = 400_000 * MILLI;

/// What playing a history came to.
pub struct Played {
    /// How it ended, or what went wrong.
    pub outcome: Result<Outcome, String>,
    /// Octets that arrived.
    pub octets: u64,
    /// What was sent, if wanted.
    pub transcript: Vec<String>,
}

/// Plays a history to its end, and keeps its transcript if wanted. A panic is a failure like any other. Not `strict`, known
/// faults are none.
pub fn play(history: &History, record: bool, strict: bool) -> Played {
    let attempt = catch_unwind(AssertUnwindSafe(|| {
        let mut world = match World::new(history, record) {
            Ok(world) => world,
            Err(why) => return Played { outcome: Err(why), octets: 0, transcript: Vec::new() },
        };
        let judged = judge(&mut world, history);
        let outcome = match judged {
            Err(_) if !strict && known(&world, history) => Ok(Outcome::KnownFault),
            other => other.map_err(|why| format!("{why}; {}", world.describe())),
        };
        let octets = world.apps.iter().map(|app| app.read).sum();
        Played { outcome, octets, transcript: world.lines.unwrap_or_default() }
    }));
    attempt.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let why = format!("panic: {}", text.unwrap_or("of an unknown kind"));
        Played { outcome: Err(why), octets: 0, transcript: Vec::new() }
    })
}

/// Whether a failure is one that is known and not mended, of which there are histories in `corpus/known`. Options are lost on the
/// way in the midst, and a side takes for plain TCP what the other still maps: it reads what nobody wrote, or takes the FIN of a
/// subflow for the end.
fn known(world: &World, history: &History) -> bool {
    let stripped = |(_, op): &(u32, Op)| matches!(op, Op::Strip(_));
    world.misread && history.ops.iter().any(stripped)
}

/// Why the connection may fail, if it may.
fn excuse(history: &History) -> Option<&'static str> {
    let calm = history.fates.is_empty() && !history.ops.iter().any(|(_, op)| matches!(op, Op::Weather(..)));
    history.ops.iter().find_map(|(_, op)| match op {
        Op::Abort(_) => Some("an application aborted"),
        Op::Lie(lie, _) if !lie.is_blind() => Some("the peer lies"),
        Op::Strip(_) => Some("options were lost on the way"),
        // Subflows are reset for it, and a middlebox may be on all paths (RFC 8684, section 3.7).
        Op::Change(..) if history.checksums() => Some("checksums showed that octets were changed"),
        Op::Lie(Lie::BlindSyn, _) => Some("a forged SYN may end TIME-WAIT"),
        // The engine takes no other subflow while it has that one.
        Op::Act(_, Action::Fin(_)) if history.is_set("max_subflows") => Some("the peer closed the only subflow"),
        // What was duplicated before an infinite mapping arrives ends in a reset (RFC 8684, section 3.7).
        Op::Act(_, Action::Infinite) if !calm => Some("an infinite mapping may have been lost"),
        _ => None,
    })
}

fn judge(world: &mut World, history: &History) -> Result<Outcome, String> {
    world.play(history)?;
    world.heal()?;
    let excuse = excuse(history).or(world.cut.then_some("the only address went"));
    world.run_to_end(HEALTHY)?;
    if !world.is_over() && excuse.is_some() {
        world.run_to_end(BEREAVED)?;
    }
    let abandoned = abort_waiting(world, history, excuse)?;
    // A subflow whose peer acknowledged what it does not have goes on until it has had all its timeouts.
    world.run_out(if history.is_hostile() { BEREAVED } else { AFTERMATH })?;
    // What becomes of a liar does not matter. A forged SYN may end TIME-WAIT (RFC 6191), and then nothing answers a FIN.
    let is_free = history.is_hostile() || history.tells(Lie::BlindSyn);
    let concerns = |side: &usize| !(is_free && history.kind.is_literal(*side));
    if let Some(side) = (0..2).filter(concerns).find(|side| !world.sides[*side].is_gone()) {
        return Err(format!("side {side} keeps something"));
    }
    if history.is_hostile() {
        return Ok(Outcome::LiedTo);
    }
    let outcome = outcome(world, excuse)?;
    Ok(if abandoned { Outcome::Abandoned } else { outcome })
}

/// One side is gone and the other waits for it, without keepalive for ever (RFC 9293, section 3.8.4): its application
/// up.
fn abort_waiting(world: &mut World, history: &History, excuse: Option<&str>) -> Result<bool, String> {
    if world.is_over() {
        return Ok(false);
    }
    for side in 0..2 {
        let waits = world.sides[side].is_open() && world.sides[side].ending().is_none();
        let alone = world.sides[1 - side].ending().is_some() || !world.sides[1 - side].is_open();
        let deaf = world.network.strip != [false; 2] || history.is_hostile();
        if waits && !(excuse.is_some() && (alone || deaf)) {
            return Err(format!("side {side} does not end ({excuse:?})"));
        }
        if waits {
            world.abort(side);
        }
    }
    world.settle()?;
    Ok(true)
}

fn outcome(world: &mut World, excuse: Option<&str>) -> Result<Outcome, String> {
    let endings = [0, 1].map(|side| world.sides[side].ending());
    for (side, ending) in endings.iter().enumerate() {
        if *ending == Some(Ending::Finished) && !world.is_whole(side) {
            world.misread = true;
            return Err(format!("side {side} calls it finished, and it is not"));
        }
    }
    match (&endings[0], &endings[1]) {
        (Some(Ending::Finished), Some(Ending::Finished)) => Ok(Outcome::Finished),
        _ if excuse.is_none() => Err("it failed, and nothing stood in its way".into()),
        (Some(_), None) if !world.sides[1].is_open() => Ok(Outcome::NeverAccepted),
        (Some(Ending::Finished), _) | (_, Some(Ending::Finished)) => Ok(Outcome::FinishedAtOneEnd),
        (Some(_), Some(_)) => Ok(Outcome::Failed),
        _ => Err("one side never heard of the end".into()),
    }
}
