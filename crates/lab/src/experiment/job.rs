//! The runs of a scenario.

use crate::record::Record;
use crate::runner::Task;
use crate::runs::{Keep, Origin, Row};
use crate::scenario::Scenario;
use crate::scenario::model::{Heading, Transfer};
use crate::simulation::capacity::{self, Reference};
use crate::simulation::{self, Extras};
use anabranch_settings::contender::{Contender, Route};
use anabranch_settings::diagnostic::Diagnostic;
use std::ops::Range;
use std::sync::OnceLock;

/// Results of runs without the transfer, by seed, each computed by the first run that needs it.
#[derive(Debug, Default)]
pub struct References(Vec<OnceLock<Reference>>);

impl References {
    /// None if the transfer is not greedy, or if its direction is not that of cross traffic.
    pub fn of(scenario: &Scenario, seeds: &Range<u64>, extras: &Extras) -> Self {
        let bulk = matches!(scenario.transfer, Transfer::Endless | Transfer::Finite(_)) && extras.send.is_none();
        // Greedy cross traffic leaves no capacity to compare with.
        if !bulk
            || !scenario.beside.is_empty()
            || scenario.heading != Heading::Upload
            || scenario.mesh.is_some()
            || scenario.moving.is_some()
        {
            return Self::default();
        }
        Self(seeds.clone().map(|_| OnceLock::new()).collect())
    }
}

/// One run: contender, paths and seed.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    pub scenario: &'a Scenario,
    pub contender: &'a Contender,
    /// Indices of the paths that it may use.
    pub paths: Vec<usize>,
    pub seed: u64,
    /// The run without the transfer with the same seed.
    reference: Option<&'a OnceLock<Reference>>,
    extras: &'a Extras,
    pub origin: &'a Origin,
}

impl Task for Job<'_> {
    type Done = Record;

    fn cost(&self) -> u64 {
        effort(self.scenario)
    }

    fn name(&self) -> String {
        format!("{}, {}, seed {}", self.scenario.name, self.contender.name, self.seed)
    }

    fn run(&self) -> Result<Record, Diagnostic> {
        let mut record = simulation::run(self.scenario, self.contender, &self.paths, self.seed, self.extras)?;
        if let Some(reference) = self.reference {
            let reference = reference.get_or_init(|| capacity::reference(self.scenario, self.seed));
            reference.add_to(self.scenario, &mut record);
        }
        Ok(record)
    }
}

impl Job<'_> {
    /// Key of its row.
    pub fn key(&self) -> String {
        self.origin.key(self.scenario, self.contender, &self.paths, self.seed)
    }

    fn row(&self, record: &Record) -> Row {
        self.origin.row(self.scenario, self.contender, &self.paths, record)
    }

    /// Appends its row to the store.
    pub fn keep(&self, store: &dyn Keep, record: &Record) -> Result<(), Diagnostic> {
        store.keep(self.origin, self.row(record))
    }
}

/// Cost of a run: simulated time, times the relative cost of a second compared with a few lightly loaded paths.
pub fn effort(scenario: &Scenario) -> u64 {
    let weight = match (&scenario.mesh, &scenario.moving) {
        (Some(_), _) => 10.0,
        (_, Some(moving)) => moving.nodes as f64 / 2.0,
        _ => 1.0,
    };
    (scenario.duration.as_secs_f64() * weight).ceil() as u64
}

/// Sets of paths on which a contender runs: one set, or each path alone to find the best.
pub fn path_sets(scenario: &Scenario, contender: &Contender) -> Vec<Vec<usize>> {
    let all = 0..scenario.paths.len();
    match &contender.route {
        Route::All => vec![all.collect()],
        Route::Best => all.map(|at| vec![at]).collect(),
        Route::Only(names) => {
            let place = |name: &String| scenario.paths.iter().position(|path| path.name == *name);
            vec![names.iter().filter_map(place).collect()]
        }
    }
}

/// All runs of a scenario; `extras` are those of the first seed and those of all others.
pub fn jobs_of<'a>(
    scenario: &'a Scenario,
    seeds: &Range<u64>,
    references: &'a References,
    extras: (&'a Extras, &'a Extras),
    origin: &'a Origin,
) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for contender in &scenario.policies {
        for paths in path_sets(scenario, contender) {
            for (at, seed) in seeds.clone().enumerate() {
                let extras = if at == 0 { extras.0 } else { extras.1 };
                let reference = references.0.get(at);
                jobs.push(Job { scenario, contender, paths: paths.clone(), seed, reference, extras, origin });
            }
        }
    }
    jobs
}
