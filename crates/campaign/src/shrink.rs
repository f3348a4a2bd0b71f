//! Shrinks a failing history while it keeps failing.

use crate::history::verdict::play;
use crate::history::{History, Op};

/// Limit of histories tried for one failure.
const MOST_TRIES: u32 = 1_500;

/// The smallest failing history found, and its failure.
pub fn shrink(history: &History, why: String) -> (History, String) {
    let mut best = (history.clone(), why);
    let mut tries = 0;
    loop {
        let mut smaller = false;
        for candidate in candidates(&best.0) {
            tries += 1;
            if tries > MOST_TRIES {
                return best;
            }
            if let Err(why) = play(&candidate, false).outcome {
                best = (candidate, why);
                smaller = true;
                break;
            }
        }
        if !smaller {
            return best;
        }
    }
}

/// Slightly smaller histories, the largest cuts first.
fn candidates(history: &History) -> Vec<History> {
    let mut found = Vec::new();
    let mut offer = |change: &dyn Fn(&mut History)| {
        let mut candidate = history.clone();
        change(&mut candidate);
        if candidate != *history {
            found.push(candidate);
        }
    };
    let count = history.ops.len();
    offer(&|h| h.ops.truncate(count / 2));
    offer(&|h| drop(h.ops.drain(..count / 2)));
    for place in (0..count).rev() {
        offer(&|h| _ = h.ops.remove(place));
    }
    offer(&|h| h.fates.clear());
    for place in 0..history.fates.len() {
        offer(&|h| _ = h.fates.remove(place));
    }
    offer(&|h| h.strip = [false; 2]);
    for side in 0..2 {
        offer(&|h| h.sides[side].odd_places().into_iter().for_each(|place| h.sides[side].make_plain(place)));
        for place in history.sides[side].odd_places() {
            offer(&|h| h.sides[side].make_plain(place));
        }
    }
    offer(&|h| h.delays.truncate(1));
    offer(&|h| h.delays.iter_mut().for_each(|delay| *delay = 10_000));
    offer(&|h| h.v6 = false);
    for place in 0..count {
        let op = history.ops[place].1;
        if let Op::Write(_, length) | Op::Answer(_, length) = op {
            for shorter in [1, 100, length / 2, length.saturating_sub(1_000)] {
                if shorter > 0 && shorter < length {
                    offer(&|h| h.ops[place].1 = op.with_length(shorter));
                }
            }
        }
        let earlier = if place == 0 { 0 } else { history.ops[place - 1].0 };
        let gap = history.ops[place].0 - earlier;
        for shorter in [gap, gap / 2] {
            if shorter > 0 {
                offer(&|h| h.ops[place..].iter_mut().for_each(|(at, _)| *at -= shorter));
            }
        }
    }
    found
}
