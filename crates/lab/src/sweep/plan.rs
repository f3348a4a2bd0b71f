//! The runs of a sweep.

use super::cast::Entrant;
use super::network::{Load, MESSAGE};
use super::point::{Class, Point, Span};
use super::runs::Task;
use std::collections::BTreeMap;

/// Load of messages, as a share of the goodput of TCP on the best single path.
const MESSAGE_LOAD: f64 = 0.5;
/// Messages in the measured part of a run, enough for a 99th percentile; minimum and maximum of its length, in seconds.
const MESSAGES: f64 = 250.0;
const MESSAGE_SPAN: (f64, f64) = (20.0, 2000.0);
/// Minimum goodput of TCP for runs with messages, Mbit/s.
const LEAST_GOODPUT: f64 = 0.02;

/// The policies and references of a sweep, and which of them run on subsets of the paths too.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Plain TCP whose goodput determines the load of all messages.
    pub tcp: Entrant,
    /// Plain TCP that policies are compared with; it is run once if it equals `tcp`.
    pub references: Vec<Entrant>,
    pub cast: Vec<Entrant>,
    /// Names of the policies to run on all subsets.
    pub subsets: Vec<String>,
}

impl Plan {
    /// Bulk transfers: TCP on each path, each policy on all paths, and some on subsets of them.
    pub fn bulk<'a>(&'a self, points: &'a [Point]) -> Vec<Task<'a>> {
        let mut tasks = Vec::new();
        for point in points {
            let all: Vec<usize> = (0..point.paths.len()).collect();
            let mut add = |entrant: &'a Entrant, paths: Vec<usize>| {
                tasks.push(Task { point, entrant, paths, load: Load::Bulk });
            };
            for reference in self.all_tcp() {
                all.iter().for_each(|path| add(reference, vec![*path]));
            }
            for entrant in &self.cast {
                add(entrant, all.clone());
                if self.subsets.iter().any(|name| name == entrant.name()) {
                    proper_subsets(point.paths.len()).into_iter().for_each(|subset| add(entrant, subset));
                }
            }
        }
        tasks
    }

    fn all_tcp(&self) -> Vec<&Entrant> {
        let mut all = vec![&self.tcp];
        for reference in &self.references {
            if !all.iter().any(|known| known.fingerprint() == reference.fingerprint()) {
                all.push(reference);
            }
        }
        all
    }

    /// Messages at half load: TCP on its best path, and each policy on all paths. `goodputs` are those of TCP on each
    /// path, by point number.
    pub fn messages<'a>(&'a self, points: &'a [Point], goodputs: &BTreeMap<u32, Vec<f64>>) -> Vec<Task<'a>> {
        let mut tasks = Vec::new();
        for point in points {
            let singles = goodputs.get(&point.number).map_or(&[][..], Vec::as_slice);
            let Some((best, load)) = best_of(singles).and_then(|best| Some((best, messages(point, singles[best])?)))
            else {
                continue;
            };
            tasks.push(Task { point, entrant: &self.tcp, paths: vec![best], load });
            let all = || (0..point.paths.len()).collect();
            tasks.extend(self.cast.iter().map(|entrant| Task { point, entrant, paths: all(), load }));
        }
        tasks
    }
}

/// Index of the maximum, the first of several.
fn best_of(values: &[f64]) -> Option<usize> {
    (0..values.len()).reduce(|best, next| if values[next] > values[best] { next } else { best })
}

/// The messages of a point on which TCP has `goodput` Mbit/s.
fn messages(point: &Point, goodput: f64) -> Option<Load> {
    if goodput < LEAST_GOODPUT {
        return None;
    }
    let interval = crate::spread::rounded(MESSAGE * 8.0 / (goodput * 1e6 * MESSAGE_LOAD));
    let counted = match point.class {
        // Changes happen at fixed times of the full length.
        Class::Changing => point.span.counted,
        _ => (interval * MESSAGES).clamp(MESSAGE_SPAN.0, MESSAGE_SPAN.1).ceil(),
    };
    Some(Load::Messages { interval, span: Span { counted, ..point.span } })
}

/// All proper, non-empty subsets of the indices below `count`.
fn proper_subsets(count: usize) -> Vec<Vec<usize>> {
    let whole = (1usize << count) - 1;
    (1..whole).map(|set| (0..count).filter(|place| set >> place & 1 == 1).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{cast, design};
    use super::*;

    #[test]
    fn the_proper_subsets_of_three_paths_are_six() {
        assert_eq!(proper_subsets(2), [vec![0], vec![1]]);
        assert_eq!(proper_subsets(3), [vec![0], vec![1], vec![0, 1], vec![2], vec![0, 2], vec![1, 2]]);
    }

    #[test]
    fn messages_of_64_kb_at_half_of_ten_megabits_come_every_tenth_of_a_second() {
        // 64 kB are 512 kbit: 102.4 ms at 5 Mbit/s, rounded to 102 ms. 250 of them take 25.5 s.
        let point = design::points(1, 0, 64).into_iter().find(|point| point.class == Class::LowBdp).unwrap();
        let span = Span { warm_up: 10.0, counted: 26.0 };
        assert_eq!(messages(&point, 10.0), Some(Load::Messages { interval: 0.102, span }));
        // Runs on fast paths last 20 s at least; paths without goodput have no messages.
        let Some(Load::Messages { span, .. }) = messages(&point, 100.0) else { panic!("there are messages") };
        assert_eq!(span.counted, 20.0);
        assert_eq!(messages(&point, 0.0), None);
    }

    #[test]
    fn a_triple_with_subsets_is_three_runs_of_tcp_and_seven_of_the_policy() {
        let points = design::points(1, 0, 64);
        let triple: Vec<Point> = points.into_iter().filter(|point| point.paths.len() == 3).take(1).collect();
        let mut plan = Plan {
            tcp: Entrant::reference(),
            references: vec![Entrant::reference()],
            cast: cast::choose(&["plain".to_owned(), "cubic".to_owned()], false).unwrap(),
            subsets: vec!["plain".to_owned()],
        };
        assert_eq!(plan.bulk(&triple).len(), 3 + 7 + 1);
        plan.subsets.clear();
        assert_eq!(plan.bulk(&triple).len(), 3 + 1 + 1);
        let goodputs = BTreeMap::from([(triple[0].number, vec![1.0, 3.0, 2.0])]);
        let messages = plan.messages(&triple, &goodputs);
        assert_eq!(
            messages.iter().map(|task| task.paths.clone()).collect::<Vec<_>>(),
            [vec![1], vec![0, 1, 2], vec![0, 1, 2]]
        );
    }
}
