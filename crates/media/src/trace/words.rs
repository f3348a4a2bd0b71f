//! Quoting of words of a file.

/// The start of a word, long enough to find it.
pub(super) fn shortened(word: &str) -> String {
    word.chars().take(20).collect()
}
