//! Sending of a stream: pacing, time stamps and statistics.

use super::paths::{PathReport, shares};
use anabranch_media::FrameType;
use anabranch_media::cut::{CutCounters, Format, Piece};
use anabranch_mptcp::stats::ConnectionStats;
use serde::Serialize;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// If a source is behind its time stamps by more than this, it has paused; the stream's clock is shifted.
const PAUSE: Duration = Duration::from_millis(100);

/// What to do with a piece of input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    Send {
        /// Immediately if this is past.
        at: Instant,
        /// Play-out time, from the stream's start.
        play_out: Duration,
    },
    /// It has waited here longer than the latency.
    Drop,
}

/// Statistics and clock of a sent stream.
#[derive(Debug)]
pub struct Emission {
    /// The latency, if older data is not sent.
    patience: Option<Duration>,
    began: Option<Instant>,
    /// Instant of the stream's time 0.
    anchor: Option<Instant>,
    /// By how much pauses of the source have shifted it.
    behind: Duration,
    /// The greatest time stamp so far.
    reached: Duration,
    last: Option<Instant>,
    sent: u64,
    pictures: [u64; 3],
    bytes: u64,
    dropped: [u64; 2],
    /// The same for data that the connection withdrew after it was written.
    withdrawn: [u64; 2],
    told: Told,
    pauses: u64,
    longest_wait: Duration,
}

/// Statistics of a sent stream. Times are in seconds unless the name has a unit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EmissionReport {
    /// Version; increases when a field is removed or changes its meaning.
    pub schema: u32,
    /// `mptcp` or `tcp`.
    pub protocol: String,
    /// Reason of a fallback to TCP although MPTCP was offered.
    pub fallback: Option<String>,
    /// Detected format.
    pub format: Option<&'static str>,
    /// From the first message to the last.
    pub seconds: f64,
    /// Messages written.
    pub messages: u64,
    /// Written pictures of type I, P and B.
    pub pictures: [u64; 3],
    /// Payload written.
    pub bytes: u64,
    /// Messages not sent, or not completely, because they would have arrived too late or delayed more important ones.
    pub dropped: u64,
    /// Unsent bytes of these messages.
    pub dropped_bytes: u64,
    /// Number of times that the source was behind its time stamps.
    pub pauses: u64,
    /// By how much the stream runs behind what it was at its beginning, since the source paused.
    pub behind_ms: f64,
    /// Longest delay of a message here beyond its time.
    pub longest_wait_ms: f64,
    /// Input bytes that belong to no message.
    pub skipped_bytes: u64,
    /// Null packets of a transport stream, which are not sent.
    pub null_packets: u64,
    /// Pictures of unknown type.
    pub unknown_pictures: u64,
    /// Feedback of the receiver, if it is `stream receive`.
    pub told: Told,
    pub paths: Vec<PathReport>,
}

/// Feedback in the receiver's notices.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Told {
    /// Bytes that the receiver abandoned.
    pub given_up_bytes: u64,
    /// The worst path in its last notice; none if it does not measure paths.
    pub worst_path: Option<WorstPath>,
}

/// A path as measured by the receiver.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WorstPath {
    /// Identifier of the subflow.
    pub subflow: u32,
    /// Extra delay compared with the fastest path.
    pub behind_ms: f64,
}

impl Emission {
    /// The stream begins at `began`, or with its first piece.
    pub fn new(patience: Option<Duration>, began: Option<Instant>) -> Self {
        Self {
            patience,
            began,
            anchor: None,
            behind: Duration::ZERO,
            reached: Duration::ZERO,
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

    /// What to do with the next piece of input, which arrived at `came`.
    pub fn plan(&mut self, piece: &Piece, came: Instant, now: Instant) -> Plan {
        let began = *self.began.get_or_insert(now);
        // In a multiplex sound may lag behind the video. It is not late for that: its time is that of what it follows.
        let time = piece.time.map(|time| Duration::from_nanos(time.as_nanos()).max(self.reached));
        self.reached = time.unwrap_or(self.reached);
        let due = match time {
            // Input without a time stamp is played on arrival.
            None => came.max(began),
            Some(time) => {
                let anchor = *self.anchor.get_or_insert(now.checked_sub(time).unwrap_or(now));
                if came > anchor + time + PAUSE {
                    self.pauses += 1;
                    self.behind += came.saturating_duration_since(anchor + time);
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

    /// Updates the counters of the connection.
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

    /// Counts a written piece.
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

    /// Progress in one line.
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

    /// The report.
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
            behind_ms: self.behind.as_secs_f64() * 1e3,
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

    /// Human-readable report.
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
        // Formatting to a String cannot fail.
        let _ = writeln!(
            text,
            "dropped   {} ({} bytes) that would have come too late; longest wait {:.0} ms",
            self.dropped, self.dropped_bytes, self.longest_wait_ms
        );
        if self.pauses > 0 {
            let _ = writeln!(
                text,
                "pauses    {} of the source, which was behind its own time stamps: since then the stream runs {:.0} ms behind",
                self.pauses, self.behind_ms
            );
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
        // It arrives 500 ms after its time: from here on all times are shifted by that.
        assert_eq!(emission.plan(&piece(1, Some(80)), after(580), after(580)), sends(580, 580));
        assert_eq!(emission.plan(&piece(1, Some(120)), after(620), after(620)), sends(620, 620));
        let report = emission.report(("tcp", None), (None, CutCounters::default()), Vec::new());
        assert_eq!((report.pauses, report.behind_ms), (1, 500.0));
        assert!(report.text().contains(
            "1 of the source, which was behind its own time stamps: since then the stream runs 500 ms behind"
        ));
    }

    #[test]
    fn sound_that_lags_behind_the_video_of_its_multiplex_has_the_time_of_the_video_and_is_no_pause() {
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        let mut emission = Emission::new(Some(Duration::from_millis(300)), None);
        let sends = |at| Plan::Send { at: after(at), play_out: Duration::from_millis(at) };
        assert_eq!(emission.plan(&piece(0, Some(0)), began, began), sends(0));
        assert_eq!(emission.plan(&piece(1, Some(440)), after(440), after(440)), sends(440));
        assert_eq!(emission.plan(&piece(0, Some(40)), after(441), after(441)), sends(440));
        assert_eq!(emission.plan(&piece(1, Some(480)), after(480), after(480)), sends(480));
        assert_eq!(emission.report(("tcp", None), (None, CutCounters::default()), Vec::new()).pauses, 0);
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
