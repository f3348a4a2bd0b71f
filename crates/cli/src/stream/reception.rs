//! Statistics of a received stream.

use super::histogram::Histogram;
use super::paths::{PathReport, shares};
use anabranch_mptcp::stats::Abandoned;
use anabranch_policy::reliability::{PlayOutClock, Reason};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::MessageHeader;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Debug)]
pub struct Reception {
    clock: PlayOutClock,
    began: Option<Instant>,
    last: Instant,
    next: Option<u32>,
    delivered: u64,
    late: u64,
    missing: u64,
    /// With the torn ones.
    bytes: u64,
    torn: u64,
    given_up: BTreeMap<Reason, [u64; 2]>,
    delays: Histogram,
    /// Largest lateness in the current stall, if any.
    stall: Option<Duration>,
    stalls: u64,
    stalled: Duration,
    longest: Duration,
}

/// Data abandoned for one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct GivenUp {
    /// Gaps in the stream.
    pub gaps: u64,
    pub bytes: u64,
}

/// Statistics of a received stream. Times are in seconds unless the name has a unit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ReceptionReport {
    /// Version; increases when a field is removed or changes its meaning.
    pub schema: u32,
    /// `mptcp` or `tcp`.
    pub protocol: String,
    /// Reason of a fallback to TCP although MPTCP was offered; then nothing is abandoned.
    pub fallback: Option<String>,
    /// From the first record to the last.
    pub seconds: f64,
    /// Allowed delay of a message beyond that of the fastest.
    pub latency_ms: f64,
    /// Messages delivered.
    pub messages: u64,
    /// Messages delivered by their play-out time.
    pub on_time: u64,
    /// Messages delivered later.
    pub late: u64,
    /// Messages missing between delivered ones.
    pub missing: u64,
    /// Abandoned data by reason.
    pub given_up: BTreeMap<&'static str, GivenUp>,
    /// Payload delivered.
    pub bytes: u64,
    /// Bytes received but unusable, next to a gap in an unframed stream.
    pub torn_bytes: u64,
    /// Runs of late messages.
    pub stalls: u64,
    /// Sum over stalls of the largest lateness in each.
    pub stalled_ms: f64,
    pub longest_stall_ms: f64,
    /// Delay beyond that of the fastest message: median, 95th and 99th percentile, maximum.
    pub delay_ms: Option<[u64; 4]>,
    pub paths: Vec<PathReport>,
}

impl Reception {
    pub fn new(latency: Duration) -> Self {
        Self {
            clock: PlayOutClock::new(latency),
            began: None,
            last: Instant::ZERO,
            next: None,
            delivered: 0,
            late: 0,
            missing: 0,
            bytes: 0,
            torn: 0,
            given_up: BTreeMap::new(),
            delays: Histogram::default(),
            stall: None,
            stalls: 0,
            stalled: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }

    fn came(&mut self, now: Instant) {
        self.began.get_or_insert(now);
        self.last = now;
    }

    /// Counts a delivered message, whose first byte arrived at `arrived`.
    pub fn message(&mut self, header: &MessageHeader, length: usize, arrived: Instant, now: Instant) {
        self.came(now);
        let play_out = Duration::from_nanos(header.play_out.saturating_mul(1_000));
        self.clock.observe(arrived, play_out);
        self.delivered += 1;
        self.bytes += length as u64;
        // Numbers wrap; a sender's numbers never decrease.
        let skipped = self.next.map_or(0, |next| header.number.wrapping_sub(next));
        self.missing += u64::from(skipped);
        self.next = Some(header.number.wrapping_add(1));
        let Some(due) = self.clock.at(play_out) else { return };
        let lateness = now.since(due);
        let delay = (now + self.clock.latency()).since(due);
        self.delays.add(delay.as_nanos() / 1_000_000);
        if lateness == Duration::ZERO {
            self.end_stall();
        } else {
            self.late += 1;
            self.stall = Some(self.stall.map_or(lateness, |stall| stall.max(lateness)));
        }
    }

    fn end_stall(&mut self) {
        let Some(stall) = self.stall.take() else { return };
        self.stalls += 1;
        self.stalled += stall;
        self.longest = self.longest.max(stall);
    }

    /// Counts received bytes of an unframed stream.
    pub fn bytes(&mut self, length: usize, now: Instant) {
        self.came(now);
        self.bytes += length as u64;
    }

    /// Counts an abandoned range.
    pub fn gap(&mut self, length: u64, reason: Reason) {
        let [gaps, bytes] = self.given_up.entry(reason).or_default();
        (*gaps, *bytes) = (*gaps + 1, *bytes + length);
    }

    /// Sets the total of received but unusable bytes.
    pub fn torn(&mut self, bytes: u64) {
        self.torn = bytes;
    }

    /// Progress in one line.
    pub fn line(&self, paths: &[PathReport]) -> String {
        let seconds = self.began.map_or(0.0, |began| self.last.since(began).as_secs_f64());
        let given_up: u64 = self.given_up.values().map(|[gaps, _]| gaps).sum();
        let median = self.delays.quantile(0.5).map_or(String::new(), |delay| format!(", delay {delay} ms"));
        format!(
            "{seconds:.0} s: {} messages, {} late, {given_up} gaps, {} kB{median}; {}",
            self.delivered,
            self.late,
            self.bytes / 1_000,
            shares(paths)
        )
    }

    /// The report; `abandoned` are the connection's own counters.
    pub fn report(
        mut self,
        (protocol, fallback): (&'static str, Option<String>),
        paths: Vec<PathReport>,
        abandoned: Option<Abandoned>,
    ) -> ReceptionReport {
        self.end_stall();
        let counted = |reason: Reason| {
            let [gaps, bytes] = self.given_up.get(&reason).copied().unwrap_or_default();
            // The connection counts a gap before the application reads it.
            let all = abandoned.map(|abandoned| abandoned.of(reason));
            GivenUp {
                gaps: all.map_or(gaps, |all| all.gaps.max(gaps)),
                bytes: all.map_or(bytes, |all| all.bytes.max(bytes)),
            }
        };
        let given_up = Reason::ALL.into_iter().map(|reason| (reason.name(), counted(reason))).collect();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let quantiles = [0.5, 0.95, 0.99, 1.0].map(|share| self.delays.quantile(share).unwrap_or(0));
        ReceptionReport {
            schema: 1,
            protocol: protocol.to_owned(),
            fallback,
            seconds: self.began.map_or(0.0, |began| self.last.since(began).as_secs_f64()),
            latency_ms: milliseconds(self.clock.latency()),
            messages: self.delivered,
            on_time: self.delivered - self.late,
            late: self.late,
            missing: self.missing,
            given_up,
            bytes: self.bytes.saturating_sub(self.torn),
            torn_bytes: self.torn,
            stalls: self.stalls,
            stalled_ms: milliseconds(self.stalled),
            longest_stall_ms: milliseconds(self.longest),
            delay_ms: (self.delivered > 0).then_some(quantiles),
            paths,
        }
    }
}

impl ReceptionReport {
    /// Whether any data arrived.
    pub fn anything(&self) -> bool {
        self.bytes > 0
    }

    /// Human-readable report.
    pub fn text(&self) -> String {
        let mut text = format!("{:.1} s over {}", self.seconds, self.protocol.to_uppercase());
        if let Some(reason) = &self.fallback {
            // Formatting to a String cannot fail, here and below.
            let _ = write!(text, " ({reason}, so that nothing was abandoned)");
        }
        text.push('\n');
        if self.messages > 0 {
            let _ = writeln!(
                text,
                "messages  {} handed over: {} on time, {} late; {} missing",
                self.messages, self.on_time, self.late, self.missing
            );
        }
        if let Some([median, most95, most99, most]) = self.delay_ms {
            let _ = writeln!(
                text,
                "delay     {median} ms median, {most95} ms 95 %, {most99} ms 99 %, {most} ms most, of {:.0} ms",
                self.latency_ms
            );
            let _ = writeln!(
                text,
                "stalls    {}, together {:.0} ms, longest {:.0} ms",
                self.stalls, self.stalled_ms, self.longest_stall_ms
            );
        }
        let reasons = self.given_up.iter().filter(|(_, given_up)| given_up.gaps > 0);
        let reasons: Vec<String> =
            reasons.map(|(name, given_up)| format!("{name} {} ({} bytes)", given_up.gaps, given_up.bytes)).collect();
        let given_up = if reasons.is_empty() { "nothing".to_owned() } else { reasons.join(", ") };
        let _ = writeln!(text, "abandoned {given_up}");
        let torn = if self.torn_bytes > 0 { format!(", {} torn by gaps", self.torn_bytes) } else { String::new() };
        let _ = writeln!(text, "bytes     {} handed over{torn}", self.bytes);
        let _ = writeln!(text, "paths     {}", shares(&self.paths));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    fn header(number: u32, milliseconds: u64) -> MessageHeader {
        MessageHeader { number, play_out: milliseconds * 1_000, ..MessageHeader::default() }
    }

    #[test]
    fn messages_are_on_time_late_or_missing_and_late_ones_in_a_row_are_one_stall() {
        let mut reception = Reception::new(Duration::from_millis(100));
        // The first sets the base delay: 20 ms.
        for (number, play_out, came) in
            [(0, 0, 20), (1, 40, 160), (2, 80, 260), (5, 200, 330), (6, 240, 340), (7, 280, 350)]
        {
            reception.message(&header(number, play_out), 10, at(came), at(came));
        }
        reception.gap(50, Reason::Expired);
        let report = reception.report(("mptcp", None), Vec::new(), None);
        // 160 is on its deadline 160; 260 is 60 ms late, 330 is 10 ms late.
        assert_eq!((report.messages, report.on_time, report.late, report.missing), (6, 4, 2, 2));
        assert_eq!((report.stalls, report.stalled_ms), (1, 60.0));
        assert_eq!(report.given_up["expired"], GivenUp { gaps: 1, bytes: 50 });
        assert_eq!(report.delay_ms, Some([80, 160, 160, 160]));
        assert!(report.text().contains("6 handed over: 4 on time, 2 late; 2 missing"), "{}", report.text());
    }

    #[test]
    fn what_a_gap_has_torn_is_not_handed_over() {
        let mut reception = Reception::new(Duration::from_millis(100));
        reception.bytes(1_000, at(1));
        reception.torn(188);
        let report = reception.report(("mptcp", None), Vec::new(), None);
        assert_eq!((report.bytes, report.torn_bytes), (812, 188));
    }

    #[test]
    fn numbers_wrap() {
        let mut reception = Reception::new(Duration::from_millis(100));
        for number in [u32::MAX, 0, 2] {
            reception.message(&header(number, 0), 1, at(1), at(1));
        }
        assert_eq!(reception.report(("tcp", None), Vec::new(), None).missing, 1);
    }
}
