//! Random histories.

use super::landmark::Landmark;
use super::network::{Fate, Weather, Which};
use super::{History, Kind, Op};
use crate::literal::Action;
use crate::luck::Luck;
use crate::settings::Settings;

impl History {
    /// The history of a kind for a seed. Most are small.
    pub fn draw(kind: Kind, seed: u64) -> Self {
        let mut luck = Luck::new(seed);
        let sides = [0, 1].map(|side| Settings::random(kind.table(side), &mut luck));
        let paths = luck.between(1, 3);
        let delays = (0..paths).map(|_| luck.pick(&[100, 1_000, 5_000, 10_000, 20_000, 60_000, 150_000])).collect();
        let strip = if luck.one_in(24) { luck.pick(&[[true, true], [true, false], [false, true]]) } else { [false; 2] };
        let fates = fates(&mut luck);
        let mut history = Self { kind, seed, v6: luck.one_in(3), delays, sides, strip, fates, ops: Vec::new() };
        history.draw_ops(&mut luck);
        history
    }

    /// The same, but in some histories octets are changed in transit, and addresses go down and up.
    pub fn draw_changing(kind: Kind, seed: u64) -> Self {
        let mut history = Self::draw(kind, seed);
        let mut luck = Luck::new(seed ^ 0x00c4_a96e);
        history.draw_landmarks();
        let last = history.ops.last().map_or(0, |(at, _)| *at);
        let at = |luck: &mut Luck| luck.below(u64::from(last) + 200) as u32;
        if luck.one_in(8) {
            for _ in 0..luck.between(1, 3) {
                let op = Op::Change(luck.below(2) as usize, luck.pick(&[1, 1, 2, 10, 200]));
                history.ops.push((at(&mut luck), op));
            }
        }
        if luck.one_in(6) {
            for _ in 0..luck.between(1, 4) {
                let (side, path) = (luck.below(2) as usize, luck.below(history.delays.len() as u64) as u8);
                let down = at(&mut luck);
                history.ops.push((down, Op::Down(side, path)));
                let away = luck.pick(&[1, 20, 300, 2_000, 20_000]);
                history.ops.push((down + luck.between(1, away) as u32, Op::Up(side, path)));
            }
        }
        history.ops.sort_by_key(|(at, _)| *at);
        history
    }

    fn draw_ops(&mut self, luck: &mut Luck) {
        let mut at = 0;
        let stormy = luck.one_in(3);
        let reckless = luck.one_in(12);
        for _ in 0..luck.between(1, 12) {
            let op = self.draw_op(luck, stormy, reckless);
            self.ops.push((at, op));
            at += luck.pick(&[0, 0, 1, 5, 20, 100, 400, 1_500]) * luck.between(1, 3) as u32;
        }
    }

    fn draw_op(&self, luck: &mut Luck, stormy: bool, reckless: bool) -> Op {
        let side = luck.below(2) as usize;
        match luck.below(20) {
            0..8 => {
                let most = luck.pick(&[10, 1_000, 1_000, 3_000, 10_000, 60_000]);
                Op::Write(side, luck.between(1, most) as u32)
            }
            8 => Op::Pause(side),
            9 => Op::Read(side, luck.between(1, 5_000) as u32),
            10 => Op::Resume(side),
            11 => Op::Close(side),
            12 if reckless => Op::Abort(side),
            13 if reckless => Op::Strip(side),
            14 | 15 if stormy => Op::Weather(luck.below(3) as usize, weather(luck)),
            _ => match (0..2).find(|side| self.kind.is_literal(*side)) {
                Some(literal) => Op::Act(literal, action(luck)),
                None => Op::Write(side, luck.between(1, 2_000) as u32),
            },
        }
    }
}

/// Fates of a few of the first packets: handshakes, first data, joins.
fn fates(luck: &mut Luck) -> Vec<(usize, Which, Fate)> {
    if luck.one_in(2) {
        return Vec::new();
    }
    let mut fates = Vec::new();
    for _ in 0..luck.between(1, 4) {
        let side = luck.below(2) as usize;
        let most = luck.pick(&[3, 8, 30]);
        let fate = fate(luck);
        fates.push((side, Which::Number(luck.below(most) as u32), fate));
    }
    fates
}

fn fate(luck: &mut Luck) -> Fate {
    let later = luck.pick(&[0, 1, 15, 80, 500, 2_000]);
    luck.pick(&[Fate::Drop, Fate::Drop, Fate::Twice(later), Fate::Late(later.max(1))])
}

impl History {
    /// In some histories the first segments of some kinds are lost, late, or come twice.
    pub(super) fn draw_landmarks(&mut self) {
        let mut luck = Luck::new(self.seed ^ 0x1a9d_3a4c);
        let last = self.ops.last().map_or(0, |(at, _)| *at);
        let count = if luck.one_in(3) { luck.between(1, 3) } else { 0 };
        for _ in 0..count {
            let (_, landmark) = luck.pick(&Landmark::NAMES);
            self.fates.push((luck.below(2) as usize, Which::First(landmark), fate(&mut luck)));
            let literal = (0..2).find(|side| self.kind.is_literal(*side));
            if let Some((side, action)) = literal.zip(provocation(landmark, luck.below(4) as u8)) {
                self.ops.push((luck.below(u64::from(last) + 50) as u32, Op::Act(side, action)));
            }
        }
        self.ops.sort_by_key(|(at, _)| *at);
    }
}

/// The action by which the literal peer sends such a segment, or makes the engine send it.
fn provocation(landmark: Landmark, number: u8) -> Option<Action> {
    match landmark {
        Landmark::JoinSyn | Landmark::JoinAck => Some(Action::Join(number)),
        Landmark::Announce | Landmark::Echo => Some(Action::Announce(number)),
        Landmark::Withdraw => Some(Action::Withdraw(number)),
        Landmark::Priority => Some(Action::Priority(number)),
        Landmark::Infinite => Some(Action::Infinite),
        Landmark::Fin => Some(Action::Fin(number)),
        Landmark::Reset => Some(Action::Reset(number)),
        _ => None,
    }
}

fn weather(luck: &mut Luck) -> Weather {
    let mut rarely = |most: u64| if luck.one_in(2) { 0 } else { luck.below(most) as u8 };
    let (loss, twice, late) = (rarely(80), rarely(60), rarely(120));
    Weather { loss, twice, late, late_by: luck.between(1, 300) as u16, down: luck.one_in(6) }
}

fn action(luck: &mut Luck) -> Action {
    let number = luck.below(4) as u8;
    match luck.below(16) {
        0..4 => Action::Join(number),
        4 => Action::JoinUnknown(number),
        5 | 6 => Action::Announce(number),
        7 => Action::Withdraw(number),
        8 | 9 => Action::Priority(number),
        10 => Action::Reset(number),
        11 | 12 => Action::Fin(number),
        13 | 14 => Action::Again,
        _ => Action::Infinite,
    }
}
