//! A point as a scenario: the text for `run`, `compare` and `emulate`, and its parsed form for the lab.

use super::cast::{Ends, Entrant};
use super::point::{Competition, Point, PointPath, Span};
use crate::kernel_model;
use crate::scenario::{Document, Scenario};
use crate::spread::tidy;
use anabranch_settings::diagnostic::Diagnostic;
use std::fmt::Write;

/// Message size in bytes.
pub const MESSAGE: f64 = 64e3;

/// Send buffer: exceeds the largest receive buffer, so that the latter limits.
const SEND_BUFFER: &str = "16 MiB";
/// Automatic receive buffer: initial and maximum size of Linux.
const AUTOMATIC: &str = "{ initial = \"128 KiB\", max = \"6 MiB\" }";
/// Send buffer with competing connections: as for the others, never a limit.
const SEND_BUFFER_BESIDE: &str = "64 MiB";
const AUTOMATIC_BESIDE: &str = "{ initial = \"128 KiB\", max = \"64 MiB\" }";
/// Sampling interval in seconds; the warm-up is a multiple of it.
const SAMPLE: f64 = 1.0;

/// Traffic of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// Bulk transfer.
    Bulk,
    /// Messages of 64 kB.
    Messages {
        /// Mean interval, seconds.
        interval: f64,
        /// Duration.
        span: Span,
    },
}

impl Load {
    /// Phases of a run on a point.
    pub fn span(self, point: &Point) -> Span {
        match self {
            Self::Bulk => point.span,
            Self::Messages { span, .. } => span,
        }
    }
}

impl Point {
    /// Name; it is part of the path names, which seed their random streams.
    pub fn name(&self) -> String {
        let design = if self.competition.is_some() { "competition" } else { "sweep" };
        format!("{design}_{}_{}", self.seed, self.number)
    }

    pub fn path_name(&self, place: usize) -> String {
        format!("{}_{}", self.name(), char::from(b'A' + place as u8))
    }

    /// Description of the network in one line.
    pub fn describe(&self) -> String {
        let path = |path: &PointPath| {
            let loss = if path.loss > 0.0 { format!(" {} %", tidy(path.loss * 100.0)) } else { String::new() };
            let down = path.down.map_or(String::new(), |(from, to)| match to {
                Some(to) => format!(" down {}..{} s", tidy(from), tidy(to)),
                None => format!(" down from {} s", tidy(from)),
            });
            let (rate, round_trip) = (tidy(path.rate), tidy(path.round_trip));
            format!("{rate} Mbit/s {round_trip} ms +{} ms{loss}{down}", tidy(path.queueing))
        };
        let buffer = self.receive_buffer.map_or("auto".to_owned(), |bytes| format!("{} KiB", bytes >> 10));
        let change = self.change.map_or(String::new(), |change| format!(", {}", change.name()));
        let competition = self.competition.as_ref().map_or(String::new(), |competition| self.describe_it(competition));
        format!(
            "{}, buffer {buffer}, {}{change}{competition}",
            self.paths.iter().map(path).collect::<Vec<_>>().join(" | "),
            if self.download { "download" } else { "upload" }
        )
    }

    fn describe_it(&self, competition: &Competition) -> String {
        let mut text = format!(", {}", self.class.name().replace('_', " "));
        if let Some(shared) = &competition.shared {
            let (rate, round_trip, queueing) = (tidy(shared.rate), tidy(shared.round_trip), tidy(shared.queueing));
            let _ = write!(text, ", all over {rate} Mbit/s {round_trip} ms +{queueing} ms");
        }
        if competition.connections > 1 {
            let _ = write!(text, ", {} connections", competition.connections);
        }
        if let Some((control, count, paths)) = &competition.others {
            let _ = write!(text, ", {count} {control} on {} of the paths", paths.len());
        }
        text
    }

    /// As a scenario file.
    pub fn text(&self, ends: Ends, load: Load) -> String {
        let direction = if self.download { "download" } else { "upload" };
        let span = load.span(self);
        let transfer = match load {
            Load::Bulk => match &self.competition {
                Some(competition) if competition.connections > 1 => {
                    format!("kind = \"endless\"\nconnections = {}", competition.connections)
                }
                _ => "kind = \"endless\"".to_owned(),
            },
            Load::Messages { interval, .. } => {
                format!("kind = \"messages\"\nsize = \"{MESSAGE} B\"\ninterval = \"{} s\"", tidy(interval))
            }
        };
        let mut text = format!(
            "name = \"{}\"\ntitle = \"{}\"\nduration = \"{} s\"\nwarm_up = \"{} s\"\nsample = \"{SAMPLE} s\"\nseeds = 1\n\n\
             [transfer]\n{transfer}\ndirection = \"{direction}\"\n\n[connection]\n{}",
            self.name(),
            self.describe(),
            span.warm_up + span.counted,
            span.warm_up,
            self.connection(ends),
        );
        for (place, path) in self.paths.iter().enumerate() {
            let _ =
                write!(text, "\n[[paths]]\nname = \"{}\"\n\n[[paths.links]]\nname = \"link\"\n", self.path_name(place));
            self.write_link(&mut text, path);
        }
        self.write_competition(&mut text);
        text
    }

    fn write_competition(&self, text: &mut String) {
        let Some(competition) = &self.competition else { return };
        if let Some(shared) = &competition.shared {
            text.push_str("\n[[shared]]\nname = \"shared\"\n");
            self.write_link(text, shared);
        }
        if let Some((control, count, paths)) = &competition.others {
            for place in paths {
                let path = self.path_name(*place);
                let _ = write!(
                    text,
                    "\n[[beside]]\nname = \"on_{path}\"\ncongestion = \"{control}\"\ncount = {count}\npath = \"{path}\"\n"
                );
            }
        }
    }

    fn connection(&self, ends: Ends) -> String {
        match ends {
            Ends::Linux => kernel_model::connection(self.receive_buffer, self.paths.len()),
            Ends::Ours => {
                let (automatic, send) = match self.competition {
                    Some(_) => (AUTOMATIC_BESIDE, SEND_BUFFER_BESIDE),
                    None => (AUTOMATIC, SEND_BUFFER),
                };
                let receive = self.receive_buffer.map_or(automatic.to_owned(), |bytes| format!("\"{bytes} B\""));
                format!("receive_buffer = {receive}\nsend_buffer = \"{send}\"\n")
            }
        }
    }

    fn write_link(&self, text: &mut String, path: &PointPath) {
        // The link has the maximum of its rates, scaled down by its coverage.
        let highest = path.rates.iter().map(|(_, rate)| *rate).fold(path.rate, f64::max);
        let _ = writeln!(text, "rate = \"{} Mbit/s\"", tidy(highest));
        let _ = match path.varying {
            None => writeln!(text, "delay = \"{} ms\"", tidy(path.round_trip / 2.0)),
            Some((most, every)) => writeln!(
                text,
                "delay = {{ uniform = \"{}..{} ms\", drawn = \"slowly_varying\", every = \"{} s\" }}",
                tidy(path.round_trip / 2.0),
                tidy(most / 2.0),
                tidy(every)
            ),
        };
        let _ = match path.codel {
            false => writeln!(text, "queue = \"{} packets\"", path.queue),
            true => {
                writeln!(text, "queue = {{ discipline = \"codel\", limit = \"{} packets\" }}", path.queue)
            }
        };
        if path.loss > 0.0 {
            let direction = if self.download { "backward" } else { "forward" };
            let _ = write!(text, "loss = {}\nloss_direction = \"{direction}\"\n", tidy(path.loss));
        }
        if !path.rates.is_empty() {
            let point = |(at, rate): (f64, f64)| {
                format!("{{ at = \"{} s\", rate = \"{} %\" }}", tidy(at), tidy(rate / highest * 100.0))
            };
            let course = std::iter::once((0.0, path.rate)).chain(path.rates.iter().copied());
            let _ = writeln!(text, "coverage = [{}]", course.map(point).collect::<Vec<_>>().join(", "));
        }
        if let Some((from, to)) = path.down {
            let _ = match to {
                Some(to) => writeln!(text, "down = [\"{}..{} s\"]", tidy(from), tidy(to)),
                None => writeln!(text, "down = [\"{} s..\"]", tidy(from)),
            };
        }
        if !path.paused.is_empty() {
            let pause = |(from, to): &(f64, f64)| format!("\"{}..{} s\"", tidy(*from), tidy(*to));
            let _ = writeln!(text, "paused = [{}]", path.paused.iter().map(pause).collect::<Vec<_>>().join(", "));
        }
    }

    /// The scenario for an entrant.
    pub fn scenario(&self, entrant: &Entrant, load: Load) -> Result<Scenario, Diagnostic> {
        Document::embedded(&self.name(), &self.text(entrant.ends, load), &[]).scenario()
    }
}

#[cfg(test)]
mod tests {
    use super::super::design::{point, points};
    use super::*;
    use crate::journal::key;
    use crate::scenario::model::Heading;

    #[test]
    fn the_points_that_were_published_are_what_they_were() {
        let mut texts: Vec<String> = Vec::new();
        for number in 0..64 {
            texts.push(point(1, number).text(Ends::Ours, Load::Bulk));
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(key(&texts), "04890aa6358a9b67e409a66c");
    }

    #[test]
    fn each_point_is_a_scenario_that_the_lab_understands_for_both_ends() {
        for point in points(1, 0, 128) {
            let messages = Load::Messages { interval: 0.123, span: point.span };
            for (ends, load) in [(Ends::Ours, Load::Bulk), (Ends::Linux, messages)] {
                let text = point.text(ends, load);
                let scenario = Document::embedded("point", &text, &[]).scenario().unwrap();
                assert_eq!(scenario.paths.len(), point.paths.len());
                assert_eq!(scenario.heading == Heading::Download, point.download);
            }
        }
    }
}
