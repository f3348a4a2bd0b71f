//! A lying peer: segments of the literal peer are changed in transit. The verdict then requires only that the engine
//! does not panic, keeps its limits, delivers no octet that was not sent at its offset, and closes at the latest when
//! told to.

use super::lie::{Lie, Sent};
use super::{History, Kind, Op};
use crate::literal::Action;
use crate::luck::Luck;

impl History {
    /// A history of the engine and a literal peer that lies at times.
    pub fn draw_hostile(seed: u64) -> Self {
        let mut luck = Luck::new(seed ^ 0x5eed);
        let kind = luck.pick(&[Kind::EngineClient, Kind::EngineServer]);
        let mut history = Self::draw(kind, seed);
        history.draw_landmarks();
        let last = history.ops.last().map_or(0, |(at, _)| *at);
        let only_blind = luck.one_in(3);
        let lies: Vec<Lie> =
            Lie::NAMES.iter().map(|(_, lie)| *lie).filter(|lie| !only_blind || lie.is_blind()).collect();
        for _ in 0..luck.between(1, 4) {
            let lie = luck.pick(&lies);
            let count = luck.pick(&[1, 2, 10, 200]);
            let at = luck.below(u64::from(last) + 1) as u32;
            history.ops.push((at, Op::Lie(lie, count)));
            if lie == Lie::Joins {
                // The peer itself may join many times, with valid HMACs, whether or not an attacker copies these.
                let side = usize::from(kind == Kind::EngineClient);
                let paths = history.delays.len() as u64;
                let joins = (0..luck.pick(&[1, 3, 30])).map(|_| Op::Act(side, Action::Join(luck.below(paths) as u8)));
                history.ops.extend(joins.map(|op| (at, op)));
            }
        }
        history.ops.sort_by_key(|(at, _)| *at);
        history
    }

    /// Whether a side lies.
    pub fn is_hostile(&self) -> bool {
        self.ops.iter().any(|(_, op)| matches!(op, Op::Lie(lie, _) if !lie.is_blind()))
    }

    /// Whether the history has this lie.
    pub fn tells(&self, lie: Lie) -> bool {
        self.ops.iter().any(|(_, op)| matches!(op, Op::Lie(told, _) if *told == lie))
    }

    /// What may be read from the stream.
    pub fn sent(&self) -> Sent {
        let lies = self.ops.iter().filter_map(|(_, op)| if let Op::Lie(lie, _) = op { Some(lie.sent()) } else { None });
        lies.max().unwrap_or(Sent::AsWritten)
    }
}
