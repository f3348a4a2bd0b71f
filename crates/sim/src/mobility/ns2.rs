//! Movement files of ns-2, which many programs write: BonnMotion, SUMO, setdest.
//!
//! ```text
//! $node_(3) set X_ 120.5                            where node 3 begins; Y_ likewise, Z_ is not used
//! $ns_ at 2.5 "$node_(3) setdest 300 40.25 1.5"     at 2.5 s it sets out for (300, 40.25) at 1.5 m/s
//! $ns_ at 7 "$node_(3) set X_ 0"                    at 7 s it is at x = 0, and stands
//! ```
//!
//! A `setdest` during a leg starts from the node's position at that time. With a speed of 0, or to its present
//! position, it stops the node. Statements may be in any order of time, several in a line separated by `;`, with any
//! spacing; `#` begins a comment. Other statements (`$god_`, `set opt(x) ...`) are skipped. Missing coordinates are 0,
//! as in ns-2. Source: The ns Manual, chapter "Mobile Networking in ns", "Node movement".

use super::error::{MAX_NODES, MobilityError};
use super::movement::{Movement, Track, at_seconds, between};
use crate::radio::Position;
use std::collections::BTreeMap;

/// The time of statements without one: before the start.
const BEFORE: f64 = f64::NEG_INFINITY;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Deed {
    SetX(f64),
    SetY(f64),
    SetDestination { to: Position, speed: f64 },
}

/// Reads the text of a file.
pub fn read(text: &str) -> Result<Movement, MobilityError> {
    let mut deeds: BTreeMap<usize, Vec<(f64, Deed)>> = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        // All commands within one pair of quotes have the time before them.
        let (mut quotes, mut time) = (0, BEFORE);
        for statement in line.split(';') {
            if quotes % 2 == 0 {
                time = BEFORE;
            }
            quotes += statement.matches('"').count();
            let parsed = statement_of(statement, &mut time);
            if let Some((node, deed)) = parsed.map_err(|reason| MobilityError::BadLine { line: index + 1, reason })? {
                if node >= MAX_NODES {
                    return Err(MobilityError::TooManyNodes);
                }
                deeds.entry(node).or_default().push((time, deed));
            }
        }
    }
    let nodes = deeds.keys().next_back().map_or(0, |last| last + 1);
    let mut track = |node: usize| {
        let mut deeds = deeds.remove(&node).unwrap_or_default();
        deeds.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        walk(&deeds)
    };
    Ok(Movement { tracks: (0..nodes).map(&mut track).collect() })
}

/// A statement without spaces within parentheses, and without the quotes around the command: they have no meaning.
fn without_quotes(statement: &str) -> String {
    let mut plain = String::with_capacity(statement.len());
    let mut inside = false;
    for letter in statement.chars() {
        match letter {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        match letter {
            '"' | '{' | '}' => plain.push(' '),
            ' ' | '\t' if inside => {}
            _ => plain.push(letter),
        }
    }
    plain
}

/// Parses one statement: the node and its action; `None` for other statements. Updates `time` if it has one.
fn statement_of(statement: &str, time: &mut f64) -> Result<Option<(usize, Deed)>, &'static str> {
    let plain = without_quotes(statement);
    let words: Vec<&str> = plain.split_whitespace().collect();
    let words = match words.as_slice() {
        [scheduler, "at", at, rest @ ..] if scheduler.starts_with("$ns") => {
            *time = number(at)?.max(0.0);
            rest
        }
        all => all,
    };
    let Some(node) = words.first().and_then(|word| node_of(word)) else { return Ok(None) };
    let node = node?;
    let deed = match words {
        [_, "set", "X_", x] => Deed::SetX(number(x)?),
        [_, "set", "Y_", y] => Deed::SetY(number(y)?),
        [_, "setdest", x, y, speed] => {
            let speed = number(speed)?;
            if speed < 0.0 {
                return Err("a speed below 0");
            }
            Deed::SetDestination { to: Position { x: number(x)?, y: number(y)? }, speed }
        }
        [_, "set", "X_" | "Y_", ..] | [_, "setdest", ..] => return Err("not as many numbers as there must be"),
        _ => return Ok(None),
    };
    Ok(Some((node, deed)))
}

fn number(word: &str) -> Result<f64, &'static str> {
    word.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or("something that is not a number")
}

/// The number in `$node_(NUMBER)`; `None` for other words.
fn node_of(word: &str) -> Option<Result<usize, &'static str>> {
    let (name, rest) = word.strip_prefix('$')?.split_once('(')?;
    let index = rest.strip_suffix(')')?;
    name.starts_with("node").then(|| index.parse().map_err(|_| "a node that has no number"))
}

/// The present course of a node.
struct Course {
    track: Track,
    /// Its start: time in seconds, and position.
    since: f64,
    from: Position,
    /// Its destination, and the time of arrival.
    destination: Option<(Position, f64)>,
}

impl Course {
    /// Advances to a time.
    fn advance(&mut self, time: f64) {
        if let Some((to, arrival)) = self.destination {
            if arrival <= time {
                self.stand(arrival, to);
            } else {
                let share = (time - self.since) / (arrival - self.since);
                self.from = between(self.from, to, share);
            }
        }
        if time > self.since {
            self.since = time;
            self.track.push(at_seconds(time), self.from);
        }
    }
    fn stand(&mut self, time: f64, at: Position) {
        (self.since, self.from, self.destination) = (time, at, None);
        self.track.push(at_seconds(time), at);
    }
}

fn walk(deeds: &[(f64, Deed)]) -> Track {
    let mut from = Position::default();
    let initial = deeds.iter().take_while(|(time, _)| *time == BEFORE);
    for (_, deed) in initial {
        match *deed {
            Deed::SetX(x) => from.x = x,
            Deed::SetY(y) => from.y = y,
            Deed::SetDestination { .. } => {}
        }
    }
    let mut course = Course { track: Track::default(), since: 0.0, from, destination: None };
    course.track.push(at_seconds(0.0), from);
    let is_later = |(time, deed): &&(f64, Deed)| *time != BEFORE || matches!(deed, Deed::SetDestination { .. });
    for (time, deed) in deeds.iter().filter(is_later) {
        let time = time.max(0.0);
        course.advance(time);
        match *deed {
            Deed::SetX(x) => course.stand(time, Position { x, ..course.from }),
            Deed::SetY(y) => course.stand(time, Position { y, ..course.from }),
            Deed::SetDestination { to, speed } => {
                let distance = course.from.distance(to);
                let goes = speed > 0.0 && distance > 0.0;
                course.destination = goes.then(|| (to, time + distance / speed));
            }
        }
    }
    course.advance(course.destination.map_or(course.since, |(_, arrival)| arrival));
    course.track
}
