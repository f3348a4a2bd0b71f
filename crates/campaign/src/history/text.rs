//! Histories as text: one setting, fate or event per line, readable and editable. Lines that begin with `#` are
//! comments.

use super::landmark::Landmark;
use super::lie::Lie;
use super::network::{Fate, Weather, Which};
use super::{History, Kind, Op};
use crate::literal::Action;
use crate::settings::Settings;
use std::fmt;
use std::str::FromStr;

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = Kind::NAMES.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        writeln!(f, "kind {kind}\nseed {}\nv6 {}", self.seed, u8::from(self.v6))?;
        let delays: Vec<String> = self.delays.iter().map(u32::to_string).collect();
        writeln!(f, "delays {}", delays.join(" "))?;
        for (side, settings) in self.sides.iter().enumerate() {
            for (name, value) in settings.odd() {
                writeln!(f, "set {side} {name} {value}")?;
            }
        }
        for side in (0..2).filter(|side| self.strip[*side]) {
            writeln!(f, "strip {side}")?;
        }
        for (side, which, fate) in &self.fates {
            let which = which_text(*which);
            match fate {
                Fate::Drop => writeln!(f, "fate {side} {which} drop 0")?,
                Fate::Twice(later) => writeln!(f, "fate {side} {which} twice {later}")?,
                Fate::Late(later) => writeln!(f, "fate {side} {which} late {later}")?,
            }
        }
        self.ops.iter().try_for_each(|(at, op)| writeln!(f, "at {at} {}", op_text(op)))
    }
}

/// The number of a packet, or the name of what it is.
fn which_text(which: Which) -> String {
    let name = |landmark| Landmark::NAMES.iter().find(|(_, known)| *known == landmark).map_or("", |(name, _)| name);
    match which {
        Which::Number(number) => number.to_string(),
        Which::First(landmark) => name(landmark).to_owned(),
    }
}

fn op_text(op: &Op) -> String {
    match op {
        Op::Write(side, length) => format!("write {side} {length}"),
        Op::Answer(side, length) => format!("answer {side} {length}"),
        Op::Pause(side) => format!("pause {side}"),
        Op::Read(side, length) => format!("read {side} {length}"),
        Op::Resume(side) => format!("resume {side}"),
        Op::Close(side) => format!("close {side}"),
        Op::Abort(side) => format!("abort {side}"),
        Op::Strip(side) => format!("strip {side}"),
        Op::Change(side, count) => format!("change {side} {count}"),
        Op::Down(side, path) => format!("down {side} {path}"),
        Op::Up(side, path) => format!("up {side} {path}"),
        Op::Weather(path, w) => {
            format!("weather {path} {} {} {} {} {}", w.loss, w.twice, w.late, w.late_by, u8::from(w.down))
        }
        Op::Lie(lie, count) => {
            let name = Lie::NAMES.iter().find(|(_, known)| known == lie).map_or("", |(name, _)| name);
            format!("lie {name} {count}")
        }
        Op::Act(side, action) => {
            let (name, number) = action_text(*action);
            format!("{name} {side} {number}")
        }
    }
}

/// The name of an action, and its number.
fn action_text(action: Action) -> (&'static str, u8) {
    match action {
        Action::Join(number) => ("join", number),
        Action::JoinUnknown(number) => ("join-unknown", number),
        Action::Announce(number) => ("announce", number),
        Action::Withdraw(number) => ("withdraw", number),
        Action::Priority(number) => ("priority", number),
        Action::Reset(number) => ("reset", number),
        Action::Fin(number) => ("fin", number),
        Action::Again => ("again", 0),
        Action::Infinite => ("infinite", 0),
    }
}

fn number<T: FromStr>(words: &[&str], place: usize) -> Result<T, String> {
    words.get(place).and_then(|word| word.parse().ok()).ok_or(format!("a number is missing: {words:?}"))
}

fn side(words: &[&str], place: usize) -> Result<usize, String> {
    number(words, place).and_then(|side| if side < 2 { Ok(side) } else { Err(format!("no such side: {words:?}")) })
}

/// Values by the word at the start of a line.
type ByName<T, const N: usize> = [(&'static str, T); N];

/// Events of a side without parameters.
const OF_A_SIDE: ByName<fn(usize) -> Op, 5> =
    [("pause", Op::Pause), ("resume", Op::Resume), ("close", Op::Close), ("abort", Op::Abort), ("strip", Op::Strip)];

/// Events of a side with a number of octets or packets.
const WITH_OCTETS: ByName<fn(usize, u32) -> Op, 4> =
    [("write", Op::Write), ("answer", Op::Answer), ("read", Op::Read), ("change", Op::Change)];

/// Events of a side's address on a path.
const WITH_PATH: ByName<fn(usize, u8) -> Op, 2> = [("down", Op::Down), ("up", Op::Up)];

/// Actions of the literal peer with a number.
const NUMBERED: ByName<fn(u8) -> Action, 7> = [
    ("join", Action::Join),
    ("join-unknown", Action::JoinUnknown),
    ("announce", Action::Announce),
    ("withdraw", Action::Withdraw),
    ("priority", Action::Priority),
    ("reset", Action::Reset),
    ("fin", Action::Fin),
];

/// Actions without a number.
const PLAIN: ByName<Action, 2> = [("again", Action::Again), ("infinite", Action::Infinite)];

/// The value of a name in a table.
fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn op(words: &[&str]) -> Result<Op, String> {
    let name = words[0];
    if let Some(make) = named(&OF_A_SIDE, name) {
        return Ok(make(side(words, 1)?));
    }
    if let Some(make) = named(&WITH_OCTETS, name) {
        return Ok(make(side(words, 1)?, number(words, 2)?));
    }
    if let Some(make) = named(&WITH_PATH, name) {
        return Ok(make(side(words, 1)?, number(words, 2)?));
    }
    if let Some(make) = named(&NUMBERED, name) {
        let action = make(number(words, 2)?);
        return Ok(Op::Act(side(words, 1)?, action));
    }
    if let Some(action) = named(&PLAIN, name) {
        return Ok(Op::Act(side(words, 1)?, action));
    }
    match name {
        "weather" => weather(words),
        "lie" => lie(words),
        other => Err(format!("nothing is called {other}")),
    }
}

fn weather(words: &[&str]) -> Result<Op, String> {
    let down = number::<u8>(words, 6)? == 1;
    let (loss, twice, late) = (number(words, 2)?, number(words, 3)?, number(words, 4)?);
    Ok(Op::Weather(number(words, 1)?, Weather { loss, twice, late, late_by: number(words, 5)?, down }))
}

fn lie(words: &[&str]) -> Result<Op, String> {
    let lie = words.get(1).and_then(|name| named(&Lie::NAMES, name)).ok_or(format!("no such lie: {words:?}"))?;
    Ok(Op::Lie(lie, number(words, 2)?))
}

fn fate(words: &[&str]) -> Result<(usize, Which, Fate), String> {
    let later = number(words, 4)?;
    let which = match words.get(2).and_then(|word| named(&Landmark::NAMES, word)) {
        Some(landmark) => Which::First(landmark),
        None => Which::Number(number(words, 2)?),
    };
    let fate = match words[3] {
        "drop" => Fate::Drop,
        "twice" => Fate::Twice(later),
        "late" => Fate::Late(later),
        other => return Err(format!("no fate {other}")),
    };
    Ok((side(words, 1)?, which, fate))
}

impl History {
    fn set(&mut self, words: &[&str]) -> Result<(), String> {
        let name = words.get(2).copied().unwrap_or_default();
        self.sides[side(words, 1)?].set(name, number(words, 3)?)
    }

    /// Parses the words of one line.
    fn take_line(&mut self, words: &[&str]) -> Result<(), String> {
        match words[0] {
            "kind" => {}
            "seed" => self.seed = number(words, 1)?,
            "v6" => self.v6 = number::<u8>(words, 1)? == 1,
            "delays" => {
                self.delays = (1..words.len()).map(|place| number(words, place)).collect::<Result<_, _>>()?;
            }
            "set" => self.set(words)?,
            "strip" => self.strip[side(words, 1)?] = true,
            "fate" => self.fates.push(fate(words)?),
            "at" if words.len() > 2 => self.ops.push((number(words, 1)?, op(&words[2..])?)),
            other => return Err(format!("nothing is called {other}")),
        }
        Ok(())
    }
}

impl FromStr for History {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let name = lines().find_map(|line| line.strip_prefix("kind ")).ok_or("no kind")?;
        let kind = Kind::NAMES.iter().find(|(known, _)| *known == name).ok_or(format!("no kind {name}"))?.1;
        let sides = [0, 1].map(|side| Settings::plain(kind.table(side)));
        let (delays, fates, ops) = (vec![10_000], Vec::new(), Vec::new());
        let mut history = Self { kind, seed: 0, v6: false, delays, sides, strip: [false; 2], fates, ops };
        for line in lines() {
            history.take_line(&line.split_whitespace().collect::<Vec<&str>>())?;
        }
        if history.delays.is_empty() {
            return Err("no path".into());
        }
        Ok(history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_written_and_read_is_the_same() {
        for (_, kind) in Kind::NAMES {
            for seed in 0..300 {
                let changing = History::draw_changing(kind, seed);
                for history in [changing, History::draw_hostile(seed), History::draw_twins(seed)] {
                    assert_eq!(history.to_string().parse(), Ok(history));
                }
            }
        }
    }
}
