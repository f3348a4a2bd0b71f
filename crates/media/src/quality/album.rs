//! Decoded pictures that differ from the coded ones, each stored once.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A picture that is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Shown {
    Nothing,
    /// Grey, since nothing arrived.
    Grey,
    /// The frame with this display index, as encoded.
    Coded(u32),
    /// Another picture, by its number.
    Other(u32),
}

/// A decoded picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Given {
    /// The frame with this display index, as encoded.
    Coded(u32),
    /// Other luma.
    Other(Vec<u8>),
}

/// Pictures by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Album {
    pictures: BTreeMap<u32, Vec<u8>>,
    /// Numbers by hash of the picture.
    alike: BTreeMap<u64, Vec<u32>>,
    next: u32,
}

impl Album {
    /// Adds a picture.
    pub fn shown(&mut self, given: Given) -> Shown {
        match given {
            Given::Coded(place) => Shown::Coded(place),
            Given::Other(luma) => Shown::Other(self.number(luma)),
        }
    }

    /// The number of a picture, existing or new.
    fn number(&mut self, picture: Vec<u8>) -> u32 {
        let mut hasher = DefaultHasher::new();
        picture.hash(&mut hasher);
        let alike = self.alike.entry(hasher.finish()).or_default();
        if let Some(number) = alike.iter().find(|number| self.pictures.get(number) == Some(&picture)) {
            return *number;
        }
        let number = self.next;
        self.next += 1;
        alike.push(number);
        self.pictures.insert(number, picture);
        number
    }

    /// The picture of a number; empty if it was dropped.
    pub fn picture(&self, number: u32) -> &[u8] {
        self.pictures.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Drops all pictures but those in `shown`.
    pub fn keep(&mut self, shown: impl Iterator<Item = Shown>) {
        let numbers = shown.filter_map(|shown| if let Shown::Other(number) = shown { Some(number) } else { None });
        let kept: BTreeSet<u32> = numbers.collect();
        self.pictures.retain(|number, _| kept.contains(number));
        self.alike.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_that_are_alike_are_one_and_what_is_not_shown_is_forgotten() {
        let mut album = Album::default();
        let numbers = [vec![1, 2], vec![3, 4], vec![1, 2]].map(|picture| album.number(picture));
        assert_eq!(numbers, [0, 1, 0]);
        album.keep([Shown::Coded(0), Shown::Other(1)].into_iter());
        assert_eq!((album.picture(0), album.picture(1)), (&[][..], &[3, 4][..]));
        // Numbers are never reused, since scores are stored by them.
        assert_eq!(album.number(vec![1, 2]), 2);
    }
}
