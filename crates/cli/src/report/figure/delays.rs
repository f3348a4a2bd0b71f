//! Delays of single segments over time, one dot each in the colour of its path; one chart per contender.

use super::drawn::Drawn;
use crate::report::canvas::{ChartError, TITLE_HEIGHT, adopt, css_colour, headed, styled, tidy};
use crate::report::picture::{Picture, columns};
use anabranch_lab::record::{Outcome, PolicyRuns, SegmentDelay};
use anabranch_policy::time::Duration;
use plotters::prelude::*;
use std::fmt::Write;

/// Of the first run of each contender.
pub fn segment_delays(
    outcome: &Outcome,
    runs: &[(usize, &PolicyRuns)],
    window: Option<(Duration, Option<Duration>)>,
) -> Result<Drawn, ChartError> {
    let (from, to) = window.unwrap_or_default();
    let inside =
        |one: &&SegmentDelay| one.sent >= from.as_secs_f64() && to.is_none_or(|to| one.sent <= to.as_secs_f64());
    let of = |runs: &PolicyRuns| -> Vec<SegmentDelay> {
        let all = runs.records.first().map_or(&[][..], |record| &record.segment_delays);
        all.iter().filter(inside).copied().collect()
    };
    // Labels may be too long for a third of the page.
    let name = |runs: &PolicyRuns| runs.contender.name.clone();
    let shown: Vec<(String, Vec<SegmentDelay>)> = runs.iter().map(|(_, runs)| (name(runs), of(runs))).collect();
    if shown.iter().all(|(_, delays)| delays.is_empty()) {
        return Ok(Drawn::nothing("No delays of single segments were kept."));
    }
    let span = Span::of(shown.iter().flat_map(|(_, delays)| delays));
    let beside = columns(shown.len());
    let picture = |(label, delays): &(String, Vec<SegmentDelay>)| {
        Picture::drawn(beside, |width| picture(label, delays, span, width))
    };
    let pictures = shown.iter().map(picture).collect::<Result<_, _>>()?;
    let legend = outcome.scenario.paths.iter().enumerate().map(|(at, path)| (format!("path {}", path.name), at));
    let reading = "The first run of each: a dot per segment, from its first transmission to its acknowledgement.";
    Ok(Drawn { pictures, columns: beside, legend: legend.collect(), reading: reading.to_owned() })
}

/// Common range of the axes of a figure, so that charts can be compared.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Span {
    /// End time, seconds.
    until: f64,
    /// Minimum and maximum delay, ms.
    delays: (f64, f64),
}

impl Span {
    fn of<'a>(all: impl Iterator<Item = &'a SegmentDelay>) -> Self {
        let wider = |span: Self, one: &SegmentDelay| Self {
            until: span.until.max(one.sent),
            delays: (span.delays.0.min(one.delay), span.delays.1.max(one.delay)),
        };
        let found = all.fold(Self { until: 0.0, delays: (f64::MAX, 0.0) }, wider);
        if found.delays.1 > 0.0 { found } else { Self { until: 1.0, delays: (1.0, 10.0) } }
    }
}

/// The chart of one run.
fn picture(title: &str, delays: &[SegmentDelay], span: Span, width: u32) -> Result<String, ChartError> {
    let (low, high) = ((span.delays.0 / 1.2).max(0.1), span.delays.1 * 1.2);
    let size = (width, if width > 500 { width * 3 / 5 } else { width * 3 / 4 } + 2 * TITLE_HEIGHT);
    let mut text = String::new();
    let mut dots: Vec<String> = Vec::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let headings = [(title, FontStyle::Bold), ("Time to the acknowledgement (ms)", FontStyle::Normal)];
        let mut chart = ChartBuilder::on(&headed(&root, &headings)?)
            .margin(6)
            .margin_right(16)
            .x_label_area_size(48)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..span.until.max(0.1) * 1.02, (low..high).log_scale())?;
        styled(&mut chart.configure_mesh())
            .x_labels(6)
            .x_label_formatter(&|x| tidy(*x))
            .y_label_formatter(&|y| tidy(*y))
            .x_desc("Sent at (s)")
            .draw()?;
        for one in delays {
            let (x, y) = chart.backend_coord(&(one.sent, one.delay.clamp(low, high)));
            if dots.len() <= one.path {
                dots.resize_with(one.path + 1, String::new);
            }
            let _ = write!(dots[one.path], "M{x} {y}h0");
        }
        root.present()?;
    }
    // A zero-length line with round ends is a dot, in a tenth of the bytes of a circle.
    let path = |(at, dots): (usize, &String)| {
        let colour = css_colour(at);
        format!(
            "<path d=\"{dots}\" stroke=\"{colour}\" stroke-width=\"3\" stroke-linecap=\"round\" opacity=\"0.6\"/>\n"
        )
    };
    let paths: String = dots.iter().enumerate().filter(|(_, dots)| !dots.is_empty()).map(path).collect();
    Ok(adopt(&text).replace("</svg>", &(paths + "</svg>")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_segment_is_a_dot_of_its_path() {
        let delays = [(0, 0.5, 20.0), (1, 0.6, 400.0), (0, 2.0, 35.0)];
        let delays = delays.map(|(path, sent, delay)| SegmentDelay { path, sent, delay });
        let span = Span::of(delays.iter());
        assert_eq!(span, Span { until: 2.0, delays: (20.0, 400.0) });
        let svg = picture("MFxM", &delays, span, 378).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("MFxM"));
        let dots = |colour: &str| {
            let path = svg.split("<path ").find(|path| path.contains(colour)).unwrap();
            path.matches("h0").count()
        };
        assert_eq!((dots(&css_colour(0)), dots(&css_colour(1))), (2, 1));
    }

    #[test]
    fn without_segments_there_are_empty_axes() {
        let span = Span::of([].iter());
        assert!(picture("none", &[], span, 340).unwrap().starts_with("<svg"));
    }
}
