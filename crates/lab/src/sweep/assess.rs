//! Computes scores from runs: finds the runs of each policy and point.

use super::carried;
use super::cast::Entrant;
use super::journal::Line;
use super::plan::Plan;
use super::point::Point;
use super::point_score::{Delay, PointScore};
use super::runs::Task;
use std::collections::BTreeMap;

/// Key of a run: the point's number, [`Entrant::identity`], and indices of the paths.
type Place = (u32, String, Vec<usize>);

/// Runs by key.
#[derive(Clone, Debug, Default)]
pub struct Runs<'a> {
    bulk: BTreeMap<Place, &'a Line>,
    messages: BTreeMap<Place, &'a Line>,
}

impl<'a> Runs<'a> {
    /// Runs with bulk transfers.
    pub fn new(tasks: &[Task<'_>], lines: &'a [Line]) -> Self {
        Self { bulk: by_place(tasks, lines), messages: BTreeMap::new() }
    }

    /// Adds runs with messages.
    pub fn with_messages(mut self, tasks: &[Task<'_>], lines: &'a [Line]) -> Self {
        self.messages = by_place(tasks, lines);
        self
    }

    fn goodput(&self, point: &Point, entrant: &Entrant, paths: &[usize]) -> Option<f64> {
        let line = self.bulk.get(&(point.number, entrant.identity(), paths.to_vec()))?;
        counted(point, line, paths)
    }

    /// Goodputs of TCP on each path.
    fn singles(&self, point: &Point, tcp: &Entrant) -> Vec<f64> {
        (0..point.paths.len()).map(|path| self.goodput(point, tcp, &[path]).unwrap_or(0.0)).collect()
    }

    /// Goodputs of TCP on each path, by point number.
    pub fn all_singles(&self, points: &[Point], tcp: &Entrant) -> BTreeMap<u32, Vec<f64>> {
        points.iter().map(|point| (point.number, self.singles(point, tcp))).collect()
    }

    fn p99(&self, point: &Point, entrant: &Entrant, paths: &[usize]) -> Option<f64> {
        let line = self.messages.get(&(point.number, entrant.identity(), paths.to_vec()))?;
        line.measured.get("message_delay_p99").copied()
    }

    /// Scores of the policy with this index on all points.
    pub fn scores(&self, plan: &Plan, place: usize, points: &[Point]) -> Vec<PointScore> {
        let (Some(entrant), Some(reference)) = (plan.cast.get(place), plan.references.get(place)) else {
            return Vec::new();
        };
        points.iter().map(|point| self.score(plan, entrant, reference, point)).collect()
    }

    fn score(&self, plan: &Plan, entrant: &Entrant, reference: &Entrant, point: &Point) -> PointScore {
        let all: Vec<usize> = (0..point.paths.len()).collect();
        let goodput = self.goodput(point, entrant, &all).unwrap_or(0.0);
        let low = (point.number, entrant.identity(), Vec::new());
        let subsets = self
            .bulk
            .range(low..)
            .take_while(|((number, who, _), _)| *number == point.number && *who == entrant.identity());
        let subsets: Vec<f64> = subsets
            .filter(|((_, _, paths), _)| paths.len() < all.len())
            .filter_map(|((_, _, paths), line)| counted(point, line, paths))
            .collect();
        let mut score = PointScore::new(point.number, point.class, goodput, self.singles(point, reference), &subsets);
        score.measured = self
            .bulk
            .get(&(point.number, entrant.identity(), all.clone()))
            .map_or_else(BTreeMap::new, |line| line.measured.clone());
        let singles = all.iter().filter_map(|path| self.bulk.get(&(point.number, reference.identity(), vec![*path])));
        let most = |line: &&&Line| line.measured.get("throughput").copied().unwrap_or(0.0);
        let best = singles.max_by(|a, b| most(a).total_cmp(&most(b)));
        score.best_single = best.map_or_else(BTreeMap::new, |line| line.measured.clone());
        let tcp = all.iter().find_map(|path| self.p99(point, &plan.tcp, &[*path]));
        score.delay = self.p99(point, entrant, &all).zip(tcp).map(|(p99, tcp)| Delay { p99, tcp });
        score
    }
}

/// Goodput of a run, limited to the capacity of its paths.
fn counted(point: &Point, line: &Line, paths: &[usize]) -> Option<f64> {
    let read = line.measured.get("throughput").copied()?;
    Some(read.min(carried::most(point, paths)))
}

fn by_place<'a>(tasks: &[Task<'_>], lines: &'a [Line]) -> BTreeMap<Place, &'a Line> {
    let place = |task: &Task<'_>| (task.point.number, task.entrant.identity(), task.paths.clone());
    tasks.iter().zip(lines).map(|(task, line)| (place(task), line)).collect()
}
