//! How a neighbour is listed in Hellos, and how often still (RFC 5614, 4.1).

use crate::config::HELLO_REPEAT_COUNT;

/// In which list of a Hello a neighbour stands (RFC 5614, 4.1).
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

/// In which list of the Hellos a neighbour stands and what the link to it costs. What changes is said in HelloRepeatCount
/// differential Hellos.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Announcement {
    list: Option<List>,
    /// Hellos in which the list is still to be said.
    list_repeats: u16,
    cost: u16,
    /// Hellos in which the cost is still to be said.
    cost_repeats: u16,
}

impl Announcement {
    /// In which list the last Hello had the neighbour.
    pub fn list(&self) -> Option<List> {
        self.list
    }

    /// What the next Hello is to say.
    pub fn update(&mut self, list: Option<List>, cost: u16) {
        if self.list != list {
            (self.list, self.list_repeats) = (list, HELLO_REPEAT_COUNT);
        }
        if self.cost != cost {
            (self.cost, self.cost_repeats) = (cost, HELLO_REPEAT_COUNT);
        }
    }

    /// Whether a differential Hello must say it.
    pub fn is_news(&self) -> bool {
        self.list_repeats > 0 || self.cost_repeats > 0
    }

    /// A Hello says it.
    pub fn count(&mut self) {
        self.list_repeats = self.list_repeats.saturating_sub(1);
        self.cost_repeats = self.cost_repeats.saturating_sub(1);
    }

    /// The neighbour is down. That it was there is still to be said, what the link costs is not.
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
