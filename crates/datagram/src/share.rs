//! Whose turn it is to give way when everything is taken: who has most, counted by key.

use core::hash::Hash;
use std::collections::HashMap;
use std::sync::Arc;

/// Whose key it is; none if all clients have the same.
pub type Owner = Option<Arc<str>>;

/// A key that a server accepts, and whose it is.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientKey {
    /// The shared key.
    pub key: [u8; 32],
    /// Whose it is.
    pub owner: Owner,
}

impl From<[u8; 32]> for ClientKey {
    /// A key that all clients have.
    fn from(key: [u8; 32]) -> Self {
        Self { key, owner: None }
    }
}

/// What all are told of once in a while: someone who had most has given way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crowd {
    /// Who has most.
    pub owner: Owner,
    /// How many it had.
    pub count: usize,
}

/// Who has most and gives way to `asking`, with how many it has: somebody who has at least two more, so that none takes
/// from the other in turn.
pub fn gives_way<T: Hash + Eq>(holders: impl Iterator<Item = (T, usize)>, asking: &T) -> Option<(T, usize)> {
    let mut counts: HashMap<T, usize> = HashMap::new();
    holders.for_each(|(holder, count)| *counts.entry(holder).or_default() += count);
    let own = counts.get(asking).copied().unwrap_or(0);
    counts.into_iter().max_by_key(|(_, count)| *count).filter(|(_, most)| *most > own + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_gives_way_to_who_has_at_least_two_fewer() {
        let holders = [("a", 3), ("b", 2), ("a", 1)];
        assert_eq!(gives_way(holders.into_iter(), &"b"), Some(("a", 4)));
        assert_eq!(gives_way(holders.into_iter(), &"c"), Some(("a", 4)));
        assert_eq!(gives_way(holders.into_iter(), &"a"), None);
        assert_eq!(gives_way([("a", 2), ("b", 1)].into_iter(), &"b"), None);
    }
}
