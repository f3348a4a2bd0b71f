//! Overview above all sections: agreement with the claims of each paper, changes by the schemes on each baseline, and
//! all claims.

mod claims;
mod matrix;

pub use claims::claims;
pub use matrix::matrix;

use super::canvas::ChartError;
use anabranch_lab::measured::Measured;
use anabranch_lab::verdict::{Agreement, Verdict};
use maud::{Markup, html};

/// Verdicts on claims, best first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Everywhere,
    Somewhere,
    InPart,
    Undecided,
    Not,
    NotMeasured,
}

impl Ending {
    const ALL: [Self; 6] =
        [Self::Everywhere, Self::Somewhere, Self::InPart, Self::Undecided, Self::Not, Self::NotMeasured];

    fn of(verdict: &Verdict) -> Self {
        match verdict.best() {
            Agreement::Reproduced if verdict.overall() == Agreement::Reproduced.word() => Self::Everywhere,
            Agreement::Reproduced => Self::Somewhere,
            Agreement::InPart => Self::InPart,
            Agreement::Undecided => Self::Undecided,
            Agreement::Not => Self::Not,
            Agreement::NotMeasured => Self::NotMeasured,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Everywhere => "reproduced",
            Self::Somewhere => "somewhere",
            Self::InPart => "in-part",
            Self::Undecided => "undecided",
            Self::Not => "not-reproduced",
            Self::NotMeasured => "not-measured",
        }
    }

    const fn mark(self) -> &'static str {
        match self {
            Self::Everywhere => "✓",
            Self::Somewhere => "(✓)",
            Self::InPart => "◐",
            Self::Undecided => "?",
            Self::Not => "✗",
            Self::NotMeasured => "–",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Everywhere => "reproduced",
            Self::Somewhere => "reproduced on some baselines only",
            Self::InPart => "in part",
            Self::Undecided => "undecided",
            Self::Not => "not reproduced",
            Self::NotMeasured => "not measured",
        }
    }
}

/// The overview; empty if no experiment has claims.
pub fn overview(all: &[&Measured]) -> Result<Markup, ChartError> {
    let papers = papers(all);
    if papers.is_empty() {
        return Ok(Markup::default());
    }
    let matrices = all.iter().map(|measured| matrix(measured)).collect::<Result<Vec<Markup>, _>>()?;
    let judged = || all.iter().filter(|measured| !measured.verdicts.is_empty());
    let counts = papers.iter().map(|paper| (*paper, counted(all, paper)));
    let statements: usize = judged().map(|measured| measured.verdicts.len()).sum();
    Ok(html! {
        section #overview {
            h2 { "What came out" }
            p {
                (statements) " statements of the papers were compared with runs. Each counts as what it is on the baseline \
                 that bears it out best; a baseline is what the schemes run on."
            }
            (tally(&counts.collect::<Vec<_>>()))
            @for (measured, matrix) in all.iter().zip(&matrices) {
                @if !measured.matrix.is_empty() {
                    h3 { a href={ "#" (measured.name) } { (measured.paper) } ": " (measured.title) }
                    (matrix)
                }
            }
            h3 { "All statements" }
            @for measured in judged() {
                details open {
                    summary {
                        b { (measured.paper) } ": " a href={ "#" (measured.name) } { (measured.title) } ", "
                        (measured.verdicts.len()) " statements"
                    }
                    (claims(&measured.verdicts))
                }
            }
        }
    })
}

/// Papers with claims, in order.
fn papers<'a>(all: &[&'a Measured]) -> Vec<&'a str> {
    let mut papers = Vec::new();
    for measured in all.iter().filter(|measured| !measured.verdicts.is_empty()) {
        if !papers.contains(&measured.paper_name()) {
            papers.push(measured.paper_name());
        }
    }
    papers
}

/// Number of a paper's claims by verdict, without zeros.
fn counted(all: &[&Measured], paper: &str) -> Vec<(Ending, usize)> {
    let verdicts: Vec<&Verdict> =
        all.iter().filter(|one| one.paper_name() == paper).flat_map(|one| &one.verdicts).collect();
    let count = |ending: Ending| verdicts.iter().filter(|verdict| Ending::of(verdict) == ending).count();
    Ending::ALL.into_iter().map(|ending| (ending, count(ending))).filter(|(_, count)| *count > 0).collect()
}

/// One bar per paper with a segment per verdict.
fn tally(papers: &[(&str, Vec<(Ending, usize)>)]) -> Markup {
    let seen = |ending: &Ending| papers.iter().any(|(_, counts)| counts.iter().any(|(known, _)| known == ending));
    html! {
        div.tally {
            @for (paper, counts) in papers {
                b { (paper) }
                div.strip {
                    @for (ending, count) in counts {
                        span class=(ending.class()) style={ "flex-grow:" (count) } title=(ending.words()) {
                            (ending.mark()) " " (count)
                        }
                    }
                }
            }
        }
        ul.legend {
            @for ending in Ending::ALL.iter().filter(|ending| seen(ending)) {
                li { b.ending.(ending.class()) { (ending.mark()) } (ending.words()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::verdict::samples::verdict;

    #[test]
    fn what_is_reproduced_on_one_baseline_only_is_told_from_what_is_on_all() {
        use Agreement::{Not, Reproduced};
        assert_eq!(Ending::of(&verdict(&[("a", Reproduced), ("b", Not)])), Ending::Somewhere);
        assert_eq!(Ending::of(&verdict(&[("a", Reproduced), ("b", Reproduced)])), Ending::Everywhere);
        assert_eq!(Ending::of(&verdict(&[("", Not)])), Ending::Not);
    }

    #[test]
    fn a_strip_has_a_piece_for_each_ending_that_there_is() {
        let html = tally(&[("LM3", vec![(Ending::Everywhere, 3), (Ending::Not, 1)])]).into_string();
        assert_eq!(html.matches("flex-grow").count(), 2);
        assert!(html.contains("✓ 3") && html.contains("✗ 1") && !html.contains("undecided"));
    }

    #[test]
    fn a_statement_has_a_cell_for_each_baseline_and_one_for_all() {
        let html = claims(&[verdict(&[("linux", Agreement::Reproduced), ("plain", Agreement::Not)])]).into_string();
        assert!(html.contains("data-label=\"linux\"") && html.contains("data-label=\"plain\""), "{html}");
        assert!(html.contains("reproduced only on linux") && html.contains("[+1.8, +15.1]"));
    }

    #[test]
    fn what_follows_a_measured_value_stands_below_it() {
        let mut one = verdict(&[("", Agreement::Undecided)]);
        one.cells[0].measured = "10.00 s (one run, no interval)".to_owned();
        let html = claims(&[one]).into_string();
        assert!(html.contains("<span>10.00 s</span><small>(one run, no interval)</small>"), "{html}");
    }

    #[test]
    fn what_stands_in_a_statement_is_escaped() {
        let mut one = verdict(&[("", Agreement::Undecided)]);
        one.subject = "a < b & \"c\"".to_owned();
        assert!(claims(&[one]).into_string().contains("a &lt; b &amp; &quot;c&quot;"));
    }
}
