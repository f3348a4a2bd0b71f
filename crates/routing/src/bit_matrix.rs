//! Sets of small numbers as bit rows, so that an election with hundreds of neighbours is fast enough to run before each
//! Hello.
//!
//! A row is a slice of words; number n is bit n % 64 of word n / 64. A number beyond the row is in no set, and
//! inserting it has no effect.

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// Words of a row for the numbers below `size`.
pub(crate) fn words(size: usize) -> usize {
    size.div_ceil(WORD)
}

pub(crate) fn contains(row: &[u64], number: usize) -> bool {
    row.get(number / WORD).is_some_and(|word| word >> (number % WORD) & 1 == 1)
}

/// Inserts `number` into the row; true if it was not there.
pub(crate) fn insert(row: &mut [u64], number: usize) -> bool {
    let Some(word) = row.get_mut(number / WORD) else { return false };
    let bit = 1 << (number % WORD);
    let new = *word & bit == 0;
    *word |= bit;
    new
}

pub(crate) fn remove(row: &mut [u64], number: usize) {
    if let Some(word) = row.get_mut(number / WORD) {
        *word &= !(1 << (number % WORD));
    }
}

/// The numbers of a row, smallest first.
pub(crate) fn ones(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(index, &word)| Bits(word).map(move |bit| index * WORD + bit))
}

/// Number of elements that two rows have in common.
pub(crate) fn common(one: &[u64], other: &[u64]) -> usize {
    one.iter().zip(other).map(|(a, b)| (a & b).count_ones() as usize).sum()
}

/// Number of elements of a row.
pub(crate) fn count(row: &[u64]) -> usize {
    row.iter().map(|word| word.count_ones() as usize).sum()
}

/// Adds the intersection of `one` and `other` to `row`.
pub(crate) fn add_common(row: &mut [u64], one: &[u64], other: &[u64]) {
    for ((word, a), b) in row.iter_mut().zip(one).zip(other) {
        *word |= a & b;
    }
}

/// Makes `row` an empty set for the numbers below `size`.
pub(crate) fn clear(row: &mut Vec<u64>, size: usize) {
    row.clear();
    row.resize(words(size), 0);
}

/// The bits of a word that are 1, lowest first.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

/// As many rows as there are numbers, in one allocation that is reused.
#[derive(Clone, Default, Debug)]
pub(crate) struct BitMatrix {
    words: Vec<u64>,
    stride: usize,
}

impl BitMatrix {
    /// Resets it to `size` empty rows for the numbers below `size`.
    pub(crate) fn clear(&mut self, size: usize) {
        self.stride = words(size);
        self.words.clear();
        self.words.resize(self.stride * size, 0);
    }

    /// A row; empty if there is none.
    pub(crate) fn row(&self, number: usize) -> &[u64] {
        let start = number * self.stride;
        self.words.get(start..start + self.stride).unwrap_or(&[])
    }

    /// A row; empty if there is none.
    pub(crate) fn row_mut(&mut self, number: usize) -> &mut [u64] {
        let start = number * self.stride;
        self.words.get_mut(start..start + self.stride).unwrap_or(&mut [])
    }

    /// Whether `column` is in row `row`.
    pub(crate) fn contains(&self, row: usize, column: usize) -> bool {
        contains(self.row(row), column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_in_and_come_out_in_order() {
        let mut row = Vec::new();
        clear(&mut row, 130);
        assert_eq!(row.len(), 3);
        for number in [129, 0, 64, 63] {
            assert!(insert(&mut row, number));
            assert!(!insert(&mut row, number));
        }
        remove(&mut row, 64);
        assert_eq!(ones(&row).collect::<Vec<_>>(), [0, 63, 129]);
        assert_eq!(count(&row), 3);
        assert!(contains(&row, 129) && !contains(&row, 1));
    }

    #[test]
    fn what_lies_beyond_a_row_is_not_in_it() {
        let mut row = vec![0; words(64)];
        assert!(!insert(&mut row, 64));
        assert!(!contains(&row, 64));
        let mut matrix = BitMatrix::default();
        matrix.clear(3);
        assert!(insert(matrix.row_mut(2), 1));
        assert!(!insert(matrix.row_mut(3), 1));
        assert!(matrix.contains(2, 1) && !matrix.contains(1, 2) && !matrix.contains(3, 1));
    }

    #[test]
    fn what_two_rows_have_in_common_is_counted_and_added() {
        assert_eq!(common(&[0b1110], &[0b0111]), 2);
        let mut row = [0b1_0000_u64];
        add_common(&mut row, &[0b1110], &[0b0111]);
        assert_eq!(row, [0b1_0110]);
    }
}
