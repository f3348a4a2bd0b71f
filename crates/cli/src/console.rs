//! Output: results on standard output, remarks on standard error.

use std::io::Write;

/// Prints to standard output; a closed pipe is no reason to complain.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints a remark to standard error.
pub fn remark(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
