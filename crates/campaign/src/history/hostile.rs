//! A peer that lies: what the literal peer sends is changed on its way. The verdict then is only that the engine does not
//! panic, keeps its limits, hands over no octet that was not sent in that place, and ends at the latest when told to.

use super::lie::Lie;
use super::{History, Kind, Op};
use crate::luck::Luck;

impl History {
    /// A history of the engine and a literal peer that lies now and then.
    pub fn draw_hostile(seed: u64) -> Self {
        let mut luck = Luck::new(seed ^ 0x5eed);
        let kind = luck.pick(&[Kind::EngineClient, Kind::EngineServer]);
        let mut history = Self::draw(kind, seed);
        let last = history.ops.last().map_or(0, |(at, _)| *at);
        for _ in 0..luck.between(1, 4) {
            let (_, lie) = luck.pick(&Lie::NAMES);
            let count = luck.pick(&[1, 2, 10, 200]);
            history.ops.push((luck.below(u64::from(last) + 1) as u32, Op::Lie(lie, count)));
        }
        history.ops.sort_by_key(|(at, _)| *at);
        history
    }

    /// Whether a side lies.
    pub fn is_hostile(&self) -> bool {
        self.ops.iter().any(|(_, op)| matches!(op, Op::Lie(..)))
    }
}
