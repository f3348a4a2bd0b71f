//! The possible outcomes of a history.

use super::behaviour::{Behaviour, Seen};
use super::lie::Lie;
use super::opposite::Ending;
use super::twins::Scene;
use super::world::World;
use super::{History, Kind, Op};
use crate::literal::{Action, MILLI, Nanos};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An accepted outcome.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// Every octet arrived and both sides know it.
    Finished,
    /// One side finished, but the other did not learn of it; excused.
    FinishedAtOneEnd,
    /// Both sides know that the connection failed; excused.
    Failed,
    /// The client failed before the server had a connection; excused.
    NeverAccepted,
    /// A side waits for one that failed, or that it cannot hear, until its application aborts; excused.
    Abandoned,
    /// The peer lied, and the engine closed, at the latest when told to.
    LiedTo,
    /// A side took the end of a subflow for that of the stream, because options were removed midway, and the other side
    /// knows that the connection failed. No receiver can avoid this, see `cut_short`.
    CutShort,
    /// A side that fell back read twice what the other sent again at data level before it could know of the fallback.
    /// No receiver can avoid this, see `read_twice`.
    ReadTwice,
}

/// Time in which an unimpeded connection ends once its paths are without impairments.
const HEALTHY: Nanos = 400_000 * MILLI;
/// Time until a connection whose peer is gone has ended.
const BEREAVED: Nanos = 2_500_000 * MILLI;
/// TIME-WAIT after FIN-WAIT-2, with a margin.
const AFTERMATH: Nanos = 400_000 * MILLI;

/// Result of playing a history.
pub struct Played {
    /// The outcome, or the failure.
    pub outcome: Result<Outcome, String>,
    /// Octets that arrived.
    pub octets: u64,
    /// What the literal peer did.
    pub seen: Seen,
    /// Packets sent, if recorded.
    pub transcript: Vec<String>,
}

impl Played {
    /// It did not come to anything.
    fn nothing(why: String) -> Self {
        Self { outcome: Err(why), octets: 0, seen: Seen::default(), transcript: Vec::new() }
    }
}

/// Plays a history to its end, recording a transcript if `record`. A panic is a failure.
pub fn play(history: &History, record: bool) -> Played {
    let attempt = catch_unwind(AssertUnwindSafe(|| {
        if history.kind == Kind::Twins {
            let mut scene = Scene::new(history, record);
            let outcome = scene.play(history).map(|()| Outcome::Finished);
            let mut seen = Seen::default();
            seen.sent.add(Behaviour::TwoWithOneKey);
            seen.arrived.add_if(outcome.is_ok(), Behaviour::TwoWithOneKey);
            return Played { outcome, octets: scene.octets(), seen, transcript: scene.lines.unwrap_or_default() };
        }
        let mut world = match World::new(history, record) {
            Ok(world) => world,
            Err(why) => return Played::nothing(why),
        };
        let judged = judge(&mut world, history);
        let outcome = match judged {
            Err(_) if cut_short(&world, history) => Ok(Outcome::CutShort),
            Err(_) if read_twice(&world, history) => Ok(Outcome::ReadTwice),
            other => other.map_err(|why| format!("{why}; {}", world.describe())),
        };
        let octets = world.apps.iter().map(|app| app.read).sum();
        Played { outcome, octets, seen: world.network.seen, transcript: world.lines.unwrap_or_default() }
    }));
    attempt.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let why = format!("panic: {}", text.unwrap_or("of an unknown kind"));
        Played::nothing(why)
    })
}

/// Whether a stream ended too early for a side that could not know. From some packet of the peer's first flight on,
/// options are removed, so that it takes the data for plain TCP, as RFC 8684 (section 3.7) requires where the third ACK
/// lost them; and the peer, which still uses MPTCP, closes its only subflow after that flight, as section 3.3.3 allows,
/// perhaps in answer to a FIN of this side.
/// The segments that arrive are exactly those of a peer that has fallen back, writes and closes.
fn cut_short(world: &World, history: &History) -> bool {
    let happens = |wanted: &dyn Fn(&Op) -> bool| history.ops.iter().any(|(_, op)| wanted(op));
    (0..2).any(|reader| {
        let writer = 1 - reader;
        let stripped = happens(&|op| *op == Op::Strip(writer));
        let closed = happens(&|op| matches!(op, Op::Act(_, Action::Fin(_))));
        let (read, written) = (world.apps[reader].read, world.apps[writer].written);
        let [ours, theirs] = [reader, writer].map(|side| world.sides[side].ending());
        let plain = world.sides[reader].is_plain() && ours == Some(Ending::Finished);
        stripped && closed && plain && read <= written && theirs != Some(Ending::Finished)
    })
}

/// Whether a side read data that nobody wrote at that offset, because it has fallen back and the other could not know
/// of it yet. The other's segments lose their options midway, and the data of the first is acknowledged without a
/// DATA_ACK before any was acknowledged with one: RFC 8684 (section 3.7) requires the fallback. What the other then
/// sends again at data level looks like new data, until it has received MP_FAIL or an infinite mapping; both may be
/// lost, or come too late, or on a segment that is refused since a peer lies in it.
fn read_twice(world: &World, history: &History) -> bool {
    world.misread.is_some_and(|reader| {
        let writer = 1 - reader;
        let stripped = history.ops.iter().any(|(_, op)| *op == Op::Strip(writer));
        let told = world.told_of_fallback[writer] && !history.is_hostile();
        let unaware = !world.sides[writer].is_plain() && !told;
        stripped && world.sides[reader].is_plain() && unaware
    })
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
        // The engine accepts no other subflow while it has that one.
        Op::Act(_, Action::Fin(_)) if history.is_set("max_subflows") => Some("the peer closed the only subflow"),
        // Data duplicated before an infinite mapping causes a reset (RFC 8684, section 3.7).
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
    // A subflow whose peer acknowledged data that it does not have lasts until its last timeout.
    world.run_out(if history.is_hostile() { BEREAVED } else { AFTERMATH })?;
    // The state of a lying peer does not matter. A forged SYN may end TIME-WAIT (RFC 6191), and then nothing answers a
    // FIN.
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

/// One side is gone and the other waits, without keepalive forever (RFC 9293, section 3.8.4): its application aborts.
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
