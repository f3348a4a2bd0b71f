//! Many environments, stepped on several threads.
//!
//! An environment that ended begins again in the step after, with its next seed; that step ignores the action and has no
//! reward (Gymnasium's `AutoresetMode.NEXT_STEP`).

use super::world::{Spec, Step, WorldEnvironment};
use anabranch_settings::diagnostic::Diagnostic;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Results of all agents of all environments, one after the other.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Steps {
    pub observations: Vec<f32>,
    pub steps: Vec<Step>,
    /// Seeds of the present episodes.
    pub seeds: Vec<u64>,
    /// Hashes over all events of the present episodes, if they were asked for.
    pub trace_hashes: Vec<u64>,
}

enum Order {
    /// Begin with these seeds.
    Reset(Vec<u64>),
    /// Actions of the thread's environments.
    Step(Vec<f32>),
    /// Hashes as well.
    Hash,
}

type Answer = Result<Steps, Diagnostic>;

struct Worker {
    /// Indices of its environments.
    range: Range<usize>,
    orders: Option<SyncSender<Order>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

/// Environments of one specification.
pub struct VectorEnvironment {
    spec: Arc<Spec>,
    count: usize,
    workers: Vec<Worker>,
}

impl VectorEnvironment {
    /// So many environments on so many threads; they begin with [`Self::reset`].
    ///
    /// # Errors
    /// The specification cannot be an environment ([`Spec::check`]), or there is none.
    pub fn new(spec: Spec, count: usize, threads: usize) -> Result<Self, Diagnostic> {
        spec.check()?;
        if count == 0 {
            return Err(Diagnostic::plain("there is no environment of which to make a vector"));
        }
        let (spec, threads) = (Arc::new(spec), threads.clamp(1, count));
        let bound = |thread: usize| thread * count / threads;
        let workers = (0..threads).map(|thread| Worker::start(&spec, bound(thread)..bound(thread + 1))).collect();
        Ok(Self { spec, count, workers })
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The number of environments.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Begins an episode of each environment, with these seeds; the seed of each later episode of an environment is
    /// 2^32 above the one before, modulo 2^63.
    ///
    /// # Errors
    /// A policy cannot be built.
    pub fn reset(&mut self, seeds: &[u64]) -> Answer {
        self.ask(|range| Order::Reset(seeds[range].to_vec()))
    }

    /// Carries out the actions of all agents of all environments, one after the other.
    ///
    /// # Errors
    /// A policy cannot be built, or the numbers of actions are not those of the environments.
    pub fn step(&mut self, actions: &[f32]) -> Answer {
        let each = self.spec.agents * self.spec.actions();
        if actions.len() != each * self.count {
            let (given, rows, paths) = (actions.len(), self.count * self.spec.agents, self.spec.actions());
            return Err(Diagnostic::plain(format!(
                "{given} numbers are no actions of {rows} agents with {paths} paths"
            )));
        }
        self.ask(|range| Order::Step(actions[range.start * each..range.end * each].to_vec()))
    }

    /// Hashes over all events of the present episodes until now.
    ///
    /// # Errors
    /// There was no reset.
    pub fn trace_hashes(&mut self) -> Result<Vec<u64>, Diagnostic> {
        self.ask(|_| Order::Hash).map(|steps| steps.trace_hashes)
    }

    fn ask(&self, order: impl Fn(Range<usize>) -> Order) -> Answer {
        let gone = || Diagnostic::plain("an environment has a fault, see above");
        for worker in &self.workers {
            let orders = worker.orders.as_ref().ok_or_else(gone)?;
            orders.send(order(worker.range.clone())).map_err(|_| gone())?;
        }
        let mut all = Steps::default();
        let mut failure = None;
        for worker in &self.workers {
            match worker.answers.recv().unwrap_or_else(|_| Err(gone())) {
                Ok(some) => {
                    all.observations.extend(some.observations);
                    all.steps.extend(some.steps);
                    all.seeds.extend(some.seeds);
                    all.trace_hashes.extend(some.trace_hashes);
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(all), Err)
    }
}

impl Worker {
    fn start(spec: &Arc<Spec>, range: Range<usize>) -> Self {
        let ((orders, inbox), (outbox, answers)) = (sync_channel(1), sync_channel(1));
        let total = range.len();
        let spec = Arc::clone(spec);
        let work = move || {
            let mut worlds = Worlds { spec, worlds: Vec::with_capacity(total) };
            while let Ok(order) = inbox.recv() {
                if outbox.send(worlds.carry_out(order)).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("environments".to_owned()).spawn(work).ok();
        let orders = thread.is_some().then_some(orders);
        Self { range, orders, answers, thread }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said why.
            let _ = thread.join();
        }
    }
}

/// The environments of one thread, which never leave it.
struct Worlds {
    spec: Arc<Spec>,
    /// With whether the episode has ended.
    worlds: Vec<(WorldEnvironment, bool)>,
}

impl Worlds {
    fn carry_out(&mut self, order: Order) -> Answer {
        let agents = self.spec.agents;
        let features = agents * self.spec.features();
        match order {
            Order::Reset(seeds) => {
                self.worlds.clear();
                let mut all = self.blank(seeds.len());
                for (seed, observation) in seeds.iter().zip(all.observations.chunks_mut(features)) {
                    self.worlds.push((WorldEnvironment::new(&self.spec, *seed, observation)?, false));
                }
                all.seeds = seeds;
                Ok(all)
            }
            Order::Step(actions) => {
                let count = self.worlds.len();
                let mut all = self.blank(count);
                let given = actions.chunks(agents * self.spec.actions());
                let seen = all.observations.chunks_mut(features).zip(all.steps.chunks_mut(agents));
                for ((world, ended), (actions, (observations, steps))) in self.worlds.iter_mut().zip(given.zip(seen)) {
                    if *ended {
                        let next = next_seed(world.seed());
                        (*world, *ended) = (WorldEnvironment::new(&self.spec, next, observations)?, false);
                    } else {
                        *ended = world.step(actions, observations, steps);
                    }
                }
                all.seeds = self.worlds.iter().map(|(world, _)| world.seed()).collect();
                Ok(all)
            }
            Order::Hash => {
                let trace_hashes = self.worlds.iter_mut().map(|(world, _)| world.trace_hash()).collect();
                Ok(Steps { trace_hashes, ..Steps::default() })
            }
        }
    }

    fn blank(&self, count: usize) -> Steps {
        let rows = count * self.spec.agents;
        let observations = vec![0.0; rows * self.spec.features()];
        Steps { observations, steps: vec![Step::default(); rows], ..Steps::default() }
    }
}

/// From the seed of an episode to that of the next one.
const NEXT_EPISODE: u64 = 1 << 32;

/// Within the seeds that a run can have: each episode can be run again, alone.
fn next_seed(seed: u64) -> u64 {
    seed.wrapping_add(NEXT_EPISODE) & LAST_SEED
}

/// The last seed of a run: tables have signed numbers.
const LAST_SEED: u64 = i64::MAX as u64;

#[cfg(test)]
mod tests {
    use super::super::{Decides, Observes, Reward};
    use super::*;
    use crate::library::SCENARIOS;
    use crate::simulation::{self, Extras};
    use anabranch_policy::observation::PATH_FEATURES;
    use anabranch_policy::time::Duration;
    use anabranch_settings::contender::Contender;

    fn spec(decides: Decides) -> Spec {
        let known = SCENARIOS.iter().find(|known| known.name == "two_paths").unwrap();
        let scenario = known.document(&["duration=\"5 s\"".to_owned()]).scenario().unwrap();
        let interval = Duration::from_millis(100);
        let observes = Observes::BothEnds;
        let contender = Contender::plain();
        Spec { scenario, contender, agents: 1, decides, observes, reward: Reward::Goodput, interval }
    }

    #[test]
    fn steps_do_not_change_what_happens() {
        let spec = spec(Decides::Nothing);
        let whole = simulation::run(&spec.scenario, &spec.contender, &[0, 1], 3, &Extras::default()).unwrap();
        let mut vector = VectorEnvironment::new(spec, 2, 2).unwrap();
        vector.reset(&[3, 4]).unwrap();
        for step in 1..=50 {
            let steps = vector.step(&[0.0; 4]).unwrap();
            assert_eq!(steps.steps[0].truncated, step == 50);
        }
        let hashes = vector.trace_hashes().unwrap();
        assert_eq!(hashes[0], whole.trace_hash);
        assert_ne!(hashes[1], whole.trace_hash);
        let again = vector.step(&[0.0; 4]).unwrap();
        assert_eq!(again.seeds, [3 + NEXT_EPISODE, 4 + NEXT_EPISODE]);
        assert_eq!(again.steps, [Step::default(); 2]);
    }

    #[test]
    fn the_seed_after_the_last_ones_is_that_of_a_run_too() {
        assert_eq!(next_seed(11), 11 + NEXT_EPISODE);
        assert_eq!(next_seed(LAST_SEED), NEXT_EPISODE - 1);
        assert_eq!(next_seed(LAST_SEED - NEXT_EPISODE), LAST_SEED);
    }

    /// Rewards and the last observation of five seconds of one environment that always does the same.
    fn constant(decides: Decides, action: [f32; 2], threads: usize) -> (f64, Vec<f32>) {
        let mut vector = VectorEnvironment::new(spec(decides), 3, threads).unwrap();
        vector.reset(&[1, 2, 3]).unwrap();
        let (mut sum, mut last) = (0.0, Vec::new());
        for _ in 0..50 {
            let steps = vector.step(&action.repeat(3)).unwrap();
            sum += steps.steps[1].reward;
            last = steps.observations;
        }
        (sum, last)
    }

    #[test]
    fn a_path_of_weight_zero_carries_nothing() {
        let features = PATH_FEATURES.len();
        let (both, _) = constant(Decides::Scheduler, [1.0, 1.0], 1);
        let (one, last) = constant(Decides::Scheduler, [1.0, 0.0], 2);
        assert!(both > one * 1.1, "{both} {one}");
        assert!(last[6] > 0.0 && last[features + 6] == 0.0, "{last:?}");
    }

    #[test]
    fn a_sender_sees_its_paths_as_both_ends_do_and_knows_what_is_acknowledged() {
        let last = |observes: Observes| {
            let spec = Spec { observes, ..spec(Decides::Nothing) };
            let features = spec.features();
            let mut vector = VectorEnvironment::new(spec, 1, 1).unwrap();
            vector.reset(&[1]).unwrap();
            let steps = (0..20).map(|_| vector.step(&[0.0; 2]).unwrap()).last().unwrap();
            assert_eq!(steps.observations.len(), features);
            (steps.observations, steps.steps[0].reward)
        };
        let (both, sender) = (last(Observes::BothEnds), last(Observes::Sender));
        let paths = 2 * PATH_FEATURES.len();
        assert_eq!((&both.0[..paths], both.1), (&sender.0[..paths], sender.1));
        let [goodput, outstanding, ..] = both.0[paths..] else { panic!("features of the connection") };
        assert_eq!(sender.0[paths + 1], outstanding);
        assert!((sender.0[paths] - goodput).abs() < goodput, "{} {goodput}", sender.0[paths]);
    }

    #[test]
    fn a_suspended_path_carries_nothing() {
        let features = PATH_FEATURES.len();
        let (_, last) = constant(Decides::PathManager, [0.0, 1.0], 1);
        assert!(last[1] == 1.0 && last[7] == 0.0 && last[features + 7] > 0.0, "{last:?}");
    }

    #[test]
    fn windows_are_what_the_agent_makes_of_them() {
        let (small, last) = constant(Decides::Congestion, [-1.0, -1.0], 1);
        assert!(last[4] <= 2.0, "{last:?}");
        let (kept, _) = constant(Decides::Congestion, [0.0, 0.0], 1);
        assert!(kept > small * 1.5, "{kept} {small}");
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let action = [0.7, 0.3];
        assert_eq!(constant(Decides::Scheduler, action, 1), constant(Decides::Scheduler, action, 3));
    }

    /// Two connections with an agent each, the second of which begins within the first second.
    fn two_agents(decides: Decides) -> Spec {
        let mut two = Spec { agents: 2, ..spec(decides) };
        two.scenario.connections = 2;
        two
    }

    #[test]
    fn agents_decide_for_their_own_connections() {
        let spec = two_agents(Decides::Scheduler);
        let (features, paths) = (spec.features(), PATH_FEATURES.len());
        let mut vector = VectorEnvironment::new(spec, 2, 2).unwrap();
        vector.reset(&[1, 2]).unwrap();
        let mut last = Steps::default();
        for _ in 0..50 {
            last = vector.step(&[1.0, 0.0, 0.0, 1.0].repeat(2)).unwrap();
        }
        assert_eq!((last.steps.len(), last.seeds.len()), (4, 2));
        for seen in last.observations.chunks(2 * features) {
            let sent = |agent: usize, path: usize| seen[agent * features + path * paths + 7];
            assert!(sent(0, 0) > 1.0 && sent(0, 1) == 0.0, "{seen:?}");
            assert!(sent(1, 0) == 0.0 && sent(1, 1) > 1.0, "{seen:?}");
        }
        // Neither has all of the network.
        assert!(last.steps.iter().all(|step| step.truncated && step.reward > 0.1 && step.reward < 0.9));
    }

    #[test]
    fn agents_set_the_windows_of_their_own_connections() {
        let spec = two_agents(Decides::Congestion);
        let features = spec.features();
        let mut vector = VectorEnvironment::new(spec, 1, 1).unwrap();
        vector.reset(&[1]).unwrap();
        let mut windows = [0.0; 2];
        for _ in 0..30 {
            let seen = vector.step(&[-1.0, -1.0, 0.0, 0.0]).unwrap().observations;
            windows = [seen[4], seen[features + 4]];
        }
        assert!(windows[0] <= 2.0 && windows[1] > 5.0, "{windows:?}");
    }

    #[test]
    fn agents_that_decide_nothing_change_nothing() {
        let spec = two_agents(Decides::Nothing);
        let whole = simulation::run(&spec.scenario, &spec.contender, &[0, 1], 3, &Extras::default()).unwrap();
        let mut vector = VectorEnvironment::new(spec, 1, 1).unwrap();
        vector.reset(&[3]).unwrap();
        for _ in 0..50 {
            vector.step(&[0.0; 4]).unwrap();
        }
        assert_eq!(vector.trace_hashes().unwrap(), [whole.trace_hash]);
    }

    #[test]
    fn agents_need_connections_and_what_is_theirs_to_decide() {
        let message = |spec| VectorEnvironment::new(spec, 1, 1).err().map(|error| error.message().to_owned()).unwrap();
        let lonely = Spec { agents: 2, ..spec(Decides::Scheduler) };
        assert!(message(lonely).contains("2 agents need as many connections: set 'transfer.connections', which is 1"));
        assert!(message(two_agents(Decides::PathManager)).contains("a path manager is a host's"));
        assert!(message(Spec { agents: 0, ..spec(Decides::Scheduler) }).contains("0 agents"));
    }

    #[test]
    fn wrong_actions_and_scenarios_are_told() {
        let mut vector = VectorEnvironment::new(spec(Decides::Scheduler), 2, 1).unwrap();
        vector.reset(&[1, 2]).unwrap();
        assert!(vector.step(&[1.0; 3]).unwrap_err().message().contains("3 numbers are no actions"));
        assert!(vector.step(&[f32::NAN; 4]).is_ok());
        let mut download = spec(Decides::Nothing);
        download.scenario.heading = crate::scenario::model::Heading::Download;
        assert!(VectorEnvironment::new(download, 1, 1).is_err());
        let single = Spec { contender: Contender::plain_tcp(), ..spec(Decides::Nothing) };
        let message = VectorEnvironment::new(single, 1, 1).err().map(|error| error.message().to_owned());
        assert!(message.is_some_and(|text| text.contains("plain_tcp is not")));
        assert!(VectorEnvironment::new(spec(Decides::Nothing), 0, 1).is_err());
    }
}
