//! LSAs in the order of their keys, in short sorted arrays.
//!
//! A database is searched for every LSA that is received, and of a large network it is larger than a processor's cache. Keys that
//! are next to each other, away from the rest of the entries, take fewer reads than the nodes of a tree do, and no space is lost in
//! nodes that are half empty. A database of one array would be smaller still, but a hostile neighbour could make each LSA move
//! all others.

use anabranch_wire::ospf::LsaKey;

/// Most entries of an array: one of them moves less than 4 kB.
const MOST: usize = 64;

/// Space is made for so many entries at a time.
const STEP: usize = 16;

/// A map from keys to values.
#[derive(Clone, Debug)]
pub(super) struct Ordered<V> {
    /// In order; none is empty.
    runs: Vec<Run<V>>,
}

/// Consecutive entries.
#[derive(Clone, Debug)]
struct Run<V> {
    /// Its first key, or one that is less and greater than those of the run before.
    first: LsaKey,
    keys: Vec<LsaKey>,
    values: Vec<V>,
}

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self { runs: Vec::new() }
    }
}

impl<V> Run<V> {
    fn of(key: LsaKey, value: V) -> Self {
        Self { first: key, keys: vec![key], values: vec![value] }
    }

    /// Takes the second half away.
    fn split(&mut self) -> Option<Self> {
        let keys = self.keys.split_off(self.keys.len() / 2);
        let values = self.values.split_off(self.values.len() / 2);
        self.keys.shrink_to_fit();
        self.values.shrink_to_fit();
        Some(Self { first: *keys.first()?, keys, values })
    }

    /// Inserts an entry whose key is not there yet.
    fn insert(&mut self, key: LsaKey, value: V) {
        if self.keys.len() == self.keys.capacity() {
            self.keys.reserve_exact(STEP);
            self.values.reserve_exact(STEP);
        }
        self.first = self.first.min(key);
        let place = self.keys.binary_search(&key).unwrap_or_else(|place| place);
        self.keys.insert(place, key);
        self.values.insert(place, value);
    }

    fn iter(&self, from: usize) -> impl Iterator<Item = (&LsaKey, &V)> {
        self.keys.iter().zip(&self.values).skip(from)
    }
}

impl<V> Ordered<V> {
    /// The run that has a key, if any has.
    fn run_of(&self, key: LsaKey) -> usize {
        self.runs.partition_point(|run| run.first <= key).saturating_sub(1)
    }

    pub fn get(&self, key: LsaKey) -> Option<&V> {
        let run = self.runs.get(self.run_of(key))?;
        run.values.get(run.keys.binary_search(&key).ok()?)
    }

    pub fn get_mut(&mut self, key: LsaKey) -> Option<&mut V> {
        let at = self.run_of(key);
        let run = self.runs.get_mut(at)?;
        run.values.get_mut(run.keys.binary_search(&key).ok()?)
    }

    /// Inserts an entry whose key is not there yet.
    pub fn insert(&mut self, key: LsaKey, value: V) {
        let at = self.run_of(key);
        let Some(run) = self.runs.get_mut(at) else {
            self.runs.push(Run::of(key, value));
            return;
        };
        if run.keys.len() < MOST {
            run.insert(key, value);
        } else if run.keys.last().is_some_and(|end| *end < key) {
            // LSAs often come in order: full arrays stay full.
            match self.runs.get_mut(at + 1).filter(|next| next.keys.len() < MOST) {
                Some(next) => next.insert(key, value),
                None => self.runs.insert(at + 1, Run::of(key, value)),
            }
        } else {
            let half = run.split();
            self.runs.splice(at + 1..at + 1, half);
            let at = self.run_of(key);
            if let Some(run) = self.runs.get_mut(at) {
                run.insert(key, value);
            }
        }
    }

    pub fn remove(&mut self, key: LsaKey) -> Option<V> {
        let at = self.run_of(key);
        let run = self.runs.get_mut(at)?;
        let place = run.keys.binary_search(&key).ok()?;
        run.keys.remove(place);
        let value = run.values.remove(place);
        let left = run.keys.len();
        if left == 0 {
            self.runs.remove(at);
        } else if self.runs.get(at + 1).is_some_and(|next| left + next.keys.len() <= MOST / 2) {
            let mut next = self.runs.remove(at + 1);
            if let Some(run) = self.runs.get_mut(at) {
                run.keys.append(&mut next.keys);
                run.values.append(&mut next.values);
            }
        }
        Some(value)
    }

    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.keys.len()).sum()
    }

    pub fn clear(&mut self) {
        self.runs.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = (&LsaKey, &V)> {
        self.runs.iter().flat_map(|run| run.iter(0))
    }

    /// The entries whose keys are `least` or greater.
    pub fn since(&self, least: LsaKey) -> impl Iterator<Item = (&LsaKey, &V)> {
        let at = self.run_of(least);
        let before = self.runs.get(at).map_or(0, |run| run.keys.partition_point(|key| *key < least));
        let runs = self.runs.iter().skip(at).enumerate();
        runs.flat_map(move |(index, run)| run.iter(if index == 0 { before } else { 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use anabranch_wire::ospf::{LinkStateId, LsaType, RouterId};
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    fn key(number: u32) -> LsaKey {
        LsaKey { kind: LsaType::ROUTER, advertising: RouterId(number / 4), id: LinkStateId(number % 4) }
    }

    /// Compares everything that can be asked with a map of the standard library.
    fn assert_same(ordered: &mut Ordered<u32>, map: &BTreeMap<LsaKey, u32>, asked: u32) {
        assert_eq!(ordered.len(), map.len());
        assert!(ordered.iter().eq(map.iter()));
        assert!(ordered.since(key(asked)).eq(map.range(key(asked)..)), "since {asked}");
        assert_eq!(ordered.get(key(asked)), map.get(&key(asked)));
        assert_eq!(ordered.get_mut(key(asked)).copied(), map.get(&key(asked)).copied());
        assert!(ordered.runs.iter().all(|run| (1..=MOST).contains(&run.keys.len())));
    }

    #[test]
    fn after_random_histories_it_is_what_a_map_of_the_standard_library_is() {
        let mut random = Random::new(7, RouterId(1));
        let mut below = |limit: u32| random.number() % limit;
        for history in 0..40 {
            // Growing, about as many as before, and shrinking.
            let (mut ordered, mut map) = (Ordered::default(), BTreeMap::new());
            let keys = [300, 1_000][history % 2];
            for step in 0..1_500 {
                let number = below(keys);
                let growing = below(10) < [8, 5, 1][step / 500];
                if !growing {
                    assert_eq!(ordered.remove(key(number)), map.remove(&key(number)));
                } else if let Entry::Vacant(entry) = map.entry(key(number)) {
                    ordered.insert(key(number), step as u32);
                    entry.insert(step as u32);
                }
                if step % 10 == 0 {
                    assert_same(&mut ordered, &map, below(keys));
                }
            }
        }
    }

    #[test]
    fn entries_that_come_in_the_order_of_a_hostile_neighbour_share_arrays_too() {
        let mut ordered = Ordered::default();
        (0..64).for_each(|number| ordered.insert(key(number), number));
        // Each is greater than the first 64, and less than those before it.
        (64..1_000).rev().for_each(|number| ordered.insert(key(number), number));
        assert!(ordered.runs.len() <= 2 * 1_000 / MOST, "{}", ordered.runs.len());
        assert!(ordered.iter().map(|(_, number)| *number).eq(0..1_000));
    }

    #[test]
    fn entries_that_come_in_order_fill_their_arrays_and_few_that_are_left_share_one() {
        let mut ordered = Ordered::default();
        (0..1_000).for_each(|number| ordered.insert(key(number), number));
        assert_eq!(ordered.runs.len(), 1_000_usize.div_ceil(MOST));
        assert!(ordered.runs.iter().all(|run| run.values.capacity() < run.keys.len() + STEP));
        for number in (0..1_000).rev().filter(|number| number % 100 != 0) {
            assert_eq!(ordered.remove(key(number)), Some(number));
        }
        assert_eq!((ordered.len(), ordered.runs.len()), (10, 1));
        ordered.clear();
        assert_eq!((ordered.len(), ordered.runs.len()), (0, 0));
    }
}
