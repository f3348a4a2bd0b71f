//! MPTCP options that wait to be sent on an acknowledgement.

use anabranch_wire::MptcpOption;
use std::collections::VecDeque;

/// Limit of waiting options.
const MOST: usize = 16;

/// A short queue that takes no memory while it is empty.
#[derive(Debug, Default)]
pub struct ControlOptions {
    #[allow(clippy::box_collection, reason = "hardly any subflow has one, and each pays for its place")]
    waiting: Option<Box<VecDeque<MptcpOption>>>,
}

impl ControlOptions {
    /// Appends an option. Drops it and returns false if the queue is full.
    pub fn push(&mut self, option: MptcpOption) -> bool {
        let waiting = self.waiting.get_or_insert_default();
        let fits = waiting.len() < MOST;
        if fits {
            waiting.push_back(option);
        }
        fits
    }

    pub fn pop(&mut self) -> Option<MptcpOption> {
        let option = self.waiting.as_mut()?.pop_front();
        self.release();
        option
    }

    pub fn contains(&self, option: &MptcpOption) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.contains(option))
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_none()
    }

    pub fn retain(&mut self, keep: impl FnMut(&MptcpOption) -> bool) {
        if let Some(waiting) = &mut self.waiting {
            waiting.retain(keep);
        }
        self.release();
    }

    fn release(&mut self) {
        if self.waiting.as_ref().is_some_and(|waiting| waiting.is_empty()) {
            self.waiting = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_leave_in_order_and_no_more_than_sixteen_wait() {
        let mut control = ControlOptions::default();
        let option = |id| MptcpOption::RemoveAddress { address_ids: vec![id] };
        assert!((0..16).all(|id| control.push(option(id))));
        assert!(!control.push(option(16)) && !control.contains(&option(16)));
        control.retain(|waiting| *waiting != option(0));
        assert_eq!(control.pop(), Some(option(1)));
        control.retain(|_| false);
        assert!(control.is_empty() && control.pop().is_none());
    }
}
