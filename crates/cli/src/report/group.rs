//! Groups contenders of a scenario with several baselines, and labels them.

use anabranch_lab::record::{Outcome, PolicyRuns};

/// Label of a contender among those of its own baseline.
pub fn label(outcome: &Outcome, runs: &PolicyRuns) -> String {
    if runs.baseline().is_none() { runs.label() } else { outcome.label_of(runs.scheme()) }
}

/// The schemes of an experiment, in order.
pub fn schemes(outcome: &Outcome) -> Vec<&str> {
    distinct(outcome.policies.iter().map(PolicyRuns::scheme))
}

/// Contenders of one baseline, with the indices of their schemes, which determine colours.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// Title of its chart; empty without baselines.
    pub title: &'a str,
    pub runs: Vec<(usize, &'a PolicyRuns)>,
}

/// The chosen contenders by baseline, in order of baselines; those without baseline last.
pub fn by_baseline<'a>(chosen: &[(usize, &'a PolicyRuns)]) -> Vec<Group<'a>> {
    let mut order = distinct(chosen.iter().map(|(_, runs)| runs.baseline()));
    order.sort_by_key(Option::is_none);
    let none = if order.len() > 1 { "on no baseline" } else { "" };
    let of = |wanted: Option<&'a str>| Group {
        title: wanted.unwrap_or(none),
        runs: chosen.iter().copied().filter(|(_, runs)| runs.baseline() == wanted).collect(),
    };
    order.into_iter().map(of).collect()
}

/// Label and colour of each scheme, once.
pub fn legend(outcome: &Outcome, chosen: &[(usize, &PolicyRuns)]) -> Vec<(String, usize)> {
    distinct(chosen.iter().map(|(at, runs)| (label(outcome, runs), *at)))
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::contender::Contender;

    fn runs(scheme: &str, baseline: Option<&str>) -> PolicyRuns {
        let contender =
            Contender { scheme: scheme.to_owned(), baseline: baseline.map(str::to_owned), ..Contender::plain() };
        PolicyRuns { contender, best_path: None, records: Vec::new() }
    }

    #[test]
    fn a_scheme_has_one_colour_under_all_baselines() {
        let all = [
            runs("mptcp", Some("linux")),
            runs("lm3", Some("linux")),
            runs("mptcp", Some("plain")),
            runs("lm3", Some("plain")),
        ];
        let chosen: Vec<(usize, &PolicyRuns)> = all.iter().enumerate().map(|(at, runs)| (at % 2, runs)).collect();
        let groups = by_baseline(&chosen);
        assert_eq!(groups.iter().map(|group| group.title).collect::<Vec<_>>(), ["linux", "plain"]);
        let second: Vec<(usize, &str)> = groups[1].runs.iter().map(|(at, runs)| (*at, runs.scheme())).collect();
        assert_eq!(second, [(0, "mptcp"), (1, "lm3")]);
    }

    #[test]
    fn what_runs_on_no_baseline_comes_last_and_is_told_so() {
        let (alone, other) = (runs("tcp", None), runs("lm3", Some("plain")));
        let groups = by_baseline(&[(0, &alone), (1, &other)]);
        assert_eq!(groups.iter().map(|group| group.title).collect::<Vec<_>>(), ["plain", "on no baseline"]);
    }

    #[test]
    fn without_baselines_there_is_one_group_without_a_title() {
        let one = runs("lm3", None);
        let groups = by_baseline(&[(3, &one)]);
        assert_eq!((groups.len(), groups[0].title), (1, ""));
    }
}
