//! In which list a neighbour is in Hellos, and for how many more (RFC 5614, 4.1).

use crate::config::HELLO_REPEAT_COUNT;

/// The list of a Hello with a neighbour (RFC 5614, 4.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum List {
    /// List 1.
    Down,
    /// List 2.
    Init,
    /// List 3.
    Dependent,
    /// List 4.
    Selected,
    /// List 5.
    Unselected,
}

/// The list of a neighbour in Hellos, and the cost of the link to it. A change is announced in HelloRepeatCount
/// differential Hellos.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Announcement {
    list: Option<List>,
    /// Remaining Hellos that announce the list.
    list_repeats: u16,
    cost: u16,
    /// Remaining Hellos that announce the cost.
    cost_repeats: u16,
}

impl Announcement {
    /// The list of the neighbour in the last Hello.
    pub fn list(&self) -> Option<List> {
        self.list
    }

    /// Sets the list and cost for the next Hello.
    pub fn update(&mut self, list: Option<List>, cost: u16) {
        if self.list != list {
            (self.list, self.list_repeats) = (list, HELLO_REPEAT_COUNT);
        }
        if self.cost != cost {
            (self.cost, self.cost_repeats) = (cost, HELLO_REPEAT_COUNT);
        }
    }

    /// Whether a differential Hello must include it.
    pub fn is_news(&self) -> bool {
        self.list_repeats > 0 || self.cost_repeats > 0
    }

    /// A Hello includes it.
    pub fn count(&mut self) {
        self.list_repeats = self.list_repeats.saturating_sub(1);
        self.cost_repeats = self.cost_repeats.saturating_sub(1);
    }

    /// The neighbour is down. Its list is still announced, the cost of the link is not.
    pub fn forget_cost(&mut self) {
        (self.cost, self.cost_repeats) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_said_in_three_hellos() {
        let mut announcement = Announcement::default();
        let mut said = 0;
        for list in [List::Init, List::Dependent] {
            announcement.update(Some(list), 1);
            while announcement.is_news() {
                announcement.update(Some(list), 1);
                announcement.count();
                said += 1;
            }
        }
        assert_eq!((said, announcement.list()), (6, Some(List::Dependent)));
        announcement.update(Some(List::Dependent), 9);
        assert!(announcement.is_news());
        announcement.forget_cost();
        assert!(!announcement.is_news());
    }
}
