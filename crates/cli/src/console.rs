//! Output: results on standard output, remarks on standard error.

use std::io::{Error, ErrorKind, Write};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Why something printed was lost, if it was.
static LOST: OnceLock<Error> = OnceLock::new();

/// Prints to standard output. A closed pipe is ignored: its reader wants no more. Other errors, such as a full disk, are told at the
/// end ([`lost`]).
pub fn print(text: &str) {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            // The first reason counts.
            let _ = LOST.set(error);
        }
        _ => {}
    }
}

/// Why something printed was lost, if it was.
pub fn lost() -> Option<&'static Error> {
    LOST.get()
}

/// Prints to standard error.
pub fn remark(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Logs an event to standard error with the time in UTC.
pub fn event(text: &str) {
    remark(&format!("{} {text}", stamp(since_1970().as_secs())));
}

/// The time since 1970 in UTC, without leap seconds.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Formats seconds since 1970 by RFC 3339.
pub fn stamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years start in March here, so that the leap day is the last of a year; the calendar repeats after 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (date, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn times_are_those_of_the_calendar() {
        // As printed by `date --utc --date @N`.
        assert_eq!(stamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(stamp(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(stamp(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(stamp(1_735_689_600), "2025-01-01T00:00:00Z");
        assert_eq!(stamp(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
