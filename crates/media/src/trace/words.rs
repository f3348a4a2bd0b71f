//! How a word of a file is quoted.

/// Enough of a word to find it by.
pub(super) fn shortened(word: &str) -> String {
    word.chars().take(20).collect()
}
