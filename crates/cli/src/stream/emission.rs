//! Sending of a stream: when each piece is sent, its time stamps, and counters.

use super::paths::{PathReport, shares};
use anabranch_media::FrameType;
use anabranch_media::cut::{CutCounters, Format, Piece};
use anabranch_mptcp::stats::ConnectionStats;
use serde::Serialize;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// A source that is later than this behind its own time stamps has paused; the stream goes on from there.
const PAUSE: Duration = Duration::from_millis(100);

/// What to do with a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Send it then, with this time to be played.
    Send {
        /// When; at once if that is over.
        at: Instant,
        /// From the stream's beginning.
        play_out: Duration,
    },
    /// It has waited too long here.
    Drop,
}

/// Counts, and keeps the stream's time.
#[derive(Debug)]
pub struct Emission {
    /// The latency, if what waits too long here is not sent.
    patience: Option<Duration>,
    began: Option<Instant>,
    /// What the stream's own time 0 is.
    anchor: Option<Instant>,
    last: Option<Instant>,
    sent: u64,
    pictures: [u64; 3],
    bytes: u64,
    dropped: [u64; 2],
    /// The same of the connection, which dropped it out of what was written.
    withdrawn: [u64; 2],
    told: Told,
    pauses: u64,
    longest_wait: Duration,
}

/// A stream that was sent. Times are seconds unless the name says otherwise.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EmissionReport {
    /// Goes up when a field changes its meaning or goes.
    pub schema: u32,
    /// `mptcp` or `tcp`.
    pub protocol: String,
    /// Why it is plain TCP although MPTCP was offered.
    pub fallback: Option<String>,
    /// What it was.
    pub format: Option<&'static str>,
    /// From the first message to the last.
    pub seconds: f64,
    /// Messages that were written.
    pub messages: u64,
    /// Of them pictures of type I, P and B.
    pub pictures: [u64; 3],
    /// Payload of what was written.
    pub bytes: u64,
    /// Messages that would have come too late, or made others late that are more important, and were not sent, or not to
    /// their end.
    pub dropped: u64,
    /// Their bytes, as far as they were not sent.
    pub dropped_bytes: u64,
    /// Times that the source was behind its own time stamps.
    pub pauses: u64,
    /// The longest that a message waited here beyond its time.
    pub longest_wait_ms: f64,
    /// Bytes that came in and belong to nothing.
    pub skipped_bytes: u64,
    /// Packets of a transport stream that only fill it up, and were left out.
    pub null_packets: u64,
    /// Pictures that do not say what they are.
    pub unknown_pictures: u64,
    /// What the receiver said, if it is one of ours.
    pub told: Told,
    /// Path by path.
    pub paths: Vec<PathReport>,
}

/// What the receiver told us in its notices.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Told {
    /// Bytes that it abandoned.
    pub given_up_bytes: u64,
    /// The path that it called its worst, by its last word; none if it does not measure them.
    pub worst_path: Option<WorstPath>,
}

/// A path as the receiver sees it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WorstPath {
    /// The subflow's number.
    pub subflow: u32,
    /// How much longer data takes there than on the quickest.
    pub behind_ms: f64,
}

impl Emission {
    /// Nothing was sent. The stream begins with its first piece, unless it has begun before.
    pub fn new(patience: Option<Duration>, began: Option<Instant>) -> Self {
        Self {
            patience,
            began,
            anchor: None,
            last: None,
            sent: 0,
            pictures: [0; 3],
            bytes: 0,
            dropped: [0; 2],
            withdrawn: [0; 2],
            told: Told::default(),
            pauses: 0,
            longest_wait: Duration::ZERO,
        }
    }

    /// What to do with the next piece, which came in at an instant.
    pub fn plan(&mut self, piece: &Piece, came: Instant, now: Instant) -> Plan {
        let began = *self.began.get_or_insert(now);
        let time = piece.time.map(|time| Duration::from_nanos(time.as_nanos()));
        let due = match time {
            // What says nothing of its time is played as it comes.
            None => came.max(began),
            Some(time) => {
                let anchor = *self.anchor.get_or_insert(now.checked_sub(time).unwrap_or(now));
                if came > anchor + time + PAUSE {
                    self.pauses += 1;
                    self.anchor = came.checked_sub(time);
                    came
                } else {
                    anchor + time
                }
            }
        };
        let wait = now.saturating_duration_since(due.max(came));
        self.longest_wait = self.longest_wait.max(wait);
        if piece.importance > 0 && self.patience.is_some_and(|patience| wait > patience) {
            self.dropped = [self.dropped[0] + 1, self.dropped[1] + piece.bytes.len() as u64];
            return Plan::Drop;
        }
        Plan::Send { at: due, play_out: due.saturating_duration_since(began) }
    }

    /// What the connection counted so far.
    pub fn count(&mut self, stats: &ConnectionStats) {
        self.withdrawn = [stats.messages_withdrawn, stats.bytes_withdrawn];
        self.told.given_up_bytes = stats.bytes_abandoned_by_peer;
        let worst = stats.worst_path_of_peer;
        let worst =
            worst.map(|(subflow, behind)| WorstPath { subflow: subflow.0, behind_ms: behind.as_secs_f64() * 1e3 });
        self.told.worst_path = worst.or(self.told.worst_path);
    }

    fn all_dropped(&self) -> [u64; 2] {
        [self.dropped[0] + self.withdrawn[0], self.dropped[1] + self.withdrawn[1]]
    }

    /// A piece was written.
    pub fn sent(&mut self, picture: Option<FrameType>, length: usize, now: Instant) {
        self.sent += 1;
        self.bytes += length as u64;
        self.last = Some(now);
        let place = picture.and_then(|picture| FrameType::ALL.iter().position(|known| *known == picture));
        place.and_then(|place| self.pictures.get_mut(place)).into_iter().for_each(|count| *count += 1);
    }

    fn seconds(&self) -> f64 {
        self.began.zip(self.last).map_or(0.0, |(began, last)| last.saturating_duration_since(began).as_secs_f64())
    }

    /// How it goes, in a line.
    pub fn line(&self, paths: &[PathReport]) -> String {
        format!(
            "{:.0} s: {} messages, {} dropped, {} kB; {}",
            self.seconds(),
            self.sent,
            self.all_dropped()[0],
            self.bytes / 1_000,
            shares(paths)
        )
    }

    /// All of it.
    pub fn report(
        &self,
        (protocol, fallback): (&'static str, Option<String>),
        (format, counters): (Option<Format>, CutCounters),
        paths: Vec<PathReport>,
    ) -> EmissionReport {
        EmissionReport {
            schema: 1,
            protocol: protocol.to_owned(),
            fallback,
            format: format.map(Format::name),
            seconds: self.seconds(),
            messages: self.sent,
            pictures: self.pictures,
            bytes: self.bytes,
            dropped: self.all_dropped()[0],
            dropped_bytes: self.all_dropped()[1],
            pauses: self.pauses,
            longest_wait_ms: self.longest_wait.as_secs_f64() * 1e3,
            skipped_bytes: counters.skipped_bytes,
            null_packets: counters.null_packets,
            unknown_pictures: counters.unknown_pictures,
            told: self.told,
            paths,
        }
    }
}

impl EmissionReport {
    fn worst(&self) -> String {
        let Some(worst) = self.told.worst_path else { return String::new() };
        let path = self.paths.iter().find(|path| path.subflow == worst.subflow);
        let name = path.map_or_else(|| format!("subflow {}", worst.subflow), |path| path.name.clone());
        format!(", its worst path is {name}, {:.0} ms behind the quickest", worst.behind_ms)
    }

    /// For people.
    pub fn text(&self) -> String {
        let [i, p, b] = self.pictures;
        let fallback = self.fallback.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
        let mut text = format!(
            "{:.1} s of {} over {}{fallback}\nmessages  {} written, of them pictures I {i}, P {p}, B {b}; {} bytes\n",
            self.seconds,
            self.format.unwrap_or("bytes"),
            self.protocol.to_uppercase(),
            self.messages,
            self.bytes
        );
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "dropped   {} ({} bytes) that would have come too late; longest wait {:.0} ms",
            self.dropped, self.dropped_bytes, self.longest_wait_ms
        );
        if self.pauses > 0 {
            let _ = writeln!(text, "pauses    {} of the source, which was behind its own time stamps", self.pauses);
        }
        if self.skipped_bytes > 0 {
            let _ = writeln!(text, "skipped   {} bytes that belong to nothing", self.skipped_bytes);
        }
        if self.unknown_pictures > 0 {
            let _ = writeln!(text, "unknown   {} pictures do not say what they are", self.unknown_pictures);
        }
        if self.told.given_up_bytes > 0 {
            let _ =
                writeln!(text, "told      the receiver abandoned {} bytes{}", self.told.given_up_bytes, self.worst());
        }
        let _ = writeln!(text, "paths     {}", shares(&self.paths));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(importance: u8, milliseconds: Option<u64>) -> Piece {
        let time = milliseconds.map(anabranch_policy::time::Duration::from_millis);
        Piece { bytes: vec![0; 10], picture: None, importance, time }
    }

    #[test]
    fn a_file_is_paced_by_its_time_stamps_and_a_source_that_pauses_goes_on_from_there() {
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        let mut emission = Emission::new(Some(Duration::from_millis(300)), None);
        let sends = |at, play_out| Plan::Send { at: after(at), play_out: Duration::from_millis(play_out) };
        assert_eq!(emission.plan(&piece(0, Some(0)), began, began), sends(0, 0));
        assert_eq!(emission.plan(&piece(1, Some(40)), began, after(1)), sends(40, 40));
        // It comes half a second after its time: from there on all times are so much later.
        assert_eq!(emission.plan(&piece(1, Some(80)), after(580), after(580)), sends(580, 580));
        assert_eq!(emission.plan(&piece(1, Some(120)), after(620), after(620)), sends(620, 620));
        assert_eq!(emission.report(("tcp", None), (None, CutCounters::default()), Vec::new()).pauses, 1);
    }

    #[test]
    fn what_could_not_be_written_for_too_long_is_dropped_unless_others_need_it_most() {
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        let mut emission = Emission::new(Some(Duration::from_millis(300)), None);
        emission.plan(&piece(0, Some(0)), began, began);
        assert_eq!(emission.plan(&piece(1, Some(40)), after(40), after(400)), Plan::Drop);
        assert_ne!(emission.plan(&piece(1, Some(40)), after(40), after(140)), Plan::Drop);
        assert_ne!(emission.plan(&piece(0, Some(40)), after(40), after(400)), Plan::Drop);
        let mut all = Emission::new(None, None);
        all.plan(&piece(0, Some(0)), began, began);
        assert_ne!(all.plan(&piece(2, Some(40)), after(40), after(4_000)), Plan::Drop);
    }
}
