//! A sliding bitmap of the numbers seen (RFC 6479).

/// Bits of a word.
const WORD: u64 = 64;

/// The highest number seen, and which of the numbers shortly before it were seen.
#[derive(Clone, Debug)]
pub struct Window {
    words: Box<[u64]>,
    /// The highest number plus one.
    next: u64,
}

impl Window {
    /// A window of at least the last `size` numbers; `size` is a multiple of 64.
    pub fn new(size: u64) -> Self {
        // One more word, since that of the highest number is only partly used.
        Self { words: vec![0; (size / WORD + 1) as usize].into(), next: 0 }
    }

    fn size(&self) -> u64 {
        (self.words.len() as u64 - 1) * WORD
    }

    fn place(&self, number: u64) -> (usize, u64) {
        ((number / WORD % self.words.len() as u64) as usize, 1 << (number % WORD))
    }

    /// Whether a number is new. Numbers below the window are not, nor is 2^64 - 1, which has no successor.
    pub fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return number != u64::MAX;
        }
        let (word, bit) = self.place(number);
        self.next - number <= self.size() && self.words.get(word).is_some_and(|word| word & bit == 0)
    }

    /// Records a new number. Returns whether it is the highest so far.
    pub fn insert(&mut self, number: u64) -> bool {
        let highest = number >= self.next;
        if highest {
            let (first, last) = (self.next.div_ceil(WORD), number / WORD);
            let count = self.words.len() as u64;
            for word in first..=last.min(first.saturating_add(count - 1)) {
                if let Some(word) = self.words.get_mut((word % count) as usize) {
                    *word = 0;
                }
            }
            self.next = number.saturating_add(1);
        }
        let (word, bit) = self.place(number);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
        highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_is_new_once() {
        let mut window = Window::new(2_048);
        for number in [0, 1, 3, 2] {
            assert!(window.is_new(number));
            window.insert(number);
            assert!(!window.is_new(number));
        }
    }

    #[test]
    fn what_is_older_than_the_window_counts_as_seen() {
        let mut window = Window::new(2_048);
        window.insert(10_000);
        assert!(window.is_new(10_001 - 2_048));
        assert!(!window.is_new(10_000 - 2_048));
        assert!(!window.is_new(0));
    }

    #[test]
    fn a_leap_forgets_what_was_seen_and_nothing_is_new_that_was_not() {
        let mut window = Window::new(128);
        (0..128).for_each(|number| _ = window.insert(number));
        window.insert(1 << 40);
        assert!((0..128).all(|number| !window.is_new(number)), "too old");
        assert!(window.is_new((1 << 40) - 1));
        assert!(!window.is_new(u64::MAX));
    }

    proptest! {
        #[test]
        fn it_says_what_a_set_would(numbers in proptest::collection::vec((0_u64..40, 0_u64..400), 1..200)) {
            let mut window = Window::new(128);
            let (mut seen, mut highest) = (BTreeSet::new(), 0);
            for (leap, back) in numbers {
                let number = (highest + leap).saturating_sub(if leap < 10 { back } else { 0 });
                let new = !seen.contains(&number) && number + 128 > highest;
                prop_assert_eq!(window.is_new(number), new, "{}", number);
                if new {
                    prop_assert_eq!(window.insert(number), number > highest || seen.is_empty() );
                    seen.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}
